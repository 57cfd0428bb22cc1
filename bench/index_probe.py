"""Times the segment index by itself: `python bench/index_probe.py --rows 100000`. Prints a table, and JSON on request.

Vectors are synthetic (clusters on the sphere) unless --vectors names a .npy file; words are drawn so that three of
them occur in a third of the memories each.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import text
from commonplace.stores.fixed_point import to_fixed, to_floats
from commonplace.stores.sqlite.index import IndexQuery, IndexRow, SegmentIndex
from commonplace.stores.token_vectors import QuestionTokens, pack

DIMENSION, TOKEN_DIMENSION = 384, 96
QUESTION_TOKENS = 14
SCOPE = 1
COMMON = ("planet", "harbour", "violin")


class Synthetic:
    """Rows made up as they are asked for, the same every time."""

    generation = 1
    dimension = DIMENSION

    def __init__(self, rows: int, vectors: NDArray[np.float32] | None) -> None:
        self.size = rows
        self.added: list[IndexRow] = []
        self._real = vectors
        rng = np.random.default_rng(0)
        self._centres = rng.standard_normal((max(rows // 50, 1), DIMENSION), dtype=np.float32)
        self._common = np.array([text.query_terms(word)[0] for word in COMMON], np.uint64)

    def vectors(self, start: int, end: int) -> NDArray[np.float32]:
        if self._real is not None:
            return self._real[start:end]
        rng = np.random.default_rng(start + 1)
        held = self._centres[rng.integers(0, len(self._centres), end - start)]
        held = held + rng.standard_normal(held.shape, dtype=np.float32)
        return held / np.linalg.norm(held, axis=1, keepdims=True)

    def changes(self, scope: int, after_seq: int) -> Iterator[IndexRow]:
        for start in range(after_seq, self.size, 5000):
            end = min(start + 5000, self.size)
            rng = np.random.default_rng(start + 2)
            vectors = to_fixed(self.vectors(start, end))
            words = (rng.zipf(1.3, (end - start, 22)) % 200_000).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            common = rng.random((end - start, 3)) < 1 / 3
            for i in range(end - start):
                terms = np.unique(np.concatenate((words[i], self._common[common[i]])))
                blob = terms.tobytes() + bytes([1]) * len(terms)
                of = (start + i + 1, start + i + 1, True, i % 4, i % 10, start + i, 0)
                tokens = pack([rng.integers(0, 256, (int(rng.integers(10, 41)), TOKEN_DIMENSION // 2), np.uint8)])
                yield IndexRow(*of, blob, vectors[i].tobytes(), tokens)
        yield from (row for row in self.added if row.seq > after_seq)

    def erasures(self, scope: int, after_seq: int) -> list[tuple[int, int]]:
        return []

    def count(self, scope: int) -> int:
        return self.size + len(self.added)

    def add(self) -> None:
        seq = self.size + len(self.added) + 1
        vector = to_fixed(self.vectors(0, 1)[0]).tobytes()
        self.added.append(IndexRow(seq, seq, True, 0, 0, seq, 0, text.terms("a violin in the harbour"), vector))


def milliseconds(work: Callable[[], Any], times: int) -> float:
    """CPU time of the median run."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return float(np.median(taken)) * 1e3


def probe(rows: int, vectors: NDArray[np.float32] | None, folder: Path) -> dict[str, float]:
    source = Synthetic(rows, vectors)
    index = SegmentIndex(folder, "probe")
    start = time.perf_counter()
    index.rebuild(source, SCOPE)
    results: dict[str, float] = {"build s": time.perf_counter() - start}
    rng = np.random.default_rng(9)
    wanted = source.vectors(0, min(rows, 5000))[rng.integers(0, min(rows, 5000), 30)]
    wanted = wanted + 0.04 * rng.standard_normal(wanted.shape, dtype=np.float32)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    words = [text.query_terms(word)[0] for word in COMMON]
    asked = rng.standard_normal((QUESTION_TOKENS, TOKEN_DIMENSION), dtype=np.float32)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    late = {"tokens": QuestionTokens.of(asked, np.ones(len(asked), np.float32)), "depth": 60}

    def ask(**conditions: Any) -> Callable[[], Any]:
        queries = iter(list(wanted) * 10)
        terms = conditions.pop("terms", [])
        dense = conditions.pop("dense", True)
        return lambda: index.search(
            source, SCOPE, IndexQuery(terms, next(queries) if dense else None, 20, **conditions)
        )

    index.close()
    start = time.perf_counter()
    ask(terms=words)()
    results["first search ms"] = (time.perf_counter() - start) * 1e3
    results["dense ms"] = milliseconds(ask(), 30)
    results["keyword ms"] = milliseconds(ask(terms=words, dense=False), 30)
    results["both ms"] = milliseconds(ask(terms=words), 30)
    results["all three (late interaction of the best 60 of both) ms"] = milliseconds(ask(terms=words, **late), 30)
    results["both, one user in ten ms"] = milliseconds(ask(terms=words, user=3), 30)
    results["both, three rows allowed ms"] = milliseconds(ask(terms=words, allowed=np.array([1, 2, 3])), 30)
    results["no leg (overhead) ms"] = milliseconds(ask(dense=False), 200)
    source.add()
    results["after a write ms"] = milliseconds(ask(terms=words), 1)
    snapshot = index._open_scopes[SCOPE].rows.snapshot
    hits = 0
    for vector in wanted[:20]:
        everything = np.concatenate([to_floats(shard.part.vectors) @ vector for shard in snapshot.shards])
        best = set(np.argpartition(-everything, 10)[:10].tolist())
        found = index.search(source, SCOPE, IndexQuery([], vector, 10))
        hits += len(best & {hit.mid - 1 for hit in found})
    results["recall@10"] = hits / 200
    results["MB on disk"] = index.sizes()["bytes_on_disk"] / 1e6
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    vectors = np.load(options.vectors, mmap_mode="r") if options.vectors else None
    columns = {}
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            columns[rows] = probe(rows if vectors is None else min(rows, len(vectors)), vectors, Path(folder))
    print(" " * 30 + "".join(f"{rows:>12,}" for rows in columns))
    for name in next(iter(columns.values())):
        print(f"{name:<30}" + "".join(f"{column[name]:>12.3f}" for column in columns.values()))
    if options.json:
        options.json.write_text(json.dumps(columns, indent=2))


if __name__ == "__main__":
    main()
