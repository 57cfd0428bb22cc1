"""The kinds of stores that a test about each of them runs on."""

from __future__ import annotations

import os
from pathlib import Path

from commonplace.stores import memory, sqlite
from commonplace.stores.base import Primary
from commonplace.wire.record import Clock

#: What tests open where they open a store: the embedded one, or `postgresql` (see tests/backends/postgres_primary.py).
STORE = os.environ.get("COMMONPLACE_TEST_STORE", "")
#: A database takes the place of both embedded ones: a test would do the same to it twice.
STORE_KINDS = (STORE,) if STORE else ("memory", "sqlite")


def open_store(kind: str, folder: Path, clock: Clock) -> Primary:
    # By the module: where the suite runs on a database, the class in it is another.
    return sqlite.SqliteStore(folder / "commonplace.db", clock) if kind == "sqlite" else memory.InMemory(clock)
