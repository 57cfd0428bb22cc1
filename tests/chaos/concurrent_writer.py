"""One of several processes that write to one store at once.

Arguments: DATA NAME WRITES EVENTS. All of them append to the file EVENTS, so its order is the order of what happened:
`asked NAME N` before the lock is asked for, `served NAME N TICKET` and `released NAME N` while it is held.
"""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import count

from commonplace.embedders.hashing import open_embedder
from commonplace.sdk import Memory
from commonplace.stores.sqlite import fair_lock


def log_turns(name: str, path: str) -> None:
    events = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    acquire, release, numbers = fair_lock.FairLock.acquire, fair_lock.FairLock.release, count()
    held: dict[fair_lock.FairLock, int] = {}

    def logged(self: fair_lock.FairLock, timeout: float) -> int:
        number = next(numbers)
        os.write(events, f"asked {name} {number}\n".encode())
        ticket = acquire(self, timeout)
        os.write(events, f"served {name} {number} {ticket}\n".encode())
        held[self] = number
        return ticket

    def logged_release(self: fair_lock.FairLock) -> None:
        if self in held:
            os.write(events, f"released {name} {held.pop(self)}\n".encode())
        release(self)

    fair_lock.FairLock.release = logged_release  # type: ignore[method-assign]
    fair_lock.FairLock.acquire = logged  # type: ignore[method-assign]


async def main(data: str, name: str, writes: int, events: str) -> None:
    async with Memory("writer", data=data, embedder=open_embedder("hashing")) as memory:
        print("ready", flush=True)
        sys.stdin.readline()  # all start together
        log_turns(name, events)
        for n in range(writes):
            kept = await memory.remember(f"process {name} wrote line {n} of its diary")
            print(f"kept {kept.id}", flush=False)
    sys.stdout.flush()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
