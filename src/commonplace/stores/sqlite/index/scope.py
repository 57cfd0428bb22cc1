"""One scope as a search sees it: segments, the tail, and which of their rows still live."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.sqlite.index.query import Flags, IndexRow, IndexSource
from commonplace.stores.sqlite.index.segment import Segment
from commonplace.stores.sqlite.index.tail import Tail, TailPart

_BATCH = 4096


@dataclass(slots=True, frozen=True)
class Shard:
    """Rows and which of them live; `live` has one flag more, for the row that erased postings name."""

    part: Segment | TailPart
    live: Flags
    alive: int

    @classmethod
    def of(cls, part: Segment | TailPart, live: Flags) -> Shard:
        """`live` has a flag for each row of the part."""
        return cls(part, np.append(live, False), int(np.count_nonzero(live)))

    @classmethod
    def all_live(cls, part: Segment | TailPart) -> Shard:
        return cls.of(part, np.ones(part.size, bool))

    def without(self, positions: NDArray[np.intp]) -> Shard:
        live = self.live.copy()
        live[positions] = False
        return Shard(self.part, live, self.alive - len(positions))


@dataclass(slots=True, frozen=True)
class Snapshot:
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
        for rows in _batches(source.changes(scope, start)):
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
        self.snapshot = Snapshot(shards, sum(shard.alive for shard in shards), self._lengths + _total_length(tail))

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


def _batches(rows: Iterable[IndexRow]) -> Iterable[list[IndexRow]]:
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, _BATCH)):
        yield batch
