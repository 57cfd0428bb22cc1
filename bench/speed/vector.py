"""Search by meaning alone: the segments as the store uses them, against sqlite-vec's scan of the same vectors."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from bench.speed import stores
from bench.speed.measure import in_turn
from bench.speed.plan import Plan
from bench.speed.report import Report
from commonplace.stores.fixed_point import to_floats
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.sqlite.index import IndexQuery, search as index_search
from commonplace.stores.sqlite.queries import scope_ids
from commonplace.stores.sqlite.search import RowSource

K = 10
_CHUNK = 16_384
TIMES = {100_000: 40.0, 1_000_000: 20.0}
_NEAREST = "SELECT rowid, distance FROM vectors WHERE embedding MATCH ? AND k = ? AND agent = ?"


def run(plan: Plan) -> Report:
    report = Report("Search by meaning, one agent, best 10")
    try:
        import sqlite_vec  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        report.note("sqlite-vec is not installed (pip install 'commonplace-memory[bench]'): nothing to compare with")
        return report
    for size in plan.large:
        _compare(report, plan, size)
    _real_only(report, plan)
    report.note(
        f"{len(plan.material.texts):,} vectors are {plan.material.embedder} embeddings of real texts, the rest are "
        f"mixtures of them; {len(plan.material.questions)} real questions are asked, not all of them when timing"
    )
    return report


@contextlib.contextmanager
def searcher(store: stores.Kept, agent: str) -> Iterator[tuple[SqliteStore, Callable[[IndexQuery], Any]]]:
    """Searches the index as the store does: catching up, then searching, inside one read transaction."""
    primary = SqliteStore(store.database)

    def search(query: IndexQuery) -> Any:
        def read(db: apsw.Connection) -> Any:
            (scope,) = scope_ids(db, "local", [agent])
            return primary.index.search(RowSource(db), scope, query)

        return primary._readers.run_here(read)

    try:
        yield primary, search
    finally:
        asyncio.run(primary.close())


def _compare(report: Report, plan: Plan, size: int) -> None:
    store, material = plan.store(size), plan.material
    vec = stores.vec_table(plan.cache, material, size)
    with searcher(store, stores.BIG) as (primary, search):
        works: dict[str, Callable[[Any], Any]] = {
            "ours": lambda vector: search(IndexQuery([], vector, K)),
            "store": lambda vector: search(IndexQuery([], vector, 20)),
            "vec": lambda vector: vec.execute(_NEAREST, (vector.tobytes(), K, stores.BIG)).fetchall(),
        }
        asked = material.question_vectors[: plan.pick(3, 30 if size < 1_000_000 else 12)]
        for vector in asked:  # pages are mapped when they are first touched, once in the life of a process
            for work in works.values():
                work(vector)
        seconds = in_turn(works, asked, rounds=plan.pick(1, 2))
        found = _recall(primary, search, material.question_vectors)
    vec.close()
    name = f"{size:,} memories"
    report.add(f"{name}: ours, CPU", seconds["ours"] * 1e3, "ms")
    report.add(f"{name}: ours as recall asks (best 20), CPU", seconds["store"] * 1e3, "ms")
    report.add(f"{name}: sqlite-vec, CPU", seconds["vec"] * 1e3, "ms")
    report.add(f"{name}: times faster", seconds["vec"] / seconds["ours"], "×", at_least=TIMES.get(size))
    report.add(f"{name}: recall@{K}", found, "", at_least=0.99 if size in TIMES else None)


def _recall(primary: SqliteStore, search: Callable[[IndexQuery], Any], questions: NDArray[np.float32]) -> float:
    """The share of the true ten nearest that are found; the truth is every product taken."""
    shards = next(opened.rows.snapshot.shards for opened in primary.index._open_scopes.values())
    best = np.full((len(questions), K), -1, np.float32)
    for shard in shards:
        for start in range(0, shard.part.size, _CHUNK):
            scores = questions @ to_floats(shard.part.vectors[start : start + _CHUNK]).T
            best = np.partition(np.concatenate((best, scores), axis=1), -K, axis=1)[:, -K:]
    # What ties with the tenth is as good as the tenth.
    least = best.min(axis=1) - 1e-5
    hits = sum(
        hit.dense >= bound
        for vector, bound in zip(questions, least, strict=True)
        for hit in search(IndexQuery([], vector, K))
    )
    return hits / (K * len(questions))


def _real_only(report: Report, plan: Plan) -> None:
    """Real embeddings alone, through the path that large agents take, which so few would not need."""
    size = max((size for size in plan.sizes if size <= len(plan.material.texts)), default=0)
    if not size:
        return
    exact, index_search.EXACT = index_search.EXACT, 0
    try:
        with searcher(plan.store(size), stores.BIG) as (primary, search):
            search(IndexQuery([], plan.material.question_vectors[0], K))
            found = _recall(primary, search, plan.material.question_vectors)
    finally:
        index_search.EXACT = exact
    share = min(index_search.rescore_count(size, K, plan.material.dimension) / size, 1)
    report.add(f"{size:,} real embeddings only, {share:.0%} rescored: recall@{K}", found, "")
