"""One scope as a search sees it: segments, the tail, and which of their rows still live."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import text
from commonplace.stores.fixed_point import is_finite
from commonplace.stores.sqlite.index.query import Flags, IndexRow, IndexSource
from commonplace.stores.sqlite.index.segment import ROW_COLUMNS, Part, Postings, Segment, TermLists
from commonplace.stores.token_vectors import part_sizes

_BATCH = 4096


class _Column:
    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._held = np.empty((64,) if width is None else (64, width), dtype)
        self.size = 0

    def extend(self, values: Any) -> None:
        end = self.size + len(values)
        if end > len(self._held):
            grown = np.empty((max(end, 2 * len(self._held)), *self._held.shape[1:]), self._held.dtype)
            grown[: self.size] = self._held[: self.size]
            self._held = grown
        self._held[self.size : end] = values
        self.size = end

    @property
    def values(self) -> NDArray[Any]:
        return self._held[: self.size]

    @property
    def nbytes(self) -> int:
        return self._held.nbytes


class TailPart(Part):
    """The tail as it was at one moment; reads like a segment."""

    codes = None
    name = "tail"
    first_expiry = 1  # unknown: always look
    hashes: NDArray[np.uint64]
    owners: NDArray[np.uint32]

    def __init__(self, columns: dict[str, _Column]) -> None:
        self._set_columns({name: column.values for name, column in columns.items()})
        self.nbytes = sum(column.nbytes for column in columns.values())

    def postings(self, terms: NDArray[np.uint64]) -> list[Postings | None]:
        found: list[Postings | None] = []
        for term in terms:
            at = np.flatnonzero(self.hashes == term)
            found.append((self.owners[at], self.weights[at]) if len(at) else None)
        return found

    def posting_lists(self) -> TermLists:
        order = np.argsort(self.hashes, kind="stable")
        hashes = self.hashes[order]
        starts = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1]))) if len(hashes) else order
        return hashes[starts], np.append(starts, len(hashes)), self.owners[order], self.weights[order]


_VECTOR_COLUMNS = {"vector_docs": "<u4", "vectors": "<i2", "token_offsets": "<u8", "tokens": "u1"}
_POSTING_COLUMNS = {"hashes": "<u8", "owners": "<u4", "weights": "u1"}


class Tail:
    """The rows no segment has yet: arrays that only grow, so that a search may keep what it saw."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        kinds = {**ROW_COLUMNS, **_VECTOR_COLUMNS, **_POSTING_COLUMNS}
        self._columns = {name: _Column(kind, dimension if name == "vectors" else None) for name, kind in kinds.items()}
        self._columns["token_offsets"].extend([0])
        self._live = _Column(np.bool_)
        self._positions: dict[int, int] = {}  # by mid, of what lives
        self.size = 0

    @property
    def live(self) -> Flags:
        return self._live.values

    def part(self) -> TailPart:
        return TailPart(self._columns)

    def mark_dead(self, mids: NDArray[np.int64]) -> None:
        if self._positions:
            for mid in mids.tolist():
                if (position := self._positions.pop(mid, None)) is not None:
                    self.live[position] = False

    def extend(self, rows: Sequence[IndexRow]) -> None:
        if not rows:
            return
        start, columns = self.size, self._columns
        columns["mids"].extend([row.mid for row in rows])
        columns["seqs"].extend([row.seq for row in rows])
        columns["created"].extend([row.created_at for row in rows])
        columns["expires"].extend([row.expires_at for row in rows])
        columns["users"].extend(np.array([row.user for row in rows], np.uint64))
        columns["types"].extend([row.type for row in rows])
        self._extend_terms([row.terms or b"" for row in rows])
        self._extend_vectors(rows)
        self._live.extend(np.ones(len(rows), bool))
        self._positions.update((row.mid, start + i) for i, row in enumerate(rows))
        self.size += len(rows)

    def _extend_terms(self, blobs: list[bytes]) -> None:
        hashes, tf, counts = text.decode_all(blobs)
        owners = np.repeat(np.arange(len(blobs)), counts)
        lengths = np.bincount(owners, tf, minlength=len(blobs)).astype(np.uint32)
        self._columns["hashes"].extend(hashes)
        self._columns["weights"].extend(text.code(tf, lengths[owners]))
        self._columns["owners"].extend(owners + self.size)
        self._columns["lengths"].extend(lengths)

    def _extend_vectors(self, rows: Sequence[IndexRow]) -> None:
        stride = 2 * self._dimension
        blobs = [row.vectors or b"" for row in rows]
        held = [blob if _is_usable(blob, stride) else b"" for blob in blobs]
        if not any(held):
            return
        parts = [len(blob) // stride for blob in held]
        self._columns["vectors"].extend(np.frombuffer(b"".join(held), "<i2").reshape(-1, self._dimension))
        self._columns["vector_docs"].extend(np.repeat(np.arange(len(held)) + self.size, parts))
        tokens = [_split_tokens(row.tokens, count) for row, count in zip(rows, parts, strict=True)]
        joined, sizes = b"".join(data for data, _ in tokens), [size for _, own in tokens for size in own]
        offsets, codes = self._columns["token_offsets"], self._columns["tokens"]
        offsets.extend(np.cumsum(sizes, dtype=np.uint64) + np.uint64(codes.size))
        codes.extend(np.frombuffer(joined, np.uint8))


def _is_usable(blob: bytes, stride: int) -> bool:
    if not blob or not stride or len(blob) % stride:
        return False
    # A vector that is no number would be no one's neighbour and hide those of others.
    return is_finite(np.frombuffer(blob, "<i2"))


def _split_tokens(data: bytes | None, parts: int) -> tuple[bytes, list[int]]:
    """The tokens of all parts, and how many bytes each has; nothing where they are not of these parts."""
    sizes = part_sizes(data) if data else None
    if data is None or sizes is None or len(sizes) != parts:
        return b"", [0] * parts
    return data[len(data) - sum(sizes) :], sizes


@dataclass(slots=True, frozen=True)
class Shard:
    """Rows and which of them live; `live` has one flag more, for the row that erased postings name."""

    part: Part
    live: Flags
    alive: int

    @classmethod
    def of(cls, part: Part, live: Flags) -> Shard:
        """`live` has a flag for each row of the part."""
        return cls(part, np.append(live, False), int(np.count_nonzero(live)))

    @classmethod
    def all_live(cls, part: Part) -> Shard:
        return cls.of(part, np.ones(part.size, bool))

    def without(self, positions: NDArray[np.intp]) -> Shard:
        live = self.live.copy()
        live[positions] = False
        return Shard(self.part, live, self.alive - len(positions))


@dataclass(slots=True, frozen=True)
class ScopeSnapshot:
    """Never changes: a search holds one and is not disturbed by what is written meanwhile."""

    shards: tuple[Shard, ...]
    count: int
    total_length: int


class ScopeRows:
    """Follows the rows of one scope: applies what changed and gives the snapshot. Not thread-safe by itself."""

    def __init__(self, dimension: int, segments: Sequence[Shard] = (), watermark: int = 0) -> None:
        self._dimension = dimension
        self.segments = list(segments)
        self.tail = Tail(dimension)
        self.seq = watermark
        self.erased: list[tuple[int, int]] = []  # since the watermark, of rows that segments have
        self._lengths = sum(map(_total_length, self.segments))  # of what lives in segments
        self._publish()

    def advance(
        self, source: IndexSource, scope: int, *, after: int | None = None, spill: Callable[[], None] | None = None
    ) -> bool:
        """Apply what happened since; whether anything did. Between batches `spill` may move the tail to a segment."""
        here = self.seq
        start = here if after is None else after
        erased = list(source.erasures(scope, start))
        changed = False
        if erased:
            changed = True
            self.erased += self._in_segments(erased)
            self._mark_dead(np.unique(np.array([mid for mid, _ in erased], np.int64)))
            self.seq = max(self.seq, max(seq for _, seq in erased))
        for rows in batches(source.changes(scope, start)):
            changed = True
            # A row that is here already stays where it is: one dead row makes every search look at who lives.
            new = [row for row in rows if row.seq > here]
            if new:
                self._mark_dead(np.array([row.mid for row in new], np.int64))
                self.tail.extend([row for row in new if row.searchable])
            self.seq = max(self.seq, rows[-1].seq)
            if spill:
                spill()
        if changed:
            self._publish()
        return changed

    def replace_tail(self, shard: Shard) -> None:
        """The tail is in this segment now."""
        self.segments.append(shard)
        self._lengths += _total_length(shard)
        self.tail = Tail(self._dimension)

    def tail_shard(self) -> Shard:
        return Shard.of(self.tail.part(), self.tail.live)

    @property
    def nbytes(self) -> int:
        return sum(shard.part.nbytes for shard in self.snapshot.shards)

    def _publish(self) -> None:
        # Segments keep their own count and length up to date; only the few rows of the tail are summed again.
        tail = self.tail_shard()
        shards = tuple(shard for shard in (*self.segments, tail) if shard.part.size)
        self.snapshot = ScopeSnapshot(shards, sum(shard.alive for shard in shards), self._lengths + _total_length(tail))

    def _in_segments(self, erased: list[tuple[int, int]]) -> list[tuple[int, int]]:
        mids = np.array([mid for mid, _ in erased], np.int64)
        stored = set()
        for shard in self.segments:
            assert isinstance(shard.part, Segment)
            at = shard.part.find(mids)
            stored.update(shard.part.mids[at[shard.part.seqs[at] > 0]].tolist())  # 0: erased already
        return [mark for mark in erased if mark[0] in stored]

    def _mark_dead(self, mids: NDArray[np.int64]) -> None:
        self.tail.mark_dead(mids)
        for i, shard in enumerate(self.segments):
            part = shard.part
            if not part.size or mids.max() < part.mids[0] or mids.min() > part.mids[-1]:
                continue
            assert isinstance(part, Segment)
            at = part.find(mids)
            at = at[shard.live[at]]
            if len(at):
                self._lengths -= int(part.lengths[at].sum(dtype=np.int64))
                self.segments[i] = shard.without(at)


def _total_length(shard: Shard) -> int:
    return int(shard.part.lengths[shard.live[:-1]].sum(dtype=np.int64))


def batches(rows: Iterable[IndexRow]) -> Iterable[list[IndexRow]]:
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, _BATCH)):
        yield batch
