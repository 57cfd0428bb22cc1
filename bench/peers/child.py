"""One system in a process of its own: SYSTEM MATERIAL TEXTS, then a command on every line of the input, each
answered by one.

Commands are JSON objects with `do`, the name of a method of `Child`, and its arguments. The answer is what the method
gives, or {"error": …}, after which the next command is taken. {"progress": …} may come before either.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.peers.first import LazyEmbedder
from bench.peers.processes import cpu_seconds
from bench.peers.systems import adapter
from bench.peers.systems.base import AGENT, Row
from bench.speed.material import Material, gather

GROUP = 1000
K = 5
BLOCK_SECONDS = 5.0  # after which the turn is another's, however little was done in it
ALICE, BOB = "alice", "bob"  # a tenth of the memories, and the rest


class Child:
    def __init__(self, name: str, cache: Path, texts: int, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._name, self._cache, self._texts = name, cache, texts
        self._material: Material | None = None
        self._system = adapter(name)
        self._embed = LazyEmbedder()

    @property
    def material(self) -> Material:
        if self._material is None:
            from commonplace.embedders.registry import open_embedder

            embedder = open_embedder(os.environ["COMMONPLACE_EMBEDDER"])
            assert embedder is not None
            self._material = gather(self._cache, embedder, self._texts)
        return self._material

    def open(self, folder: str) -> dict[str, Any]:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._system.open(Path(folder), self.material.dimension, self._embed)
        note = ""
        if own := getattr(self._system, "use_own_embedder", None):
            try:
                own()
            except Exception as error:
                note = f"its own embedder is not there: {type(error).__name__}: {error}"[:200]
        return {"embedder": self._system.embedder, "note": note}

    def load(self, size: int, vectors: bool) -> dict[str, Any]:
        """By the system's own way to write many; without vectors, by texts alone."""
        began = time.perf_counter()
        self._system.load(self._groups(size, vectors))
        return {"seconds": time.perf_counter() - began}

    def _groups(self, size: int, vectors: bool) -> Iterator[list[Row]]:
        for start in range(0, size, GROUP):
            end = min(start + GROUP, size)
            self._tell({"progress": start})
            made = self.material.some_vectors(start, end)
            yield [self._row(number, made[number - start] if vectors else None) for number in range(start, end)]

    def _row(self, number: int, vector: Any) -> Row:
        return Row(f"m{number}", self.material.text(number), vector, AGENT, ALICE if number % 10 == 0 else BOB)

    def recall(self, questions: list[int], given: bool, user: str | None, before: bool, judge: bool) -> dict[str, Any]:
        """With `before`, every question is asked once untimed: all find their caches as warm, and ours its vector."""
        self._system.judge = judge
        self._system.begin()
        asked = [(self._question(n), self.material.question_vectors[n] if given else None) for n in questions]
        if before:
            until, done = time.perf_counter() + BLOCK_SECONDS, 0
            while done < len(asked) and (not done or time.perf_counter() < until):
                self._system.recall(*asked[done], AGENT, user, K)
                done += 1
            asked = asked[:done]
        works = [lambda q=q, v=v: self._system.recall(q, v, AGENT, user, K) for q, v in asked]
        return self._timed(works)

    def _question(self, number: int) -> str:
        """Those past the last are the first half of one and the second half of another: nobody has seen them."""
        real = self.material.questions
        if number < len(real):
            return real[number]
        first, second = real[number % len(real)].split(), real[(number * 7 + 3) % len(real)].split()
        return " ".join((*first[: len(first) // 2], *second[len(second) // 2 :]))

    def remember(self, numbers: list[int], given: bool) -> dict[str, Any]:
        self._system.begin()
        rows = [self._row(n, self.material.some_vectors(n, n + 1)[0] if given else None) for n in numbers]
        return self._timed([lambda row=row: self._system.remember(row) for row in rows])

    def _timed(self, works: list[Any]) -> dict[str, Any]:
        pids = self._system.pids()
        seconds, hits = [], 0
        gc.collect()
        gc.disable()
        cpu = cpu_seconds(pids) if pids else time.process_time()
        for work in works:
            began = time.perf_counter()
            found = work()
            seconds.append(time.perf_counter() - began)
            hits += len(found or ())
            if sum(seconds) > BLOCK_SECONDS:
                break
        self._system.settle()
        cpu = (cpu_seconds(pids) if pids else time.process_time()) - cpu
        gc.enable()
        return {"seconds": seconds, "cpu": cpu, "hits": hits}

    def warm(self) -> dict[str, Any]:
        """The model is loaded and the first of everything is over."""
        from bench.speed.material import COMMON

        self._system.judge = True
        for question in COMMON:
            self._system.recall(question, None, AGENT, None, K)
        return {}

    def quality(self, folder: str, fields: bool) -> dict[str, Any]:
        from bench.peers.corpus import answers

        Path(folder).mkdir(parents=True, exist_ok=True)
        return {"answers": answers(self._name, Path(folder), self._embed, self.material.dimension, fields)}

    def close(self) -> dict[str, Any]:
        self._system.close()
        return {}


def main(name: str, cache: str, texts: str) -> None:
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # some systems print

    def tell(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=said, flush=True)

    child = Child(name, Path(cache), int(texts), tell)
    try:
        for line in sys.stdin:
            command = json.loads(line)
            try:
                answer = getattr(child, command.pop("do"))(**command)
            except Exception as error:
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {error}"[:300]}
            tell(answer)
    finally:  # whoever asked may be gone; a server of ours must not stay behind
        with suppress(Exception):
            child.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
