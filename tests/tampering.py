"""Getting past the store, as whoever has its database can: reading and changing what it keeps, and failing disks.

Of SQLite's file and of what `InMemory` holds. Where the suite runs on PostgreSQL, what
tests/backends/postgres_tampering.py does to its database takes their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from commonplace.stores.base import AuditEntry


def drop_guards(db: Any) -> None:
    """From now on this connection, of any library, may change and remove entries of the ledger."""
    for (name,) in list(db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        db.execute(f"DROP TRIGGER {name}")


class RawDatabase:
    """A connection beside the store's own, as another program would have it."""

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._db.execute(sql).fetchall()
        return found

    def change(self, sql: str) -> int:
        """How many rows it changed."""
        self._db.execute(sql)
        return int(self._db.changes())

    def drop_guards(self) -> None:
        drop_guards(self._db)

    @contextmanager
    def write_lock(self) -> Iterator[None]:
        """Held as another process would that is in the middle of a write."""
        self._db.execute("BEGIN IMMEDIATE")
        yield
        self._db.execute("ROLLBACK")

    @staticmethod
    def bytes_literal(value: bytes) -> str:
        return f"x'{value.hex()}'"

    def close(self) -> None:
        self._db.close()


def traces(folder: Path, *texts: str) -> list[str]:
    """The files in this folder that hold any of the texts."""
    held = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return [path.name for path, data in held.items() if any(text.encode() in data for text in texts)]


def rewrite_ledger(store: Any, tenant: str, entries: Sequence[AuditEntry]) -> None:
    """Put these entries in place of the tenant's own; its count of them follows."""
    store._tenants[tenant].audit = tuple(entries)


#: What a commit fails with where the disk does.
DISK_ERRORS: dict[str, Callable[[], Exception]] = {
    "EIO": lambda: apsw.IOError("disk I/O error, on purpose"),
    "ENOSPC": lambda: apsw.FullError("database or disk is full, on purpose"),
}


@contextmanager
def raw_database(path: Path) -> Iterator[RawDatabase]:
    with closing(RawDatabase(path)) as database:
        yield database
