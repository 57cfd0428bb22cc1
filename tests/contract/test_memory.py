from __future__ import annotations

from pathlib import Path

from commonplace.stores.contract import FakeClock, StoreContract
from commonplace.stores.memory import InMemory


class TestInMemory(StoreContract):
    def open_store(self, tmp_path: Path, clock: FakeClock) -> InMemory:
        return InMemory(clock)
