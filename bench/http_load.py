"""A crowd of clients against a real server: one remember to four recalls, then every acknowledged write is read back.

python -m bench.http_load [--clients 100] [--seconds 30] [--embedder encoder] [--agents 10] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WORDS = [
    "harbour",
    "tide",
    "lantern",
    "rope",
    "anchor",
    "gull",
    "salt",
    "mast",
    "hull",
    "compass",
    "chart",
    "fog",
    "bell",
    "wharf",
    "crane",
    "ledger",
]
_SHARE = 5  # one request in this many is a remember


@dataclass
class Tally:
    remembers: list[float] = field(default_factory=list)  # milliseconds
    recalls: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)  # id → agent


class Client:
    """One kept connection; as little work as a client can do, since it shares the machine with the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        status = int(answer[9:12])
        length = int(re.search(rb"content-length: (\d+)", answer)[1])  # type: ignore[index]
        return status, await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


async def client(number: int, port: int, agents: int, until: float, tally: Tally) -> None:
    dice = random.Random(number)
    try:
        line = await Client.open(port)
    except OSError as error:
        tally.errors.append(f"connect: {error}")
        return
    count = 0
    try:
        while time.perf_counter() < until:
            agent = f"crew-{dice.randrange(agents)}"
            words = " ".join(dice.sample(_WORDS, 5))
            started = time.perf_counter()
            if count % _SHARE == number % _SHARE:
                body = {"agent_id": agent, "type": "semantic", "content": f"{words}, said client {number} at {count}"}
                status, answer = await line.ask("POST", "/v0/remember", body)
                took = tally.remembers
                if status == 200:
                    tally.kept[json.loads(answer)["id"]] = agent
            else:
                status, answer = await line.ask("POST", "/v0/recall", {"agent_id": agent, "query": words})
                took = tally.recalls
            took.append((time.perf_counter() - started) * 1000)
            if status != 200:
                tally.errors.append(f"{status}: {answer[:200]!r}")
            count += 1
    except (OSError, asyncio.IncompleteReadError) as error:
        tally.errors.append(type(error).__name__)
    finally:
        line.close()


async def lost_writes(port: int, kept: dict[str, str]) -> int:
    """Acknowledged, but not there: looked for page by page."""
    line = await Client.open(port)
    there: set[str] = set()
    for agent in set(kept.values()):
        cursor = ""
        while True:
            _, answer = await line.ask("GET", f"/v0/memories?agent_id={agent}&limit=1000{cursor}")
            page = json.loads(answer)
            there |= {memory["id"] for memory in page["memories"]}
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
    line.close()
    return len(kept.keys() - there)


def start(data: Path, embedder: str, store: str | None = None) -> tuple[subprocess.Popen[str], int]:
    environment = {**os.environ, "COMMONPLACE_EMBEDDER": embedder}
    serve = ["serve", "--port", "0", "--data", str(data), "--log-level", "warning"]
    if store is not None:  # by the flag: a folder that is named means its own store, whatever a variable says
        serve += ["--store", store]
    process = subprocess.Popen(
        [sys.executable, "-m", "commonplace.cli", *serve], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    for text in process.stdout:
        if found := re.search(r"listening on http://[^:]+:(\d+)", text):
            return process, int(found[1])
    raise SystemExit("the server did not start")


async def ready(port: int) -> None:
    line = await Client.open(port)
    while (await line.ask("GET", "/readyz"))[0] != 200:
        await asyncio.sleep(0.05)
    line.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else float("nan")


def measure(clients: int, seconds: float, embedder: str, agents: int) -> dict[str, Any]:
    """Starts a server on data of its own, loads it, kills it without warning, and reads everything back."""
    with tempfile.TemporaryDirectory(prefix="commonplace-load-") as folder:
        process, port = start(Path(folder), embedder)
        tally = Tally()
        try:
            asyncio.run(_load(port, clients, seconds, agents, tally))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]
        process, port = start(Path(folder), embedder)
        try:
            lost = asyncio.run(lost_writes(port, tally.kept))
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]
    requests = len(tally.remembers) + len(tally.recalls)
    return {
        "clients": clients, "seconds": seconds, "embedder": embedder, "requests": requests,
        "per_second": round(requests / seconds, 1), "errors": len(tally.errors), "first_error": tally.errors[:1],
        "acknowledged": len(tally.kept), "lost": lost,
        "remember_ms": {f"p{p}": round(percentile(tally.remembers, p / 100), 1) for p in (50, 95, 99)},
        "recall_ms": {f"p{p}": round(percentile(tally.recalls, p / 100), 1) for p in (50, 95, 99)},
    }  # fmt: skip


async def _load(port: int, clients: int, seconds: float, agents: int, tally: Tally) -> None:
    await ready(port)
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(n, port, agents, until, tally) for n in range(clients)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clients", type=int, default=100)
    options.add_argument("--seconds", type=float, default=30)
    options.add_argument("--embedder", default="encoder")
    options.add_argument("--agents", type=int, default=10)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    found = measure(given.clients, given.seconds, given.embedder, given.agents)
    for name, value in found.items():
        print(f"{name:<14}{value}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
