"""Fits the weights and cut-offs of engine/recall/relevance.py and writes relevance.json.

On the corpus's tune questions alone: the encoder has learned from the spaces of bench/data/judge, and so has the judge,
which both find their answers too well there.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.judge import fitting
from bench.judge.retrieval import Case, K, cases, label
from bench.judge.spaces import corpus_spaces
from commonplace.embedders.base import Embedder
from commonplace.engine.recall import evidence, relevance
from commonplace.engine.recall.evidence import Background, Evidence
from commonplace.engine.recall.ranking import WITHOUT_TOKENS, RankedCandidate, fitted_blend, with_verdicts
from commonplace.engine.recall.relevance import JUDGED_ALWAYS, LOOKED_AT, Logistic
from commonplace.judges.base import Judge

Scores = NDArray[np.float64]

#: What may count for the question as a whole and for a hit, and the sign one expects; what has another is left out.
WHOLE = {"late": 1, "late_margin": 1, "cosine": 1, "margin": 1, "coverage": 1, "names_missing": -1, "answer_type": 1}
WHOLE_JUDGED = {**WHOLE, "judge": 1}
HIT = {"blend": 1, "answerable": 1, "late": 1, "cosine": 1, "names_missing": -1, "answer_type": 1, "place": -1}
HIT_JUDGED = {**HIT, "judge": 1}

FALSE_EMPTY = 0.03
#: In doubt a judge reads those whose log-odds in the ranking are so close to the best one's.
WITHIN = 1.0
#: Of all questions so many may need the judge.
JUDGED_SHARE = 0.34
#: How far below the lowest score that the judge kept nothing is hopeless yet.
HOPELESS_MARGIN = 0.8
#: Of the right hits among the first ten, so many may be cut off.
FALSE_CUT = 0.015


@dataclass(slots=True)
class Read:
    """A question with what was seen and judged of its best candidates."""

    case: Case
    whole: dict[str, float]
    logits: dict[str, float]  # by id, of the best in ranking's order
    doubtful: dict[str, float]  # of those that are read in doubt

    @property
    def answerable(self) -> bool:
        return self.case.question.answerable

    def features(self, *, judged: bool) -> dict[str, float]:
        return self.whole | ({"judge": max(self.logits.values(), default=-10.0)} if judged else {})

    def in_doubt(self) -> Read:
        """The same as it is when the judge is asked because of a doubt."""
        return replace(self, logits=self.doubtful)

    def hits(self, whole: float, *, judged: bool) -> list[tuple[dict[str, float], bool | None]]:
        """Features of the best in the order shown, and whether each is right; None: neither right nor wrong."""
        found, question = self.case.found, self.case.question
        logits = self.logits if judged else {}
        ranked: Sequence[RankedCandidate] = found.ranked
        ranked = with_verdicts(ranked, logits, fitted_blend(found.fit_name))
        background = Background.of(ranked)
        scores = {r.memory.id: r.score for r in found.ranked}
        rows: list[tuple[dict[str, float], bool | None]] = []
        for place, r in enumerate(ranked[:K]):
            id = r.memory.id
            seen = evidence.evidence_of(found.question, r, background, place)
            if seen is None or (judged and id not in logits):
                continue
            features = relevance.hit_features(seen, logits.get(id), blend=scores[id], answerable=whole)
            rows.append((features, None if label(r) in question.beside else label(r) in question.gold))
        return rows


def read(found: Sequence[Case], judge: Judge) -> list[Read]:
    result = []
    for case in found:
        asked, ranked = case.found.question, case.ranked
        background = Background.of(ranked)
        seen = [evidence.evidence_of(asked, r, background, n) for n, r in enumerate(ranked[:LOOKED_AT])]
        known: list[Evidence] = [e for e in seen if e is not None]
        best = ranked[:JUDGED_ALWAYS]
        verdicts = judge.judge(asked.text, [evidence.text_for_judge(asked, r.memory) for r in best])
        logits = {r.memory.id: logit for r, logit in zip(best, verdicts, strict=True)}
        close = relevance.worth_reading([r.score for r in best], WITHIN)
        doubtful = dict(itertools.islice(logits.items(), close))
        result.append(Read(case, relevance.answer_features(known, background), logits, doubtful))
    return result


def fit_wholes(reads: Sequence[Read], *, judged: bool) -> Logistic:
    rows = [r.features(judged=judged) for r in reads]
    return fitting.with_signs(rows, [r.answerable for r in reads], WHOLE_JUDGED if judged else WHOLE)


def fit_hits(reads: Sequence[Read], wholes: Scores, *, judged: bool) -> Logistic:
    rows = [row for r, whole in zip(reads, wholes, strict=True) for row in r.hits(whole, judged=judged)]
    known = [(features, right) for features, right in rows if right is not None]
    signs = HIT_JUDGED if judged else HIT
    return fitting.with_signs([features for features, _ in known], [right for _, right in known], signs)


def wholes(fit: Logistic, reads: Sequence[Read], *, judged: bool) -> Scores:
    return np.array([fit(r.features(judged=judged)) for r in reads])


def agents_left_out(reads: Sequence[Read], *, judged: bool) -> Scores:
    """The whole of each question by a fit that has not seen its agent."""
    spaces = np.array([r.case.space for r in reads])
    scores = np.zeros(len(reads))
    for space in sorted(set(spaces.tolist())):
        fit = fit_wholes([r for r in reads if r.case.space != space], judged=judged)
        scores[spaces == space] = wholes(fit, [r for r in reads if r.case.space == space], judged=judged)
    return scores


@dataclass(slots=True)
class Doubt:
    """Between which scores of the cheap reading the judge is asked, and may leave empty, and below which of its own."""

    hopeless: float
    certain: float
    cut: float
    emptied: float  # share of the unanswerable that is left empty
    judged: float  # share of all that needs the judge


def choose_doubt(
    cheap: Scores, judged: Scores, answerable: NDArray[np.bool_], judged_share: float = JUDGED_SHARE
) -> Doubt:
    """The stretch that leaves most of the unanswerable empty, within what may be judged and wrongly left empty."""
    allowed = int(FALSE_EMPTY * answerable.sum())
    best: tuple[tuple[float, float], Doubt] | None = None
    for certain in sorted({*cheap.tolist(), 1.0}):
        asked = cheap < certain
        right = np.sort(judged[asked & answerable])
        if len(right) <= allowed:
            continue
        cut = float(right[allowed])
        empty = asked & (judged < cut)
        # The judge leaves empty whatever lies below the lowest that it keeps, and need not be asked for it.
        hopeless = float(cheap[asked & ~empty].min(initial=certain)) * HOPELESS_MARGIN
        share = float(((cheap >= hopeless) & asked).mean())
        emptied = float((empty | (cheap < hopeless))[~answerable].mean())
        if share <= judged_share and (best is None or (emptied, share) >= best[0]):
            best = (emptied, share), Doubt(hopeless, certain, cut, emptied, share)
    if best is None:
        raise SystemExit("no stretch of scores keeps to what may be judged and wrongly left empty")
    return best[1]


def calibrate(embedder: Embedder, judge: Judge, judged_share: float = JUDGED_SHARE) -> dict[str, dict[str, Any]]:
    """Entries of relevance.json, by name."""
    entries = {embedder.name: _entry(read(cases(corpus_spaces(), embedder, ["tune"]), judge), judge, judged_share)}
    if hasattr(embedder, "encode"):
        plain = read(cases(corpus_spaces(), embedder, ["tune"], tokens=False), judge)
        entries[embedder.name + WITHOUT_TOKENS] = _entry(plain, judge, judged_share)
    return entries


def _entry(reads: list[Read], judge: Judge, judged_share: float) -> dict[str, Any]:
    answerable = np.array([r.answerable for r in reads])
    left_out = [agents_left_out(reads, judged=judged) for judged in (False, True)]
    whole, whole_judged = (_rounded(fit_wholes(reads, judged=judged)) for judged in (False, True))
    cheap, judged = wholes(whole, reads, judged=False), wholes(whole_judged, reads, judged=True)
    in_doubt = wholes(whole_judged, [r.in_doubt() for r in reads], judged=True)
    doubt = choose_doubt(cheap, in_doubt, answerable, judged_share)
    hit, hit_judged = (_rounded(fit_hits(reads, w, judged=j)) for w, j in ((cheap, False), (judged, True)))
    right = []
    for read, unsure, sure in zip(reads, cheap, in_doubt, strict=True):
        asked = doubt.hopeless <= unsure < doubt.certain
        hits = read.in_doubt().hits(sure if asked else unsure, judged=bool(asked))
        right += [(hit_judged if asked else hit)(f) if f["place"] else 1.0 for f, is_right in hits if is_right]
    aucs = [round(fitting.auc(scores[answerable], scores[~answerable]), 3) for scores in left_out]
    return {
        "fitted_on": {
            "tune_questions": len(reads),
            "judge": judge.name,
            "auc_unjudged_agents_left_out": aucs[0],
            "auc_judged_agents_left_out": aucs[1],
            "judged_share": round(doubt.judged, 3),
            "emptied_share": round(doubt.emptied, 3),
        },
        "hit": asdict(hit),
        "hit_judged": asdict(hit_judged),
        "whole": asdict(whole),
        "whole_judged": asdict(whole_judged),
        "hopeless": _floored(doubt.hopeless),
        "certain": _floored(doubt.certain),
        "cut": _floored(fitting.highest_cut(cheap[answerable], FALSE_EMPTY)),
        "cut_judged": _floored(doubt.cut),
        "cut_always": _floored(fitting.highest_cut(judged[answerable], FALSE_EMPTY)),
        "cut_hit": _floored(fitting.highest_cut(right, FALSE_CUT)),
        "judged": JUDGED_ALWAYS,
        "within": WITHIN,
    }


def _floored(cut: float) -> float:
    """Never up: the question that set the cut-off must not fall below it."""
    return math.floor(cut * 1e4) / 1e4


def _rounded(fit: Logistic) -> Logistic:
    return Logistic(round(fit.bias, 4), {name: round(weight, 4) for name, weight in fit.weights.items()})


def write(entries: dict[str, dict[str, Any]]) -> None:
    path = relevance.FITTED
    fits = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(fits | entries, indent=2) + "\n", "utf-8")
