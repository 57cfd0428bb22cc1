"""Measures relevance as it ships on the corpus's test questions, and how long it takes. Prints tables, writes JSON."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.judge import fitting
from bench.judge.retrieval import ALICE, Case, K, cases, fill, label
from bench.judge.spaces import RESULTS, Space, corpus_spaces
from bench.quality.judging import RememberedJudge
from commonplace.embedders.base import Embedder
from commonplace.engine.engine import Engine
from commonplace.engine.recall.ranking import RankedCandidate, fitted_blend, with_verdicts
from commonplace.engine.recall.recall import recall
from commonplace.engine.recall.relevance import Assessment, Mode, assess, gather_signals
from commonplace.engine.types import Query
from commonplace.judges.base import Judge
from commonplace.plugins import open_store
from commonplace.wire.record import system_clock

MODES: tuple[Mode, ...] = ("off", "auto", "always")
_TIMED = 150


@dataclass(slots=True)
class Answer:
    case: Case
    assessment: Assessment[RankedCandidate]
    uncut: Assessment[RankedCandidate]
    ids: list[str]  # everything found, best first

    @property
    def answerable(self) -> float:
        assert self.assessment.explain is not None
        value: float = self.assessment.explain["answerable"]
        return value


async def answers(found: Sequence[Case], judge: Judge, mode: Mode) -> list[Answer]:
    """No time is looked at, so that a slow machine measures the same."""

    async def one(case: Case) -> Answer:
        query = Query((), case.question.text, k=K, judge=mode, explain=True)
        name = case.found.fit_name
        signals = await gather_signals(judge, case.found.question, case.ranked, query, name, timer=lambda: 0.0)
        ranked = with_verdicts(case.ranked, signals.logits, fitted_blend(name))
        uncut = assess(signals, ranked, replace(query, min_score=0.0))
        return Answer(case, assess(signals, ranked, query), uncut, [label(r) for r in ranked])

    return [await one(case) for case in found]


def emptiness(given: Sequence[Answer]) -> dict[str, float]:
    """How well the whole tells answerable from not, and what is left empty at the default cut-off."""

    def of(category: str | None) -> list[Answer]:
        return [a for a in given if (a.case.question.category == category if category else a.case.question.answerable)]

    def empty(some: Sequence[Answer]) -> float:
        return float(np.mean([not a.assessment.hits for a in some])) if some else 0.0

    yes = [a.answerable for a in of(None)]
    no = [a.answerable for a in given if not a.case.question.answerable]
    at = float(np.quantile(yes, 0.03))
    return {
        "auc": fitting.auc(yes, no),
        "false_empty": empty(of(None)),
        "in_domain_empty": empty(of("in_domain")),
        "out_of_domain_empty": empty(of("out_of_domain")),
        "in_domain_at_3": float(np.mean([a.answerable < at for a in of("in_domain")])),
        "out_of_domain_at_3": float(np.mean([a.answerable < at for a in of("out_of_domain")])),
        "needed_judge": float(np.mean([a.assessment.judged > 0 for a in given])),
    }


def finding(given: Sequence[Answer]) -> dict[str, float]:
    """Where the gold is, nothing cut, and what is left of it at the default cut-offs.

    `stale_first`: of changed facts, an outdated one before the gold. `shown`: hits of an answered question that is not
    left empty, of ten.
    """
    asked = [a for a in given if a.case.question.answerable]
    recall, kept, reciprocal, stale, shown = [], [], [], [], []
    for answer in asked:
        question = answer.case.question
        left = [label(hit.found) for hit in answer.assessment.hits]
        recall.append(len(question.gold.intersection(answer.ids[:5])) / len(question.gold))
        kept.append(len(question.gold.intersection(left[:5])) / len(question.gold))
        reciprocal.append(next((1 / (n + 1) for n, id in enumerate(answer.ids) if id in question.gold), 0.0))
        if left:
            shown.append(len(left))
        if question.category == "changed-fact":
            either = question.gold | question.beside
            stale.append(next((id in question.beside for id in answer.ids[:5] if id in either), False))
    return {
        "recall_at_5": float(np.mean(recall)),
        "recall_at_5_cut": float(np.mean(kept)),
        "mrr": float(np.mean(reciprocal)),
        "stale_first": float(np.mean(stale)) if stale else 0.0,
        "shown": float(np.mean(shown)) if shown else 0.0,
    }


def calibrated(given: Sequence[Answer]) -> tuple[list[dict[str, Any]], float]:
    predicted, labels = [], []
    for answer in given:
        for hit in answer.uncut.hits:
            id = label(hit.found)
            if hit.relevance is not None and id not in answer.case.question.beside:
                predicted.append(hit.relevance)
                labels.append(id in answer.case.question.gold)
    table = fitting.reliability(predicted, labels)
    return table, fitting.calibration_error(table)


async def timed(spaces: Sequence[Space], embedder: Embedder, judge: Judge, split: str) -> dict[str, float]:
    """From the question's text to the assessed hits, over the SQLite store; nothing remembered from before."""
    recall_ms, judging_ms = [], []
    with tempfile.TemporaryDirectory() as folder:
        engine = await Engine.open(open_store(f"sqlite://{folder}/bench.db", system_clock), embedder)
        engine.use_judge(lambda: judge)
        for space in spaces:
            await fill(engine, space)
        asked = [(s.name, q) for s in spaces for q in s.questions if q.split == split]
        for agent, question in asked[:: max(1, len(asked) // _TIMED)]:
            start = time.perf_counter()
            result = await recall(engine._core, ALICE, Query((agent,), question.text, k=K, explain=True))
            took = (time.perf_counter() - start) * 1e3
            recall_ms.append(took)
            if (result.explain or {}).get("relevance", {}).get("judged"):
                judging_ms.append(took)
        await engine.close()
    return {
        "judged_recall_ms_p50": statistics.median(judging_ms) if judging_ms else 0.0,
        "recall_ms_p50": statistics.median(recall_ms),
        "recall_ms_p95": statistics.quantiles(recall_ms, n=20)[-1],
    }


def main(embedder: Embedder, judge: RememberedJudge, split: str, plot_at: str | None) -> None:
    spaces = corpus_spaces()
    found = cases(spaces, embedder, [split])
    yes = [max(r.dense or 0.0 for r in c.ranked) for c in found if c.question.answerable]
    no = [max(r.dense or 0.0 for r in c.ranked) for c in found if not c.question.answerable]
    print(f"{split}: {len(yes)} answerable, {len(no)} not; AUC of the best cosine {fitting.auc(yes, no):.3f}\n")
    speed = asyncio.run(timed(spaces, embedder, judge.fresh, split))
    report: dict[str, Any] = {"split": split, "speed": speed, "modes": {}}
    tables = {}
    for mode in MODES:
        given = asyncio.run(answers(found, judge, mode))
        tables[mode], error = calibrated(given)
        report["modes"][mode] = emptiness(given) | finding(given) | {"calibration_error": error}
        report["modes"][mode]["reliability"] = tables[mode]
    names = [name for name in report["modes"]["auto"] if name != "reliability"]
    print(f"{'':<24}" + "".join(f"{mode:>10}" for mode in MODES))
    for name in names:
        print(f"{name:<24}" + "".join(f"{report['modes'][mode][name]:>10.3f}" for mode in MODES))
    print("\nreliability of the hits' relevance (auto)\n      bin   hits  predicted   true")
    for row in tables["auto"]:
        print(f"  {row['from']:.1f}–{row['to']:.1f}{row['hits']:>7}{row['predicted']:>11.3f}{row['true']:>7.3f}")
    print("\n" + "\n".join(f"{name:<24}{value:>10.1f}" for name, value in speed.items()))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"judge-{split}.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    plot(tables["auto"], Path(plot_at) if plot_at else RESULTS / f"judge-reliability-{split}.png", split)


def plot(table: Sequence[dict[str, Any]], path: Path, split: str) -> None:
    try:
        import matplotlib as mpl
    except ImportError:
        print("\nno plot: install the extra `bench`")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(4.5, 4.5), dpi=100)
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    predicted, true = [row["predicted"] for row in table], [row["true"] for row in table]
    axes.plot(predicted, true, marker="o", color="#2b5c8a")
    for x, y, row in zip(predicted, true, table, strict=True):
        axes.annotate(str(row["hits"]), (x, y), textcoords="offset points", xytext=(6, -10), fontsize=8)
    axes.set(xlabel="relevance given", ylabel="share that answers", xlim=(0, 1), ylim=(0, 1))
    axes.set_title(f"Relevance of hits, {split} questions", fontsize=10)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
    print(f"\nplot: {path}")
