"""memorywire's knowledge graph: statements that hold from one time to another."""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.dialects.memorywire.base import Document, MemorywireBase
from commonplace.dialects.memorywire.records import triple_to_wire
from commonplace.engine import Statement, Triple
from commonplace.wire.models import AssertRequest, EraseRequest, RetractRequest


class GraphOperations(MemorywireBase):
    async def graph_assert(self, request: AssertRequest) -> Document:
        """The statement with what it ended, or would end once it is approved."""
        stated = await self._engine.assert_fact(self._who, Statement(**dict(request)))
        replaced = {} if stated.replaced is None else {"replaced": triple_to_wire(stated.replaced)}
        return {**triple_to_wire(stated.triple), **replaced, **self._engine.pending_fields(stated.review_id)}

    async def graph_query(
        self, agent_id: str, subject: str, *, predicate: str | None = None, as_of: int | None = None
    ) -> Document:
        found = await self._engine.graph.query(self._who, agent_id, subject, predicate=predicate, as_of=as_of)
        return _about(subject, found)

    async def graph_history(self, agent_id: str, subject: str, *, predicate: str | None = None) -> Document:
        return _about(subject, await self._engine.graph.history(self._who, agent_id, subject, predicate))

    async def graph_path(
        self, agent_id: str, start: str, end: str, *, max_hops: int = 3, as_of: int | None = None
    ) -> Document:
        found = await self._engine.graph.path(self._who, agent_id, start, end, max_hops=max_hops, as_of=as_of)
        return {"start": start, "end": end, "triples": [triple_to_wire(t) for t in found]}

    async def graph_retract(self, request: RetractRequest) -> Document:
        which = (request.subject, request.predicate)
        return triple_to_wire(await self._engine.graph.retract(self._who, request.agent_id, which))

    async def graph_erase(self, request: EraseRequest) -> Document:
        gone = await self._engine.graph.erase(self._who, request.agent_id, request.subject, mentions=request.mentions)
        answer: Document = {"subject": request.subject, "erased": gone.ids}
        if gone.backup_count:
            answer |= {"backups": gone.backups, "backup_count": gone.backup_count}
        if gone.error is not None:
            answer |= {"error": gone.error} | ({"remaining": gone.remaining} if gone.remaining else {})
        return answer

    async def preview_graph_erase(self, request: EraseRequest) -> Document:
        found = await self._engine.graph.preview_erase(
            self._who, request.agent_id, request.subject, mentions=request.mentions
        )
        return _about(request.subject, found)

    async def neighbors(self, agent_id: str, memory_id: str, *, hops: int = 1) -> Document:
        found = await self._engine.graph.neighbours(self._who, agent_id, memory_id, hops)
        neighbors = [{"id": other, "distance": distance} for other, distance in found.items()]
        return {"id": memory_id, "neighbors": neighbors}


def _about(subject: str, triples: Iterable[Triple]) -> Document:
    return {"subject": subject, "triples": [triple_to_wire(t) for t in triples]}
