"""PostgreSQL beside the embedded store: `python -m bench.postgres [--memories 100000]`.

The same entries go into both, one agent with all of them or a hundred agents, and the same questions are asked: search
latency by meaning and words as recall asks, and the share of the true ten nearest that are found. Then server processes
on one database: questions a second with 1, 2 and 4 of them, and increments of one counter, none of which may be lost.
Vectors are random directions around a few hundred centres; no embedder is timed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "backends"))

from postgres_server import PostgresServer

from commonplace.stores.base import Entry, Primary, Reach, Record, Search, Transaction, Vectors
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.text import terms
from commonplace.wire.canonical import mint_id
from commonplace.wire.record import Memory

DIMENSION, K, BATCH = 384, 10, 500
_WORDS = 20_000
_DURABLE = (
    "synchronous_commit=on", "shared_buffers=1GB", "max_wal_size=8GB", "max_connections=200",
    "maintenance_work_mem=1GB", "listen_addresses=127.0.0.1", "unix_socket_directories=", "logging_collector=off",
)  # fmt: skip


class Corpus:
    def __init__(self, size: int, questions: int = 50) -> None:
        self.rng = np.random.default_rng(7)
        centres = self._unit(self.rng.standard_normal((400, DIMENSION)))
        self.vectors = self._around(centres, size)
        self.questions = self._around(centres, questions)
        ranks = np.arange(1, _WORDS + 1)
        weights = 1 / ranks / np.sum(1 / ranks)
        self.words = [f"word{n}" for n in range(_WORDS)]
        self._picked = self.rng.choice(_WORDS, (size, 14), p=weights)
        # Questions are of words that are neither the commonest nor seen once.
        self.asked = [" ".join(self.words[n] for n in self.rng.integers(20, 3000, 5)) for _ in range(questions)]

    @staticmethod
    def _unit(vectors: Any) -> Vectors:
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def _around(self, centres: Vectors, count: int) -> Vectors:
        at = self.rng.integers(0, len(centres), count)
        return self._unit(centres[at] + self.rng.standard_normal((count, DIMENSION)) * 0.04)

    def entries(self, agents: int) -> Iterator[Entry]:
        for n, vector in enumerate(self.vectors):
            content = " ".join(self.words[word] for word in self._picked[n])
            memory = Memory(mint_id(n + 1), "local", f"agent-{n % agents}", "semantic", content, created_at=n + 1)
            memory.metadata = {"n": n}
            yield Entry(memory, vector[None, :], terms(content), 1)


async def fill(store: Primary, corpus: Corpus, agents: int) -> float:
    await store.adopt_embedder("bench", DIMENSION)
    started, batch = time.perf_counter(), []

    def put(entries: list[Entry]) -> Any:
        return lambda tx: [tx.put(entry) for entry in entries] and None

    for entry in corpus.entries(agents):
        batch.append(entry)
        if len(batch) == BATCH:
            await store.transact("local", put(batch))
            batch = []
            print(".", end="", flush=True, file=sys.stderr)
    if batch:
        await store.transact("local", put(batch))
    seconds = time.perf_counter() - started
    await store.warm()  # type: ignore[attr-defined]
    print(file=sys.stderr)
    return seconds


async def measure(store: Primary, corpus: Corpus, agents: int) -> dict[str, float]:
    both, hits = [], 0
    for i, (text, vector) in enumerate(zip(corpus.asked, corpus.questions, strict=True)):
        agent = i % agents
        reach = Reach("local", (f"agent-{agent}",), now=1)
        await store.search(Search(reach, text, vector, limit=20))  # pages are read once in the life of a process
        started = time.perf_counter()
        await store.search(Search(reach, text, vector, limit=20))
        both.append((time.perf_counter() - started) * 1e3)
        own = np.arange(agent, len(corpus.vectors), agents)
        true = set(own[np.argsort(-(corpus.vectors[own] @ vector))[:K]].tolist())
        found = await store.search(Search(reach, None, vector, limit=K))
        hits += len(true & {c.memory.metadata["n"] for c in found})
    both.sort()
    return {
        "p50_ms": round(statistics.median(both), 2),
        "p95_ms": round(both[int(len(both) * 0.95)], 2),
        f"recall@{K}": round(hits / (K * len(both)), 4),
    }


def serve(url: str, seconds: float, size: int, ready: Any, go: Any, answers: Any) -> None:
    """One server process: questions as fast as it can, four at a time."""
    corpus = Corpus(1, 50)
    store = PostgresStore(url)

    async def ask() -> int:
        async def one(n: int) -> int:
            done = 0
            while time.perf_counter() < end:
                vector, text = corpus.questions[(n + done) % 50], corpus.asked[(n + done) % 50]
                await store.search(Search(Reach("local", (f"agent-{(n * 7 + done) % 100}",), now=1), text, vector))
                done += 1
            return done

        return sum(await asyncio.gather(*(one(n) for n in range(4))))

    async def count() -> None:
        def work(tx: Transaction) -> None:
            held = tx.record("setting", "count")
            tx.put_record(Record("setting", "count", {"n": (held.value["n"] if held else 0) + 1}))

        await asyncio.gather(*(store.transact("local", work) for _ in range(100)))

    async def run() -> int:
        nonlocal end
        await store.tenants()
        ready.put(True)
        go.wait()
        end = time.perf_counter() + seconds
        done = await ask()
        await count()
        await store.close()
        return done

    end = 0.0
    answers.put(asyncio.run(run()))


def with_processes(url: str, processes: int, seconds: float) -> float:
    """Questions a second, all processes together."""
    context = multiprocessing.get_context("spawn")
    ready, answers, go = context.Queue(), context.Queue(), context.Event()
    workers = [
        context.Process(target=serve, args=(url, seconds, 0, ready, go, answers), daemon=True) for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.get(timeout=120)
    go.set()
    total = sum(answers.get(timeout=seconds + 120) for _ in workers)
    for worker in workers:
        worker.join()
    return total / seconds


async def counted(url: str) -> int:
    store = PostgresStore(url)
    held = await store.record("local", "setting", "count")
    await store.close()
    return held.value["n"] if held else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--results", type=Path, default=Path("bench/results/postgres.json"))
    given = parser.parse_args()
    corpus = Corpus(given.memories)
    results: dict[str, Any] = {"memories": given.memories}
    server = PostgresServer(_DURABLE, folder=tempfile.gettempdir()).start()
    try:
        for agents in (1, 100):
            name = f"{agents} agent{'s' if agents > 1 else ''}"
            url = server.url(server.create_database())
            with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
                for kind, store in (
                    ("embedded", SqliteStore(Path(folder) / "x.db")),
                    ("postgresql", PostgresStore(url)),
                ):
                    filled = runner.run(fill(store, corpus, agents))
                    found = runner.run(measure(store, corpus, agents))
                    size = runner.run(store.sizes())["size_bytes"]
                    found |= {"write_us": round(filled / given.memories * 1e6), "bytes": round(size / given.memories)}
                    runner.run(store.close())
                    results[f"{name}, {kind}"] = found
                    print(f"{name:10} {kind:11} {json.dumps(found)}", flush=True)
        for processes in (1, 2, 4):
            rate = with_processes(url, processes, given.seconds)
            results[f"{processes} processes"] = {"questions_per_second": round(rate, 1)}
            print(f"{processes} server processes: {rate:.1f} questions a second", flush=True)
        results["increments"] = {"asked": 700, "kept": asyncio.run(counted(url))}
        print(f"increments of one counter by 7 processes: {results['increments']}")
    finally:
        server.remove()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    given.results.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
