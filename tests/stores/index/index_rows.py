"""Rows that live in memory, standing for those of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import exact_search, text
from commonplace.stores.fixed_point import to_fixed, to_floats
from commonplace.stores.sqlite.index import IndexHit, IndexQuery, IndexRow, SegmentIndex
from commonplace.stores.token_vectors import Codes, QuestionTokens, best_late_scores, pack, quantise, unpack

DIMENSION = 16
TOKEN_DIMENSION = 8
SCOPE = 7
WORDS = ("alpha", "bravo", "cargo", "delta", "ember", "fjord", "glyph", "hazel", "ivory", "jumbo")


def unit(rng: np.random.Generator, parts: int, dimension: int = DIMENSION) -> NDArray[np.float32]:
    vectors = rng.standard_normal((parts, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def some_tokens(rng: np.random.Generator, parts: int) -> list[Codes]:
    """Of each part; now and then of none."""
    return [quantise(unit(rng, int(rng.integers(0, 7)), TOKEN_DIMENSION)) for _ in range(parts)]


def asked_tokens(rng: np.random.Generator) -> QuestionTokens:
    return QuestionTokens.of(unit(rng, 3, TOKEN_DIMENSION), rng.uniform(0.1, 1, 3).astype(np.float32))


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
        tokens: Sequence[Codes] | None = None,
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
            mid,
            self.seq,
            searchable,
            type,
            user,
            created_at,
            expires_at,
            text.terms(content),
            blob,
            None if tokens is None else pack(tokens),
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

    def vectors(self, row: IndexRow) -> NDArray[np.float32] | None:
        if row.vectors is None or self.dimension is None:
            return None
        return to_floats(np.frombuffer(row.vectors, np.int16)).reshape(-1, self.dimension)

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


Truth = tuple[float | None, float | None, float | None]


def expected(rows: Rows, query: IndexQuery) -> dict[int, Truth]:
    """All scores of every row the question may see: by meaning, by words, by late interaction."""
    living = rows.living()
    held = [(row.terms or b"", rows.vectors(row)) for row in living]
    ranked = exact_search.rank(held, query.terms, query.vector, len(living) or 1)
    scores = {one.row: (one.dense, one.keyword) for one in ranked}
    missing = (None, 0.0 if query.terms else None)
    tokens = [_tokens(row, vectors) for row, (_, vectors) in zip(living, held, strict=True)]
    codes, counts = [part for parts in tokens for part in parts], [*map(len, tokens)]
    late = best_late_scores(query.tokens, codes, counts) if query.tokens is not None else [None] * len(living)
    return {row.mid: (*scores.get(i, missing), late[i]) for i, row in enumerate(living) if admits(row, query)}


def assert_exact(hits: list[IndexHit], rows: Rows, query: IndexQuery) -> None:
    """The hits are the best by each leg, with all their true scores; ties may fall either way."""
    truth = expected(rows, query)
    found = {hit.mid: (hit.dense, hit.keyword, hit.late) for hit in hits}
    assert len(found) == len(hits)
    for mid, (dense, keyword, late) in found.items():
        assert mid in truth
        _close(dense, truth[mid][0])
        _close(keyword, truth[mid][1])
        assert late == truth[mid][2]
    for leg, floor in ((0, -np.inf), (1, 0.0)):
        wanted = _ranked(truth.values(), leg, floor)[: query.limit]
        given = _ranked(found.values(), leg, -np.inf)[: len(wanted)]
        np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)
    depth = query.limit if query.tokens is None else max(query.limit, query.depth)
    surely, perhaps = _best(truth, depth)
    wanted = _ranked((truth[mid] for mid in surely), 2, -np.inf)[: query.limit]
    given = _ranked(found.values(), 2, -np.inf)[: len(wanted)]
    assert all(score >= least for score, least in zip(given, wanted, strict=True))
    assert found.keys() <= perhaps
    by_leg = [sum(1 for s in truth.values() if s[leg] is not None and (leg != 1 or s[leg])) for leg in range(3)]
    assert len(found) <= sum(min(count, query.limit) for count in by_leg)


def _tokens(row: IndexRow, vectors: NDArray[np.float32] | None) -> list[Codes]:
    parts = unpack(row.tokens) if row.tokens and vectors is not None else []
    return parts if vectors is not None and len(parts) == len(vectors) else []


def _ranked(scores: Iterable[Truth], leg: int, floor: float) -> list[float]:
    return sorted((s for row in scores if (s := row[leg]) is not None and s > floor), reverse=True)


def _best(truth: dict[int, Truth], depth: int) -> tuple[set[int], set[int]]:
    """Those surely among the best by meaning or by words, and those that may be where scores are as good as equal."""
    surely, perhaps = set(), set()
    for leg, floor in ((0, -np.inf), (1, 0.0)):
        scores = {mid: s for mid, row in truth.items() if (s := row[leg]) is not None and s > floor}
        for mid, score in scores.items():
            others = [other - score for own, other in scores.items() if own != mid]
            if sum(more > -1e-4 for more in others) < depth:
                surely.add(mid)
            if sum(more > 1e-4 for more in others) < depth:
                perhaps.add(mid)
    return surely, perhaps


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
        rows.put(mid, " ".join(rng.choice(WORDS, 6)), unit(rng, 1 + mid % 2), some_tokens(rng, 1 + mid % 2))
    return rows


def question(limit: int = 5, depth: int = 9) -> IndexQuery:
    rng = np.random.default_rng(3)
    asked = (text.query_terms("alpha delta"), unit(rng, 1)[0], limit)
    return IndexQuery(*asked, tokens=asked_tokens(rng), depth=depth)


def on_disk(root: Path, rows: Rows) -> Path:
    """Three segments, one of them with a dead row, and a tail."""
    written = SegmentIndex(root, "store")
    rng = np.random.default_rng(11)
    for mid in range(1000, 1200):
        rows.put(mid, " ".join(rng.choice(WORDS, 5)), unit(rng, 1), some_tokens(rng, 1))
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
