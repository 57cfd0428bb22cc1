"""New segments: one from given shards, or one from all the rows of a scope."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from commonplace.stores.sqlite.index import merge
from commonplace.stores.sqlite.index.build import write_segment
from commonplace.stores.sqlite.index.folder import Manifest, ScopeFolder
from commonplace.stores.sqlite.index.query import Source
from commonplace.stores.sqlite.index.segment import Identity, Segment
from commonplace.stores.sqlite.index.view import Scope, Shard

#: So many rows are held in memory before they go into a file.
_SPILL = 65_536


def written(folder: ScopeFolder, identity: Identity, shards: Sequence[Shard], last_seq: int) -> Shard:
    path = folder.path / folder.new_name("seg")
    write_segment(path, shards, identity, last_seq)
    segment = Segment(path, identity)
    live = np.ones(segment.size + 1, bool)
    live[-1] = False
    return Shard(segment, live, segment.size)


def rebuilt(source: Source, scope: int, folder: ScopeFolder, identity: Identity) -> tuple[Scope, Manifest | None]:
    """One new segment of all rows; none when they are few. With the folder's lock."""
    folder.sweep(None)
    rows = Scope(identity.dimension)
    rows.advance(source, scope, spill=lambda: _spill(rows, folder, identity))
    if not rows.segments and rows.tail.size < merge.FLUSH:
        return rows, None
    shard = written(folder, identity, [*rows.segments, rows.tail_shard()], rows.seq)
    return Scope(identity.dimension, [shard], rows.seq), folder.write(identity, rows.seq, [shard])


def _spill(rows: Scope, folder: ScopeFolder, identity: Identity) -> None:
    if rows.tail.size >= _SPILL:
        rows.retry_on_conflict(written(folder, identity, [rows.tail_shard()], rows.seq))
