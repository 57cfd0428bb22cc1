"""A store with a bit of everything in it, and every kind of damage that can come to its files, chosen by a seed."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tampering import drop_guards
from token_embedder import HashingTokens

from commonplace.sdk import Memory
from commonplace.stores.sqlite.index import compaction

DATABASE, LOCK, SEGMENTS = "commonplace.db", "commonplace.lock", "commonplace.segments"
Dice = random.Random

#: Tables whose rows follow from others, or whose rows no entry of the ledger is about.
DERIVED = {"links", "recalls", "meta", "record_subjects", "records", "sqlite_sequence"}
#: Cells that may hold anything without anybody having been lied to.
UNTOLD = {
    ("tenants", "at"), ("tenants", "id"), ("scopes", "id"), ("triples", "tid"), ("erasures", "mid"),
    ("erasures", "seq"),
    *((table, column) for table in ("memories", "versions") for column in ("vid", "mid", "terms")),
    ("versions", "demotion"), ("versions", "ended_seq"),
}  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, 0, -1, 1, 2**63 - 1, -(2**63), 0.5, 1e308, "", "x", "live", "[]", "{", "[1]", '{"a":', "é\u0000", "9" * 400,
    b"", b"\xff\xfe", b"\x00" * 16, b"x" * 1000,
)  # fmt: skip


async def make_store(folder: Path) -> None:
    """Memories of every status with earlier versions, statements, a review, and segments on disk."""
    memory = Memory("agent", data=folder, embedder=HashingTokens(8))
    ids = []
    for n in range(6):
        metadata = {"tags": ["x"], "session_id": "s", "speaker": "Alice", "entity_name": f"thing {n}"}
        ids.append(
            (await memory.remember(f"fact number {n}", user_id="alice", metadata=metadata, confidence=n / 10)).id
        )
    await memory.update(ids[0], content="another fact")
    await memory.forget(ids=[ids[1]])
    await memory.merge(ids[2], [ids[3]], strategy="merge_content")
    await memory.expire({"confidence_below": 0.45}, action="archive")
    await memory.forget(ids=[ids[5]], hard_delete=True)
    await memory.graph_assert("Alice", "lives in", "Ulm")
    await memory.graph_assert("Alice", "lives in", "Graz")
    await memory.remember("waits", approval_required=True)
    await memory.remember_batch([{"type": "semantic", "content": f"row {n}"} for n in range(8)])
    await memory.recall("fact")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "FLUSH_ROWS", 8)  # a segment of a few rows breaks like one of thousands
        await (await memory.engine()).warm_indexes()
        await memory.close()


# the database


def _page_size(data: bytearray) -> int:
    return int.from_bytes(data[16:18], "big") or 65536


def flip_bits(path: Path, dice: Dice) -> str:
    data = bytearray(path.read_bytes())
    count = dice.choice((1, 1, 2, 8, 64))
    for _ in range(count):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)
    return f"{count} bits flipped"


def truncate(path: Path, dice: Dice) -> str:
    data = path.read_bytes()
    size = dice.choice((0, 1, 99, 100, 4096, dice.randrange(len(data)), dice.randrange(len(data))))
    path.write_bytes(data[:size])
    return f"cut to {size} bytes"


def swap_pages(path: Path, dice: Dice) -> str:
    data = bytearray(path.read_bytes())
    size = _page_size(data)
    pages = len(data) // size
    one, two = dice.randrange(1, pages), dice.randrange(1, pages)
    first, second = data[one * size : (one + 1) * size], data[two * size : (two + 1) * size]
    data[one * size : (one + 1) * size], data[two * size : (two + 1) * size] = second, first
    path.write_bytes(data)
    return f"pages {one} and {two} swapped"


def blank_page(path: Path, dice: Dice) -> str:
    data = bytearray(path.read_bytes())
    size = _page_size(data)
    page = dice.randrange(len(data) // size)
    data[page * size : (page + 1) * size] = dice.choice((bytes(size), dice.randbytes(size)))
    path.write_bytes(data)
    return f"page {page} overwritten"


def grow(path: Path, dice: Dice) -> str:
    path.write_bytes(path.read_bytes() + dice.randbytes(dice.choice((1, 4096, 10_000))))
    return "bytes appended"


def _tables(db: apsw.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]


def change_cell(path: Path, dice: Dice, told: bool = False) -> str:
    """`told`: only cells that the ledger, or another row, says something about."""
    db = apsw.Connection(str(path))
    drop_guards(db)
    tables = [t for t in _tables(db) if not told or (t not in DERIVED and not t.startswith("vectors"))]
    while True:
        table = dice.choice(tables)
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        column, value = dice.choice(columns), dice.choice(VALUES)
        rows = db.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
        if not rows or (told and (table, column) in UNTOLD):
            continue
        row = dice.choice(rows)
        where = " AND ".join(f"{name} IS ?" for name in columns)
        try:
            # As text that is not UTF-8, when it is bytes and the column holds text.
            text = "CAST(? AS TEXT)" if isinstance(value, bytes) and dice.random() < 0.5 else "?"
            db.execute(f"UPDATE {table} SET {column} = {text} WHERE {where}", (value, *row))
        except apsw.Error:
            continue
        if db.execute(f"SELECT count(*) FROM {table} WHERE {where}", row).fetchall() == [(0,)]:
            db.close()
            return f"{table}.{column} = {value!r:.40}"


def remove_rows(path: Path, dice: Dice) -> str:
    db = apsw.Connection(str(path))
    drop_guards(db)
    while True:
        table = dice.choice(_tables(db))
        if table.startswith("sqlite_"):
            continue
        which = dice.choice(("", "LIMIT 1"))
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        first = db.execute(f"SELECT {columns[0]} FROM {table} ORDER BY random() LIMIT 1").fetchall()
        if first:
            what = f"DELETE FROM {table}" + (f" WHERE {columns[0]} IS ?" if which else "")
            db.execute(what, first[0] if which else ())
            db.close()
            return what


def drop_thing(path: Path, dice: Dice) -> str:
    db = apsw.Connection(str(path))
    found = db.execute("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name").fetchall()
    kind, name = dice.choice(found)
    db.execute(f"DROP {kind} {name}")
    db.close()
    return f"{kind} {name} dropped"


# files beside it


def damage_segment(folder: Path, dice: Dice) -> str:
    files = sorted(path for path in (folder / SEGMENTS).rglob("*") if path.is_file() and path.suffix != ".lock")
    path = dice.choice(files)
    kind = dice.choice(("flip", "cut", "remove", "folder", "grow", "other"))
    match kind:
        case "flip":
            flip_bits(path, dice)
        case "cut":
            path.write_bytes(path.read_bytes()[: dice.randrange(path.stat().st_size)])
        case "remove":
            path.unlink()
        case "folder":
            path.unlink()
            path.mkdir()
        case "grow":
            grow(path, dice)
        case _:
            path.write_bytes(dice.choice(files).read_bytes())
    return f"{path.name}: {kind}"


def damage_beside(folder: Path, dice: Dice) -> str:
    kind = dice.choice(("lock filled", "lock short", "lock folder", "segments gone", "segments a file", "wal rubbish",
                        "database gone", "database a folder", "shm rubbish", "journal rubbish", "text"))  # fmt: skip
    lock, segments, database = folder / LOCK, folder / SEGMENTS, folder / DATABASE
    match kind:
        case "lock filled":
            lock.write_bytes(b"\xff" * dice.choice((8, 16, 4096)))
        case "lock short":
            lock.write_bytes(b"\x01")
        case "lock folder":
            lock.unlink(missing_ok=True)
            lock.mkdir()
        case "segments gone":
            shutil.rmtree(segments)
        case "segments a file":
            shutil.rmtree(segments)
            segments.write_text("not a folder")
        case "wal rubbish":
            Path(f"{database}-wal").write_bytes(dice.randbytes(9000))
        case "shm rubbish":
            Path(f"{database}-shm").write_bytes(dice.randbytes(32768))
        case "journal rubbish":
            Path(f"{database}-journal").write_bytes(dice.randbytes(2000))
        case "database gone":
            database.unlink()
        case "database a folder":
            database.unlink()
            database.mkdir()
        case _:
            database.write_text("these are notes of mine\n" * 40)
    return kind


_IN_DATABASE: tuple[Callable[[Path, Dice], str], ...] = (
    flip_bits, truncate, swap_pages, blank_page, grow, change_cell, change_cell, change_cell, remove_rows, drop_thing,
)  # fmt: skip


def damage(folder: Path, seed: int) -> str:
    """Damage a copy of a store; says what was done."""
    dice = random.Random(seed)
    way = dice.choice((*_IN_DATABASE, damage_segment, damage_segment, damage_beside))
    target = folder / DATABASE if way in _IN_DATABASE else folder
    return f"{way.__name__}: {way(target, dice)}"


def main() -> None:
    import sys

    asyncio.run(make_store(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
