"""The vectors of a second embedder: kept by the same numbers as the first, and searched in segments of their own.

The segments are of the same kind and kept by the same code, with no words in them. A store without a second embedder
has neither these nor a row in `second_vectors`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from apsw import Connection

from commonplace.stores import exact_search
from commonplace.stores.base import Candidate, Search, Vectors
from commonplace.stores.optional import SecondEmbedderInfo
from commonplace.stores.row_format import to_memory
from commonplace.stores.sqlite import queries
from commonplace.stores.sqlite.connections import StorePart, exclusive, read
from commonplace.stores.sqlite.files import StoreFiles
from commonplace.stores.sqlite.index import IndexQuery, IndexRow, SegmentIndex
from commonplace.stores.sqlite.search import RowSource
from commonplace.stores.vector_cells import to_cells, vectors_of
from commonplace.wire.record import Memory

_WITHOUT = "LEFT JOIN second_vectors s ON s.vid = m.vid WHERE m.status = 'live' AND s.data IS NULL"
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS memories_by_vid ON memories(vid); "
    "CREATE INDEX IF NOT EXISTS versions_by_vid ON versions(vid)"
)
_DROP_INDEXES = "DROP INDEX IF EXISTS memories_by_vid; DROP INDEX IF EXISTS versions_by_vid"
_META = "('second_embedder', 'second_dimension', 'second_generation', 'second_ready')"


class SecondSource(RowSource):
    """The rows as the segments of the second embedder have them: by meaning only."""

    def __init__(self, db: Connection, info: SecondEmbedderInfo) -> None:
        self._db, self._table = db, "second_vectors"
        self.generation, self.dimension = info.generation, info.dimension

    @classmethod
    def ready(cls, db: Connection) -> SecondSource | None:
        info = queries.second_embedder_of(db)
        return cls(db, info) if info and info.ready else None

    def changes(self, scope: int, after_seq: int) -> Iterator[IndexRow]:
        return (row._replace(terms=None) for row in super().changes(scope, after_seq))


class SecondIndex:
    """Search by the second embedder, in whichever state it is; the connection is inside a read transaction."""

    def __init__(self, files: StoreFiles, store_id: str, budget_bytes: int, first: SegmentIndex) -> None:
        self._folder = files.second_segments
        self.index = SegmentIndex(self._folder, store_id, budget_bytes)
        self.index.share_budget(first)

    def nearest(self, db: Connection, scope: int, query: IndexQuery, vector: Vectors) -> list[int]:
        """Numbers of the memories nearest to `vector`, with the conditions of `query`."""
        source = SecondSource.ready(db)
        if source is None:
            return []
        query = query._replace(terms=(), vector=vector, tokens=None)
        return [hit.mid for hit in self.index.search(source, scope, query)]

    def score_by_rows(self, db: Connection, search: Search, by_mid: dict[int, Candidate]) -> None:
        """Fill in these candidates' cosine by the second embedder."""
        if search.second is None or not by_mid:
            return
        sql = (
            "SELECT m.mid, s.data FROM memories m JOIN second_vectors s ON s.vid = m.vid "
            f"WHERE m.mid IN ({queries.marks(by_mid)})"
        )
        found = {mid: vectors_of(data, len(search.second)) for mid, data in db.execute(sql, tuple(by_mid))}
        scores = exact_search.dense_scores(list(found.values()), search.second)
        for place, mid in enumerate(found):
            by_mid[mid].second = exact_search.given(scores, place)

    def maintain(self, db: Connection, scope: int) -> None:
        if (source := SecondSource.ready(db)) is not None:
            self.index.maintain(source, scope)

    def purge_erased(self, db: Connection, scope: int) -> None:
        """After an erasure: leave nothing of it in these files either."""
        if (source := SecondSource.ready(db)) is not None:
            self.index.purge_erased(source, scope)
        else:
            self.remove()

    def remove(self) -> None:
        self.index.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class SqliteSecondVectors(StorePart):
    """The protocol `SecondVectors`."""

    second: SecondIndex

    @read
    def second_embedder(self, db: Connection) -> SecondEmbedderInfo | None:
        return queries.second_embedder_of(db)

    @exclusive
    def begin_second(self, db: Connection, name: str, dimension: int) -> SecondEmbedderInfo:
        held = queries.second_embedder_of(db)
        if held and (held.name, held.dimension) == (name, dimension):
            return held
        self._drop(db)
        # Never a number that was there before: segments of it may lie about.
        (last,) = queries.fetch_one(db, "SELECT coalesce(max(value), 0) FROM meta WHERE key = 'last_second'")
        started = SecondEmbedderInfo(name, dimension, last + 1, ready=False)
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "INSERT OR REPLACE INTO meta VALUES('second_embedder', ?), ('second_dimension', ?), "
            "('second_generation', ?), ('second_ready', 0), ('last_second', ?)",
            (name, dimension, started.generation, started.generation),
        )
        db.execute(_INDEXES)
        db.execute("COMMIT")
        return started

    @read
    def without_second(self, db: Connection, after: int, limit: int) -> list[tuple[int, Memory]]:
        found: list[tuple[int, Memory]] = []
        for table in ("memories", "versions"):
            where = f"{_WITHOUT} AND m.vid > ? ORDER BY m.vid LIMIT ?"
            rows = db.execute(queries.select(table, extra="m.vid") + where, (after, limit))
            found += [(row[-1], to_memory(row)) for row in rows]
        return sorted(found, key=lambda pair: pair[0])[:limit]

    @read
    def count_without_second(self, db: Connection) -> int:
        return _count_without(db)

    @exclusive
    def fill_second(self, db: Connection, generation: int, vectors: Sequence[tuple[int, Vectors]]) -> None:
        db.execute("BEGIN IMMEDIATE")
        held = queries.second_embedder_of(db)
        if held is not None and held.generation == generation:
            # Only for versions that still exist: one erased meanwhile must not come back as a vector.
            db.executemany(
                "INSERT OR REPLACE INTO second_vectors(vid, data) SELECT ?1, ?2 "
                "WHERE EXISTS (SELECT 1 FROM memories WHERE vid = ?1) "
                "OR EXISTS (SELECT 1 FROM versions WHERE vid = ?1)",
                [(vid, to_cells(data, None)[0]) for vid, data in vectors],
            )
        db.execute("COMMIT")

    async def add_second(self, memory: Memory, number: int, generation: int, vectors: Vectors) -> None:
        await self._writer.submit(memory.tenant, lambda tx: tx.add_second(memory.id, number, generation, vectors))

    @exclusive
    def finish_second(self, db: Connection, generation: int) -> bool:
        db.execute("BEGIN IMMEDIATE")
        held = queries.second_embedder_of(db)
        if held is None or held.generation != generation or _count_without(db):
            db.execute("ROLLBACK")
            return False
        db.execute("UPDATE meta SET value = 1 WHERE key = 'second_ready'")
        if not db.execute("SELECT 1 FROM meta WHERE key = 'next_generation'").fetchall():  # a reindex needs them, too
            db.execute(_DROP_INDEXES)
        db.execute("COMMIT")
        return True

    @exclusive
    def drop_second(self, db: Connection) -> bool:
        return self._drop(db)

    def _drop(self, db: Connection) -> bool:
        there = queries.second_embedder_of(db) is not None
        db.execute("BEGIN IMMEDIATE")
        db.execute(f"DELETE FROM meta WHERE key IN {_META}")
        # All at once: row by row a large one takes minutes.
        (table,) = queries.fetch_one(db, "SELECT sql FROM sqlite_schema WHERE name = 'second_vectors'")
        db.execute(f"DROP TABLE second_vectors; {table}")
        db.execute("COMMIT")
        self.second.remove()
        return there


def _count_without(db: Connection) -> int:
    tables = ("memories", "versions")
    return sum(queries.fetch_one(db, f"SELECT count(*) FROM {table} m {_WITHOUT}")[0] for table in tables)
