"""Replacing the embedder: a second table of vectors is filled beside the first, then takes its place at once."""

from __future__ import annotations

from collections.abc import Sequence

from apsw import Connection

from commonplace.stores.base import Vectors
from commonplace.stores.row_format import to_memory
from commonplace.stores.sqlite.connections import StorePart, exclusive, read
from commonplace.stores.sqlite.queries import fetch_one, select
from commonplace.stores.sqlite.vector_rows import COLUMNS, copy_rows
from commonplace.stores.token_vectors import Codes
from commonplace.stores.vector_cells import to_cells
from commonplace.wire.record import Memory

# Versions are looked up by the number of their vector only while vectors are made anew: writes need not pay otherwise.
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS memories_by_vid ON memories(vid); "
    "CREATE INDEX IF NOT EXISTS versions_by_vid ON versions(vid)"
)
_DROP_INDEXES = "DROP INDEX IF EXISTS memories_by_vid; DROP INDEX IF EXISTS versions_by_vid"


class SqliteReindex(StorePart):
    """The protocol `Reindexable`."""

    @exclusive
    def begin_generation(self, db: Connection, name: str, dimension: int) -> tuple[int, bool]:
        meta = dict(db.execute("SELECT key, value FROM meta"))
        if meta.get("next_embedder") == name and meta.get("next_dimension") == dimension:
            db.execute(_INDEXES)
            return int(meta["next_generation"]), True
        generation = max(meta["generation"], meta.get("next_generation", 0)) + 1
        db.execute("BEGIN IMMEDIATE")
        if "next_generation" in meta:
            db.execute(f"DROP TABLE IF EXISTS vectors_{meta['next_generation']}")
        db.execute(f"CREATE TABLE vectors_{generation}({COLUMNS})")
        db.execute(
            "INSERT OR REPLACE INTO meta VALUES('next_generation', ?), ('next_embedder', ?), ('next_dimension', ?)",
            (generation, name, dimension),
        )
        db.execute(_INDEXES)
        db.execute("COMMIT")
        if (meta.get("embedder"), meta.get("dimension")) == (name, dimension):
            copy_rows(db, meta["generation"], generation)
        return generation, False

    @read
    def without_vectors(self, db: Connection, generation: int, after: int, limit: int) -> list[tuple[int, Memory]]:
        found: list[tuple[int, Memory]] = []
        for table in ("memories", "versions"):
            where = f"{_without(generation)} AND m.vid > ? ORDER BY m.vid LIMIT ?"
            query = db.execute(select(table, extra="m.vid") + where, (after, limit))
            found += [(row[-1], to_memory(row)) for row in query]
        return sorted(found, key=lambda pair: pair[0])[:limit]

    @read
    def count_without_vectors(self, db: Connection, generation: int) -> int:
        return count_without_vectors(db, generation)

    @exclusive
    def fill_vectors(
        self, db: Connection, generation: int, vectors: Sequence[tuple[int, Vectors, Sequence[Codes] | None]]
    ) -> None:
        db.execute("BEGIN IMMEDIATE")
        # Only for versions that still exist: one erased meanwhile must not come back as a vector.
        db.executemany(
            f"INSERT OR REPLACE INTO vectors_{generation}(vid, data, tokens) SELECT ?1, ?2, ?3 "
            "WHERE EXISTS (SELECT 1 FROM memories WHERE vid = ?1) OR EXISTS (SELECT 1 FROM versions WHERE vid = ?1)",
            [(vid, *to_cells(data, tokens)) for vid, data, tokens in vectors],
        )
        db.execute("COMMIT")

    async def add_vectors(
        self, memory: Memory, number: int, generation: int, vectors: Vectors, tokens: Sequence[Codes] | None = None
    ) -> None:
        made = (number, generation, vectors, tokens)
        await self._writer.submit(memory.tenant, lambda tx: tx.add_vectors(memory.id, *made))

    @exclusive
    def switch_generation(self, db: Connection, generation: int) -> bool:
        db.execute("BEGIN IMMEDIATE")
        meta = dict(db.execute("SELECT key, value FROM meta"))
        if meta.get("next_generation") != generation or count_without_vectors(db, generation):
            db.execute("ROLLBACK")
            return False
        old = meta["generation"]
        # Numbers of versions without a vector must not be given out again by the new table.
        last = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?"
        (given,) = fetch_one(db, last, (f"vectors_{old}",))
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (f"vectors_{generation}",))
        db.execute("INSERT INTO sqlite_sequence VALUES(?, ?)", (f"vectors_{generation}", given))
        db.execute(
            "INSERT OR REPLACE INTO meta VALUES('generation', ?), ('embedder', ?), ('dimension', ?)",
            (generation, meta["next_embedder"], meta["next_dimension"]),
        )
        db.execute("DELETE FROM meta WHERE key IN ('next_generation', 'next_embedder', 'next_dimension')")
        db.execute(f"DROP TABLE vectors_{old}; {_DROP_INDEXES}")
        if "second_generation" not in meta:  # its segments may still have to hear of them
            db.execute("DELETE FROM late_vectors")
        db.execute("COMMIT")
        return True


def _without(generation: int) -> str:
    """What follows `FROM memories m` or `FROM versions m`."""
    return f"LEFT JOIN vectors_{generation} v ON v.vid = m.vid WHERE m.status = 'live' AND v.data IS NULL"


def count_without_vectors(db: Connection, generation: int) -> int:
    tables = ("memories", "versions")
    return sum(fetch_one(db, f"SELECT count(*) FROM {table} m {_without(generation)}")[0] for table in tables)
