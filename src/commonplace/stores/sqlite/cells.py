"""Whether every cell holds what its column is for.

SQLite lets any program put any value anywhere. Nothing of ours does, so this is only looked at by the doctor, and when
reading has failed in a way that no sound row explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw

from commonplace.stores.sqlite import vector_rows
from commonplace.stores.sqlite.schema import VERSION_COLUMNS
from commonplace.wire.record import MEMORY_TYPES

_TABLES = (
    "meta", "tenants", "scopes", "memories", "versions", "erasures", "aliases", "recalls", "audit", "audit_parts",
    "records", "record_subjects", "triples", "links", "second_vectors",
)  # fmt: skip
_STORAGE = {"INTEGER": "'integer'", "REAL": "'real'", "TEXT": "'text'", "BLOB": "'blob'"}
_LISTS, _DOCUMENTS = ("tags", "supersedes", "aliases"), ("metadata", "provenance", "privacy")
_STATUSES = ("live", "pending", "archived", "deleted")


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _json(column: str, kind: str) -> str:
    return f"{column} IS NOT NULL AND (NOT json_valid({column}) OR json_type({column}) <> '{kind}')"


#: Of each table what is wrong about a cell of the right type, and what is said of it.
_VERSION_RULES = (
    *((_json(name, "array"), f"{name} is no list") for name in _LISTS),
    *((_json(name, "object"), f"{name} is no document") for name in _DOCUMENTS),
    (f"status NOT IN ({_quoted(_STATUSES)})", "status is none of ours"),
    (f"type NOT IN ({_quoted(MEMORY_TYPES)})", "type is none of ours"),
    ("length(terms) % 9 <> 0", "terms are cut off"),
)
_RULES: dict[str, Sequence[tuple[str, str]]] = {
    "memories": _VERSION_RULES,
    "versions": _VERSION_RULES,
    "records": ((_json("value", "object"), "value is no document"), (_json("about", "array"), "about is no list")),
}


def wrong_cell(db: apsw.Connection) -> str | None:
    """The first cell that holds what it cannot, in words that follow the file's name; None when there is none."""
    try:
        return next(_wrong_cells(db), None)
    except apsw.Error as error:
        return str(error)


def _wrong_cells(db: apsw.Connection) -> Iterator[str]:
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    yield from (f"the table {name} is missing" for name in _TABLES if name not in tables)
    meta = dict(db.execute("SELECT key, value FROM meta"))
    yield from _wrong_meta(meta, tables)
    for table in (*_TABLES, f"vectors_{meta['generation']}"):
        columns = [(name, kind, notnull) for _, name, kind, notnull, *_ in db.execute(f"PRAGMA table_info({table})")]
        if table in ("memories", "versions") and (lacking := set(VERSION_COLUMNS) - {name for name, *_ in columns}):
            yield f"{table} has no column {min(lacking)}"
        for name, kind, notnull in columns:
            if kind in _STORAGE:
                allowed = _STORAGE[kind] if notnull else f"{_STORAGE[kind]}, 'null'"
                yield from _found(db, table, f"typeof({name}) NOT IN ({allowed})", f"{name} holds another type")
        for condition, sentence in _RULES.get(table, ()):
            yield from _found(db, table, condition, sentence)
        texts = [name for name, kind, _ in columns if kind == "TEXT"]
        yield from _undecodable(db, table, texts)
    yield from vector_rows.wrong_cells(db, f"vectors_{meta['generation']}", meta.get("dimension"))
    yield from vector_rows.wrong_cells(db, "second_vectors", meta.get("second_dimension"))


def _wrong_meta(meta: dict[str, Any], tables: set[str]) -> Iterator[str]:
    if not isinstance(meta.get("store_id"), str):
        yield "meta has no store_id"
    if f"vectors_{meta.get('generation')}" not in tables:
        yield "meta names no table of vectors"
    embedder, dimension = meta.get("embedder"), meta.get("dimension")
    if (embedder is None) is not (dimension is None) or not isinstance(embedder, str | None):
        yield "meta names no embedder"
    if dimension is not None and (not isinstance(dimension, int) or not 0 < dimension < 1 << 20):
        yield "meta says no dimension"
    if "next_generation" in meta and f"vectors_{meta['next_generation']}" not in tables:
        yield "meta names no table for the next vectors"


def _found(db: apsw.Connection, table: str, condition: str, sentence: str) -> Iterator[str]:
    if db.execute(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1").fetchall():
        yield f"{table}: {sentence}"


def _undecodable(db: apsw.Connection, table: str, columns: Sequence[str]) -> Iterator[str]:
    if columns:
        try:
            for _ in db.execute(f"SELECT {', '.join(columns)} FROM {table}"):
                pass
        except UnicodeDecodeError:
            yield f"{table}: a text is not UTF-8"
