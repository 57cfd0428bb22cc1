"""How much a memory matters by now: what it was given fades, and every recall holds it up a little. Pure."""

from __future__ import annotations

from commonplace.stores.importance import ImportanceDecay
from commonplace.wire.record import Memory

DAY_MS = 86_400_000
LEAST, MOST = 0.05, 1.0
DECAY = ImportanceDecay(base=0.5, half_life=90 * DAY_MS, each=0.05, most=0.3)


def effective(memory: Memory, now: int) -> float:
    return min(max(DECAY.of(memory, now), LEAST), MOST)
