"""What speaks for a memory as an answer before anyone reads it closely: a few cheap numbers. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    """What this agent's memories score on the question because they score so on anything."""

    cosine: float
    late: float

    @classmethod
    def of(cls, found: Sequence[DenseCandidate]) -> Background:
        cosines = [f.dense for f in found if f.dense is not None]
        return cls(_background(cosines), _background([f.late for f in found if f.late is not None]))


def gather(question: Question, found: Sequence[DenseCandidate], count: int) -> list[Evidence | None]:
    """For the first `count` of `found`; None for a memory that has no vector."""
    background = Background.of(found)
    return [evidence_of(question, f, background, place) for place, f in enumerate(found[:count])]


def text_for_judge(question: Question, memory: Memory) -> str:
    """What a judge reads of it: the best passage of a long one, with who said it and when, or its title."""
    passages = split(memory.content)
    passage = max(passages, key=lambda p: _share(question.terms, _terms(p))) if len(passages) > 1 else passages[0]
    return heading(memory) + passage


def evidence_of(question: Question, found: DenseCandidate, background: Background, place: int) -> Evidence | None:
    if found.dense is None:
        return None
    memory = found.memory
    terms = _terms(f"{indexed_text(memory)}\n{memory.speaker or ''}")
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


def _background(scores: list[float]) -> float:
    """The mean of those after the best few; of all of them where there are hardly more."""
    ordered = sorted(scores, reverse=True)
    rest = ordered[_BEST:_BACKGROUND] if len(ordered) > 2 * _BEST else ordered
    return sum(rest) / len(rest) if rest else 0.0


def _terms(text: str) -> frozenset[int]:
    return frozenset(analysis.decode(analysis.terms(text))[0].tolist())


def _share(wanted: Sequence[int], present: frozenset[int]) -> float:
    return sum(term in present for term in wanted) / len(wanted) if wanted else 0.0
