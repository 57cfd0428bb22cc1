"""Getting past a PostgreSQL store, as whoever owns its tables can: what tests/tampering.py does to SQLite's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import tampering
from postgres_databases import database_for, databases_in, server, spoil_database

from commonplace.stores.base import AuditEntry
from commonplace.stores.postgres.address import Address, parse_address
from commonplace.stores.row_format import AUDIT_COLUMNS, audit_cells

_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"


def _connect(address: Address) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(**address.parameters, autocommit=True)


class RawDatabase:
    """A connection beside the store's own, to the database that belongs to a file."""

    def __init__(self, path: Path) -> None:
        url = database_for(path)
        spoil_database(url)
        self._db = _connect(parse_address(url))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._db.execute(sql).fetchall()  # type: ignore[arg-type]

    def change(self, sql: str) -> int:
        """How many rows it changed."""
        return self._db.execute(sql).rowcount  # type: ignore[arg-type]

    def drop_guards(self) -> None:
        _drop_guards(self._db)

    @contextmanager
    def write_lock(self) -> Iterator[None]:
        """Held as another server would that is in the middle of a write."""
        with self._db.transaction(force_rollback=True):
            self._db.execute("LOCK TABLE tenants IN EXCLUSIVE MODE")
            yield

    @staticmethod
    def bytes_literal(value: bytes) -> str:
        return f"'\\x{value.hex()}'::bytea"

    def close(self) -> None:
        self._db.close()


def _drop_guards(db: psycopg.Connection[tuple[Any, ...]]) -> None:
    for table in ("audit", "audit_parts"):
        db.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")  # type: ignore[arg-type]


_files_with = tampering.traces


def traces(folder: Path, *texts: str) -> list[str]:
    """The files in this folder, and the tables of databases that belong to it, that hold any of the texts.

    Rows are read as any client could: what was erased stays in PostgreSQL's own files until they are vacuumed, of which
    tests/backends/test_postgres_upkeep.py tells.
    """
    found = _files_with(folder, *texts)
    wanted = [*texts, *(text.encode().hex() for text in texts)]  # as bytes are shown
    for url in databases_in(folder):
        with _connect(parse_address(url)) as db:
            for (table,) in db.execute(_TABLES).fetchall():
                sql = f"SELECT 1 FROM {table} t, unnest(%s::text[]) w WHERE strpos(t::text, w) > 0 LIMIT 1"
                if db.execute(sql, (wanted,)).fetchone():  # type: ignore[arg-type]
                    found.append(table)
    return found


def rewrite_ledger(store: Any, tenant: str, entries: Sequence[AuditEntry]) -> None:
    """Put these entries in place of the tenant's own; its count of them follows."""
    marks = ", ".join(["%s"] * len(AUDIT_COLUMNS))
    spoil_database(server().url(store.address.parameters["dbname"]))
    with _connect(store.address) as db, db.transaction():
        _drop_guards(db)
        ((number,),) = db.execute("SELECT id FROM tenants WHERE name = %s", (tenant,)).fetchall()
        for table in ("audit", "audit_parts"):
            db.execute(f"DELETE FROM {table} WHERE tenant_id = %s", (number,))  # type: ignore[arg-type]
        for entry in entries:
            db.execute(f"INSERT INTO audit VALUES(%s, {marks})", (number, *audit_cells(entry)))  # type: ignore[arg-type]
            for i, part in enumerate(entry.parts):
                row = (number, entry.n, i, part.memory_id, part.payload, part.salt, part.hash)
                db.execute("INSERT INTO audit_parts VALUES(%s, %s, %s, %s, %s, %s, %s)", row)
        head = (entries[-1].n, entries[-1].hash) if entries else (0, "")
        db.execute("UPDATE tenants SET audit_n = %s, audit_hash = %s WHERE id = %s", (*head, number))


#: What a commit fails with where the server's disk does.
DISK_ERRORS: dict[str, Callable[[], Exception]] = {
    "EIO": lambda: psycopg.errors.IoError("could not write to file, on purpose"),
    "ENOSPC": lambda: psycopg.errors.DiskFull("no space left on device, on purpose"),
}
