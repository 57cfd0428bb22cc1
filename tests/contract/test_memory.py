from __future__ import annotations

from pathlib import Path

from commonplace.stores.memory import InMemory
from commonplace.testing import FakeClock, PrimaryContract


class TestInMemory(PrimaryContract):
    def open_store(self, tmp_path: Path, clock: FakeClock) -> InMemory:
        return InMemory(clock)
