"""The same entries in both stores and the same questions of both: how long, how right, how much."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.postgres.corpus import Corpus, fill
from bench.postgres.processor_time import seconds_of, seconds_of_tree
from commonplace.stores.base import Primary, Reach, Search
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sqlite import SqliteStore

K = 10


async def measure(store: Primary, corpus: Corpus, agents: int, processor: Callable[[], float]) -> dict[str, float]:
    """Search by meaning and words as recall asks, and the share of the true ten nearest that are found."""
    took, spent, hits = [], 0.0, 0
    for i, (text, vector) in enumerate(zip(corpus.asked, corpus.questions, strict=True)):
        agent = i % agents
        reach = Reach("local", (f"agent-{agent}",), now=1)
        await store.search(Search(reach, text, vector, limit=20))  # pages are read once in the life of a process
        started, before = time.perf_counter(), processor()
        await store.search(Search(reach, text, vector, limit=20))
        took.append((time.perf_counter() - started) * 1e3)
        spent += processor() - before
        own = np.arange(agent, len(corpus.vectors), agents)
        true = set(own[np.argsort(-(corpus.vectors[own] @ vector))[:K]].tolist())
        found = await store.search(Search(reach, None, vector, limit=K))
        hits += len(true & {c.memory.metadata["n"] for c in found})
    took.sort()
    return {
        "p50_ms": round(statistics.median(took), 2),
        "p95_ms": round(took[int(len(took) * 0.95)], 2),
        "processor_ms": round(spent / len(took) * 1e3, 1),
        f"recall@{K}": round(hits / (K * len(took)), 4),
    }


def compare(corpus: Corpus, agents: int, url: str, postmaster: int) -> dict[str, dict[str, float]]:
    """By store. The database at `url` stays filled."""
    results = {}
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        for kind in ("embedded", "postgresql"):
            store: Any = SqliteStore(Path(folder) / "x.db") if kind == "embedded" else PostgresStore(url)

            def processor(kind: str = kind) -> float:
                own = seconds_of(os.getpid())
                return own + (seconds_of_tree(postmaster) if kind == "postgresql" else 0.0)

            before = processor()
            filled = runner.run(fill(store, corpus, agents))
            count = len(corpus.vectors)
            writes = {"write_ms": round(filled / count * 1e3, 2)}
            writes["write_processor_ms"] = round((processor() - before) / count * 1e3, 2)
            found = runner.run(measure(store, corpus, agents, processor))
            sizes = runner.run(store.sizes())
            found |= {**writes, "bytes": round(sizes["size_bytes"] / count)}
            runner.run(store.close())
            results[kind] = found
            print(f"{agents:>4} agents  {kind:11} {json.dumps(found)}", flush=True)
    return results
