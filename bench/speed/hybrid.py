"""Recall by meaning and words together, as a program calls it, with the query's embedding already known."""

from __future__ import annotations

import asyncio
import gc
import time
from statistics import median

from bench.speed import stores
from bench.speed.material import COMMON
from bench.speed.measure import cpu
from bench.speed.plan import Plan
from bench.speed.report import Report
from commonplace.sdk import Memory

MAX_MS = {100_000: 5.0, 1_000_000: 40.0}
_MATCH = "SELECT rowid, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 20"


def run(plan: Plan) -> Report:
    report = Report("Recall, meaning and words, no embedding")
    for size in plan.large:
        asyncio.run(_one_agent(report, plan, size))
    if any(size >= stores.WITH_SMALL for size in plan.large):
        asyncio.run(_small_among_many(report, plan, max(plan.large)))
    report.note("questions of common words: " + "; ".join(COMMON))
    return report


async def taken(memory: Memory, query: str) -> float:
    """CPU seconds of one recall, in all threads."""
    start = time.process_time()
    await memory.recall(query, judge="off")
    return time.process_time() - start


async def _one_agent(report: Report, plan: Plan, size: int) -> None:
    material = plan.material
    fts = stores.fts_table(plan.cache, material, size)
    rounds = plan.pick(2, 15)
    common: list[float] = []
    plain: list[float] = []
    behind: list[float] = []
    async with stores.opened(plan.store(size), material) as memory:
        questions = material.questions[: plan.pick(3, 40)]
        for query in (*COMMON, *questions):
            await memory.recall(query, judge="off")
        await memory.flush()
        gc.collect()
        gc.disable()
        for _ in range(rounds):
            for query in COMMON:
                common.append(await taken(memory, query))
                wanted = " OR ".join(f'"{word}"' for word in query.split())
                plain.append(cpu(lambda: fts.execute(_MATCH, (wanted,)).fetchall()))  # noqa: B023
            start = time.process_time()
            await memory.flush()
            behind.append((time.process_time() - start) / len(COMMON))
        real = [await taken(memory, query) for query in questions]
        gc.enable()
    fts.close()
    name = f"{size:,} memories"
    report.add(f"{name}: recall, common words, CPU", median(common) * 1e3, "ms", at_most=MAX_MS.get(size))
    report.add(f"{name}: recall, real questions, CPU", median(real) * 1e3, "ms")
    report.add(f"{name}: FTS5 alone, common words, CPU", median(plain) * 1e3, "ms")
    report.add(f"{name}: counting and auditing it behind, CPU", median(behind) * 1e3, "ms")


async def _small_among_many(report: Report, plan: Plan, size: int) -> None:
    alone, among = stores.small_alone(plan.cache, plan.material), plan.store(size)
    own: list[float] = []
    shared: list[float] = []
    async with (
        stores.opened(alone, plan.material, stores.SMALL) as one,
        stores.opened(among, plan.material, stores.SMALL) as many,
    ):
        queries = [*COMMON, *plan.material.questions[: plan.pick(2, 20)]]
        for query in queries:
            mine, theirs = await one.recall(query, judge="off"), await many.recall(query, judge="off")
            if [hit.content for hit in mine.results] != [hit.content for hit in theirs.results]:
                report.note(f"the agent alone and among others answer {query!r} differently")
        gc.collect()
        gc.disable()
        for _ in range(plan.pick(1, 8)):
            for query in queries:
                own.append(await taken(one, query))
                shared.append(await taken(many, query))
        gc.enable()
    report.add(f"{stores.SMALL_SIZE:,} memories alone: recall, CPU", median(own) * 1e3, "ms")
    report.add(f"{stores.SMALL_SIZE:,} among {size:,}: recall, CPU", median(shared) * 1e3, "ms")
    report.add(f"{stores.SMALL_SIZE:,} among {size:,} ÷ alone", median(shared) / median(own), "×", at_most=3)
