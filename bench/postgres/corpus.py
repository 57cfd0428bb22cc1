"""Entries and questions that any store can be filled with and asked: made by a seeded generator, no embedder is timed.

Vectors are random directions around a few hundred centres; words are as common as in a language.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from commonplace.stores.base import Entry, Primary, Vectors
from commonplace.stores.text import terms
from commonplace.wire.canonical import mint_id
from commonplace.wire.record import Memory

DIMENSION, BATCH = 384, 500
EMBEDDER = f"hashing-{DIMENSION}"  # servers embed questions by it; of its vectors only the length matters here
_WORDS = 20_000


class Corpus:
    def __init__(self, size: int, questions: int = 50) -> None:
        self.rng = np.random.default_rng(7)
        centres = self._unit(self.rng.standard_normal((400, DIMENSION)))
        self.vectors = self._around(centres, size)
        self.questions = self._around(centres, questions)
        ranks = np.arange(1, _WORDS + 1)
        weights = 1 / ranks / np.sum(1 / ranks)
        self.words = [f"word{n}" for n in range(_WORDS)]
        self._picked = self.rng.choice(_WORDS, (size, 14), p=weights)
        # Questions are of words that are neither the commonest nor seen once.
        self.asked = [" ".join(self.words[n] for n in self.rng.integers(20, 3000, 5)) for _ in range(questions)]

    @staticmethod
    def _unit(vectors: Any) -> Vectors:
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def _around(self, centres: Vectors, count: int) -> Vectors:
        at = self.rng.integers(0, len(centres), count)
        return self._unit(centres[at] + self.rng.standard_normal((count, DIMENSION)) * 0.04)

    def entries(self, agents: int) -> Iterator[Entry]:
        for n, vector in enumerate(self.vectors):
            content = " ".join(self.words[word] for word in self._picked[n])
            memory = Memory(mint_id(n + 1), "local", f"agent-{n % agents}", "semantic", content, created_at=n + 1)
            memory.metadata = {"n": n}
            yield Entry(memory, vector[None, :], terms(content), 1)


async def fill(store: Primary, corpus: Corpus, agents: int) -> float:
    await store.adopt_embedder(EMBEDDER, DIMENSION)
    started, batch = time.perf_counter(), []

    def put(entries: list[Entry]) -> Any:
        return lambda tx: [tx.put(entry) for entry in entries] and None

    for entry in corpus.entries(agents):
        batch.append(entry)
        if len(batch) == BATCH:
            await store.transact("local", put(batch))
            batch = []
            print(".", end="", flush=True, file=sys.stderr)
    if batch:
        await store.transact("local", put(batch))
    seconds = time.perf_counter() - started
    await store.warm()  # type: ignore[attr-defined]
    print(file=sys.stderr)
    return seconds
