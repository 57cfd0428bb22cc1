"""One of several processes that write to one store at once; tells when it asked for each turn and was served."""

from __future__ import annotations

import asyncio
import sys
import time

from commonplace.embedders.hashing import open_embedder
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
    async with Memory("crowd", data=data, embedder=open_embedder("hashing")) as memory:
        print("ready", flush=True)
        sys.stdin.readline()  # all start together
        watch()
        for n in range(writes):
            kept = await memory.remember(f"process {name} wrote line {n} of its diary")
            print(f"kept {kept.id}", flush=False)
    sys.stdout.flush()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
