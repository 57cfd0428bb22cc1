"""Replacing the embedder, and a second one beside it: tables of vectors that are filled beside the rows, and then take
their place at once."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.stores.base import EmbedderInfo, Vectors
from commonplace.stores.optional import SecondEmbedderInfo
from commonplace.stores.postgres import found_by, queries
from commonplace.stores.postgres.connections import Session, StorePart, exclusive, read
from commonplace.stores.postgres.schema import VECTOR_COLUMNS, create_parts
from commonplace.stores.postgres.vector_indexes import forget_indexes
from commonplace.stores.row_format import to_memory
from commonplace.stores.token_vectors import Codes
from commonplace.stores.vector_cells import to_cells
from commonplace.wire.record import Memory

_TABLES = ("memories", "versions")
_NEXT = ("next_generation", "next_embedder", "next_dimension")
_SECOND = ("second_embedder", "second_dimension", "second_generation", "second_ready")


class PostgresReindex(StorePart):
    """The protocols `Reindexable` and `LateVectors`."""

    @exclusive
    def adopt_embedder(self, db: Session, name: str, dimension: int) -> EmbedderInfo:
        meta = queries.read_meta(db)
        if "embedder" not in meta:
            create_parts(db, f"parts_{meta['generation']}", dimension)
            queries.write_meta(db, embedder=name, dimension=dimension)
            meta |= {"embedder": name, "dimension": dimension}
        info = queries.embedder_of(meta)
        assert info is not None
        return info

    @exclusive
    def begin_generation(self, db: Session, name: str, dimension: int) -> tuple[int, bool]:
        meta = queries.read_meta(db)
        if meta.get("next_embedder") == name and meta.get("next_dimension") == dimension:
            return int(meta["next_generation"]), True
        if "next_generation" in meta:
            _drop_tables(db, meta["next_generation"])
        generation = max(meta["generation"], meta.get("next_generation", 0)) + 1
        db.execute(f"CREATE TABLE vectors_{generation}({VECTOR_COLUMNS})")
        create_parts(db, f"parts_{generation}", dimension)
        queries.write_meta(db, next_generation=generation, next_embedder=name, next_dimension=dimension)
        if (meta.get("embedder"), meta.get("dimension")) == (name, dimension):  # what it has made is kept
            db.execute(
                f"INSERT INTO vectors_{generation} SELECT * FROM vectors_{meta['generation']} WHERE data IS NOT NULL"
            )
            db.execute(f"INSERT INTO parts_{generation} SELECT * FROM parts_{meta['generation']}")
        return generation, False

    @read
    def without_vectors(self, db: Session, generation: int, after: int, limit: int) -> list[tuple[int, Memory]]:
        return _lacking(db, f"vectors_{generation}", after, limit)

    @read
    def count_without_vectors(self, db: Session, generation: int) -> int:
        return count_without_vectors(db, generation)

    @exclusive
    def fill_vectors(
        self, db: Session, generation: int, vectors: Sequence[tuple[int, Vectors, Sequence[Codes] | None]]
    ) -> None:
        meta = queries.read_meta(db)
        if generation == meta["generation"]:
            dimension = meta.get("dimension", 0)
        elif generation == meta.get("next_generation"):
            dimension = meta["next_dimension"]
        else:
            return
        there = _existing(db, [number for number, *_ in vectors])
        for number, made, tokens in vectors:
            if number in there:
                data, packed = to_cells(made, tokens)
                db.execute(
                    f"INSERT INTO vectors_{generation} VALUES(%s, %s, %s) "
                    "ON CONFLICT(vid) DO UPDATE SET data = excluded.data, tokens = excluded.tokens",
                    (number, data, packed),
                )
                _fill_parts(db, f"parts_{generation}", dimension, there[number], data)

    async def add_vectors(
        self, memory: Memory, number: int, generation: int, vectors: Vectors, tokens: Sequence[Codes] | None = None
    ) -> None:
        made = (number, generation, vectors, tokens)
        await self._writer.submit(memory.tenant, lambda tx: tx.add_vectors(memory.id, *made))

    @exclusive
    def switch_generation(self, db: Session, generation: int) -> bool:
        meta = queries.read_meta(db)
        if meta.get("next_generation") != generation or count_without_vectors(db, generation):
            return False
        queries.write_meta(db, generation=generation, embedder=meta["next_embedder"], dimension=meta["next_dimension"])
        queries.drop_meta(db, *_NEXT)
        _drop_tables(db, meta["generation"])
        return True


class PostgresSecondVectors(StorePart):
    """The protocol `SecondVectors`."""

    @read
    def second_embedder(self, db: Session) -> SecondEmbedderInfo | None:
        return queries.second_embedder_of(queries.read_meta(db))

    @exclusive
    def begin_second(self, db: Session, name: str, dimension: int) -> SecondEmbedderInfo:
        meta = queries.read_meta(db)
        held = queries.second_embedder_of(meta)
        if held and (held.name, held.dimension) == (name, dimension):
            return held
        _drop_second(db)
        started = SecondEmbedderInfo(name, dimension, meta.get("last_second", 0) + 1, ready=False)
        create_parts(db, "second_parts", dimension)
        queries.write_meta(
            db,
            second_embedder=name,
            second_dimension=dimension,
            second_generation=started.generation,
            second_ready=0,
            last_second=started.generation,
        )
        return started

    @read
    def without_second(self, db: Session, after: int, limit: int) -> list[tuple[int, Memory]]:
        return _lacking(db, "second_vectors", after, limit)

    @read
    def count_without_second(self, db: Session) -> int:
        return _count_lacking(db, "second_vectors")

    @exclusive
    def fill_second(self, db: Session, generation: int, vectors: Sequence[tuple[int, Vectors]]) -> None:
        held = queries.second_embedder_of(queries.read_meta(db))
        if held is None or held.generation != generation:
            return
        there = _existing(db, [number for number, _ in vectors])
        for number, made in vectors:
            if number in there:
                data, _ = to_cells(made, None)
                db.execute(
                    "INSERT INTO second_vectors VALUES(%s, %s) ON CONFLICT(vid) DO UPDATE SET data = excluded.data",
                    (number, data),
                )
                _fill_parts(db, "second_parts", held.dimension, there[number], data)

    async def add_second(self, memory: Memory, number: int, generation: int, vectors: Vectors) -> None:
        await self._writer.submit(memory.tenant, lambda tx: tx.add_second(memory.id, number, generation, vectors))

    @exclusive
    def finish_second(self, db: Session, generation: int) -> bool:
        held = queries.second_embedder_of(queries.read_meta(db))
        if held is None or held.generation != generation or _count_lacking(db, "second_vectors"):
            return False
        queries.write_meta(db, second_ready=1)
        return True

    @exclusive
    def drop_second(self, db: Session) -> bool:
        there = queries.second_embedder_of(queries.read_meta(db)) is not None
        _drop_second(db)
        return there


_Place = tuple[int, int, bool]  # scope, mid, whether it is the live version that is searched


def _existing(db: Session, numbers: Sequence[int]) -> dict[int, _Place]:
    """Only versions that still exist: one erased meanwhile must not come back as a vector."""
    sql = (
        "SELECT vid, scope_id, mid, status = 'live' FROM memories WHERE vid = ANY(%s) "
        "UNION ALL SELECT vid, scope_id, mid, false FROM versions WHERE vid = ANY(%s)"
    )
    found = db.rows(sql, (list(numbers), list(numbers)))
    return {vid: (scope, mid, live) for vid, scope, mid, live in found}


def _fill_parts(db: Session, table: str, dimension: int, place: _Place, data: bytes | None) -> None:
    scope, mid, live = place
    if live:
        found_by.drop_vectors(db, table, scope, mid)
        found_by.add_vectors(db, table, dimension, scope, mid, data)


def _lacking(db: Session, vectors: str, after: int, limit: int) -> list[tuple[int, Memory]]:
    found: list[tuple[int, Memory]] = []
    for table in _TABLES:
        where = f"{_without(vectors)} AND m.vid > %s ORDER BY m.vid LIMIT %s"
        found += [(row[-1], to_memory(row)) for row in db.rows(queries.select(table, "m.vid") + where, (after, limit))]
    return sorted(found, key=lambda pair: pair[0])[:limit]


def count_without_vectors(db: Session, generation: int) -> int:
    return _count_lacking(db, f"vectors_{generation}")


def _count_lacking(db: Session, vectors: str) -> int:
    return sum(db.one(f"SELECT count(*) FROM {table} m {_without(vectors)}")[0] for table in _TABLES)


def _without(vectors: str) -> str:
    """What follows `FROM memories m` or `FROM versions m`."""
    return f"LEFT JOIN {vectors} v ON v.vid = m.vid WHERE m.status = 'live' AND v.data IS NULL"


def _drop_tables(db: Session, generation: int) -> None:
    db.execute(f"DROP TABLE IF EXISTS vectors_{generation}")
    db.execute(f"DROP TABLE IF EXISTS parts_{generation}")
    forget_indexes(db, f"parts_{generation}")


def _drop_second(db: Session) -> None:
    queries.drop_meta(db, *_SECOND)
    db.execute("TRUNCATE second_vectors")
    db.execute("DROP TABLE IF EXISTS second_parts")
    forget_indexes(db, "second_parts")
