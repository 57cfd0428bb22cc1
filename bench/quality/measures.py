"""How good an ordered list is for a labelled question."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bench.quality.datasets import Question


@dataclass(slots=True)
class Outcome:
    question: Question
    found: list[str]  # best first
    seconds: float = 0.0


@dataclass(slots=True)
class Figures:
    questions: int
    values: dict[str, float] = field(default_factory=dict)


def recall_at(question: Question, found: Sequence[str], k: int) -> float:
    """All, any, or the share of the gold memories among the first k, as the question needs."""
    hits = len(question.gold.intersection(found[:k]))
    if question.need == "share":
        return hits / len(question.gold)
    return float(hits == len(question.gold)) if question.need == "all" else float(hits > 0)


def reciprocal_rank(question: Question, found: Sequence[str]) -> float:
    return next((1 / (place + 1) for place, id in enumerate(found) if id in question.gold), 0.0)


def ndcg(question: Question, found: Sequence[str], k: int = 10) -> float:
    """With `any`, one gold memory is an ideal list."""
    gains = [float(id in question.gold) for id in found[:k]]
    count = 1 if question.need == "any" else min(len(question.gold), k)
    if question.need == "any" and 1.0 in gains:
        first = gains.index(1.0)
        gains = [0.0] * first + [1.0]
    ideal = sum(1 / math.log2(place + 2) for place in range(count))
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains)) / ideal


MEASURES: dict[str, Callable[[Question, Sequence[str]], float]] = {
    "recall@1": lambda q, f: recall_at(q, f, 1),
    "recall@5": lambda q, f: recall_at(q, f, 5),
    "recall@10": lambda q, f: recall_at(q, f, 10),
    "ndcg@10": ndcg,
    "mrr": reciprocal_rank,
}


def figures(outcomes: Iterable[Outcome]) -> Figures:
    held = list(outcomes)
    values = {
        name: sum(measure(o.question, o.found) for o in held) / len(held) if held else 0.0
        for name, measure in MEASURES.items()
    }
    if held:
        times = sorted(o.seconds for o in held)
        values["median ms"] = times[len(times) // 2] * 1000
    return Figures(len(held), values)


def by_category(outcomes: Iterable[Outcome]) -> dict[str, Figures]:
    grouped: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.question.category, []).append(outcome)
    return {category: figures(held) for category, held in sorted(grouped.items())}
