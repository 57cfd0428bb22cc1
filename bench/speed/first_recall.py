"""One process that opens a store, recalls once, and says when it was where: DATA AGENT QUERY EMBEDDER VECTOR.

VECTOR is a file of float32 numbers, the query's embedding. Prints JSON; times are of the monotonic clock, which
processes of one machine share.
"""

from __future__ import annotations

import time

BEGAN = time.monotonic()

import asyncio  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the commands do

import numpy as np  # noqa: E402

from commonplace.sdk import Memory  # noqa: E402

IMPORTED = time.monotonic()


class Given:
    def __init__(self, name: str, file: str) -> None:
        self.name = name
        self._vector = np.frombuffer(Path(file).read_bytes(), np.float32)
        self.dimension = len(self._vector)

    def embed(self, texts: list[str]) -> np.ndarray:  # type: ignore[type-arg]
        return np.stack([self._vector] * len(texts))


async def main(data: str, agent: str, query: str, embedder: str, vector: str) -> None:
    memory = Memory(agent, data=data, embedder=Given(embedder, vector))
    await memory.engine()
    ready = time.monotonic()
    found = await memory.recall(query, judge="off")
    answered = time.monotonic()
    used = time.process_time()
    first = {"began": BEGAN, "imported": IMPORTED, "opened": ready, "answered": answered, "cpu": used}
    if "memory" in sys.argv:
        from bench.speed.measure import memory as measured

        for _ in range(5):
            await memory.recall(query, judge="off")
        first["memory"] = measured()  # type: ignore[assignment]
    print(json.dumps({**first, "results": len(found.results)}), flush=True)
    await memory.close()


asyncio.run(main(*sys.argv[1:6]))
