"""What surrounds a memory: who speaks, what was replaced, what was said just before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from commonplace.stores.base import AgentContext, Candidate, Reach, Search, Store
from commonplace.stores.importance import ImportanceDecay
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory

T = TypeVar("T")


class ByScan:
    """`context`, `most_important` and `neighbours_in_session` by reading everything in reach, for primaries
    without indexes for them."""

    async def context(self: Store, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext:
        memories = await everything(self, Reach(tenant, tuple(agents), now=now))
        replaced = {old: m.id for m in memories for old in m.supersedes}
        return AgentContext(frozenset(m.speaker for m in memories if m.speaker), replaced)

    async def most_important(self: Store, reach: Reach, worth: ImportanceDecay, at: int, limit: int) -> list[Memory]:
        return worth.order(await everything(self, reach), at)[:limit]

    async def neighbours_in_session(
        self: Store, search: Search, ids: Sequence[str], each: int
    ) -> list[list[Candidate]]:
        asked = [m for m in await self.get(search.reach.tenant, ids) if m.session_id is not None]
        runs: list[list[str]] = []
        for agent, session in sorted({(m.agent_id, str(m.session_id)) for m in asked}):
            mine = (*search.reach.where, Condition(("session_id",), "eq", session))
            spoken = [m.id for m in await everything(self, replace(search.reach, agents=(agent,), where=mine))]
            runs += runs_around(spoken, [spoken.index(m.id) for m in asked if m.id in spoken], each)
        wanted = [id for run in runs for id in run]
        only = (*search.reach.where, Condition(("id",), "in", wanted))
        scored = await self.search(replace(search, reach=replace(search.reach, where=only), limit=len(wanted)))
        by_id = {c.memory.id: c for c in scored}
        return [[by_id[id] for id in run if id in by_id] for run in runs]


def runs_around(spoken: Sequence[T], places: Sequence[int], each: int) -> list[list[T]]:
    """Slices of `spoken` that reach `each` to both sides of the places; those that overlap are one."""
    runs: list[tuple[int, int]] = []
    for place in sorted(set(places)):
        start, end = max(place - each, 0), min(place + each + 1, len(spoken))
        if runs and start < runs[-1][1]:
            start = runs.pop()[0]
        runs.append((start, end))
    return [list(spoken[start:end]) for start, end in runs]


def packed(terms: Sequence[int]) -> list[bytes]:
    """A question's terms as `matched` looks for them."""
    return [term.to_bytes(8, "little") for term in terms]


def matched(blob: bytes, wanted: Sequence[bytes]) -> int:
    """Which of the wanted terms a memory has, one bit each; the search for bytes is what makes it cheap."""
    end = len(blob) // 9 * 8
    bits = 0
    for i, term in enumerate(wanted):
        at = blob.find(term, 0, end)
        while at % 8 and at > 0:  # in between two hashes, by chance
            at = blob.find(term, at + 1, end)
        if at >= 0:
            bits |= 1 << i
    return bits


async def everything(store: Store, reach: Reach) -> list[Memory]:
    """All in reach, oldest first."""
    page = await store.scan(reach, limit=1000, newest_first=False)
    memories = page.memories
    while page.next_cursor is not None:
        page = await store.scan(reach, limit=1000, cursor=page.next_cursor, newest_first=False)
        memories += page.memories
    return memories
