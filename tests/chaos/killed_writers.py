"""Forks writers that are killed without warning. A process of its own, so that forking is cheap and clean.

Reads lines `DATA ACKS WRITES SPINS SEED`: the child dies so many turns of an empty loop after so many acknowledgements,
which are then appended to the file ACKS.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys

from commonplace.embedders.hashing import open_embedder
from commonplace.sdk import Memory
from commonplace.stores.text import terms


async def write_without_end(data: str, acks: int, seed: int, ready: int) -> None:
    """Remember, change and forget; note an outcome only once it is acknowledged."""
    dice = random.Random(seed)
    memory = Memory("writer", data=data, embedder=open_embedder("hashing"))
    if dice.random() < 0.2:
        os.write(ready, b"!")  # some die while the store is still being opened
    await memory.engine()
    os.write(ready, b"!")
    n = 0
    while True:
        texts = [f"writer {seed} keeps fact number {n + i} about the library" for i in range(dice.randint(1, 6))]
        n += len(texts)
        kept = await asyncio.gather(*(memory.remember(text) for text in texts))
        os.write(acks, "".join(f"+ {r.id} {t}\n" for r, t in zip(kept, texts, strict=True)).encode())
        chosen = dice.choice(kept).id
        if dice.random() < 0.3:
            await memory.update(chosen, content=f"writer {seed} changed its mind about {n}")
            os.write(acks, f"+ {chosen} writer {seed} changed its mind about {n}\n".encode())
        elif dice.random() < 0.3:
            os.write(acks, f"? {chosen}\n".encode())  # from here on it may or may not be there
            await memory.forget(chosen, hard_delete=dice.random() < 0.5)
            os.write(acks, f"- {chosen}\n".encode())


def main() -> None:
    terms("the first text loads the stemmer, which every child would otherwise do anew")
    for line in sys.stdin:
        data, acks_path, writes, spins, seed = line.split()
        receiving, acks = os.pipe()
        listening, ready = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(listening)
            os.close(receiving)
            asyncio.run(write_without_end(data, acks, int(seed), ready))
        os.close(ready)
        os.close(acks)
        os.read(listening, 1)
        received = b""
        while received.count(b"\n") < int(writes) and (more := os.read(receiving, 65536)):
            received += more
        for _ in range(int(spins)):  # not a sleep: the moment of death should not be rounded to a timer
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(receiving, 65536):  # what it acknowledged before it died is still in the pipe
            received += more
        os.close(listening)
        os.close(receiving)
        with open(acks_path, "ab") as file:
            file.write(received)
        print(len(received), flush=True)


main()
