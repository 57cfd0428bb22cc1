"""The exact ranking: for small stores, for reading a past instant, and for checking every index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import text as analysis
from commonplace.stores.base import Vectors

Row = tuple[bytes, Vectors | None]
Ranked = tuple[int, float | None, float | None]
Scores = NDArray[np.float32]


def rank(rows: Sequence[Row], text: str | None, vector: Vectors | None, limit: int) -> list[Ranked]:
    """(row, cosine of its best part, BM25) for the best `limit` by each, both scores given for every one.

    The cosine is None when the row or the question has no vector; the keyword score is None when the question
    has no words, and 0.0 when none of them occurs. Statistics are those of `rows`.
    """
    return rank_terms(rows, analysis.query_terms(text) if text else (), vector, limit)


def rank_terms(rows: Sequence[Row], terms: Sequence[int], vector: Vectors | None, limit: int) -> list[Ranked]:
    """`rank` for a question that is analysed already."""
    if not rows or limit <= 0:
        return []
    cosines = dense_scores([vectors for _, vectors in rows], vector) if vector is not None else None
    scores = keyword_scores([blob for blob, _ in rows], terms) if len(terms) else None
    chosen: set[int] = set()
    if cosines is not None:
        chosen.update(best(cosines, limit, above=-np.inf).tolist())
    if scores is not None:
        chosen.update(best(scores, limit, above=0.0).tolist())
    return [
        (
            row,
            None if cosines is None or cosines[row] == -np.inf else float(cosines[row]),
            None if scores is None else float(scores[row]),
        )
        for row in sorted(chosen)
    ]


def best(scores: Scores, limit: int, above: float) -> NDArray[np.intp]:
    """Positions of the `limit` highest scores over `above`, best first, equal ones in order."""
    eligible = np.flatnonzero(scores > above)
    if len(eligible) > limit:
        kept = scores[eligible]
        eligible = eligible[kept >= np.partition(kept, len(kept) - limit)[-limit]]
    order = np.argsort(-scores[eligible], kind="stable")[:limit]
    return eligible[order]


def dense_scores(rows: Sequence[Vectors | None], vector: Vectors) -> Scores:
    """The cosine of each row's best part; -inf where it has none of this dimension."""
    scores = np.full(len(rows), -np.inf, np.float32)
    usable = [i for i, parts in enumerate(rows) if parts is not None and _fits(parts, vector)]
    if usable:
        parts = [np.atleast_2d(rows[i]) for i in usable]  # type: ignore[arg-type]
        starts = np.cumsum([0, *(len(p) for p in parts[:-1])])
        found = np.maximum.reduceat(np.vecdot(np.concatenate(parts), vector), starts)
        scores[usable] = np.nan_to_num(found, nan=-np.inf)
    return scores


def _fits(parts: NDArray[Any], vector: Vectors) -> bool:
    return parts.size > 0 and parts.shape[-1] == len(vector)


def keyword_scores(blobs: Sequence[bytes], terms: Sequence[int]) -> Scores:
    """BM25 of each row, in the units of `text.code`."""
    counts = np.array([len(blob) // 9 for blob in blobs])
    hashes = np.frombuffer(b"".join(blob[: n * 8] for blob, n in zip(blobs, counts, strict=True)), "<u8")
    tf = np.frombuffer(b"".join(blob[n * 8 :] for blob, n in zip(blobs, counts, strict=True)), np.uint8)
    owner = np.repeat(np.arange(len(blobs)), counts)
    lengths = np.bincount(owner, tf, minlength=len(blobs))
    table = analysis.impact_table(lengths.sum() / len(blobs))
    scores = np.zeros(len(blobs), np.float32)
    for term in terms:
        found = np.flatnonzero(hashes == np.uint64(term))
        if len(found):
            weight = np.float32(analysis.idf(len(blobs), len(found)))
            docs = owner[found]
            scores[docs] += (weight * table)[analysis.code(tf[found], lengths[docs])]
    return scores
