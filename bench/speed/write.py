"""Remembering: against bare SQL, one caller and many, how often the disk is waited for, and with the real model."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import mean, median

from bench.speed.bare import Bare
from bench.speed.measure import cpu, no_collection
from bench.speed.plan import Plan
from bench.speed.report import Report, tracked
from bench.speed.syncs import counted
from commonplace.embedders.registry import open_embedder
from commonplace.sdk import Memory

CALLERS = 64


def run(plan: Plan) -> Report:
    report = Report("Writing")
    with tempfile.TemporaryDirectory(dir=plan.cache) as folder:
        _against_bare(report, plan, Path(folder) / "bare")
        _syncs(report, plan, Path(folder) / "syncs")
        _throughput(report, plan, Path(folder) / "throughput")
        _embedding(report, plan, Path(folder) / "embedding")
    return report


def _against_bare(report: Report, plan: Plan, folder: Path) -> None:
    """Blocks of remembers and of bare transactions take turns, on files that grow alike."""
    blocks, size = plan.pick(10, 60), plan.pick(20, 100)
    texts = [plan.material.text(number) for number in range((blocks + 1) * size)]
    ours: list[float] = []
    bares: list[float] = []

    async def remember(memory: Memory, some: list[str]) -> None:
        for text in some:
            await memory.remember(text)

    with asyncio.Runner() as runner:
        memory = Memory("writer", data=folder, embedder="none")
        runner.run(remember(memory, texts[:size]))
        bare = Bare(folder / "bare.db", folder / "commonplace.db")
        bare.write(bare.new_rows())
        with no_collection():
            for block in tracked(range(1, blocks + 1), "remember against bare SQL", blocks):
                some = texts[block * size : (block + 1) * size]
                ours.append(cpu(lambda: runner.run(remember(memory, some))) / size)  # noqa: B023
                rows = bare.new_rows()
                bares.append(cpu(lambda: bare.write(rows)) / size)  # noqa: B023
        same = bare.same_as_original()
        bare.close()
        runner.run(memory.close())
    assert same, "the bare file does not hold the same rows: the comparison would be worth nothing"
    report.add("remember, one caller, no embedding: CPU", median(ours) * 1e6, "µs")
    report.add("the same rows in bare transactions: CPU", median(bares) * 1e6, "µs")
    report.add("remember ÷ bare", median(ours) / median(bares), "×", at_most=2.5)
    report.add("remember ÷ bare, means (with index upkeep)", mean(ours) / mean(bares), "×")


async def _crowd(memory: Memory, texts: list[str]) -> None:
    waiting = iter(texts)

    async def caller() -> None:
        for text in waiting:
            await memory.remember(text)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


def _syncs(report: Report, plan: Plan, folder: Path) -> None:
    writes = plan.pick(640, 6400)
    texts = [plan.material.text(number) for number in range(writes)]

    async def work() -> None:
        async with Memory("writer", data=folder, embedder="none") as memory:
            await memory.remember("the first write makes the agent")
            before = counter.syncs
            await _crowd(memory, texts)
            report.add(
                f"writes per fsync, {CALLERS} callers", writes / max(counter.syncs - before, 1), "writes", at_least=8
            )
            before = counter.syncs
            for text in texts[:100]:
                await memory.remember(text)
            report.add("writes per fsync, one caller", 100 / max(counter.syncs - before, 1), "writes")

    with counted() as counter:
        asyncio.run(work())


def _throughput(report: Report, plan: Plan, folder: Path) -> None:
    count = plan.pick(200, 3000)
    texts = [plan.material.text(number) for number in range(count)]

    async def one_by_one(memory: Memory) -> None:
        for text in texts:
            await memory.remember(text)

    async def batches(memory: Memory) -> None:
        for start in range(0, count, 500):
            await memory.remember_batch(list(texts[start : start + 500]))

    async def work() -> None:
        async with Memory("writer", data=folder, embedder="none") as memory:
            await memory.remember("the first write makes the agent")
            for name, way in (
                ("one caller", one_by_one(memory)),
                (f"{CALLERS} callers", _crowd(memory, texts)),
                ("batches of 500", batches(memory)),
            ):
                wall, used = time.perf_counter(), time.process_time()
                await way
                wall, used = time.perf_counter() - wall, time.process_time() - used
                report.add(f"remember, {name}: throughput", count / wall, "/s")
                report.add(f"remember, {name}: CPU", used / count * 1e6, "µs")

    asyncio.run(work())


def _embedding(report: Report, plan: Plan, folder: Path) -> None:
    if plan.model is None:
        report.note("the embedding model is not there: remember with embedding was not measured")
        return
    count = plan.pick(10, 100)
    texts = [f"{plan.material.text(number)} (again)" for number in range(count)]

    async def work() -> None:
        embedder = open_embedder(plan.model or "none")
        async with Memory("writer", data=folder, embedder=embedder) as memory:
            await memory.remember("the first write loads the model")
            taken = []
            for text in texts:
                start = time.perf_counter()
                await memory.remember(text)
                taken.append(time.perf_counter() - start)
            report.add("remember with embedding, one caller: median", median(taken) * 1e3, "ms")
            start = time.perf_counter()
            await memory.remember_batch([f"{text} in a batch" for text in texts])
            report.add("remember with embedding, one batch", count / (time.perf_counter() - start), "/s")

    asyncio.run(work())
