"""The deep check: every byte of the segments against the rows they were made from."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.sqlite.index.query import IndexRow, IndexSource
from commonplace.stores.sqlite.index.scope import Shard, Tail, batches
from commonplace.stores.sqlite.index.segment import ROW_COLUMNS, Part, Segment, SegmentIdentity, signs


def problems(
    source: IndexSource, scope: int, identity: SegmentIdentity, watermark: int, shards: Sequence[Shard]
) -> list[str]:
    """What differs; rows changed after the watermark are not in the files and not looked at."""
    found = [f"{s.part.name}: mids are not in order" for s in shards if (np.diff(s.part.mids) <= 0).any()]
    if found:
        return found
    later = {mid for mid, _ in source.erasures(scope, watermark)}
    sums = [_posting_sums(shard.part) for shard in shards]
    seen = 0
    for rows in batches(source.changes(scope, 0)):
        later |= {row.mid for row in rows if row.seq > watermark}
        written = [row for row in rows if row.seq <= watermark and row.searchable]
        found += _compare(written, identity, shards, sums)
        seen += len(written)
    alive = sum(int((~np.isin(s.part.mids[s.live[:-1]], list(later))).sum()) for s in shards)
    if alive != seen:
        found.append(f"{alive} rows live in the segments, {seen} in the store")
    return found


def _compare(
    rows: list[IndexRow], identity: SegmentIdentity, shards: Sequence[Shard], sums: Sequence[NDArray[np.uint64]]
) -> list[str]:
    if not rows:
        return []
    tail = Tail(identity.dimension)
    tail.extend(rows)
    expected = tail.part()
    expected_sums = _posting_sums(expected)
    missing = np.ones(len(rows), bool)
    found = []
    for shard, held in zip(shards, sums, strict=True):
        part = shard.part
        assert isinstance(part, Segment)
        at = np.searchsorted(part.mids, expected.mids)
        at[at == part.size] = 0
        here = (part.mids[at] == expected.mids) & shard.live[at] if part.size else np.zeros(len(rows), bool)
        missing &= ~here
        mine, theirs = np.flatnonzero(here), at[here]
        for name in ROW_COLUMNS:
            if not np.array_equal(getattr(expected, name)[mine], getattr(part, name)[theirs]):
                found.append(f"{part.name}: {name} differ from the rows")
        if not np.array_equal(expected_sums[mine], held[theirs]):
            found.append(f"{part.name}: postings differ from the rows")
        if not _same_vectors(expected, mine, part, theirs):
            found.append(f"{part.name}: vectors differ from the rows")
    if missing.any():
        found.append(f"{int(missing.sum())} rows are in no segment")
    return found


def _same_vectors(expected: Part, mine: NDArray[np.intp], part: Segment, theirs: NDArray[np.intp]) -> bool:
    for doc, other in zip(mine.tolist(), theirs.tolist(), strict=True):
        wanted = slice(*np.searchsorted(expected.vector_docs, [doc, doc + 1]).tolist())
        here = slice(*np.searchsorted(part.vector_docs, [other, other + 1]).tolist())
        vectors = expected.vectors[wanted]
        if not np.array_equal(vectors, part.vectors[here]) or not np.array_equal(signs(vectors), part.codes[here]):
            return False
        if _tokens_of(expected, wanted) != _tokens_of(part, here):
            return False
    return True


def _tokens_of(part: Part, vectors: slice) -> list[bytes]:
    offsets = part.token_offsets[vectors.start : vectors.stop + 1].tolist()
    return [part.tokens[start:end].tobytes() for start, end in itertools.pairwise(offsets)]


def _posting_sums(part: Part) -> NDArray[np.uint64]:
    """For each row a number that any change to its postings changes."""
    terms, offsets, docs, weights = part.posting_lists()
    owners = np.repeat(terms, np.diff(offsets))
    mixed = (owners ^ (weights.astype(np.uint64) << np.uint64(40))) * np.uint64(0x9E3779B97F4A7C15)
    sums = np.zeros(part.size + 1, np.uint64)
    np.add.at(sums, docs, mixed)
    return sums
