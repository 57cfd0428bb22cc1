"""Rows that live in memory, standing for those of a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import exact_search, text
from commonplace.stores.fixed_point import to_fixed, to_floats
from commonplace.stores.sqlite.index import IndexHit, IndexQuery, IndexRow, SegmentIndex

DIMENSION = 16
SCOPE = 7
WORDS = ("alpha", "bravo", "cargo", "delta", "ember", "fjord", "glyph", "hazel", "ivory", "jumbo")


def unit(rng: np.random.Generator, parts: int, dimension: int = DIMENSION) -> NDArray[np.float32]:
    vectors = rng.standard_normal((parts, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Rows:
    """An `IndexSource` that can also be written to."""

    def __init__(self, dimension: int | None = DIMENSION) -> None:
        self.generation = 1
        self.dimension = dimension
        self.seq = 0
        self.rows: dict[int, IndexRow] = {}
        self.marks: list[tuple[int, int]] = []

    def put(
        self,
        mid: int,
        content: str,
        vectors: NDArray[np.float32] | None = None,
        *,
        searchable: bool = True,
        type: int = 0,
        user: int = 0,
        created_at: int = 0,
        expires_at: int = 0,
    ) -> None:
        self.seq += 1
        blob = None if vectors is None else to_fixed(vectors).tobytes()
        self.rows.pop(mid, None)  # keeps the dictionary in order of seq
        self.rows[mid] = IndexRow(
            mid, self.seq, searchable, type, user, created_at, expires_at, text.terms(content), blob
        )

    def delete(self, mid: int) -> None:
        self.seq += 1
        row = self.rows.pop(mid)
        self.rows[mid] = row._replace(seq=self.seq, searchable=False)

    def erase(self, mid: int) -> None:
        self.seq += 1
        del self.rows[mid]
        self.marks.append((mid, self.seq))

    def changes(self, scope: int, after_seq: int) -> Iterator[IndexRow]:
        late = []
        for row in reversed(self.rows.values()):
            if row.seq <= after_seq:
                break
            late.append(row)
        return reversed(late)  # type: ignore[return-value]

    def erasures(self, scope: int, after_seq: int) -> list[tuple[int, int]]:
        return [mark for mark in self.marks if mark[1] > after_seq]

    def count(self, scope: int) -> int:
        return sum(row.searchable for row in self.rows.values())

    def living(self) -> list[IndexRow]:
        return sorted(row for row in self.rows.values() if row.searchable)


def admits(row: IndexRow, query: IndexQuery) -> bool:
    return (
        (query.types is None or row.type in query.types)
        and (query.user is None or row.user == query.user)
        and (query.created_from is None or row.created_at >= query.created_from)
        and (query.now is None or row.expires_at == 0 or row.expires_at > query.now)
        and (query.allowed is None or row.mid in query.allowed.tolist())
    )


def expected(rows: Rows, query: IndexQuery) -> dict[int, tuple[float | None, float | None]]:
    """Both scores of every row the question may see."""
    living = rows.living()
    held = [
        (
            row.terms or b"",
            None
            if row.vectors is None
            else to_floats(np.frombuffer(row.vectors, np.int16)).reshape(-1, rows.dimension or 1),
        )
        for row in living
    ]
    ranked = exact_search.rank(held, query.terms, query.vector, len(living) or 1)
    scores = {i: (dense, keyword) for i, dense, keyword, _ in ranked}
    missing = (None, 0.0 if query.terms else None)
    return {row.mid: scores.get(i, missing) for i, row in enumerate(living) if admits(row, query)}


def assert_exact(hits: list[IndexHit], rows: Rows, query: IndexQuery) -> None:
    """The hits are the best by each leg, with both true scores; ties may fall either way."""
    truth = expected(rows, query)
    found = {hit.mid: (hit.dense, hit.keyword) for hit in hits}
    assert len(found) == len(hits)
    for mid, (dense, keyword) in found.items():
        assert mid in truth
        _close(dense, truth[mid][0])
        _close(keyword, truth[mid][1])
    for leg, floor in ((0, -np.inf), (1, 0.0)):
        scores = sorted((s[leg] for s in truth.values() if s[leg] is not None and s[leg] > floor), reverse=True)
        wanted = scores[: query.limit]
        given = sorted((s[leg] for s in found.values() if s[leg] is not None), reverse=True)[: len(wanted)]
        np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)
    by_leg = sum(1 for s in truth.values() if s[0] is not None), sum(1 for s in truth.values() if s[1])
    assert len(found) <= min(by_leg[0], query.limit) + min(by_leg[1], query.limit)


def _close(a: float | None, b: float | None) -> None:
    if a is None or b is None:
        assert a is b
    else:
        assert abs(a - b) < 1e-4


def check(index: SegmentIndex, rows: Rows, query: IndexQuery) -> None:
    assert_exact(index.search(rows, SCOPE, query), rows, query)


def filled(count: int, start: int = 1) -> Rows:
    rng = np.random.default_rng(start)
    rows = Rows()
    for mid in range(start, start + count):
        rows.put(mid, " ".join(rng.choice(WORDS, 6)), unit(rng, 1 + mid % 2))
    return rows


def question(limit: int = 5) -> IndexQuery:
    return IndexQuery(text.query_terms("alpha delta"), unit(np.random.default_rng(3), 1)[0], limit)


def on_disk(root: Path, rows: Rows) -> Path:
    """Three segments, one of them with a dead row, and a tail."""
    written = SegmentIndex(root, "store")
    rng = np.random.default_rng(11)
    for mid in range(1000, 1200):
        rows.put(mid, " ".join(rng.choice(WORDS, 5)), unit(rng, 1))
    written.maintain(rows, SCOPE)
    for mid in range(2000, 2040):
        rows.put(mid, "bravo", unit(rng, 1))
    rows.delete(1005)
    written.maintain(rows, SCOPE)
    rows.put(3000, "alpha in the tail", unit(rng, 1))
    assert len(list((root / str(SCOPE)).glob("*.seg"))) == 2
    return root / str(SCOPE)


def snapshot(rows: Rows) -> Rows:
    earlier = Rows(rows.dimension)
    earlier.seq, earlier.rows, earlier.marks = rows.seq, dict(rows.rows), list(rows.marks)
    return earlier
