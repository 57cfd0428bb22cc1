"""One of the crowd: DATA NAME WRITES. Says when it asked for its turn and got it, and how long each call took."""

from __future__ import annotations

import asyncio
import sys
import time

from commonplace.sdk import Memory
from commonplace.stores.sqlite import fair_lock


def watch() -> None:
    acquire = fair_lock.FairLock.acquire

    def watched(self: fair_lock.FairLock, timeout: float) -> int:
        asked = time.monotonic_ns()
        ticket = acquire(self, timeout)
        print(f"turn {asked} {time.monotonic_ns()}", flush=False)
        return ticket

    fair_lock.FairLock.acquire = watched  # type: ignore[method-assign]


async def main(data: str, name: str, writes: int) -> None:
    async with Memory("crowd", data=data, embedder="none") as memory:
        print("ready", flush=True)
        sys.stdin.readline()  # all start together
        watch()
        for n in range(writes):
            start = time.perf_counter()
            await memory.remember(f"process {name} wrote line {n} of its diary")
            print(f"kept {(time.perf_counter() - start) * 1e3:.3f}", flush=False)
    sys.stdout.flush()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
