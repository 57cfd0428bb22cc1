"""The test-suite that every backend passes. It drives a store through the real engine, as every user does.

A backend's whole test file is

    from commonplace.testing import PrimaryContract

    class TestMine(PrimaryContract):
        durable = True  # what was written is there after close and open
        keeps_tokens = True  # `Entry.tokens` are kept, and `Search.tokens` scored by them

        def open_store(self, tmp_path, clock):
            return MyStore(tmp_path / "mine.db", clock)

A replica's is the same with `ReplicaContract`, which drives it by its own verbs; `lossy` names the fields of a memory
that its product cannot keep.

`open_store` is called again with the same folder where a scenario reopens a durable store. Nothing sleeps: the clock
is a `FakeClock`. What a store does not declare in `capabilities` is skipped. pytest and hypothesis are all it needs.
"""

from __future__ import annotations

from commonplace.testing.graph import GraphScenarios, LinkScenarios
from commonplace.testing.late_interaction import LateScenarios
from commonplace.testing.paper import PaperScenarios
from commonplace.testing.reads import ReadScenarios
from commonplace.testing.replica import ReplicaScenarios
from commonplace.testing.storage import StorageScenarios
from commonplace.testing.subject import FakeClock

__all__ = ["FakeClock", "PrimaryContract", "ReplicaContract"]


class PrimaryContract(PaperScenarios, ReadScenarios, StorageScenarios, LateScenarios, GraphScenarios, LinkScenarios):
    """Subclass it, give `open_store`, and run pytest."""


class ReplicaContract(ReplicaScenarios):
    """Subclass it, give `open_store`, and run pytest."""
