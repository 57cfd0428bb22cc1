"""Real servers on one database: what 1, 2 and 4 of them answer in a second, what a request costs, and that of many
updates of one memory none is lost. Once with all that the machine has, and once where each has a part of a core."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.http_load import Client, percentile, ready, start
from bench.postgres.corpus import EMBEDDER, Corpus
from bench.postgres.processor_share import limited
from bench.postgres.processor_time import busy_seconds, seconds_of, seconds_of_tree

CLIENTS, UPDATES, AGENTS = 8, 25, 100
SHARE = 0.15  # of a core, for each server that has only a part: four of them and the database fit into two cores
_Request = tuple[str, str, dict[str, Any]]


@dataclass(slots=True)
class Servers:
    processes: list[int]
    ports: list[int]
    postmaster: int

    def processor(self) -> tuple[float, float]:
        """Of all servers together, and of the database."""
        return sum(map(seconds_of, self.processes)), seconds_of_tree(self.postmaster)


@contextmanager
def serving(url: str, count: int, postmaster: int) -> Iterator[Servers]:
    with tempfile.TemporaryDirectory() as folder:
        started = []
        try:
            started = [start(Path(folder) / str(n), EMBEDDER, url) for n in range(count)]
            yield Servers([process.pid for process, _ in started], [port for _, port in started], postmaster)
            if files := [path.name for path in Path(folder).rglob("*.db")]:
                raise SystemExit(f"the servers kept what was measured in {files} and not in the database")
        finally:
            for process, _ in started:
                process.terminate()
                process.wait()
                process.stdout.close()  # type: ignore[union-attr]


async def _load(servers: Servers, seconds: float, request: Callable[[int], _Request]) -> dict[str, float]:
    """As many as are answered, by a fixed number of clients on all servers in turn; what that cost."""
    took: list[float] = []
    numbers = itertools.count()
    end = time.perf_counter() + seconds

    async def one(number: int) -> None:
        line = await Client.open(servers.ports[number % len(servers.ports)])
        is_over = False
        while not is_over:  # once at least: on a busy machine connecting may take as long as all of it
            asked = time.perf_counter()
            status, answer = await line.ask(*request(next(numbers)))
            assert status == 200, answer
            took.append((time.perf_counter() - asked) * 1e3)
            is_over = time.perf_counter() >= end
        line.close()

    before, busy, began = servers.processor(), busy_seconds(), time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(CLIENTS)))
    busy = (busy_seconds() - busy) / (time.perf_counter() - began) / (os.cpu_count() or 1)
    server, database = (after - then for after, then in zip(servers.processor(), before, strict=True))
    return {
        "per_second": round(len(took) / seconds, 1),
        "p50_ms": round(percentile(took, 0.5), 1),
        "p95_ms": round(percentile(took, 0.95), 1),
        "server_ms": round(server / len(took) * 1e3, 2),
        "database_ms": round(database / len(took) * 1e3, 2),
        "busy": round(busy, 2),
    }


async def _updates(servers: Servers) -> dict[str, int]:
    """Everyone changes one memory at once: each change that is acknowledged is a version of its own."""
    first = await Client.open(servers.ports[0])
    made = {"agent_id": "counted", "type": "semantic", "content": "nobody yet"}
    id = json.loads((await first.ask("POST", "/v0/remember", made))[1])["id"]
    acknowledged: list[str] = []

    async def one(number: int) -> None:
        line = await Client.open(servers.ports[number % len(servers.ports)])
        for n in range(UPDATES):
            content = f"client {number}, {n}"
            change = {"agent_id": "counted", "content": content}
            if (await line.ask("PATCH", f"/v0/memories/{id}", change))[0] == 200:
                acknowledged.append(content)
        line.close()

    await asyncio.gather(*(one(number) for number in range(CLIENTS)))
    history = json.loads((await first.ask("GET", f"/v0/memories/{id}/history?agent_id=counted"))[1])
    kept = [version["content"] for version in history["versions"]][1:]
    first.close()
    return {"acknowledged": len(acknowledged), "kept": len(kept), "lost": len(set(acknowledged) - set(kept))}


def _recalls(corpus: Corpus) -> Callable[[int], _Request]:
    def recall(n: int) -> _Request:
        asked = {"agent_id": f"agent-{n * 7 % AGENTS}", "query": corpus.asked[n % 50], "k": 10, "min_score": 0}
        return "POST", "/v0/recall", {**asked, "judge": "off"}

    return recall


async def _warm(servers: Servers, seconds: float, request: Callable[[int], _Request]) -> None:
    """Connections are made, pages are read."""
    await asyncio.gather(*map(ready, servers.ports))
    await _load(servers, min(seconds / 4, 2.0), request)


async def _measure(servers: Servers, seconds: float) -> dict[str, Any]:
    corpus = Corpus(1, 50)
    recall = _recalls(corpus)

    def remember(n: int) -> _Request:
        content = " ".join(corpus.words[(n * 31 + i * i * 17) % len(corpus.words)] for i in range(14))
        return "POST", "/v0/remember", {"agent_id": f"agent-{n % AGENTS}", "type": "semantic", "content": content}

    await _warm(servers, seconds, recall)
    return {
        "recall": await _load(servers, seconds, recall),
        "remember": await _load(servers, seconds, remember),
        "updates": await _updates(servers),
    }


async def _measure_limited(servers: Servers, seconds: float) -> dict[str, float]:
    recall = _recalls(Corpus(1, 50))
    await _warm(servers, seconds, recall)
    with limited(servers.processes, SHARE) as held_back:
        found = await _load(servers, seconds, recall)
        return {**found, "held_back": round(held_back(), 2)}


def measure(url: str, count: int, seconds: float, postmaster: int) -> dict[str, Any]:
    with serving(url, count, postmaster) as servers:
        found = asyncio.run(_measure(servers, seconds))
    print(f"{count} server processes: {json.dumps(found)}", flush=True)
    return found


def measure_limited(url: str, count: int, seconds: float, postmaster: int) -> dict[str, float]:
    """Recalls alone, each server with a part of a core."""
    with serving(url, count, postmaster) as servers:
        found = asyncio.run(_measure_limited(servers, seconds))
    print(f"{count} server processes with {SHARE:.0%} of a core each: {json.dumps(found)}", flush=True)
    return found
