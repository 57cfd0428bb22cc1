"""The embedded store: one SQLite file for the truth, memory-mapped segments beside it for the search."""

from __future__ import annotations

from commonplace.stores.sqlite.store import SqliteStore, open_url

__all__ = ["SqliteStore", "open_url"]
