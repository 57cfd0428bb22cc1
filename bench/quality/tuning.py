"""Fits the weights: for each question, the memories that answer it against the others that were found (conditional
logistic regression by Newton's method), then one scale and bias that make the sum a probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bench.quality.datasets import Question, Space
from bench.quality.stocked import Stocked, label
from commonplace.engine.recall.evidence import text_for_judge
from commonplace.engine.recall.relevance import JUDGED_ALWAYS
from commonplace.engine.recall.search import search
from commonplace.judges.base import Judge

Array = NDArray[np.float64]

RIDGE = 3.0
#: AgentContext only from what people mean by them: no data set here has them often enough to fit.
BY_HAND = {"importance": 1.0, "subject": 0.5, "recent": 0.1}
_K = 10


@dataclass(slots=True)
class Sample:
    """One question with everything found for it."""

    space: str
    question: Question
    ids: list[str]
    features: list[dict[str, float]]
    texts: list[str] = field(default_factory=list)  # what a judge reads of each

    @property
    def gold(self) -> Array:
        return np.array([id in self.question.gold for id in self.ids], float)

    def matrix(self, names: Sequence[str]) -> Array:
        return np.array([[f.get(name, 0.0) for name in names] for f in self.features]).reshape(-1, len(names))

    def sums(self, weights: Mapping[str, float]) -> Array:
        return self.matrix(list(weights)) @ np.array(list(weights.values()))

    def order(self, weights: Mapping[str, float]) -> list[str]:
        return [self.ids[i] for i in np.argsort(-self.sums(weights), kind="stable")]

    def read_by(self, judge: Judge, weights: Mapping[str, float]) -> Sample:
        """With a judge's logits for the best of it."""
        best = np.argsort(-self.sums(weights), kind="stable")[:JUDGED_ALWAYS].tolist()
        logits = dict(zip(best, judge.judge(self.question.text, [self.texts[i] for i in best]), strict=True))
        features = [{**f, "judge": logits[i], "judged": 1.0} if i in logits else f for i, f in enumerate(self.features)]
        return replace(self, features=features)


#: Samples, each with how much it counts.
Weighted = Sequence[tuple[Sample, float]]


async def collect(held: Stocked, spaces: Sequence[Space]) -> list[Sample]:
    samples = []
    for space in spaces:
        for question in space.questions:
            reach = held.reach(space, question)
            found = await search(held.core, reach, question.text, _K)
            ids = [label(r.memory) for r in found.ranked]
            texts = [text_for_judge(found.question, r.memory) for r in found.ranked]
            samples.append(Sample(space.name, question, ids, [r.features for r in found.ranked], texts))
    return samples


def fit_verdicts(samples: Weighted, weights: Mapping[str, float], judge: Judge) -> dict[str, float]:
    """What a judge's logit is worth beside these weights, and having been read at all, for the best that it reads."""
    read = []
    for sample, weight in samples:
        judged = sample.read_by(judge, weights)
        sums = sample.sums(weights).tolist()
        features = [{**f, "blend": z} for f, z in zip(judged.features, sums, strict=True)]
        read.append((replace(judged, features=features), weight))
    found = fit(read, ["blend", "judge", "judged"])
    return {name: found[name] / found["blend"] for name in ("judge", "judged")}


def fit(samples: Weighted, names: Sequence[str], ridge: float = RIDGE) -> dict[str, float]:
    """Weights for these features; each sample counts as much as its second half says."""
    usable = [(s.matrix(names), s.gold, weight) for s, weight in samples if 0 < s.gold.sum() < len(s.ids)]
    rows = np.concatenate([matrix for matrix, _, _ in usable])
    spread = rows.std(axis=0) + 1e-6
    rows = (rows - rows.mean(axis=0)) / spread
    sizes = np.array([len(gold) for _, gold, _ in usable])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    target = np.concatenate([gold / gold.sum() for _, gold, _ in usable])
    counts = np.array([weight for _, _, weight in usable])
    each = np.repeat(counts, sizes)

    def loss(w: Array) -> tuple[float, Array]:
        scores = rows @ w
        peaks = np.maximum.reduceat(scores, starts)
        exps = np.exp(scores - np.repeat(peaks, sizes))
        sums = np.add.reduceat(exps, starts)
        value = 0.5 * ridge * w @ w + counts @ (peaks + np.log(sums)) - (each * target) @ scores
        return float(value), exps / np.repeat(sums, sizes)

    w = np.zeros(len(names))
    value, chance = loss(w)
    for _ in range(50):
        gradient = ridge * w + rows.T @ (each * (chance - target))
        means = np.add.reduceat(rows * chance[:, None], starts)
        hessian = (
            ridge * np.eye(len(w)) + (rows * (each * chance)[:, None]).T @ rows - (means * counts[:, None]).T @ means
        )
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while (lower := loss(w - size * step))[0] > value and size > 1e-4:
            size /= 2
        gained = value - lower[0]
        if gained <= 1e-8 * abs(value):
            break
        w = w - size * step
        value, chance = lower
    return {name: float(x) for name, x in zip(names, w / spread, strict=True)}


def calibrate(samples: Weighted, weights: Mapping[str, float]) -> tuple[float, float]:
    """(scale, bias) of the logistic curve through the sums."""
    names = list(weights)
    vector = np.array([weights[name] for name in names])
    z = np.concatenate([s.matrix(names) @ vector for s, _ in samples if s.ids])
    y = np.concatenate([s.gold for s, _ in samples if s.ids])
    each = np.concatenate([np.full(len(s.ids), weight) for s, weight in samples if s.ids])
    columns = np.stack([z, np.ones_like(z)], axis=1)
    ab = np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(columns @ ab, -30, 30)))
        gradient = columns.T @ (each * (p - y)) + 1e-3 * ab
        hessian = (columns * (each * p * (1 - p))[:, None]).T @ columns + 1e-3 * np.eye(2)
        ab = ab - np.linalg.solve(hessian, gradient)
    return float(ab[0]), float(ab[1])


def balanced(groups: Sequence[Sequence[Sample]], shares: Sequence[float]) -> list[tuple[Sample, float]]:
    """Each group of samples counts for its share, however many it has."""
    total = sum(len(group) for group in groups)
    scale = total / sum(shares)
    return [
        (s, scale * share / len(group)) for group, share in zip(groups, shares, strict=True) for s in group if group
    ]
