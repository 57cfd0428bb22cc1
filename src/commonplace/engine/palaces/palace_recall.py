"""Recall in layers: what a palace is, what answers the question, and what matters most in it."""

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
MAX_HITS = 1000  # places of one recall
_OVERFETCH = {False: 3, True: 6}  # so many times what is wanted is ranked: by layer 2, and by the deeper layer 3
_MAX_FETCHED = 3000
ANSWERS = 0.3  # from this similarity on a drawer is taken to answer, and counts as recalled

#: What a memory was given fades, and every recall holds it up a little.
DECAY = ImportanceDecay(base=0.5, half_life=90 * DAY_MS, each=0.05, most=0.3)
MIN_IMPORTANCE, MAX_IMPORTANCE = 0.05, 1.0


def effective_importance(memory: Memory, now: int) -> float:
    """How much a memory matters by now."""
    return min(max(DECAY.of(memory, now), MIN_IMPORTANCE), MAX_IMPORTANCE)


@dataclass(slots=True, frozen=True)
class PalaceHit:
    memory: Memory
    layer: int  # 1 what matters most, 2 found by meaning, 3 found by a deep search
    score: float  # importance in layer 1, similarity in the others


@dataclass(slots=True)
class PalaceRecall:
    """`identity` is layer 0 and takes a place of its own; `found` are the ids of what answers the question."""

    identity: str | None
    hits: list[PalaceHit]
    found: list[str] = field(default_factory=list)


async def recall(
    core: Core, who: Principal, agent: str, text: str, k: int, identity: str | None = None, *, deep: bool = False
) -> PalaceRecall:
    core.require(who, agent, "reader")
    k = max(0, min(k, MAX_HITS))
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
    width = min(k * _OVERFETCH[deep], _MAX_FETCHED)
    query = Query((agent,), text, k=width, min_score=0.0, judge="off", explain=True)
    return (await recall_memories(core, who, query)).hits


def compose(
    identity: str | None, essential: Sequence[Memory], hits: Sequence[Hit], k: int, now: int, *, layer: int
) -> PalaceRecall:
    """k places: one for the identity where there is more than one, then what the question found, the most similar
    first; what matters most fills those that are left. A memory that was found stands where it was found."""
    identity = identity if identity and k > 1 else None
    room = k - (identity is not None)
    found = sorted((PalaceHit(hit.memory, layer, similarity(hit)) for hit in hits), key=lambda hit: -hit.score)[:room]
    shown = {hit.memory.id for hit in found}
    others = [PalaceHit(m, 1, effective_importance(m, now)) for m in essential if m.id not in shown]
    recalled = [hit.memory.id for hit in found if hit.score >= ANSWERS]
    return PalaceRecall(identity, found + others[: room - len(found)], recalled)


def similarity(hit: Hit) -> float:
    """The calibrated relevance; where none is calibrated, the cosine, or how well the words fit where nothing compares
    meanings. Less for what was demoted."""
    why = hit.explain or {}
    alike = next((s for s in (hit.relevance, why.get("dense"), why.get("blend")) if s is not None), hit.score)
    return min(max(float(alike), 0.0), 1.0) * hit.memory.demotion
