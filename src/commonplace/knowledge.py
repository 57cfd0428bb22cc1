"""The knowledge graph for Python programs: the methods that `Memory` has for it."""

from __future__ import annotations

from typing import Any, Protocol

from commonplace.dialects import knowledge
from commonplace.engine import Engine
from commonplace.wire.knowledge import AssertRequest, EraseRequest, RetractRequest
from commonplace.wire.record import Principal
from commonplace.wire.validate import parse


class _Opened(Protocol):
    agent_id: str
    _who: Principal

    async def engine(self) -> Engine: ...

    def _request(self, fields: dict[str, Any]) -> dict[str, Any]: ...


class GraphMemory:
    """What is stated about things, since when and until when; and what ties memories to each other."""

    async def graph_assert(self: _Opened, subject: str, predicate: str, object: str, **fields: Any) -> dict[str, Any]:
        """State something; what held of this subject and predicate until then ends. `fields`: confidence,
        provenance, valid_from (ms), agent_id."""
        given = self._request({"subject": subject, "predicate": predicate, "object": object, **fields})
        return await knowledge.state(await self.engine(), self._who, parse(AssertRequest, given))

    async def graph_query(
        self: _Opened, subject: str, *, predicate: str | None = None, as_of: int | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """{subject, triples}: what is stated about a subject now, or held at `as_of` (ms)."""
        return await knowledge.query(
            await self.engine(), self._who, agent_id or self.agent_id, subject, predicate=predicate, as_of=as_of
        )

    async def graph_history(
        self: _Opened, subject: str, *, predicate: str | None = None, agent_id: str | None = None
    ) -> dict[str, Any]:
        """{subject, triples}: everything that was ever stated about it, oldest first."""
        return await knowledge.history(
            await self.engine(), self._who, agent_id or self.agent_id, subject, predicate=predicate
        )

    async def graph_path(
        self: _Opened, start: str, end: str, *, max_hops: int = 3, as_of: int | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """{start, end, triples}: the fewest statements that lead from one thing to another."""
        return await knowledge.path(
            await self.engine(), self._who, agent_id or self.agent_id, start, end, max_hops=max_hops, as_of=as_of
        )

    async def graph_retract(self: _Opened, subject: str, predicate: str, **fields: Any) -> dict[str, Any]:
        """End what holds now, with nothing in its place."""
        given = self._request({"subject": subject, "predicate": predicate, **fields})
        return await knowledge.retract(await self.engine(), self._who, parse(RetractRequest, given))

    async def graph_erase(self: _Opened, subject: str, **fields: Any) -> dict[str, Any]:
        """Erase everything ever stated about a subject; with `mentions=True` also what names it as the object."""
        given = self._request({"subject": subject, **fields})
        return await knowledge.erase(await self.engine(), self._who, parse(EraseRequest, given))

    async def preview_graph_erase(self: _Opened, subject: str, **fields: Any) -> dict[str, Any]:
        given = self._request({"subject": subject, **fields})
        return await knowledge.preview_erase(await self.engine(), self._who, parse(EraseRequest, given))

    would_graph_erase = preview_graph_erase

    async def neighbors(self: _Opened, id: str, *, hops: int = 1, agent_id: str | None = None) -> dict[str, Any]:
        """{id, neighbors}: the memories within so many hops of one, each with its distance."""
        return await knowledge.neighbors(await self.engine(), self._who, agent_id or self.agent_id, id, hops=hops)
