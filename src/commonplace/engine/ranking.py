"""One store's candidates made one list. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commonplace.stores.base import Candidate
from commonplace.wire.record import Memory

DENSE_WEIGHT = 0.6
KEYWORD_WEIGHT = 0.4


@dataclass(slots=True)
class Ranked:
    memory: Memory
    score: float
    dense: float | None
    keyword: float | None


def rank(candidates: Sequence[Candidate]) -> list[Ranked]:
    """Blend meaning and keywords, each on a scale of its own: cosine as it is, BM25 as a share of the best."""
    best = max((c.keyword or 0.0 for c in candidates), default=0.0)
    ranked = [
        Ranked(
            c.memory,
            DENSE_WEIGHT * max(c.dense or 0.0, 0.0) + KEYWORD_WEIGHT * ((c.keyword or 0.0) / best if best else 0.0),
            c.dense,
            c.keyword,
        )
        for c in candidates
    ]
    # Newer first among equals, then by id, so that the order never depends on how they were found.
    ranked.sort(key=lambda r: (-r.score, -r.memory.created_at, r.memory.id))
    return ranked
