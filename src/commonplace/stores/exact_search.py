"""The exact ranking: for small stores, for reading a past instant, and for checking every index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import text
from commonplace.stores.base import Vectors

Row = tuple[bytes, Vectors | None]
Scores = NDArray[np.float32]

_BLOCK = 64


class RankedRow(NamedTuple):
    row: int
    dense: float | None  # cosine of its best part
    keyword: float | None  # BM25
    late: float | None = None  # late interaction of its best part


class Statistics(NamedTuple):
    """What BM25 knows of the memories that words are weighed among."""

    documents: int
    words: int  # in all of them
    containing: Mapping[int, int]  # how many have each term


class LateLeg(NamedTuple):
    """Late interaction, of the few that the other legs find best."""

    depth: int  # so many of each
    scores: Callable[[Sequence[int]], Sequence[float | None]]  # of these rows; None for one without tokens


def rank(
    rows: Sequence[Row],
    terms: Sequence[int],
    vector: Vectors | None,
    limit: int,
    late: LateLeg | None = None,
    also: Scores | None = None,
    statistics: Statistics | None = None,
) -> list[RankedRow]:
    """The best `limit` by each leg, in order of row, all scores given for every one.

    The cosine is None when the row or the question has no vector; the keyword score is None when the question
    has no words, and 0.0 when none of them occurs. Statistics are those of `rows` unless given. `also` are another
    leg's scores of the same rows: its best are among what is found.
    """
    if not rows or limit <= 0:
        return []
    depth = limit if late is None else max(late.depth, limit)
    cosines = dense_scores([vectors for _, vectors in rows], vector) if vector is not None else None
    scores = keyword_scores([blob for blob, _ in rows], terms, statistics) if len(terms) else None
    legs: list[list[int]] = []
    if cosines is not None:
        legs.append(top(cosines, depth, above=-np.inf).tolist())
    if scores is not None:
        legs.append(top(scores, depth, above=0.0).tolist())
    if also is not None:
        legs.append(top(also, depth, above=-np.inf).tolist())
    read: dict[int, float] = {}
    if late is not None:
        places = sorted({row for leg in legs for row in leg})
        read = {row: score for row, score in zip(places, late.scores(places), strict=True) if score is not None}
        legs.append(sorted(read, key=lambda row: (-read[row], row)))
    chosen = sorted({row for leg in legs for row in leg[:limit]})
    return [RankedRow(row, given(cosines, row), given(scores, row), read.get(row)) for row in chosen]


def given(scores: Scores | None, row: int) -> float | None:
    return None if scores is None or scores[row] == -np.inf else float(scores[row])


def top(scores: Scores, limit: int, above: float) -> NDArray[np.intp]:
    """Positions of the `limit` highest scores over `above`, best first, equal ones in order."""
    at = top_with_ties(scores, limit, above)
    return at[np.argsort(-scores[at], kind="stable")[:limit]]


def top_with_ties(scores: Scores, limit: int, above: float = -np.inf) -> NDArray[np.intp]:
    """Positions of the `limit` highest over `above` and of what equals the last of them, in order of position.

    Looks at the highest of each block first: that bounds what can be among the best without sorting everything.
    """
    blocks = len(scores) // _BLOCK
    if blocks > 2 * limit:
        peaks = scores[: blocks * _BLOCK].reshape(-1, _BLOCK).max(axis=1)
        bound = np.partition(peaks, blocks - limit)[blocks - limit]
        at = np.flatnonzero(scores >= bound) if bound > above else np.flatnonzero(scores > above)
    else:
        at = np.flatnonzero(scores > above)
    if len(at) > limit:
        kept = scores[at]
        at = at[kept >= np.partition(kept, len(kept) - limit)[len(kept) - limit]]
    return at


def dense_scores(rows: Sequence[Vectors | None], vector: Vectors) -> Scores:
    """The cosine of each row's best part; -inf where it has none of this dimension."""
    scores = np.full(len(rows), -np.inf, np.float32)
    parts = {
        i: np.atleast_2d(row)
        for i, row in enumerate(rows)
        if row is not None and row.size and row.shape[-1] == len(vector)
    }
    if parts:
        starts = np.cumsum([0, *map(len, parts.values())])[:-1]
        found = np.maximum.reduceat(np.vecdot(np.concatenate(list(parts.values())), vector), starts)
        scores[list(parts)] = np.nan_to_num(found, nan=-np.inf)
    return scores


def keyword_scores(blobs: Sequence[bytes], terms: Sequence[int], statistics: Statistics | None = None) -> Scores:
    """BM25 of each row, in the units of `text.code`; among these rows, or among those that `statistics` are of."""
    hashes, tf, counts = text.decode_all(blobs)
    owner = np.repeat(np.arange(len(blobs)), counts)
    lengths = np.bincount(owner, tf, minlength=len(blobs))
    documents, words, containing = statistics or (len(blobs), int(lengths.sum()), {})
    table = text.impact_table(words / max(documents, 1))
    scores = np.zeros(len(blobs), np.float32)
    for term in terms:
        found = np.flatnonzero(hashes == np.uint64(term))
        if len(found):
            weight = np.float32(text.idf(documents, containing.get(term, len(found))))
            docs = owner[found]
            scores[docs] += (weight * table)[text.code(tf[found], lengths[docs])]
    return scores
