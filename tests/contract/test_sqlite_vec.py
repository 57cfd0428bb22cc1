from __future__ import annotations

from pathlib import Path

from commonplace.stores.sqlite_vec import SqliteVecStore
from commonplace.testing import FakeClock, PrimaryContract


class TestSqliteVec(PrimaryContract):
    durable = True
    keeps_tokens = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> SqliteVecStore:
        return SqliteVecStore(tmp_path / "commonplace.db", clock)
