"""Recall in layers: what a palace is, what matters most in it, and what answers the question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from commonplace.engine.core import Core
from commonplace.engine.recall.recall import recall as recall_memories
from commonplace.engine.types import Hit, Query
from commonplace.stores.base import ImportanceDecay, Reach
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

ESSENTIAL = 15  # of layer 1
MOST = 1000  # places of one recall
_OVERFETCH = {False: 3, True: 6}  # so many times what is wanted is ranked: by layer 2, and by the deeper layer 3
_MOST_FETCHED = 3000

#: What a memory was given fades, and every recall holds it up a little.
DECAY = ImportanceDecay(base=0.5, half_life=90 * DAY_MS, each=0.05, most=0.3)
LEAST_IMPORTANCE, MOST_IMPORTANCE = 0.05, 1.0


def effective_importance(memory: Memory, now: int) -> float:
    """How much a memory matters by now."""
    return min(max(DECAY.of(memory, now), LEAST_IMPORTANCE), MOST_IMPORTANCE)


@dataclass(slots=True, frozen=True)
class PalaceHit:
    memory: Memory
    layer: int  # 1 what matters most, 2 found by meaning, 3 found by a deep search
    score: float  # importance in layer 1, similarity in the others


@dataclass(slots=True)
class PalaceRecall:
    """`identity` is layer 0 and takes a place of its own; `found` are the ids that the question itself found."""

    identity: str | None
    hits: list[PalaceHit]
    found: list[str] = field(default_factory=list)


async def recall(
    core: Core, who: Principal, agent: str, text: str, k: int, identity: str | None = None, *, deep: bool = False
) -> PalaceRecall:
    core.require(who, agent, "reader")
    k = max(0, min(k, MOST))
    if k == 0:
        return PalaceRecall(None, [])
    now = core.clock()
    essential, hits = await asyncio.gather(
        core.primary.most_important(Reach(who.tenant, (agent,), now=now), DECAY, now, ESSENTIAL),
        _search(core, who, agent, text, k, deep),
    )
    return compose(identity, essential, hits, k, now, layer=3 if deep else 2)


async def _search(core: Core, who: Principal, agent: str, text: str, k: int, deep: bool) -> Sequence[Hit]:
    if not text.strip():
        return ()  # a question that asks nothing finds nothing; the other layers answer
    width = min(k * _OVERFETCH[deep], _MOST_FETCHED)
    query = Query((agent,), text, k=width, min_score=0.0, judge="off", explain=True)
    return (await recall_memories(core, who, query)).hits


def compose(
    identity: str | None, essential: Sequence[Memory], hits: Sequence[Hit], k: int, now: int, *, layer: int
) -> PalaceRecall:
    """k places, at least half of them for what the question found. A memory stands in the first layer that has it."""
    kept: dict[str, Memory] = {}
    early = k // 2
    if identity and early:
        early -= 1
    else:
        identity = None
    room = k - (identity is not None)
    for memory in essential[:early]:
        kept[memory.id] = memory
    for hit in hits:
        if len(kept) == room:
            break
        kept.setdefault(hit.memory.id, hit.memory)
    for memory in essential[early:]:  # places that the question left empty
        if len(kept) == room:
            break
        kept.setdefault(memory.id, memory)
    first = [PalaceHit(m, 1, effective_importance(m, now)) for m in essential if m.id in kept]
    above = {place.memory.id for place in first}
    later = [
        PalaceHit(h.memory, layer, similarity(h)) for h in hits if h.memory.id in kept and h.memory.id not in above
    ]
    later.sort(key=lambda place: -place.score)
    return PalaceRecall(identity, first + later, [h.memory.id for h in hits if h.memory.id in kept])


def similarity(hit: Hit) -> float:
    """The cosine, or how well the words fit where nothing compares meanings; less for what was demoted."""
    why = hit.explain or {}
    alike = why.get("dense")
    if alike is None:
        alike = why.get("blend", hit.score)
    return min(max(float(alike), 0.0), 1.0) * hit.memory.demotion
