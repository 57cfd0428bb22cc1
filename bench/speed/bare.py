"""The yardstick for writing: the rows of a remember put into the same tables by nothing but SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from commonplace.stores.sqlite.files import StoreFiles, open_writable
from commonplace.stores.sqlite.schema import VERSION_COLUMNS

_COLUMNS = ("mid", *VERSION_COLUMNS)
_VECTOR = "INSERT INTO vectors_1(vid, data) VALUES(?, ?)"
_MEMORY = f"INSERT INTO memories({', '.join(_COLUMNS)}) VALUES({', '.join('?' * len(_COLUMNS))})"
_AUDIT = f"INSERT INTO audit VALUES({', '.join('?' * 10)})"
_PART = f"INSERT INTO audit_parts VALUES({', '.join('?' * 7)})"
_TENANT = "UPDATE tenants SET seq = ?, at = ?, audit_n = ?, audit_hash = ? WHERE id = ?"

#: The rows of one remember, one tuple of bindings for each statement above.
Rows = tuple[Any, Any, Any, Any, Any]


class Bare:
    """A second file with the schema, indexes and pragmas of the first, which it follows row by row."""

    def __init__(self, path: Path, original: Path) -> None:
        self._db = open_writable(StoreFiles(path))
        self._original = apsw.Connection(str(original), flags=apsw.SQLITE_OPEN_READONLY)
        self._db.execute("INSERT INTO tenants(name) VALUES('local')")

    def new_rows(self) -> list[Rows]:
        """What the original has and this has not, ready to be bound."""
        (last,) = self._db.execute("SELECT coalesce(max(mid), 0) FROM memories").fetchone() or (0,)
        held = self._original.execute(
            f"SELECT {', '.join('m.' + c for c in _COLUMNS)} FROM memories m WHERE m.mid > ? ORDER BY m.mid", (last,)
        ).fetchall()
        rows = []
        for memory in held:
            vid, id = memory[1], memory[1 + VERSION_COLUMNS.index("id")]
            (part,) = self._original.execute("SELECT * FROM audit_parts WHERE memory_id = ?", (id,)).fetchall()
            (entry,) = self._original.execute(
                "SELECT * FROM audit WHERE tenant_id = ? AND n = ?", (part[0], part[1])
            ).fetchall()
            (vector,) = self._original.execute("SELECT vid, data FROM vectors_1 WHERE vid = ?", (vid,)).fetchall()
            rows.append((vector, memory, entry, part, (entry[3], entry[2], entry[1], entry[9], entry[0])))
        return rows

    def write(self, rows: list[Rows]) -> None:
        """Each in a transaction of its own, as a lone caller's remembers are."""
        execute = self._db.execute
        for vector, memory, entry, part, tenant in rows:
            execute("BEGIN IMMEDIATE")
            execute(_VECTOR, vector)
            execute(_MEMORY, memory)
            execute(_AUDIT, entry)
            execute(_PART, part)
            execute(_TENANT, tenant)
            execute("COMMIT")

    def same_as_original(self) -> bool:
        return all(
            self._db.execute(f"SELECT * FROM {table}").fetchall()
            == self._original.execute(f"SELECT * FROM {table}").fetchall()
            for table in ("memories", "vectors_1", "audit", "audit_parts", "tenants")
        )

    def close(self) -> None:
        self._db.close()
        self._original.close()
