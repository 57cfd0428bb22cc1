"""The graph of the store in memory: statements in a dictionary, ties worked out whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from commonplace.stores.base import AuditEntry, Reach
from commonplace.stores.graph import At, Triple
from commonplace.stores.walking import Recorded, shortest, walk


@dataclass
class AssertResult:
    """One tenant's statements, in the order they were made; never changed in place, so that copies may share them."""

    stated: dict[str, Triple] = field(default_factory=dict)
    entries: tuple[AuditEntry, ...] = ()

    def triple(self, id: str) -> Triple | None:
        return self.stated.get(id)

    def triples(
        self, agent_id: str, subject: str | None = None, predicate: str | None = None, at: int | None = None
    ) -> list[Triple]:
        found = [t for t in self.stated.values() if t.agent_id == agent_id and subject in (None, t.subject)]
        chosen = [t for t in found if predicate in (None, t.predicate) and (at is None or t.holds(at))]
        return sorted(chosen, key=lambda t: t.valid_from)

    def triple_at(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        return next(iter(self.triples(agent_id, subject, predicate, at)), None)

    def triple_after(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        line = self.triples(agent_id, subject, predicate)
        return next((t for t in line if t.valid_from > at and not t.empty), None)

    def triples_from(self, memory_id: str) -> list[Triple]:
        return [t for t in self.stated.values() if t.memory_id == memory_id]

    def put_triple(self, triple: Triple) -> None:
        self.stated = {**self.stated, triple.id: triple}

    def erase_triple(self, id: str) -> None:
        if id in self.stated:
            self.stated = {other: triple for other, triple in self.stated.items() if other != id}
            self.entries = tuple(replace(e, parts=[p.without(id) for p in e.parts]) for e in self.entries)


class GraphInMemory:
    _of: Callable[[str], Any]  # one tenant's memories and statements

    async def triples(
        self, tenant: str, agent_id: str, *, subject: str | None = None, predicate: str | None = None,
        at: At | None = None, limit: int | None = None,
    ) -> list[Triple]:  # fmt: skip
        of = self._of(tenant)
        found: list[Triple] = of.triples(agent_id, subject, predicate, None if at is None else at.settled(of.now))
        return found[:limit]

    async def triples_about(self, tenant: str, agent_id: str, subject: str, mentions: bool = False) -> list[Triple]:
        about = await self.triples(tenant, agent_id, subject=subject)
        naming = await self.triples(tenant, agent_id) if mentions else []
        return about + [t for t in naming if subject == t.object and subject != t.subject]

    async def triple_counts(self, tenant: str, agent_id: str, at: At) -> tuple[int, int, int]:
        holding = await self.triples(tenant, agent_id, at=at)
        return len(await self.triples(tenant, agent_id)), len(holding), len({t.subject for t in holding})

    async def path(self, tenant: str, agent_id: str, start: str, end: str, max_hops: int, at: At) -> list[Triple]:
        return shortest(Recorded((), await self.triples(tenant, agent_id, at=at)), start, end, max_hops)

    async def linked(self, reach: Reach, ids: Sequence[str], hops: int, at: At, most: int) -> dict[str, dict[str, int]]:
        of = self._of(reach.tenant)
        holding = [t for agent in reach.agents for t in await self.triples(reach.tenant, agent, at=at)]
        return walk(Recorded(of.find(reach), holding), ids, hops, most)
