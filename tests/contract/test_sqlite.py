from __future__ import annotations

from pathlib import Path

from commonplace.stores.contract import FakeClock, StoreContract
from commonplace.stores.sqlite import SqliteStore


class TestSqlite(StoreContract):
    durable = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> SqliteStore:
        return SqliteStore(tmp_path / "commonplace.db", clock)
