"""Primaries used as replicas, and another memory used as anyone's `MemoryStore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commonplace import Memory
from commonplace.plugins import open_replica
from commonplace.stores.base import Store
from commonplace.stores.foreign import ForeignStore
from commonplace.testing import FakeClock, ReplicaContract


class TestSqliteCopy(ReplicaContract):
    durable = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        return open_replica(f"sqlite://{tmp_path}/copy.db", clock)


class TestSqliteVecCopy(ReplicaContract):
    durable = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        return open_replica(f"sqlite-vec://{tmp_path}/copy.db", clock)


class TestInMemoryCopy(ReplicaContract):
    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        return open_replica("memory://", clock)


class ClosingForeignStore(ForeignStore):
    """Whoever made it closes it, too."""

    async def close(self) -> None:
        await self._store.close()  # type: ignore[attr-defined]


class TestForeign(ReplicaContract):
    """A `Memory` over a store of its own: it mints its ids, and knows nothing of ours."""

    durable = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        theirs = Memory("theirs", data=tmp_path, embedder="hashing", clock=clock)
        return ClosingForeignStore(theirs, "theirs")

    def test_agents_are_named_by_a_store_that_can(self, opened_replica: Any) -> None:
        """The five operations have no word for it; one that can be listed names them, as `memorywire+http` does."""
        s, run = opened_replica
        run(s.write("one"))
        assert run(s.store.agent_names(s.tenant)) == []
