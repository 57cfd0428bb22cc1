"""Fits the weights and cut-offs of engine/recall/relevance.py and writes relevance.json.

Without the judge: on the spaces of bench/data/judge and the corpus's tune questions. With it: on the tune questions
alone, because the judge has seen the answers of the others (AUC .97 on them, .76 on spaces left out of its training).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bench.judge import fitting
from bench.judge.retrieval import Case, K, cases, label
from bench.judge.spaces import corpus_spaces, judge_spaces
from commonplace.embedders.base import Embedder
from commonplace.engine.recall import evidence, relevance
from commonplace.engine.recall.evidence import Evidence
from commonplace.engine.recall.relevance import JUDGED_ALWAYS, JUDGED_IN_DOUBT, Logistic
from commonplace.engine.recall.understanding import analyse
from commonplace.judges.base import Judge

# Few, each with the sign one expects. Beside the place in the ranking the cheap reading gains nothing from coverage;
# with the judge, nothing from cosine and margin. For the whole, coverage and names are left out: the questions without
# an answer were written around names that are in the store, so what is covered well is answered no more often.
HIT = ("cosine", "margin", "names_missing", "answer_type", "place")
HIT_JUDGED = ("judge", "coverage", "names_missing", "place")
WHOLE = ("cosine", "far")
WHOLE_JUDGED = ("judge", "far")

FALSE_EMPTY = 0.03
#: Of those, how many may be lost before the judge is asked.
FALSE_HOPELESS = 0.01
#: So sure must the cheap reading be that it is right for the judge to be spared.
PRECISION = 0.97
NEAR = 0.3
#: The corpus is nearer to what agents store than spaces that were made hard on purpose.
TUNE_WEIGHT = 10.0


@dataclass(slots=True)
class Read:
    """A question with what was seen and judged of its best candidates."""

    case: Case
    seen: list[Evidence]
    labels: list[bool | None]  # None: neither right nor wrong
    logits: list[float]

    @property
    def answerable(self) -> bool:
        return self.case.question.answerable


def read(found: Sequence[Case], judge: Judge | None = None, *, judged: int = JUDGED_ALWAYS) -> list[Read]:
    result = []
    for case in found:
        analysed = analyse(case.question.text)
        seen = [e for e in evidence.gather(analysed, case.ranked, K) if e is not None]
        ids = [label(r) for r in case.ranked[:K] if r.dense is not None]
        question = case.question
        labels = [None if id in question.beside else id in question.gold for id in ids]
        texts = [evidence.text_for_judge(analysed, r.memory) for r in case.ranked[:judged]]
        result.append(Read(case, seen, labels, judge.judge(question.text, texts) if judge else []))
    return result


def fit_hits(reads: Sequence[Read], weights: Sequence[float] | None = None) -> Logistic:
    judged = bool(reads[0].logits)
    rows, labels, each = [], [], []
    for n, one in enumerate(reads):
        for place, (seen, right) in enumerate(zip(one.seen, one.labels, strict=True)):
            if right is None or (judged and place >= len(one.logits)):
                continue
            rows.append(relevance.hit_features(seen, one.logits[place] if judged else None))
            labels.append(right)
            each.append(weights[n] if weights else 1.0)
    return fitting.logistic(rows, labels, HIT_JUDGED if judged else HIT, each)


def fit_wholes(reads: Sequence[Read], weights: Sequence[float] | None = None) -> Logistic:
    rows = [relevance.answer_features(r.seen, NEAR, r.logits) for r in reads]
    names = WHOLE_JUDGED if reads[0].logits else WHOLE
    return fitting.logistic(rows, [r.answerable for r in reads], names, weights)


def wholes(fit: Logistic, reads: Sequence[Read]) -> np.ndarray:
    return np.array([fit(relevance.answer_features(r.seen, NEAR, r.logits)) for r in reads])


def judged_first(reads: Sequence[Read], count: int) -> list[Read]:
    """As if only the best `count` had been judged."""
    return [Read(r.case, r.seen, r.labels, r.logits[:count]) for r in reads]


def left_out(reads: Sequence[Read], folds: int = 10) -> float:
    """AUC of the whole, each space scored by a fit that has not seen it."""
    names = sorted({r.case.space for r in reads})
    group = {name: n % folds for n, name in enumerate(names)}
    of = np.array([group[r.case.space] for r in reads])
    scores = np.zeros(len(reads))
    for fold in sorted(set(of.tolist())):
        fit = fit_wholes([r for r, g in zip(reads, of, strict=True) if g != fold])
        scores[of == fold] = wholes(fit, [r for r, g in zip(reads, of, strict=True) if g == fold])
    answerable = np.array([r.answerable for r in reads])
    return fitting.auc(scores[answerable], scores[~answerable])


def calibrate(embedder: Embedder, judge: Judge) -> dict[str, Any]:
    always = read(cases(corpus_spaces(), embedder, ["tune"]), judge)
    tune, unread = judged_first(always, JUDGED_IN_DOUBT), judged_first(always, 0)
    spaces = read(cases(judge_spaces(), embedder, ["fit"]))
    pooled = [*spaces, *unread]
    weights = [1.0] * len(spaces) + [TUNE_WEIGHT] * len(tune)
    whole, whole_judged = (Logistic(**_rounded(fit)) for fit in (fit_wholes(pooled, weights), fit_wholes(tune)))

    answerable = np.array([r.answerable for r in tune])
    cheap, judged = wholes(whole, unread), wholes(whole_judged, tune)
    cheap_spaces = wholes(whole, [r for r in spaces if r.answerable])
    hopeless = min(fitting.highest_cut(s, FALSE_HOPELESS) for s in (cheap[answerable], cheap_spaces))
    cut = min(fitting.highest_cut(s, FALSE_EMPTY) for s in (cheap[answerable], cheap_spaces))
    reached = judged[answerable & (cheap >= hopeless)]
    cut_judged = fitting.highest_cut(reached, FALSE_EMPTY, cut_already=int((cheap[answerable] < hopeless).sum()))
    cut_always = fitting.highest_cut(wholes(whole_judged, always)[answerable], FALSE_EMPTY)
    return {
        "fitted_on": {
            "spaces": len({r.case.space for r in spaces}),
            "questions": len(spaces),
            "tune_questions": len(tune),
            "judge": judge.name,
            "auc_unjudged_spaces_left_out": round(left_out(spaces), 3),
            "auc_judged_agents_left_out": round(left_out(tune), 3),
        },
        "near": NEAR,
        "hit": _rounded(fit_hits(pooled, weights)),
        "hit_judged": _rounded(fit_hits(tune)),
        "whole": _rounded(whole),
        "whole_judged": _rounded(whole_judged),
        "hopeless": _floored(hopeless),
        "certain": round(_certain(cheap, answerable), 4),
        "cut": _floored(cut),
        "cut_judged": _floored(cut_judged),
        "cut_always": _floored(cut_always),
    }


def _certain(scores: np.ndarray, answerable: np.ndarray) -> float:
    """The lowest score from which on nearly every question is answerable; 1 where there is none."""
    order = np.argsort(-scores)
    precision = np.cumsum(answerable[order]) / np.arange(1, len(order) + 1)
    # A handful of questions proves nothing.
    good = np.flatnonzero((precision >= PRECISION) & (np.arange(1, len(order) + 1) >= 30))
    return float(scores[order[good[-1]]]) if len(good) else 1.0


def _floored(cut: float) -> float:
    """Never up: the question that set the cut-off must not fall below it."""
    return math.floor(cut * 1e4) / 1e4


def _rounded(fit: Logistic) -> dict[str, Any]:
    plain = asdict(fit)
    return {"bias": round(plain["bias"], 4), "weights": {n: round(w, 4) for n, w in plain["weights"].items()}}


def write(embedder_name: str, entry: dict[str, Any]) -> None:
    path = relevance.FITTED
    fits = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(fits | {embedder_name: entry}, indent=2) + "\n", "utf-8")
