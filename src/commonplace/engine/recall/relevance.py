"""Does what was found answer the question? A calibrated relevance for every hit, and an empty answer when none does.

Two readings share one scale. The cheap one looks at each candidate's `evidence`; where that leaves doubt, a judge
reads the few best together with the question. Both are logistic, their weights fitted by `python -m bench.judge
calibrate` for one embedder and kept in relevance.json: another embedder's cosines mean something else, so without
a fit of its own it gets neither relevance nor a cut-off.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from commonplace.engine.recall import evidence, multilingual
from commonplace.engine.recall.evidence import Evidence
from commonplace.engine.recall.understanding import Question
from commonplace.engine.types import Query
from commonplace.judges.base import Judge
from commonplace.wire.errors import Fault

Mode = Literal["auto", "off", "always"]

FITTED = Path(__file__).with_name("relevance.json")
JUDGED_IN_DOUBT = 3
JUDGED_ALWAYS = 10


class ScoredCandidate(evidence.DenseCandidate, Protocol):
    """A candidate at its place in the final order, with the score it has there."""

    @property
    def score(self) -> float: ...
    @property
    def features(self) -> Mapping[str, float]: ...


F = TypeVar("F", bound=ScoredCandidate)


@dataclass(slots=True, frozen=True)
class Logistic:
    bias: float
    weights: Mapping[str, float]

    def __call__(self, features: Mapping[str, float]) -> float:
        z = self.bias + sum(weight * features[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


@dataclass(slots=True, frozen=True)
class Fit:
    """What was fitted for one embedder: probabilities of a hit and of the whole, with the judge and without."""

    near: float  # a best cosine below this counts as far from everything
    hit: Logistic
    hit_judged: Logistic
    whole: Logistic
    whole_judged: Logistic
    hopeless: float  # below this nothing needs judging: the answer is empty
    certain: float  # above this nothing needs judging: the answer stands
    cut: float  # of the whole, unjudged
    cut_judged: float  # the few that are judged in doubt
    cut_always: float  # the more that are judged on demand: the best of them is higher by chance alone


@dataclass(slots=True)
class AssessedHit(Generic[F]):
    found: F
    score: float
    relevance: float | None
    explain: dict[str, Any] | None = None


@dataclass(slots=True)
class Assessment(Generic[F]):
    hits: list[AssessedHit[F]]
    judged: int = 0
    reason: str | None = None  # why nothing, or less than was found, is left
    note: str | None = None  # what did not work as configured
    explain: dict[str, Any] | None = None


async def assess(
    judge: Judge | None,
    question: Question,
    ranked: Sequence[F],
    query: Query,
    embedder_name: str | None,
    wanted_places: Sequence[int] | None = None,
) -> Assessment[F]:
    """Those of `ranked` at these places, the best `k` by default, each with its relevance; or none of them if the
    question is not answered.

    `ranked` is everything found, best first: what lies behind the best tells how much a cosine means here.
    """
    mode, min_score = query.judge, query.min_score
    places = range(min(query.k, len(ranked))) if wanted_places is None else wanted_places
    fit = fitted(embedder_name)
    if fit is None or not ranked:
        return _unassessed([ranked[place] for place in places], min_score, embedder_name)
    count = max(query.k, max(places, default=0) + 1, JUDGED_ALWAYS if mode == "always" else JUDGED_IN_DOUBT)
    found = evidence.gather(question, ranked, count)
    known = [e for e in found if e is not None]
    if not known:
        return _unassessed([ranked[place] for place in places], min_score, embedder_name)
    unjudged = fit.whole(answer_features(known, fit.near))
    # No judge reads other languages: of a memory in one only the second embedder can tell, and nobody contradicts it.
    foreign = multilingual.relevance(ranked, count, embedder_name)
    abroad = max((r for r in foreign if r is not None and r >= multilingual.CERTAIN), default=0.0)
    asks_judge = judge is not None and (not abroad or mode == "always")
    wanted = judge_count(mode, unjudged, fit) if asks_judge else 0
    texts = [evidence.text_for_judge(question, f.memory) for f in ranked[:wanted]]
    logits, note = await _judged(judge, question.text, texts) if judge is not None and texts else ([], None)
    padded = _padded(logits, len(found))
    hits = [_hit(ranked[place], found[place], padded[place], fit, query.explain) for place in places]
    for place, hit in zip(places, hits, strict=True):
        hit.relevance = _higher(hit.relevance, foreign[place])
    answerable = fit.whole_judged(answer_features(known, fit.near, logits)) if logits else unjudged
    answerable = max(answerable, abroad)
    if logits:
        cut = fit.cut_always if mode == "always" else fit.cut_judged
    else:
        cut = fit.hopeless if judge is not None and mode == "auto" and not wanted else fit.cut
    kept, reason = _cut(hits, answerable, cut, min_score, judged=len(logits))
    whole: dict[str, Any] | None = None
    if query.explain:
        whole = {"answerable": round(answerable, 4), "unjudged": round(unjudged, 4), "judged": len(logits)}
        whole |= {"cut_off": cut if min_score is None else None, "min_score": min_score, "reason": reason}
        whole |= {"judge": judge.name if judge is not None and logits else None, "kept": len(kept), "of": len(hits)}
    return Assessment(kept, len(logits), reason, note, whole)


def judge_count(mode: Mode, unjudged: float, fit: Fit) -> int:
    """How many of the best a judge should read."""
    if mode == "off":
        return 0
    if mode == "always":
        return JUDGED_ALWAYS
    return JUDGED_IN_DOUBT if fit.hopeless <= unjudged < fit.certain else 0


def hit_features(found: Evidence, logit: float | None = None) -> dict[str, float]:
    features = {name: getattr(found, name) for name in Evidence.__slots__}  # asdict copies deeply, and costs for it
    if logit is not None:
        features["judge"] = logit
    return features


def answer_features(found: Sequence[Evidence], near: float, logits: Sequence[float] = ()) -> dict[str, float]:
    """The best of each, whichever candidate has it."""
    cosine = max(e.cosine for e in found)
    features = {"cosine": cosine, "far": max(0.0, near - cosine)}
    return features | {"judge": max(logits)} if logits else features


@functools.cache
def _fits() -> dict[str, Fit]:
    return {name: parse_fit(entry) for name, entry in json.loads(FITTED.read_text("utf-8")).items()}


def fitted(embedder_name: str | None) -> Fit | None:
    return None if embedder_name is None else _fits().get(embedder_name)


def parse_fit(entry: Mapping[str, Any]) -> Fit:
    values: dict[str, Any] = {field.name: entry[field.name] for field in fields(Fit)}
    for name in ("hit", "hit_judged", "whole", "whole_judged"):
        values[name] = Logistic(**values[name])
    return Fit(**values)


def _unassessed(ranked: Sequence[F], min_score: float | None, embedder_name: str | None) -> Assessment[F]:
    note = None
    if ranked and min_score:
        of = f"for {embedder_name}" if embedder_name else "without an embedder"
        note = f"min_score was not applied: relevance is not calibrated {of}"
    return Assessment([AssessedHit(found, found.score, None) for found in ranked], note=note)


def _hit(found: F, seen: Evidence | None, logit: float | None, fit: Fit, explain: bool) -> AssessedHit[F]:
    if seen is None:  # without a vector there is nothing the fit knows; it is neither cut nor moved
        return AssessedHit(found, found.score, None, {"relevance": None, "judge": logit} if explain else None)
    features = hit_features(seen, logit)
    relevance = (fit.hit if logit is None else fit.hit_judged)(features)
    if not explain:
        return AssessedHit(found, found.score, relevance)
    shown = {name: round(value, 4) for name, value in features.items()}
    return AssessedHit(found, found.score, relevance, shown | {"relevance": round(relevance, 4)})


def _higher(first: float | None, second: float | None) -> float | None:
    return max((r for r in (first, second) if r is not None), default=None)


def _padded(logits: Sequence[float], count: int) -> list[float | None]:
    return [*logits, *[None] * (count - len(logits))]


def _cut(
    hits: list[AssessedHit[F]], answerable: float, cut: float, min_score: float | None, *, judged: int
) -> tuple[list[AssessedHit[F]], str | None]:
    if min_score is not None:
        kept = [hit for hit in hits if hit.relevance is None or hit.relevance >= min_score]
        left_out = len(hits) - len(kept)
        return kept, f"{left_out} of {len(hits)} have a relevance below {min_score:g}" if left_out else None
    if answerable >= cut:
        return hits, None
    how = f"a judge read the best {judged}" if judged else "by their words and meaning alone"
    chance = f"{answerable:.0%} likely, and nothing is shown below {cut:.0%}"
    return [], f"nothing found answers the question ({how}: {chance}); min_score 0 shows what was found"


async def _judged(judge: Judge, question: str, texts: Sequence[str]) -> tuple[list[float], str | None]:
    loop = asyncio.get_running_loop()
    try:
        logits = await loop.run_in_executor(_worker(), judge.judge, question, texts)
    except Fault as fault:
        return [], f"{fault.message}; relevance is without a judge"
    return list(logits), judge.note


@functools.cache
def _worker() -> ThreadPoolExecutor:
    # One thread: a judge uses every core by itself, and threads that wait their turn would be taken from others.
    return ThreadPoolExecutor(1, thread_name_prefix="judge")
