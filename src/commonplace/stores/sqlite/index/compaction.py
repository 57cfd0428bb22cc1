"""Which segments are merged and when; and writing a segment from others and the tail, or from all rows of a scope."""

from __future__ import annotations

import itertools
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.sqlite.index import segment
from commonplace.stores.sqlite.index.manifest import Manifest, ScopeFolder
from commonplace.stores.sqlite.index.query import IndexSource
from commonplace.stores.sqlite.index.scope import ScopeRows, Shard
from commonplace.stores.sqlite.index.segment import Segment, SegmentIdentity, TermLists
from commonplace.wire.durable import sync_file

#: Rows the tail may hold before it becomes a segment.
FLUSH_ROWS = 1024
#: So many rows are held in memory before they go into a file.
SPILL_ROWS = 65_536
_CHUNK = 8192
_Arrays = dict[str, NDArray[Any]]  # of the file that is written, by name


def first_to_merge(sizes: Sequence[int]) -> int:
    """Everything from this one on becomes one segment; the last size is the tail's.

    A segment is rewritten only together with at least twice its own size of newer rows, so it at least triples
    each time: few segments, and each row is rewritten a logarithmic number of times.
    """
    newer = 0
    start = len(sizes) - 1
    for i in range(len(sizes) - 1, -1, -1):
        if 2 * sizes[i] <= newer:
            start = i
        newer += sizes[i]
    return start


def write_shard(folder: ScopeFolder, identity: SegmentIdentity, shards: Sequence[Shard], last_seq: int) -> Shard:
    path = folder.path / folder.new_name("seg")
    write_segment(path, shards, identity, last_seq)
    return Shard.all_live(Segment(path, identity))


def rebuild(source: IndexSource, folder: ScopeFolder, identity: SegmentIdentity) -> tuple[ScopeRows, Manifest | None]:
    """One new segment of all rows; none when they are few. With the folder's lock."""
    folder.sweep(None)
    rows = ScopeRows(identity.dimension)
    rows.advance(source, folder.scope, spill=lambda: _spill(rows, folder, identity))
    if not rows.segments and rows.tail.size < FLUSH_ROWS:
        return rows, None
    shard = write_shard(folder, identity, [*rows.segments, rows.tail_shard()], rows.seq)
    return ScopeRows(identity.dimension, [shard], rows.seq), folder.write(identity, rows.seq, [shard])


def _spill(rows: ScopeRows, folder: ScopeFolder, identity: SegmentIdentity) -> None:
    if rows.tail.size >= SPILL_ROWS:
        rows.replace_tail(write_shard(folder, identity, [rows.tail_shard()], rows.seq))


# writing one file: only what lives goes in


def write_segment(path: Path, shards: Sequence[Shard], identity: SegmentIdentity, last_seq: int) -> None:
    kept = [np.flatnonzero(shard.live[:-1]) for shard in shards]
    numbers, rows = _renumbered(shards, kept)
    vector_rows = [np.flatnonzero(shard.live[shard.part.vector_docs]) for shard in shards]
    vector_docs = [new[s.part.vector_docs[at]] for s, new, at in zip(shards, numbers, vector_rows, strict=True)]
    lists = [_live_postings(shard, new) for shard, new in zip(shards, numbers, strict=True)]
    terms = np.unique(np.concatenate([held[0] for held in lists]))
    token_sizes = [shard.part.token_sizes()[at] for shard, at in zip(shards, vector_rows, strict=True)]
    counts = segment.Counts(
        rows,
        sum(map(len, vector_docs)),
        len(terms),
        sum(len(held[2]) for held in lists),
        sum(int(sizes.sum()) for sizes in token_sizes),
    )
    _, size = segment.layout(counts, identity.dimension)
    with path.open("x+b") as file:
        _reserve(file, size)
        mapped = mmap.mmap(file.fileno(), size)
        out = segment.arrays(mapped, counts, identity.dimension)
        for shard, at, new in zip(shards, kept, numbers, strict=True):
            for name in segment.ROW_COLUMNS:
                out[name][new[at]] = getattr(shard.part, name)[at]
        _place_vectors(out, shards, vector_rows, vector_docs, token_sizes)
        _place_postings(out, terms, lists)
        start = segment.header(identity, counts, out["expires"], last_seq, size)
        mapped[: len(start)] = start
        mapped.flush()
        sync_file(file.fileno())


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
    out: _Arrays,
    shards: Sequence[Shard],
    rows: Sequence[NDArray[np.intp]],
    docs: Sequence[NDArray[np.uint32]],
    token_sizes: Sequence[NDArray[np.int64]],
) -> None:
    joined = np.concatenate(docs)
    order = np.argsort(joined, kind="stable")
    out["vector_docs"][:] = joined[order]
    target = np.empty(len(joined), np.int64)
    target[order] = np.arange(len(joined))
    out["token_offsets"][0] = 0
    out["token_offsets"][1:] = np.cumsum(np.concatenate(token_sizes)[order])
    start = 0
    for shard, at in zip(shards, rows, strict=True):
        for first in range(0, len(at), _CHUNK):
            some = at[first : first + _CHUNK]
            where = target[start + first : start + first + len(some)]
            vectors = shard.part.vectors[some]
            out["vectors"][where] = vectors
            out["codes"][where] = segment.signs(vectors)
        _place_tokens(out, shard.part, at, target[start : start + len(at)])
        start += len(at)


def _place_tokens(out: _Arrays, part: segment.Part, rows: NDArray[np.intp], target: NDArray[np.int64]) -> None:
    """In runs that follow one another both here and there: usually that is all of them at once."""
    breaks = np.flatnonzero((np.diff(rows) != 1) | (np.diff(target) != 1)) + 1
    for first, end in itertools.pairwise([0, *breaks.tolist(), len(rows)] if len(rows) else []):
        start = int(part.token_offsets[rows[first]])
        codes = part.tokens[start : int(part.token_offsets[rows[end - 1] + 1])]
        at = int(out["token_offsets"][target[first]])
        out["tokens"][at : at + len(codes)] = codes


def _live_postings(shard: Shard, numbers: NDArray[np.uint32]) -> TermLists:
    """With the number of postings of each term, and documents renumbered."""
    terms, offsets, docs, weights = shard.part.posting_lists()
    if shard.alive < shard.part.size or (docs == shard.part.size).any():
        keep = shard.live[docs]
        before = np.concatenate(([0], np.cumsum(keep)))
        counts = before[offsets[1:]] - before[offsets[:-1]]
        docs, weights = docs[keep], weights[keep]
    else:
        counts = np.diff(offsets)
    used = counts > 0
    return terms[used], counts[used], numbers[docs], weights


def _place_postings(out: _Arrays, terms: NDArray[np.uint64], lists: Sequence[TermLists]) -> None:
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
