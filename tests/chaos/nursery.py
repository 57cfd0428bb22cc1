"""Forks writers that are killed without warning. A process of its own, so that forking is cheap and clean.

Reads lines `DATA ACKS WRITES SECONDS SEED`: the child dies so many seconds after so many acknowledgements.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time

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
        texts = [f"writer {seed} keeps fact number {n + i} about the harbour" for i in range(dice.randint(1, 6))]
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


def _lines(path: str) -> int:
    with open(path, "rb") as file:
        return file.read().count(b"\n")


def main() -> None:
    terms("the first text loads the stemmer, which every child would otherwise do anew")
    for line in sys.stdin:
        data, acks_path, writes, seconds, seed = line.split()
        acks = os.open(acks_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        listening, ready = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(listening)
            asyncio.run(write_without_end(data, acks, int(seed), ready))
        os.close(ready)
        os.read(listening, 1)
        before, patience = _lines(acks_path), time.monotonic() + 10
        while _lines(acks_path) - before < int(writes) and time.monotonic() < patience:
            time.sleep(0.001)
        deadline = time.monotonic() + float(seconds)
        while time.monotonic() < deadline:  # spin: the moment of death should not be rounded to a timer
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(listening)
        os.close(acks)
        print(os.path.getsize(acks_path), flush=True)


main()
