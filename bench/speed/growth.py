"""How costs grow with the number of memories: a table and a picture."""

from __future__ import annotations

import asyncio
import gc
import time
from statistics import median

from bench.speed import stores
from bench.speed.hybrid import taken
from bench.speed.material import COMMON
from bench.speed.measure import in_turn
from bench.speed.plan import Plan
from bench.speed.report import Report
from bench.speed.vector import searcher
from commonplace.sdk import Memory
from commonplace.stores.sqlite.index import IndexQuery
from commonplace.stores.text import query_terms

VISITOR = "visitor"
LEGS = ("remember", "recall", "meaning only", "words only")


def run(plan: Plan) -> Report:
    report = Report("Growth: CPU of one call")
    grown: dict[str, list[float]] = {leg: [] for leg in LEGS}
    for size in plan.sizes:
        costs = {**asyncio.run(_calls(plan, size)), **_legs(plan, size)}
        for leg in LEGS:
            grown[leg].append(costs[leg] * 1e3)
            report.add(f"{size:,} memories: {leg}", costs[leg] * 1e3, "ms")
    report.series = {"sizes": list(plan.sizes), "milliseconds": grown}
    report.note(f"each run leaves {_writes(plan)} memories of another agent in each store")
    if len(plan.sizes) > 1:
        _draw(report, plan)
    return report


def _writes(plan: Plan) -> int:
    return plan.pick(10, 200)


async def _calls(plan: Plan, size: int) -> dict[str, float]:
    store, material = plan.store(size), plan.material
    async with stores.opened(store, material) as memory:
        for query in COMMON:
            await memory.recall(query, judge="off")
        gc.collect()
        gc.disable()
        recalls = [await taken(memory, query) for _ in range(plan.pick(2, 10)) for query in COMMON]
        gc.enable()
    # Written without an embedder, whose cost is the model's and the same at every size; and by another agent, so that
    # the one that is searched stays as it was.
    remembers = []
    async with Memory(VISITOR, data=store.folder, embedder="none") as memory:
        await memory.remember("the first write warms what every write uses")
        gc.collect()
        gc.disable()
        for number in range(_writes(plan)):
            text = material.text(number)
            start = time.process_time()
            await memory.remember(text)
            remembers.append(time.process_time() - start)
        gc.enable()
    return {"remember": median(remembers), "recall": median(recalls)}


def _legs(plan: Plan, size: int) -> dict[str, float]:
    terms = [query_terms(query) for query in COMMON]
    with searcher(plan.store(size), stores.BIG) as (_, search):
        works = {
            "meaning only": lambda i: search(IndexQuery([], plan.material.question_vectors[i], 20)),
            "words only": lambda i: search(IndexQuery(terms[i % len(terms)], None, 20)),
        }
        for work in works.values():
            work(0)
        return in_turn(works, range(plan.pick(3, 30)))


def _draw(report: Report, plan: Plan) -> None:
    try:
        import matplotlib
    except ImportError:
        report.note("matplotlib is not installed (pip install 'commonplace-memory[bench]'): no picture")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for leg, milliseconds in report.series["milliseconds"].items():
        axes.plot(report.series["sizes"], milliseconds, marker="o", label=leg)
    axes.set(xscale="log", yscale="log", xlabel="memories of one agent", ylabel="CPU, ms", title="Cost of one call")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    plan.results.mkdir(parents=True, exist_ok=True)
    figure.savefig(plan.results / "growth.png", dpi=140)
    pyplot.close(figure)
    report.note(f"picture: {plan.results / 'growth.png'}")
