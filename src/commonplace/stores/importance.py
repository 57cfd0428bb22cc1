"""What memories are worth at an instant: an order that changes by itself as time passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from commonplace.wire.record import Memory


@dataclass(slots=True, frozen=True)
class ImportanceDecay:
    """The importance a memory was given halves with its age, and each recall adds a little."""

    base: float  # the importance of one that was given none
    half_life: int  # ms
    each: float  # for every recall,
    most: float  # but not more than this for all of them

    def of(self, memory: Memory, at: int) -> float:
        given = self.base if memory.importance is None else memory.importance
        age = max(at - memory.created_at, 0)
        return float(given * 2 ** (-age / self.half_life) + min(self.each * memory.recalls, self.most))

    def order(self, memories: Iterable[Memory], at: int) -> list[Memory]:
        """Best first, the newer first among equals."""
        return sorted(memories, key=lambda m: (self.of(m, at), m.created_at, m.id), reverse=True)
