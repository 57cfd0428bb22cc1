"""What speaks for a memory as an answer before anyone reads it closely: a few cheap numbers. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from commonplace.engine.memory.passages import heading, indexed_text, split
from commonplace.engine.recall.understanding import Question, has_kind
from commonplace.stores import text as analysis
from commonplace.wire.record import Memory

# The cosines of the candidates after the best few: what this agent's memories score on anything at all.
_BEST = 3
_BACKGROUND = 20


class DenseCandidate(Protocol):
    """A candidate as ranking gives it."""

    @property
    def memory(self) -> Memory: ...
    @property
    def dense(self) -> float | None: ...
    @property
    def late(self) -> float | None: ...


@dataclass(slots=True, frozen=True)
class Evidence:
    """Of one candidate; the names are those of the weights fitted for them."""

    cosine: float
    coverage: float  # share of the question's telling words that the memory has
    margin: float  # cosine above the background
    names_missing: float  # share of the names and numbers asked about that the memory lacks
    answer_type: float  # 1 when it has the kind of thing that is asked for, -1 when not, 0 when nothing is
    place: float = 0.0  # logarithm of its place in the ranking, 0 for the best: ranking has seen more than is here
    late: float = 0.0  # late interaction
    late_margin: float = 0.0  # and how much it is above the background's


@dataclass(slots=True, frozen=True)
class Background:
    """What the best of everything found scores, and what the others score because they score so on anything."""

    cosine: float = 0.0
    late: float = 0.0
    best_cosine: float = 0.0
    best_late: float = 0.0

    @classmethod
    def of(cls, found: Sequence[DenseCandidate]) -> Background:
        cosines = sorted((f.dense for f in found if f.dense is not None), reverse=True)
        lates = sorted((f.late for f in found if f.late is not None), reverse=True)
        return cls(_mean_behind(cosines), _mean_behind(lates), *(each[0] if each else 0.0 for each in (cosines, lates)))


def text_for_judge(question: Question, memory: Memory) -> str:
    """What a judge reads of it: the best passage of a long one, with who said it and when, or its title."""
    passages = split(memory.content)
    passage = (
        max(passages, key=lambda p: _share(question.terms, analysis.distinct_terms(p)))
        if len(passages) > 1
        else passages[0]
    )
    return heading(memory) + passage


def evidence_of(question: Question, found: DenseCandidate, background: Background, place: int) -> Evidence | None:
    """None for a memory that has no vector."""
    if found.dense is None:
        return None
    memory = found.memory
    terms = analysis.distinct_terms(f"{indexed_text(memory)}\n{memory.speaker or ''}")
    missing = [name for name in question.names if not terms.issuperset(name)]
    fits = 0.0
    if question.wants is not None:
        fits = 1.0 if has_kind(question.wants, memory.content) else -1.0
    return Evidence(
        cosine=found.dense,
        coverage=_share(question.terms, terms),
        margin=found.dense - background.cosine,
        names_missing=len(missing) / len(question.names) if question.names else 0.0,
        answer_type=fits,
        place=math.log1p(place),
        late=found.late or 0.0,
        late_margin=0.0 if found.late is None else found.late - background.late,
    )


def _mean_behind(ordered: list[float]) -> float:
    """The mean of those after the best few; of all of them where there are hardly more."""
    rest = ordered[_BEST:_BACKGROUND] if len(ordered) > 2 * _BEST else ordered
    return sum(rest) / len(rest) if rest else 0.0


def _share(wanted: Sequence[int], present: AbstractSet[int]) -> float:
    return sum(term in present for term in wanted) / len(wanted) if wanted else 0.0
