"""Writing a segment from others and from the tail; only what lives goes in."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.sqlite.index.scope import Shard
from commonplace.stores.sqlite.index.segment import Counts, Identity, Segment, arrays, header, layout
from commonplace.stores.sqlite.index.tail import TailPart
from commonplace.stores.sqlite.index.vector_search import signs

_CHUNK = 8192
_COLUMNS = ("mids", "seqs", "created", "expires", "users", "lengths", "types")

#: Terms ascending; a number for each, as said where it is given; documents; weights.
PostingLists = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]


def write_segment(path: Path, shards: Sequence[Shard], identity: Identity, last_seq: int) -> None:
    kept = [np.flatnonzero(shard.live[:-1]) for shard in shards]
    numbers, rows = _renumbered(shards, kept)
    vector_rows = [np.flatnonzero(shard.live[shard.part.vector_docs]) for shard in shards]
    vector_docs = [new[s.part.vector_docs[at]] for s, new, at in zip(shards, numbers, vector_rows, strict=True)]
    lists = [_live_postings(shard, new) for shard, new in zip(shards, numbers, strict=True)]
    terms = np.unique(np.concatenate([held[0] for held in lists]))
    counts = Counts(rows, sum(map(len, vector_docs)), len(terms), sum(len(held[2]) for held in lists))
    _, size = layout(counts, identity.dimension)
    with path.open("x+b") as file:
        _reserve(file, size)
        mapped = mmap.mmap(file.fileno(), size)
        out = arrays(mapped, counts, identity.dimension)
        for shard, at, new in zip(shards, kept, numbers, strict=True):
            for name in _COLUMNS:
                out[name][new[at]] = getattr(shard.part, name)[at]
        _place_vectors(out, shards, vector_rows, vector_docs)
        _place_postings(out, terms, lists)
        start = header(identity, counts, out["expires"], last_seq, size)
        mapped[: len(start)] = start
        mapped.flush()
        os.fsync(file.fileno())


def _reserve(file: Any, size: int) -> None:
    """Take the space now: writing to a mapping on a full disk would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        zeros = bytes(1 << 20)
        for start in range(0, size, len(zeros)):
            file.write(zeros[: size - start])
        file.flush()


def _renumbered(shards: Sequence[Shard], kept: Sequence[NDArray[np.intp]]) -> tuple[list[NDArray[np.uint32]], int]:
    """For each shard the new number of each row (in order of mid), and how many rows there will be."""
    mids = np.concatenate([shard.part.mids[at] for shard, at in zip(shards, kept, strict=True)])
    ranks = np.empty(len(mids), np.uint32)
    ranks[np.argsort(mids, kind="stable")] = np.arange(len(mids), dtype=np.uint32)
    numbers, start = [], 0
    for shard, at in zip(shards, kept, strict=True):
        new = np.full(shard.part.size + 1, len(mids), np.uint32)
        new[at] = ranks[start : start + len(at)]
        start += len(at)
        numbers.append(new)
    return numbers, len(mids)


def _place_vectors(
    out: dict[str, NDArray[Any]],
    shards: Sequence[Shard],
    rows: Sequence[NDArray[np.intp]],
    docs: Sequence[NDArray[np.uint32]],
) -> None:
    joined = np.concatenate(docs)
    order = np.argsort(joined, kind="stable")
    out["vector_docs"][:] = joined[order]
    target = np.empty(len(joined), np.int64)
    target[order] = np.arange(len(joined))
    start = 0
    for shard, at in zip(shards, rows, strict=True):
        for first in range(0, len(at), _CHUNK):
            some = at[first : first + _CHUNK]
            where = target[start + first : start + first + len(some)]
            vectors = shard.part.vectors[some]
            out["vectors"][where] = vectors
            out["codes"][where] = signs(vectors)
        start += len(at)


def _live_postings(shard: Shard, numbers: NDArray[np.uint32]) -> PostingLists:
    """With the number of postings of each term, and documents renumbered."""
    terms, offsets, docs, weights = posting_lists(shard.part)
    if shard.alive < shard.part.size or (isinstance(shard.part, Segment) and (docs == shard.part.size).any()):
        keep = shard.live[docs]
        before = np.concatenate(([0], np.cumsum(keep)))
        counts = before[offsets[1:]] - before[offsets[:-1]]
        docs, weights = docs[keep], weights[keep]
    else:
        counts = np.diff(offsets)
    used = counts > 0
    return terms[used], counts[used], numbers[docs], weights


def posting_lists(part: Segment | TailPart) -> PostingLists:
    """With where the postings of each term start, and the end."""
    if isinstance(part, Segment):
        return part.terms, part.offsets.astype(np.int64), part.docs, part.weights
    order = np.argsort(part.hashes, kind="stable")
    hashes = part.hashes[order]
    starts = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1]))) if len(hashes) else order
    return hashes[starts], np.append(starts, len(hashes)), part.owners[order], part.weights[order]


def _place_postings(out: dict[str, NDArray[Any]], terms: NDArray[np.uint64], lists: Sequence[PostingLists]) -> None:
    places = [np.searchsorted(terms, held[0]) for held in lists]
    totals = np.zeros(len(terms), np.int64)
    for place, (_, counts, _, _) in zip(places, lists, strict=True):
        totals[place] += counts
    out["terms"][:] = terms
    out["offsets"][0] = 0
    out["offsets"][1:] = np.cumsum(totals)
    fill = out["offsets"][:-1].astype(np.int64)
    for place, (_, counts, docs, weights) in zip(places, lists, strict=True):
        target = np.repeat(fill[place] - (np.cumsum(counts) - counts), counts) + np.arange(len(docs))
        out["docs"][target] = docs
        out["weights"][target] = weights
        fill[place] += counts
