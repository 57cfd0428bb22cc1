"""Which segments are merged and when, and new segments made of others or of all rows of a scope."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.stores.sqlite.index.manifest import Manifest, ScopeFolder
from commonplace.stores.sqlite.index.query import IndexSource
from commonplace.stores.sqlite.index.scope import ScopeRows, Shard
from commonplace.stores.sqlite.index.segment import Identity, Segment
from commonplace.stores.sqlite.index.segment_writer import write_segment

#: Rows the tail may hold before it becomes a segment.
FLUSH_ROWS = 1024
#: So many rows are held in memory before they go into a file.
SPILL_ROWS = 65_536


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


def write_shard(folder: ScopeFolder, identity: Identity, shards: Sequence[Shard], last_seq: int) -> Shard:
    path = folder.path / folder.new_name("seg")
    write_segment(path, shards, identity, last_seq)
    return Shard.all_live(Segment(path, identity))


def rebuild(
    source: IndexSource, scope: int, folder: ScopeFolder, identity: Identity
) -> tuple[ScopeRows, Manifest | None]:
    """One new segment of all rows; none when they are few. With the folder's lock."""
    folder.sweep(None)
    rows = ScopeRows(identity.dimension)
    rows.advance(source, scope, spill=lambda: _spill(rows, folder, identity))
    if not rows.segments and rows.tail.size < FLUSH_ROWS:
        return rows, None
    shard = write_shard(folder, identity, [*rows.segments, rows.tail_shard()], rows.seq)
    return ScopeRows(identity.dimension, [shard], rows.seq), folder.write(identity, rows.seq, [shard])


def _spill(rows: ScopeRows, folder: ScopeFolder, identity: Identity) -> None:
    if rows.tail.size >= SPILL_ROWS:
        rows.replace_tail(write_shard(folder, identity, [rows.tail_shard()], rows.seq))
