"""`multilingual`: what the second embedder's cosine is worth, fitted with everything else as it is.

Weights on the tune split of the corpus and the small spaces that mix languages, each agent asked by weights that have
not seen it; and how likely a memory in another language answers, from the same questions and those nothing answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.quality import datasets
from bench.quality.datasets import Question, Space
from bench.quality.measures import Figures, Outcome, by_category, figures
from bench.quality.report import table
from bench.quality.sources import Sources
from bench.quality.stocked import WHO, stocked
from bench.quality.tuning import Array, Sample, collect
from commonplace.engine.recall import multilingual
from commonplace.engine.recall.ranking import fitted_blend
from commonplace.wire.record import Memory

_MIXED = ("t_cross_language", "q_people_languages")  # of the small spaces
_SHARE = 0.3  # of one of their questions, beside one of the corpus
_RIDGE = 1.0
_READ = 10  # of the best, when it is asked whether one answers


async def fit_multilingual(sources: Sources, *, write: bool) -> None:
    embedder = sources.embedder
    tune = [replace(s, questions=[q for q in s.questions if q.split == "tune"]) for s in sources.corpus]
    mixed = [s for s in datasets.small_spaces() if s.name.split("/")[0] in _MIXED]
    base = dict(fitted_blend(embedder.name).weights)
    async with stocked([*tune, *mixed], embedder) as held:
        await held.engine.upkeep.add_second(WHO, sources.second)
        samples = [(s, 1.0) for s in await collect(held, tune)]
        samples += [(s, _SHARE) for s in await collect(held, mixed)]
        unanswerable = await collect(held, _unanswerable(tune))
    asked = [s for s, share in samples if share == 1.0]
    rows: dict[str, Figures] = {"without": figures([Outcome(s.question, s.order(base)) for s in asked])}
    rows |= _left_out(asked, samples, base)
    print(table("corpus, tune: fitted without the agent that is asked", rows))
    weights = fit_beside(samples, base)
    bias, cosine, margin = _fit_evidence([s for s, _ in samples], unanswerable, base | weights)
    fitted = {"weights": {n: round(w, 3) for n, w in weights.items()}}
    entry = {**fitted, "bias": round(bias, 3), "cosine": round(cosine, 3), "margin": round(margin, 3)}
    print(json.dumps({embedder.name: entry}, indent=2))
    if write:
        file: Path = multilingual.FITTED
        held_fits = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        file.write_text(json.dumps(held_fits | {embedder.name: entry}, indent=2) + "\n")
        print(f"written to {file}")


def fit_beside(samples: Sequence[tuple[Sample, float]], base: Mapping[str, float]) -> dict[str, float]:
    """Weights of the second embedder's features: conditional logistic regression, the blend's sums given."""
    names = multilingual.FEATURES
    usable = []
    for sample, share in samples:
        gold = sample.gold
        if 0 < gold.sum() < len(sample.ids):
            given = sample.matrix(list(base)) @ np.array(list(base.values()))
            usable.append((sample.matrix(names), given, gold / gold.sum(), share))
    spread = np.concatenate([rows for rows, *_ in usable]).std(axis=0) + 1e-6
    weights: Array = np.zeros(len(names))
    for _ in range(60):
        gradient, hessian = _RIDGE * weights * spread**2, np.diag(_RIDGE * spread**2)
        for rows, given, target, share in usable:
            sums = rows @ weights + given
            chance = np.exp(sums - sums.max())
            chance /= chance.sum()
            mean = rows.T @ chance
            gradient = gradient + share * (mean - rows.T @ target)
            hessian = hessian + share * ((rows * chance[:, None]).T @ rows - np.outer(mean, mean))
        step = np.clip(np.linalg.solve(hessian, gradient), -3, 3)
        weights = weights - step
        if np.abs(step).max() < 1e-5:
            break
    return {name: float(weight) for name, weight in zip(names, weights, strict=True)}


def _left_out(
    asked: Sequence[Sample], samples: Sequence[tuple[Sample, float]], base: Mapping[str, float]
) -> dict[str, Figures]:
    done: list[Outcome] = []
    for space in sorted({s.space for s in asked}):
        weights = {**base, **fit_beside([(s, share) for s, share in samples if s.space != space], base)}
        done += [Outcome(s.question, s.order(weights)) for s in asked if s.space == space]
    return {"with": figures(done), **{f"  {c}": f for c, f in by_category(done).items()}}


def _fit_evidence(
    answerable: Sequence[Sample], unanswerable: Sequence[Sample], weights: Mapping[str, float]
) -> tuple[float, float, float]:
    """(bias, cosine, margin) of the logistic curve through the best few in another language, gold or not."""
    rows: list[tuple[float, float, float]] = []
    labels: list[float] = []
    for sample in (*answerable, *unanswerable):
        order = sample.order(weights)
        at = {id: place for place, id in enumerate(sample.ids)}
        ranked = [_Read(Memory(id, "", "", "semantic", ""), sample.features[at[id]]) for id in order]
        for id, seen in zip(order, multilingual.foreign_evidence(ranked, _READ), strict=False):
            if seen is not None:
                rows.append((1.0, *seen))
                labels.append(float(id in sample.question.gold))
    x, y = np.array(rows), np.array(labels)
    w = np.zeros(3)
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        w = w - np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + 1e-2 * np.eye(3), x.T @ (p - y) + 1e-2 * w)
    print(f"{len(y)} memories in another language among the best {_READ}, {int(y.sum())} of them answers")
    return float(w[0]), float(w[1]), float(w[2])


@dataclass(slots=True)
class _Read:
    memory: Memory
    features: Mapping[str, float]


def _unanswerable(spaces: Sequence[Space]) -> list[Space]:
    """The tune half of what nothing in the corpus answers."""
    asked: dict[str, list[Question]] = {}
    for line in (datasets.CORPUS / "unanswerable.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if datasets.split(row["id"]) == "tune":
            asked.setdefault(row["agent_id"], []).append(Question(row["id"], row["question"], frozenset(), "nothing"))
    return [replace(space, questions=asked.get(space.name, [])) for space in spaces]
