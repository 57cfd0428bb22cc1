"""Recalls and remembers a second of a real server with its defaults: real texts, and no question asked twice.

python -m bench.http_throughput [--memories 3000] [--clients 32] [--seconds 15] [--json FILE]

The clients share the machine with the server, and do as little as they can.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.http_load import Client, percentile, ready, start
from bench.speed.material import real_texts

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    """User and kernel time of all threads of another process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def keep_asking(port: int, path: str, bodies: Iterator[dict[str, Any]], until: float) -> list[float]:
    """One client, one connection: milliseconds of each request, until time or bodies are over."""
    line, took = await Client.open(port), []
    for body in bodies:
        started = time.perf_counter()
        if started > until:
            break
        status, answer = await line.ask("POST", path, body)
        if status != 200:
            raise SystemExit(f"{path} answered {status}: {answer[:300]!r}")
        took.append((time.perf_counter() - started) * 1000)
    line.close()
    return took


async def measure(
    port: int, process: int, path: str, bodies: Iterator[dict[str, Any]], clients: int, seconds: float
) -> dict[str, Any]:
    """Clients that share the bodies, so that none is sent twice."""
    cpu, started = cpu_seconds(process), time.perf_counter()
    until = started + seconds
    took = [ms for of_one in await asyncio.gather(
        *(keep_asking(port, path, bodies, until) for _ in range(clients))
    ) for ms in of_one]  # fmt: skip
    wall = time.perf_counter() - started
    return {
        "requests": len(took),
        "clients": clients,
        "per_second": round(len(took) / wall, 1),
        **{f"p{p}_ms": round(percentile(took, p / 100), 1) for p in (50, 95, 99)},
        "server_cpu_ms": round((cpu_seconds(process) - cpu) / max(len(took), 1) * 1000, 2),
    }


async def run(port: int, process: int, memories: int, clients: int, seconds: float) -> dict[str, Any]:
    await ready(port)
    texts, questions = real_texts()
    spare = iter(questions[len(questions) // 2 :])  # as memories, where the texts do not reach
    if memories > len(texts):
        texts = [*texts, *(text for text, _ in zip(spare, range(memories - len(texts)), strict=False))]
        questions = questions[: len(questions) // 2]
    writes = ({"agent_id": "alice", "type": "semantic", "content": text} for text in texts[:memories])
    asked = ({"agent_id": "alice", "query": question} for question in questions)
    warm = ({"agent_id": "alice", "query": f"warm-up {n}"} for n in range(20))
    found = {"remember": await measure(port, process, "/v0/remember", writes, clients, 3600.0)}
    await measure(port, process, "/v0/recall", warm, 1, 60.0)
    found["recall"] = await measure(port, process, "/v0/recall", asked, clients, seconds)
    found["recall, one client"] = await measure(port, process, "/v0/recall", asked, 1, seconds)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--memories", type=int, default=3000)
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--seconds", type=float, default=15)
    options.add_argument("--embedder", default="encoder")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="commonplace-throughput-") as folder:
        process, port = start(Path(folder), given.embedder)
        try:
            found = asyncio.run(run(port, process.pid, given.memories, given.clients, given.seconds))
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]
    for name, row in found.items():
        print(f"{name:<20}" + "  ".join(f"{key} {value}" for key, value in row.items()))
    if given.json:
        given.json.write_text(json.dumps({"memories": given.memories, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
