"""Recall, get, list and history: everything that changes nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from commonplace.engine.core import Core, missing
from commonplace.engine.recall import fusion, hops, relevance
from commonplace.engine.recall.ranking import RankedCandidate
from commonplace.engine.recall.search import find
from commonplace.engine.recall.understanding import ALL, Parts
from commonplace.engine.recall.weights import WEIGHTS
from commonplace.engine.types import Hit, Query, RecallResult, Snapshot
from commonplace.stores.base import Page, Reach
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import Conflict, ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import Memory, Principal, Status

MAX_QUERY_CHARS = 32_768
READABLE: tuple[Status, ...] = ("live", "archived")


async def recall(core: Core, who: Principal, query: Query, parts: Parts = ALL) -> RecallResult:
    started = time.perf_counter()
    for agent in query.agents:
        core.require(who, agent, "reader")
    text = query.text.strip()
    if not text:
        raise ValidationError("query must hold something besides white space", field="query")
    if len(text) > MAX_QUERY_CHARS:
        raise ValidationError(
            f"query has {len(text):,} characters; at most {MAX_QUERY_CHARS:,} are searched for", field="query"
        )
    at = await _instant(core, who, query.as_of, query.snapshot)
    reach = Reach(who.tenant, query.agents, query.where, now=core.clock(), as_of=at)
    found = await find(core, reach, text, query.k, parts=parts, snapshot=query.snapshot)
    store = core.primary.name
    lists = {store: [(r.memory.id, r.score) for r in found.ranked]}
    fused = fusion.fuse(lists, query.fusion, quorum=query.quorum)  # type: ignore[arg-type]
    near = await hops.nearest(core, reach, query, [id for id, _ in fused])
    fused = fusion.boost_hops(fused, near) if near else fused
    by_id = {r.memory.id: (place, r) for place, r in enumerate(found.ranked)}
    # Of demotions only today's are known, so a snapshot leaves them out of account.
    ordered = [
        replace(by_id[id][1], score=score if query.snapshot else score * by_id[id][1].memory.demotion)
        for id, score in fused
    ]
    ordered.sort(key=lambda r: -r.score)
    assessed = await relevance.assess(
        core.judge,
        found.asked,
        ordered,
        k=query.k,
        mode=query.judge,
        min_score=query.min_score,
        embedder_name=found.embedder,
        explain=query.explain,
    )
    tied = await hops.supporting(core, reach, query, [h.found.memory.id for h in assessed.hits])
    hits = [
        Hit(
            h.found.memory,
            h.score,
            store,
            relevance=h.relevance,
            supporting=tied.get(h.found.memory.id, []),
            explain=_why(store, *by_id[h.found.memory.id], fused=h.score)
            | ({"hop": near[h.found.memory.id]} if h.found.memory.id in near else {})
            | (h.explain or {})
            if query.explain
            else None,
        )
        for h in assessed.hits
    ]
    explain: dict[str, Any] | None = None
    if query.explain:
        explain = {"candidates": len(found.ranked), "dense": found.dense, "as_of_seq": at}
        explain |= {"understood": found.asked.explain(), "left_out": parts.left_out()}
        explain |= {"relevance": assessed.explain} if assessed.explain else {}
    latency = (time.perf_counter() - started) * 1000
    keywords_only = core.note if not found.dense and found.asked.telling else None
    note = keywords_only or assessed.note or (assessed.reason if not hits else None) or hops.cannot(core, query)
    return RecallResult(hits, [store], latency, note=note, explain=explain)


def _why(store: str, place: int, r: RankedCandidate, fused: float) -> dict[str, Any]:
    shares = {name: round(WEIGHTS.get(name, 0.0) * value, 4) for name, value in r.features.items()}
    features = {name: round(value, 4) for name, value in r.features.items()}
    why = {"store": store, "rank": place, "dense": r.dense, "keyword": r.keyword, "blend": r.score, "fused": fused}
    why |= {"demotion": r.memory.demotion, "features": features, "shares": shares}
    return why | ({"same_as": r.same_as} if r.same_as else {})


async def _instant(core: Core, who: Principal, as_of: int | None, snapshot: Snapshot | None = None) -> int | None:
    if snapshot is not None:
        return snapshot.seq
    return None if as_of is None else await core.primary.sequence(who.tenant, as_of)


async def resolve(core: Core, who: Principal, agent_id: str, ref: str) -> Memory:
    """The readable memory an id or alias names, within one agent."""
    if is_uuid(ref):
        for memory in await core.primary.get(who.tenant, [ref]):
            if memory.agent_id == agent_id and readable(memory, core.clock()):
                return memory
    found = [m for m in await core.primary.find_alias(who.tenant, [agent_id], ref) if readable(m, core.clock())]
    if len(found) > 1:
        raise Conflict(f"{ref!r} names {len(found)} memories; use the id")
    if not found:
        raise missing(agent_id, ref)
    return found[0]


def readable(memory: Memory, now: int) -> bool:
    return memory.status in READABLE and not expired(memory, now)


def expired(memory: Memory, now: int) -> bool:
    return memory.expires_at is not None and memory.expires_at <= now


async def get(
    core: Core, who: Principal, agent_id: str, ref: str, *, as_of: int | None = None, snapshot: Snapshot | None = None
) -> Memory:
    core.require(who, agent_id, "reader")
    at = await _instant(core, who, as_of, snapshot)
    if at is None:
        return await resolve(core, who, agent_id, ref)
    versions = await core.primary.history(who.tenant, ref) if is_uuid(ref) else []
    if not versions and (aliased := await core.primary.find_alias(who.tenant, [agent_id], ref)):
        versions = await core.primary.history(who.tenant, aliased[0].id)
    then = [v for v in versions if v.seq <= at]
    now = core.clock()
    if not then or then[-1].agent_id != agent_id or not readable(then[-1], now) or expired(versions[-1], now):
        raise missing(agent_id, ref)
    return then[-1]


async def history(core: Core, who: Principal, agent_id: str, ref: str) -> list[Memory]:
    core.require(who, agent_id, "reader")
    memory = await resolve(core, who, agent_id, ref)
    return await core.primary.history(who.tenant, memory.id)


async def listing(
    core: Core,
    who: Principal,
    agents: tuple[str, ...],
    where: Where = (),
    *,
    limit: int = 100,
    cursor: str | None = None,
    newest_first: bool = True,
    archived: bool = True,
    as_of: int | None = None,
    snapshot: Snapshot | None = None,
) -> Page:
    for agent in agents:
        core.require(who, agent, "reader")
    if not 1 <= limit <= 1000:
        raise ValidationError(f"limit must be a whole number from 1 to 1000, not {limit}", field="limit")
    statuses: tuple[Status, ...] = READABLE if archived else ("live",)
    at = await _instant(core, who, as_of, snapshot)
    reach = Reach(who.tenant, agents, where, statuses=statuses, now=core.clock(), as_of=at)
    return await core.primary.scan(reach, limit=limit, cursor=cursor, newest_first=newest_first)


def tagged(tag: str) -> Condition:
    return Condition(("tags",), "contains", tag)
