from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.stores.memory import InMemory
from commonplace.testing import FakeClock, PrimaryContract


class TestInMemory(PrimaryContract):
    keeps_tokens = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> InMemory:
        return InMemory(clock)

    @pytest.mark.slow  # this store reads everything for each of its two hundred questions
    def test_two_hundred_writers_at_once(self, tmp_path: Path) -> None:
        super().test_two_hundred_writers_at_once(tmp_path)
