"""What the jobs cost whoever recalls meanwhile, in real time on a real store."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from random import Random

import numpy as np

from bench.lifecycle.conversation import days
from bench.lifecycle.simulation import AGENT, WHO, SimulatedClock
from commonplace.embedders.registry import open_embedder
from commonplace.engine import BatchItem, Draft, Engine, Query
from commonplace.engine.lifecycle.dream_job import DreamJob
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

_ITEMS = 100
_LONG_TERM = 2_000
_RECALLS = 400
_DRAWERS = 10_000
_PASSES = 4
_RANDOM = Random(1)  # every question another one: those asked before have their vector at hand


async def measure(embedder: str) -> dict[str, float]:
    """100 short-term items beside 2,000 memories; recalls one after the other, with and without it."""
    with tempfile.TemporaryDirectory() as folder:
        clock = SimulatedClock()
        engine = await Engine.open(
            SqliteStore(Path(folder) / "c.db", clock=clock), open_embedder(embedder), clock=clock
        )
        try:
            notes = [note.text for day in days(360, 7) for note in day.notes]
            await _fill(engine, [Draft(AGENT, "semantic", text) for text in notes[:_LONG_TERM]])
            await _recalls(engine, 50)  # so that everything is loaded
            alone = await _recalls(engine, _RECALLS)
            took: list[float] = []
            beside: list[float] = []
            for start in range(4):
                texts = notes[_LONG_TERM + start * _ITEMS :][:_ITEMS]
                kept = {"short_term": True, "keep": True}
                await _fill(
                    engine,
                    [Draft(AGENT, "episodic", f"{text}, note {n}", metadata=kept) for n, text in enumerate(texts)],
                )
                clock.now += DAY_MS
                begun = time.perf_counter()
                task = asyncio.create_task(engine.lifecycle.run(WHO, "consolidate"))
                while not task.done():
                    beside += await _recalls(engine, 1)
                took.append(time.perf_counter() - begun)
                if (await task).counts["promoted"] < _ITEMS * 0.8:
                    raise AssertionError("fewer were promoted than should be")
        finally:
            await engine.close()
    return {
        "consolidating 100 items, seconds (the slowest of 4)": max(took),
        "recall alone, p50 ms": float(np.percentile(alone, 50)),
        "recall alone, p99 ms": float(np.percentile(alone, 99)),
        "recall beside it, p50 ms": float(np.percentile(beside, 50)),
        "recall beside it, p99 ms": float(np.percentile(beside, 99)),
        "recalls beside it": len(beside),
    }


class _CountedDream(DreamJob):
    compared = 0

    async def _alike(self, who: Principal, memory: Memory) -> list[tuple[Memory, float]]:
        _CountedDream.compared += 1
        return await DreamJob._alike(self, who, memory)


async def measure_dream(embedder: str) -> dict[str, float]:
    """Passes over a palace of 10,000 drawers: how long each takes, and how far it comes."""
    with tempfile.TemporaryDirectory() as folder:
        engine = await Engine.open(SqliteStore(Path(folder) / "d.db"), open_embedder(embedder))
        try:
            notes = [note.text for day in days(1000, 7) for note in day.notes][:_DRAWERS]
            await _fill(
                engine, [Draft(AGENT, "semantic", f"{text}, drawer {n}", kind="drawer") for n, text in enumerate(notes)]
            )
            engine.lifecycle.use(_CountedDream(engine._core))
            took = []
            for _ in range(_PASSES):
                begun = time.perf_counter()
                await engine.lifecycle.run(WHO, "dream")
                took.append(time.perf_counter() - begun)
        finally:
            await engine.close()
    return {
        "drawers": len(notes),
        "a pass of the dreamer, seconds (the slowest of 4)": max(took),
        "drawers compared in a pass": _CountedDream.compared / _PASSES,
    }


async def _recalls(engine: Engine, count: int) -> list[float]:
    spent = []
    for _ in range(count):
        query = Query(
            (AGENT,), f"Where does {_RANDOM.choice(('Alice', 'Bob'))} live, day {_RANDOM.random():.6f}?", judge="off"
        )
        begun = time.perf_counter()
        await engine.recall(WHO, query)
        spent.append((time.perf_counter() - begun) * 1000)
    return spent


async def _fill(engine: Engine, drafts: list[Draft]) -> None:
    for start in range(0, len(drafts), 500):
        await engine.remember_many(WHO, [BatchItem(draft) for draft in drafts[start : start + 500]])
