"""mem0 itself, on a folder of its own. Skipped, loudly, where it is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Store, StoreSettings
from commonplace.testing import FakeClock, ReplicaContract

# Not imported here: it reads at its import whether it may phone home, which the store forbids first.
pytestmark = [
    pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed: pip install mem0ai==2.2.1"),
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore"),
]


class TestMem0(ReplicaContract):
    durable = True
    writers = 5

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        from commonplace.plugins import open_replica

        return open_replica(f"mem0://{tmp_path}/mem0", clock, StoreSettings(embed=HashingEmbedder().embed))
