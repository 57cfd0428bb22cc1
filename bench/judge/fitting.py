"""Logistic fits and what is said about them, in numpy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commonplace.engine.recall.relevance import Logistic

Rows = Sequence[Mapping[str, float]]
Numbers = NDArray[np.float64]

_PENALTY = 1.0
_STEPS = 100


def logistic(rows: Rows, labels: ArrayLike, names: Sequence[str], weights: ArrayLike | None = None) -> Logistic:
    """Newton's method on standardised features with a light penalty, given back in the features' own units."""
    x = np.array([[row[name] for name in names] for row in rows], np.float64)
    y = np.asarray(labels, np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    centre, spread = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    z = np.column_stack([(x - centre) / spread, np.ones(len(x))])
    penalty = np.append(np.full(len(names), _PENALTY), 0.0)
    beta = np.zeros(z.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-z @ beta))
        slope = z.T @ (w * (p - y)) + penalty * beta
        curvature = (z * (w * p * (1 - p))[:, None]).T @ z + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curvature, slope)
        beta -= step
        if np.abs(step).max() < 1e-9:
            break
    own = beta[:-1] / spread
    return Logistic(float(beta[-1] - own @ centre), dict(zip(names, own.tolist(), strict=True)))


def with_signs(rows: Rows, labels: ArrayLike, signs: Mapping[str, int]) -> Logistic:
    """`logistic` of those features alone whose weights have the sign that is expected of them."""
    names = [name for name in signs if any(row[name] for row in rows)]
    while True:
        fit = logistic(rows, labels, names)
        wrong = [name for name in names if fit.weights[name] * signs[name] < 0]
        if not wrong:
            return fit
        # The least telling first: without it another may be right again.
        names.remove(min(wrong, key=lambda name: abs(fit.weights[name]) * np.std([row[name] for row in rows])))


def auc(positive: ArrayLike, negative: ArrayLike) -> float:
    """How often one of the first scores above one of the second, ties counting half."""
    p, n = np.asarray(positive, np.float64), np.asarray(negative, np.float64)
    ordered = np.sort(n)
    below = np.searchsorted(ordered, p, "left")
    equal = np.searchsorted(ordered, p, "right") - below
    return float((below + equal / 2).mean() / len(n))


def highest_cut(scores: ArrayLike, share: float, *, cut_already: int = 0) -> float:
    """The highest cut-off that leaves at most `share` of all below it, those cut already counted."""
    ordered = np.sort(np.asarray(scores, np.float64))
    allowed = int(share * (len(ordered) + cut_already)) - cut_already
    return float(ordered[max(0, min(allowed, len(ordered) - 1))])


def reliability(predicted: ArrayLike, labels: ArrayLike, bins: int = 10) -> list[dict[str, Any]]:
    """Bins of equal width that hold anything: what was predicted on average, and what came true."""
    p, y = np.asarray(predicted, np.float64), np.asarray(labels, np.float64)
    place = np.minimum((p * bins).astype(int), bins - 1)
    table = []
    for b in range(bins):
        inside = place == b
        if inside.any():
            table.append(
                {
                    "from": b / bins,
                    "to": (b + 1) / bins,
                    "hits": int(inside.sum()),
                    "predicted": float(p[inside].mean()),
                    "true": float(y[inside].mean()),
                }
            )
    return table


def calibration_error(table: Sequence[Mapping[str, Any]]) -> float:
    total = sum(row["hits"] for row in table)
    return sum(row["hits"] * abs(row["predicted"] - row["true"]) for row in table) / max(total, 1)
