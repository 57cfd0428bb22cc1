"""How long a recall takes beside a long document, and beside a batch of long texts, compared with a quiet server.

python -m bench.embedding_fairness [--recalls 40] [--embedder encoder] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.http_load import _WORDS, Client, percentile, ready, start

DOCUMENT_CHARS = 262_144
BATCH, ITEM_CHARS = 1_000, 3_900
_STOCK = 50


def _prose(dice: random.Random, chars: int) -> str:
    text = ""
    while len(text) < chars:
        text += " ".join(dice.choices(_WORDS, k=9)).capitalize() + ". "
    return text[: chars - 1] + "."


async def _recalls(port: int, count: int, dice: random.Random) -> list[float]:
    """Milliseconds of each, one after the other, no question twice."""
    line, took = await Client.open(port), []
    for number in range(count):
        words = " ".join(dice.sample(_WORDS, 4))
        started = time.perf_counter()
        status, answer = await line.ask("POST", "/v0/recall", {"agent_id": "quiet", "query": f"{words} {number}"})
        took.append((time.perf_counter() - started) * 1000)
        assert status == 200, answer
    line.close()
    return took


async def _beside(port: int, count: int, dice: random.Random, path: str, body: Any) -> tuple[list[float], float]:
    """Recalls while that is written and embedded: how long each took, and when it was acknowledged."""
    line = await Client.open(port)
    started = time.perf_counter()

    async def write() -> float:
        status, answer = await line.ask("POST", path, body)
        failed = json.loads(answer).get("results", [])
        assert status == 200, answer[:300]
        assert not any("error" in each for each in failed), answer[:300]
        return time.perf_counter() - started

    writing = asyncio.create_task(write())
    took = await _recalls(port, count, dice)
    seconds = await writing
    line.close()
    return took, seconds


async def _measure(port: int, recalls: int, path: str, body: Any) -> dict[str, float]:
    dice = random.Random(7)
    await ready(port)
    line = await Client.open(port)
    for _ in range(_STOCK):
        kept = {"agent_id": "quiet", "type": "semantic", "content": _prose(dice, 80)}
        assert (await line.ask("POST", "/v0/remember", kept))[0] == 200
    line.close()
    await _recalls(port, 5, dice)
    quiet = percentile(await _recalls(port, recalls, dice), 0.95)
    took, seconds = await _beside(port, recalls, dice, path, body)
    busy = percentile(took, 0.95)
    return {
        "quiet_p95_ms": round(quiet, 1),
        "beside_p95_ms": round(busy, 1),
        "ratio": round(busy / quiet, 2),
        "acknowledged_s": round(seconds, 2),
    }


def measure(recalls: int = 40, embedder: str = "encoder") -> dict[str, dict[str, float]]:
    """Each on a server of its own, since what is embedded behind goes on after it was acknowledged."""
    dice = random.Random(11)

    def text(chars: int) -> dict[str, str]:
        return {"agent_id": "busy", "type": "semantic", "content": _prose(dice, chars)}

    writes: dict[str, tuple[str, Any]] = {
        "document": ("/v0/remember", text(DOCUMENT_CHARS)),
        "batch": ("/v0/remember/batch", {"items": [text(ITEM_CHARS) for _ in range(BATCH)]}),
    }
    found = {}
    for name, (path, body) in writes.items():
        with tempfile.TemporaryDirectory(prefix="commonplace-fair-") as folder:
            process, port = start(Path(folder), embedder)
            try:
                found[name] = asyncio.run(_measure(port, recalls, path, body))
            finally:
                process.kill()
                process.wait()
                process.stdout.close()  # type: ignore[union-attr]
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--recalls", type=int, default=40)
    options.add_argument("--embedder", default="encoder")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    found = measure(given.recalls, given.embedder)
    for name, figures in found.items():
        print(f"{name:<10}" + "  ".join(f"{key} {value}" for key, value in figures.items()))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
