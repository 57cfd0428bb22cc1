"""What the second embedder says: beside the other features, and as evidence for a memory in another language.

Fitted by `python -m bench.quality multilingual` for one embedder of the store, and kept in multilingual.json. Weights
are added to those of the blend, which stays as it is: without the second embedder nothing changes.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from commonplace.engine.recall.ranking import WITHOUT_TOKENS
from commonplace.wire.record import Memory

FITTED = Path(__file__).with_name("multilingual.json")
FEATURES = ("multilingual", "multilingual_foreign", "dense_foreign", "late_foreign")
#: From here on it stands against those who find nothing. On the tune split it keeps 2 % of what nothing answers.
CERTAIN = 0.7
_BEST, _BACKGROUND = 3, 20  # as many as `evidence` reads the background from


class Fit(NamedTuple):
    weights: Mapping[str, float]
    #: How likely a memory in another language answers: by its cosine, and by how far it is above the background.
    bias: float
    cosine: float
    margin: float


class RankedMemory(Protocol):
    @property
    def memory(self) -> Memory: ...


@functools.cache
def _fits() -> dict[str, Fit]:
    return {name: Fit(**entry) for name, entry in json.loads(FITTED.read_text("utf-8")).items()}


def fitted(fit_name: str | None) -> Fit:
    """By the name of the blend that it is added to; where there is none of its own, that of the default."""
    fits, name = _fits(), fit_name or ""
    return fits.get(name) or fits.get(name.removesuffix(WITHOUT_TOKENS)) or next(iter(fits.values()))


def extended(weights: Mapping[str, float], fit_name: str | None) -> dict[str, float]:
    """The weights of a blend, and those of what the second embedder says."""
    return {**weights, **fitted(fit_name).weights}


def foreign_evidence(ranked: Sequence[RankedMemory], count: int) -> list[tuple[float, float] | None]:
    """Cosine and margin of the first `count` that are in another language than the question; None for the others."""
    read = [getattr(r, "features", {}) for r in ranked]  # whoever ranks by something else has none
    known = sorted((features["multilingual"] for features in read if "multilingual" in features), reverse=True)
    rest = known[_BEST:_BACKGROUND] if len(known) > 2 * _BEST else known
    background = sum(rest) / len(rest) if rest else 0.0
    cosines = [features.get("multilingual_foreign") for features in read[:count]]
    return [None if c is None else (c, c - background) for c in cosines]


def relevance(ranked: Sequence[RankedMemory], count: int, fit_name: str | None) -> dict[str, float]:
    """By id, how likely those of the first `count` that are in another language answer."""
    fit, seen = fitted(fit_name), foreign_evidence(ranked, count)
    pairs = zip(ranked, seen, strict=False)
    return {r.memory.id: _logistic(fit, *evidence) for r, evidence in pairs if evidence is not None}


def _logistic(fit: Fit, cosine: float, margin: float) -> float:
    z = fit.bias + fit.cosine * cosine + fit.margin * margin
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
