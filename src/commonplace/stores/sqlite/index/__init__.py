"""Search over the memories of one scope: segments derived from rows, shared by processes, rebuilt when in doubt.

It knows rows by number and nothing of SQL, memories or the engine.
"""

from __future__ import annotations

from commonplace.stores.sqlite.index.query import IndexHit, IndexQuery, IndexRow, IndexSource
from commonplace.stores.sqlite.index.segment_index import SegmentIndex

__all__ = ["IndexHit", "IndexQuery", "IndexRow", "IndexSource", "SegmentIndex"]
