"""Does what was found answer the question? A calibrated relevance for every hit, and an empty answer when none does.

Two readings share one scale. The cheap one looks at the `evidence` of what was found; where that leaves doubt, a judge
reads the few best together with the question (`judging`). All are logistic, their weights fitted by `python -m
bench.judge calibrate` for one embedder and kept in relevance.json: another embedder's cosines mean something else, so
without a fit of its own it gets neither relevance nor a cut-off.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from commonplace.engine.recall import evidence, judging, multilingual
from commonplace.engine.recall.evidence import Background, Evidence
from commonplace.engine.recall.understanding import Question
from commonplace.engine.types import Query
from commonplace.judges.base import Judge

Mode = Literal["auto", "off", "always"]

FITTED = Path(__file__).with_name("relevance.json")
JUDGED_ALWAYS = 10
#: Of so many of the best the words are looked at for the question as a whole.
LOOKED_AT = 5
_NOTHING = Background()


class ScoredCandidate(evidence.DenseCandidate, Protocol):
    """A candidate at its place in the final order, with the score it has there."""

    @property
    def score(self) -> float: ...


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

    hit: Logistic
    hit_judged: Logistic
    whole: Logistic
    whole_judged: Logistic
    hopeless: float  # below this nothing needs judging: the answer is empty
    certain: float  # from this on the answer stands
    cut: float  # of the whole, unjudged
    cut_judged: float  # of those that are judged in doubt
    cut_always: float  # of those that are judged on demand
    near: float = 0.0  # a best cosine below this counts as far from everything
    cut_hit: float = 0.0  # of every hit but the first
    judged: int = 3  # at most so many are judged in doubt
    within: float = math.inf  # and of those only whose log-odds in the ranking are so close to the best one's


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


@dataclass(slots=True)
class RelevanceSignals:
    """What is known of a question's candidates before they stand in their final order."""

    question: Question
    fit_name: str | None
    fit: Fit | None = None  # None where nothing is calibrated, or nothing found has a vector
    background: Background = _NOTHING
    seen: Mapping[str, Evidence] = field(default_factory=dict)  # by id, of those looked at closely
    scores: Mapping[str, float] = field(default_factory=dict)  # by id, what ranking gave each
    unjudged: float = 0.0
    answerable: float = 0.0
    cut: float = 0.0
    judge: str | None = None  # its name, where it read any
    logits: Mapping[str, float] = field(default_factory=dict)  # by id, of those it read
    foreign: Mapping[str, float] = field(default_factory=dict)  # by id, how likely what is in another language answers
    note: str | None = None  # what did not work as configured


async def gather_signals(
    judge: Judge | None,
    question: Question,
    ranked: Sequence[ScoredCandidate],
    query: Query,
    fit_name: str | None,
    *,
    timer: judging.Timer = time.perf_counter,
) -> RelevanceSignals:
    """Of everything found, best first: what lies behind the best tells how much a cosine means here."""
    fit, mode = fitted(fit_name), query.judge
    if fit is None or all(r.dense is None for r in ranked):
        return RelevanceSignals(question, fit_name)
    background = Background.of(ranked)
    found = [evidence.evidence_of(question, r, background, n) for n, r in enumerate(ranked[:LOOKED_AT])]
    seen = {r.memory.id: e for r, e in zip(ranked, found, strict=False) if e is not None}
    cheap = answer_features(list(seen.values()), background, fit.near)
    unjudged = answerable = fit.whole(cheap)
    # No judge reads other languages: of a memory in one only the second embedder can tell, and nobody contradicts it.
    foreign = multilingual.relevance(ranked, max(LOOKED_AT, query.k), fit_name)
    abroad = max((r for r in foreign.values() if r >= multilingual.CERTAIN), default=0.0)
    unreadable = bool(abroad) or ranked[0].memory.id in foreign
    asks_judge = judge is not None and (mode == "always" or not unreadable)
    wanted = judge_count(mode, unjudged, fit, ranked) if asks_judge else 0
    logits: dict[str, float] = {}
    note = None
    if judge is not None and wanted:
        readable = [r for r in ranked[:wanted] if r.memory.id not in foreign]
        texts = [evidence.text_for_judge(question, r.memory) for r in readable]
        if mode == "always":
            verdicts, note = await judging.read_all(judge, question.text, texts)
        else:
            stands = functools.partial(_stands, fit, cheap, query.min_score)
            limit = judging.BUDGET_SECONDS
            verdicts, note = await judging.read_best(judge, question.text, texts, stands, seconds=limit, timer=timer)
        logits = {r.memory.id: logit for r, logit in zip(readable, verdicts, strict=False)}
    if logits:
        answerable = fit.whole_judged(cheap | {"judge": max(logits.values())})
        cut = fit.cut_judged if mode == "auto" else fit.cut_always
    else:
        cut = fit.hopeless if asks_judge and mode == "auto" and not wanted else fit.cut
    return RelevanceSignals(
        question,
        fit_name,
        fit,
        background,
        seen,
        {r.memory.id: r.score for r in ranked},
        unjudged,
        max(answerable, abroad),
        cut,
        judge.name if judge is not None and logits else None,
        logits,
        foreign,
        note,
    )


def assess(
    signals: RelevanceSignals, ranked: Sequence[F], query: Query, wanted_places: Sequence[int] | None = None
) -> Assessment[F]:
    """Those of `ranked`, which is in its final order, at these places, the best `k` by default, each with its
    relevance; or none of them if the question is not answered."""
    min_score, fit = query.min_score, signals.fit
    places = range(min(query.k, len(ranked))) if wanted_places is None else wanted_places
    if fit is None:
        return _unassessed([ranked[place] for place in places], min_score, signals.fit_name)
    hits = [_hit(signals, fit, ranked[place], place, query.explain) for place in places]
    kept, reason = _cut(hits, signals, fit, min_score)
    whole: dict[str, Any] | None = None
    if query.explain:
        whole = {"answerable": round(signals.answerable, 4), "unjudged": round(signals.unjudged, 4)}
        whole |= {"judged": len(signals.logits), "judge": signals.judge}
        whole |= {"cut_off": signals.cut if min_score is None else None, "min_score": min_score, "reason": reason}
        whole |= {"hit_cut_off": fit.cut_hit if min_score is None else None, "kept": len(kept), "of": len(hits)}
    return Assessment(kept, len(signals.logits), reason, signals.note, whole)


def judge_count(mode: Mode, unjudged: float, fit: Fit, ranked: Sequence[ScoredCandidate]) -> int:
    """How many of the best a judge should read."""
    if mode == "off":
        return 0
    if mode == "always":
        return JUDGED_ALWAYS
    if not fit.hopeless <= unjudged < fit.certain:
        return 0
    return worth_reading([r.score for r in ranked[: fit.judged]], fit.within)


def _stands(fit: Fit, cheap: Mapping[str, float], min_score: float | None, logits: Sequence[float]) -> bool:
    """Whether the answer stands, whatever the next verdicts are: they can only raise the best one. Whoever asks for a
    relevance of every hit wants it read of each."""
    return min_score is None and fit.whole_judged({**cheap, "judge": max(logits)}) >= fit.cut_judged


def worth_reading(scores: Sequence[float], within: float) -> int:
    """How many of these, best first, a judge should read: one round in any case, and who is close to the best."""
    least = log_odds(scores[0]) - within if scores else 0.0
    close = sum(log_odds(score) >= least for score in scores)
    return min(max(close, judging.ROUND), len(scores))


def hit_features(
    found: Evidence, logit: float | None = None, *, blend: float = 0.0, answerable: float = 0.0
) -> dict[str, float]:
    """What is seen of it, what ranking made of it, and how likely the whole is answered; as logits, the last two."""
    features = {name: getattr(found, name) for name in Evidence.__slots__}  # asdict copies deeply, and costs for it
    features |= {"blend": log_odds(blend), "answerable": log_odds(answerable)}
    if logit is not None:
        features["judge"] = logit
    return features


def answer_features(best: Sequence[Evidence], background: Background, near: float = 0.0) -> dict[str, float]:
    """Of the question as a whole: the best scores of all that was found, and the best words of those looked at."""
    cosine, late = background.best_cosine, background.best_late
    return {
        "cosine": cosine,
        "far": max(0.0, near - cosine),
        "margin": cosine - background.cosine,
        "late": late,
        "late_margin": late - background.late,
        "coverage": max((e.coverage for e in best), default=0.0),
        "names_missing": min((e.names_missing for e in best), default=0.0),
        "answer_type": best[0].answer_type if best else 0.0,
    }


def log_odds(p: float) -> float:
    p = min(max(p, 1e-6), 1 - 1e-6)
    return math.log(p / (1 - p))


@functools.cache
def _fits() -> dict[str, Fit]:
    return {name: parse_fit(entry) for name, entry in json.loads(FITTED.read_text("utf-8")).items()}


def fitted(embedder_name: str | None) -> Fit | None:
    return None if embedder_name is None else _fits().get(embedder_name)


def parse_fit(entry: Mapping[str, Any]) -> Fit:
    values: dict[str, Any] = {each.name: entry[each.name] for each in fields(Fit) if each.name in entry}
    for name in ("hit", "hit_judged", "whole", "whole_judged"):
        values[name] = Logistic(**values[name])
    return Fit(**values)


def _unassessed(ranked: Sequence[F], min_score: float | None, embedder_name: str | None) -> Assessment[F]:
    note = None
    if ranked and min_score:
        of = f"for {embedder_name}" if embedder_name else "without an embedder"
        note = f"min_score was not applied: relevance is not calibrated {of}"
    return Assessment([AssessedHit(found, found.score, None) for found in ranked], note=note)


def _hit(signals: RelevanceSignals, fit: Fit, found: F, place: int, explain: bool) -> AssessedHit[F]:
    id = found.memory.id
    logit = signals.logits.get(id)
    seen = signals.seen.get(id) or evidence.evidence_of(signals.question, found, signals.background, place)
    if seen is None:  # without a vector there is nothing the fit knows; it is neither cut nor moved
        return AssessedHit(found, found.score, None, {"relevance": None, "judge": logit} if explain else None)
    blend = signals.scores.get(id, 0.0)
    features = hit_features(seen, logit, blend=blend, answerable=signals.answerable)
    features["place"] = math.log1p(place)  # where it stands now, whatever it was when it was looked at
    relevance = max((fit.hit if logit is None else fit.hit_judged)(features), signals.foreign.get(id, 0.0))
    if not explain:
        return AssessedHit(found, found.score, relevance)
    del features["blend"]  # shown as ranking has it
    shown = {name: round(value, 4) for name, value in features.items()}
    return AssessedHit(found, found.score, relevance, shown | {"relevance": round(relevance, 4)})


def _cut(
    hits: list[AssessedHit[F]], signals: RelevanceSignals, fit: Fit, min_score: float | None
) -> tuple[list[AssessedHit[F]], str | None]:
    if min_score is not None:
        kept = [hit for hit in hits if hit.relevance is None or hit.relevance >= min_score]
        return kept, _left_out(len(hits) - len(kept), len(hits), min_score)
    if signals.answerable >= signals.cut:
        # The first stands for the whole; a good one does not make the others any better.
        kept = [h for n, h in enumerate(hits) if n == 0 or h.relevance is None or h.relevance >= fit.cut_hit]
        return kept, _left_out(len(hits) - len(kept), len(hits), fit.cut_hit)
    judged = len(signals.logits)
    how = f"a judge read the best {judged}" if judged else "by their words and meaning alone"
    chance = f"{signals.answerable:.0%} likely, and nothing is shown below {signals.cut:.0%}"
    return [], f"nothing found answers the question ({how}: {chance}); min_score 0 shows what was found"


def _left_out(count: int, of: int, below: float) -> str | None:
    return f"{count} of {of} have a relevance below {below:g}" if count else None
