"""Pure arithmetic over what the systems answered: how good the answers are, and how ours compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.quality.datasets import Question
from bench.quality.measures import recall_at, reciprocal_rank

MAX_FALSE_EMPTY = 0.03


def quality(answers: Iterable[Mapping[str, Any]], questions: Sequence[Question], reported: str) -> dict[str, float]:
    """Of the half that is reported. The cut-off that a caller could set on a system's scores is chosen on the other."""
    by_id = {answer["id"]: answer for answer in answers}
    held = [(q, by_id[q.id]) for q in questions if q.id in by_id]
    here = [(q, a) for q, a in held if q.split == reported]
    there = [(q, a) for q, a in held if q.split != reported]
    asked = [(q, a) for q, a in here if q.gold]
    unanswerable = [(q, a) for q, a in here if not q.gold]
    cut = cut_off([_score(a) for q, a in there if q.gold])
    found: dict[str, float] = {
        "answerable": len(asked),
        "unanswerable": len(unanswerable),
        "recall@5": _mean(recall_at(q, a["found"], 5) for q, a in asked),
        "mrr": _mean(reciprocal_rank(q, a["found"]) for q, a in asked),
        "wrongly_empty": _mean(a["empty"] for _, a in asked),
        "rightly_empty": _mean(a["empty"] for _, a in unanswerable),
        "auc": auc([_score(a) for _, a in asked], [_score(a) for _, a in unanswerable]),
        "wrongly_empty_cut": _mean(_score(a) < cut for _, a in asked),
        "rightly_empty_cut": _mean(_score(a) < cut for _, a in unanswerable),
    }
    for category in sorted({q.category for q, _ in unanswerable}):
        found[f"rightly_empty {category}"] = _mean(a["empty"] for q, a in unanswerable if q.category == category)
    return {name: round(value, 4) for name, value in found.items()}


def cut_off(scores: Sequence[float], most: float = MAX_FALSE_EMPTY) -> float:
    """The highest that leaves at most that share of answerable questions without an answer."""
    ordered = sorted(scores)
    return ordered[int(most * len(ordered))] if ordered else 0.0


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """How often an answerable question scores above an unanswerable one; ties count half."""
    if not positive or not negative:
        return 0.0
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return wins / (len(positive) * len(negative))


def _score(answer: Mapping[str, Any]) -> float:
    return float("-inf") if answer["score"] is None else float(answer["score"])


def _mean(values: Iterable[float]) -> float:
    held = [float(value) for value in values]
    return sum(held) / len(held) if held else 0.0
