"""Search over the memories of one scope: segments derived from rows, shared by processes, rebuilt when in doubt."""

from __future__ import annotations

from commonplace.stores.sqlite.index.catalogue import Catalogue
from commonplace.stores.sqlite.index.query import Hit, IndexQuery, IndexRow, Source

__all__ = ["Catalogue", "Hit", "IndexQuery", "IndexRow", "Source"]
