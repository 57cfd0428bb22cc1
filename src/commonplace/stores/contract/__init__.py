"""The test-suite that every backend passes. It drives a store through the real engine, as every user does.

A backend's whole test file is

    from commonplace.stores.contract import StoreContract

    class TestMine(StoreContract):
        durable = True  # what was written is there after close and open

        def open_store(self, tmp_path, clock):
            return MyStore(tmp_path / "mine.db", clock)

`open_store` is called again with the same folder where a scenario reopens a durable store. Nothing sleeps: the clock
is a `FakeClock`. What a store does not declare in `capabilities` is skipped. pytest and hypothesis are all it needs.
"""

from __future__ import annotations

from commonplace.stores.contract.keeping import Keeping
from commonplace.stores.contract.paper import Paper
from commonplace.stores.contract.reading import Reading
from commonplace.stores.contract.statements import Statements
from commonplace.stores.contract.subject import FakeClock
from commonplace.stores.contract.ties import Tied

__all__ = ["FakeClock", "StoreContract"]


class StoreContract(Paper, Reading, Keeping, Statements, Tied):
    """Subclass it, give `open_store`, and run pytest."""
