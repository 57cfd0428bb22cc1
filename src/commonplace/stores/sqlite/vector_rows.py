"""The tables of vectors as SQLite has them: their columns, copied and checked; `vector_cells` says what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw

from commonplace.stores import token_vectors
from commonplace.stores.vector_cells import FIXED_POINT, fixed_point_bytes

COLUMNS = "vid INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB, tokens BLOB"
_COPIED = 2000  # rows per transaction


def copy_rows(db: apsw.Connection, old: int, new: int) -> None:
    """From one generation to another of the same embedder: what it has made is kept."""
    some = f"SELECT vid, data, tokens FROM vectors_{old} WHERE vid > ? AND data IS NOT NULL ORDER BY vid LIMIT ?"
    last = 0
    while rows := [*_in_fixed_point(db.execute(some, (last, _COPIED)))]:
        with db:
            db.executemany(f"INSERT INTO vectors_{new} VALUES(?, ?, ?)", rows)
        last = rows[-1][0]


def _in_fixed_point(found: Iterable[Sequence[Any]]) -> Iterator[tuple[int, bytes, bytes | None]]:
    for vid, data, tokens in found:
        yield vid, fixed_point_bytes(data) + FIXED_POINT, tokens


def wrong_cells(db: apsw.Connection, table: str, dimension: int | None) -> Iterator[str]:
    """What is said of a cell that nothing of ours writes."""
    if dimension is not None:
        wrong = f"length(data) % {4 * dimension} <> 0 AND length(data) % {2 * dimension} <> 1"
        if db.execute(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1").fetchall():
            yield f"{table}: data is cut off"
    for (tokens,) in db.execute(f"SELECT tokens FROM {table} WHERE tokens IS NOT NULL"):
        if token_vectors.part_sizes(tokens) is None:
            yield f"{table}: tokens are cut off"
            return
