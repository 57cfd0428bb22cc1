from __future__ import annotations

from pathlib import Path

from commonplace.stores.sqlite import SqliteStore
from commonplace.testing import FakeClock, PrimaryContract


class TestSqlite(PrimaryContract):
    durable = True
    keeps_tokens = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> SqliteStore:
        return SqliteStore(tmp_path / "commonplace.db", clock)
