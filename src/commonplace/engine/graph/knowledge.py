"""The engine's operations on the knowledge graph, for every protocol to call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.engine.core import Core
from commonplace.engine.graph import statements
from commonplace.engine.graph.statements import AssertResult, Erased, Triple
from commonplace.engine.memory import forget
from commonplace.wire.record import Principal


class Knowledge:
    """One part of `Engine`, which has the core."""

    core: Core

    async def graph_assert(self, who: Principal, agent_id: str, **fact: Any) -> Triple:
        """`graph_state`, for whoever does not ask what it replaced."""
        return (await self.graph_state(who, agent_id, **fact)).triple

    async def graph_state(
        self, who: Principal, agent_id: str, *, subject: str, predicate: str, object: str, confidence: float = 1.0,
        provenance: str | None = None, valid_from: int | None = None,
    ) -> AssertResult:  # fmt: skip
        """State something; what was stated of this subject and predicate until now ends in the same transaction."""
        return await statements.state(
            self.core, who, agent_id, subject=subject, predicate=predicate, object=object, confidence=confidence,
            provenance=provenance, valid_from=valid_from,
        )  # fmt: skip

    async def graph_query(self, who: Principal, agent_id: str, subject: str, **options: Any) -> Sequence[Triple]:
        """What is stated about a subject now, or held at `as_of` (ms); `predicate` narrows it."""
        return await statements.query(self.core, who, agent_id, subject, **options)

    async def graph_list(self, who: Principal, agent_id: str, **options: Any) -> Sequence[Triple]:
        return await statements.listing(self.core, who, agent_id, **options)

    async def graph_path(
        self, who: Principal, agent_id: str, start: str, end: str, *, max_hops: int = 3, as_of: int | None = None
    ) -> Sequence[Triple]:
        return await statements.path(self.core, who, agent_id, start, end, max_hops=max_hops, as_of=as_of)

    async def graph_history(
        self, who: Principal, agent_id: str, subject: str, predicate: str | None = None
    ) -> Sequence[Triple]:
        return await statements.history(self.core, who, agent_id, subject, predicate)

    async def graph_retract(self, who: Principal, agent_id: str, which: Triple | str | tuple[str, str]) -> Triple:
        return await statements.retract(self.core, who, agent_id, which)

    async def graph_erase(self, who: Principal, agent_id: str, subject: str, *, mentions: bool = False) -> Erased:
        """Remove everything ever stated about a subject; with `mentions` also what names it as the object."""
        ids = await statements.erase(self.core, who, agent_id, subject, mentions=mentions)
        return Erased(ids, *await forget.backups(self.core, who)) if ids else Erased([])

    async def preview_graph_erase(
        self, who: Principal, agent_id: str, subject: str, *, mentions: bool = False
    ) -> Sequence[Triple]:
        return await statements.preview_erase(self.core, who, agent_id, subject, mentions=mentions)

    async def graph_counts(self, who: Principal, agent_id: str) -> dict[str, int]:
        return await statements.counts(self.core, who, agent_id)

    async def neighbors(self, who: Principal, agent_id: str, memory_id: str, hops: int) -> dict[str, int]:
        """The memories within so many hops of this one, each with its distance."""
        return await statements.neighbours(self.core, who, agent_id, memory_id, hops)
