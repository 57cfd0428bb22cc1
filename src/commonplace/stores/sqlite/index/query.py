"""What goes into the index and what it is asked: rows come from an `IndexSource`, questions are an `IndexQuery`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.token_vectors import QuestionTokens

Flags = NDArray[np.bool_]
Vectors = NDArray[np.float32]


class IndexRow(NamedTuple):
    """The current version of one memory; `mid` stays the same through updates."""

    mid: int
    seq: int
    searchable: bool
    type: int
    user: int  # a 64-bit hash, 0 for none
    created_at: int
    expires_at: int  # 0 for never
    terms: bytes | None
    vectors: bytes | None  # of 16 bits (`fixed_point`), parts x dimension
    tokens: bytes | None = None  # `token_vectors.pack`, as many parts


class IndexSource(Protocol):
    """The rows of a store as one read transaction sees them."""

    generation: int
    dimension: int | None

    def changes(self, scope: int, after_seq: int) -> Iterable[IndexRow]:
        """Rows whose current sequence is past `after_seq`, in its order, whatever their status."""

    def erasures(self, scope: int, after_seq: int) -> Iterable[tuple[int, int]]:
        """(mid, seq) of what was erased since."""

    def count(self, scope: int) -> int:
        """How many rows are searchable."""


class IndexQuery(NamedTuple):
    """Every condition holds before the best `limit` are cut."""

    terms: Sequence[int]
    vector: Vectors | None
    limit: int
    now: int | None = None
    types: frozenset[int] | None = None
    user: int | None = None
    created_from: int | None = None
    allowed: NDArray[np.int64] | None = None  # ascending
    tokens: QuestionTokens | None = None  # with it, also the best `limit` by late interaction among
    depth: int = 0  # so many of the best by meaning and as many by words


class IndexHit(NamedTuple):
    mid: int
    dense: float | None
    keyword: float | None
    late: float | None = None
