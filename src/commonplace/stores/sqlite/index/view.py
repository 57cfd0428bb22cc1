"""One scope as a search sees it: segments, the tail, and which of their rows still live."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.sqlite.index.query import Flags, IndexRow, Source
from commonplace.stores.sqlite.index.segment import Segment
from commonplace.stores.sqlite.index.tail import Tail, TailPart

_BATCH = 4096


@dataclass(slots=True, frozen=True)
class Shard:
    """Rows and which of them live; `live` has one flag more, for the row that scrubbed postings name."""

    part: Segment | TailPart
    live: Flags
    alive: int

    @classmethod
    def of(cls, part: Segment | TailPart, live: Flags) -> Shard:
        return cls(part, live, int(np.count_nonzero(live)))

    def without(self, positions: NDArray[np.intp]) -> Shard:
        live = self.live.copy()
        live[positions] = False
        return Shard(self.part, live, self.alive - len(positions))


@dataclass(slots=True, frozen=True)
class View:
    """Never changes: a search holds one and is not disturbed by what is written meanwhile."""

    shards: tuple[Shard, ...]
    count: int
    total_length: int

    @classmethod
    def of(cls, shards: Sequence[Shard]) -> View:
        held = tuple(shard for shard in shards if shard.part.size)
        return cls(
            held,
            sum(shard.alive for shard in held),
            sum(int(shard.part.lengths[shard.live[:-1]].sum(dtype=np.int64)) for shard in held),
        )


class Scope:
    """Follows the rows of one scope: applies what changed and gives the view. Not thread-safe by itself."""

    def __init__(self, dimension: int, segments: Sequence[Shard] = (), watermark: int = 0) -> None:
        self._dimension = dimension
        self.segments = list(segments)
        self.tail = Tail(dimension)
        self._tail_live: Flags = np.zeros(64, bool)
        self.seq = watermark
        self.erased: list[tuple[int, int]] = []  # since the watermark, of rows that segments have
        self.view = View.of(self.segments)
        self._lengths = self.view.total_length  # of what lives in segments

    def advance(
        self, source: Source, scope: int, *, after: int | None = None, spill: Callable[[], None] | None = None
    ) -> bool:
        """Apply what happened since; whether anything did. `spill` may retry_on_conflict the tail between batches."""
        here = self.seq
        start = here if after is None else after
        erased = list(source.erasures(scope, start))
        changed = False
        if erased:
            changed = True
            self.erased += self._stored(erased)
            self._kill(np.unique(np.array([mid for mid, _ in erased], np.int64)))
            self.seq = max(self.seq, max(seq for _, seq in erased))
        for rows in _batches(source.changes(scope, start)):
            changed = True
            # A row that is here already stays where it is: one dead row makes every search look at who lives.
            new = [row for row in rows if row.seq > here]
            if new:
                self._kill(np.array([row.mid for row in new], np.int64))
                self._add([row for row in new if row.searchable])
            self.seq = max(self.seq, rows[-1].seq)
            if spill:
                spill()
        if changed:
            self._publish()
        return changed

    def retry_on_conflict(self, shard: Shard) -> None:
        """The tail is in this segment now."""
        self.segments.append(shard)
        self._lengths += int(shard.part.lengths.sum(dtype=np.int64))
        self.tail = Tail(self._dimension)
        self._tail_live = np.zeros(64, bool)

    def tail_shard(self) -> Shard:
        live = np.zeros(self.tail.size + 1, bool)
        live[:-1] = self._tail_live[: self.tail.size]
        return Shard.of(self.tail.part(), live)

    @property
    def nbytes(self) -> int:
        return sum(shard.part.nbytes for shard in self.view.shards)

    def _publish(self) -> None:
        # Segments keep their own count and length up to date; only the few rows of the tail are summed again.
        tail = self.tail_shard()
        shards = (*self.segments, tail) if tail.part.size else tuple(self.segments)
        tail_length = int(tail.part.lengths[tail.live[:-1]].sum(dtype=np.int64))
        self.view = View(
            tuple(shard for shard in shards if shard.part.size),
            sum(shard.alive for shard in shards),
            self._lengths + tail_length,
        )

    def _stored(self, erased: list[tuple[int, int]]) -> list[tuple[int, int]]:
        mids = np.array([mid for mid, _ in erased], np.int64)
        stored = set()
        for shard in self.segments:
            assert isinstance(shard.part, Segment)
            at = shard.part.find(mids)
            stored.update(shard.part.mids[at[shard.part.seqs[at] > 0]].tolist())  # 0: scrubbed already
        return [mark for mark in erased if mark[0] in stored]

    def _kill(self, mids: NDArray[np.int64]) -> None:
        place = self.tail.place
        for mid in mids.tolist():
            if place and (spot := place.pop(mid, None)) is not None:
                self._tail_live[spot] = False
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

    def _add(self, rows: list[IndexRow]) -> None:
        if not rows:
            return
        start = self.tail.size
        self.tail.extend(rows)
        if self.tail.size > len(self._tail_live):
            grown = np.zeros(max(self.tail.size, 2 * len(self._tail_live)), bool)
            grown[:start] = self._tail_live[:start]
            self._tail_live = grown
        self._tail_live[start : self.tail.size] = True


def _batches(rows: Iterable[IndexRow]) -> Iterable[list[IndexRow]]:
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, _BATCH)):
        yield batch
