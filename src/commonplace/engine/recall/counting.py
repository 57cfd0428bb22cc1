"""Pages by number, counts, and searches that say how much there is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from commonplace.engine.core import Core
from commonplace.engine.memory import read
from commonplace.engine.types import Hit, Query
from commonplace.stores.base import Reach
from commonplace.wire.filters import Where
from commonplace.wire.record import SHARED_AGENT, Memory, Principal

MOST_COUNTED = 1000  # hits of one search
_SKIPPED_AT_ONCE = 1000
_WIDER = 8


@dataclass(slots=True)
class NumberedPage:
    memories: list[Memory]
    total: int


@dataclass(slots=True)
class SearchResult:
    """The best hits of a search, and how many there were before the cut."""

    hits: list[Hit]
    total: int
    note: str | None = None


def with_shared(who: Principal, agent: str) -> tuple[str, ...]:
    """An agent and the shared space, if the caller may look there."""
    return (agent,) if agent == SHARED_AGENT or not who.may_use(SHARED_AGENT) else (agent, SHARED_AGENT)


async def count(core: Core, who: Principal, agents: tuple[str, ...], where: Where = ()) -> int:
    """How many a listing of these would show."""
    for agent in agents:
        core.require(who, agent, "reader")
    return await core.primary.count(Reach(who.tenant, agents, where, statuses=read.READABLE, now=core.clock()))


async def page(
    core: Core, who: Principal, agents: tuple[str, ...], where: Where, *, limit: int, offset: int, newest_first: bool
) -> NumberedPage:
    total = await count(core, who, agents, where)
    cursor: str | None = None
    skip = offset
    while 0 < skip < total:
        step = min(skip, _SKIPPED_AT_ONCE)
        skipped = await read.listing(core, who, agents, where, limit=step, cursor=cursor, newest_first=newest_first)
        skip, cursor = skip - step, skipped.next_cursor
        if cursor is None:
            return NumberedPage([], total)
    if skip >= total:
        return NumberedPage([], total)
    found = await read.listing(core, who, agents, where, limit=limit, cursor=cursor, newest_first=newest_first)
    return NumberedPage(found.memories, total)


def relevance(hit: Hit) -> float:
    """0 to 1, and higher for the more relevant: the calibrated figure, else the share ranking gave it."""
    if hit.relevance is not None:
        return hit.relevance
    blended = (hit.explain or {}).get("blend", hit.score)
    return min(max(float(blended), 0.0), 1.0)


async def search(core: Core, who: Principal, query: Query, limit: int, at_least: float | None) -> SearchResult:
    """Looks no further than it must: past the limit only while what lies there could still count."""
    width = limit
    # A cut-off of the caller's own takes the place of the default one, and is applied to the score that is shown.
    query = replace(query, explain=True, min_score=None if at_least is None else 0.0)
    while True:
        found = await read.recall(core, who, replace(query, k=width))
        passing = [hit for hit in found.hits if at_least is None or relevance(hit) >= at_least]
        total = len(passing)
        if total < width or width >= MOST_COUNTED:
            break
        if not at_least and (found.explain or {}).get("dense"):
            # By meaning everything is found, nearer or further, so counting it needs no search.
            total = await core.primary.count(Reach(who.tenant, query.agents, query.where, now=core.clock()))
            break
        width = min(width * _WIDER, MOST_COUNTED)
    return SearchResult(passing[:limit], min(total, MOST_COUNTED), found.note)
