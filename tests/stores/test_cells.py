"""Cells that hold what nothing of ours writes: named by the doctor, and never more than a sentence to a reader."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import apsw
import pytest

from commonplace.stores.row_format import DamagedCell, RowTypes
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.sqlite.cells import wrong_cell
from commonplace.stores.sqlite.fair_lock import FairLock
from commonplace.testing.subject import WHO, FakeClock, open_subject
from commonplace.wire.errors import Fault, UnusableStore

DAMAGE = {
    "UPDATE memories SET content = CAST(x'ff' AS TEXT)": "memories: a text is not UTF-8",
    "UPDATE memories SET created_at = 'yesterday'": "memories: created_at holds another type",
    "UPDATE memories SET metadata = '{'": "memories: metadata is no document",
    "UPDATE memories SET tags = '{}'": "memories: tags is no list",
    "UPDATE memories SET status = 'lost'": "memories: status is none of ours",
    "UPDATE memories SET type = 'odd'": "memories: type is none of ours",
    "UPDATE memories SET terms = x'00'": "memories: terms are cut off",
    "UPDATE vectors_1 SET data = x'0000'": "vectors_1: data is cut off",
    "UPDATE vectors_1 SET data = x'000010'": "vectors_1: data is cut off",
    "UPDATE vectors_1 SET tokens = 7": "vectors_1: tokens holds another type",
    "UPDATE vectors_1 SET tokens = x''": "vectors_1: tokens are cut off",
    "UPDATE vectors_1 SET tokens = x'04000100020000000000000000'": "vectors_1: tokens are cut off",
    "UPDATE tenants SET seq = 'many'": "tenants: seq holds another type",
    "DELETE FROM meta WHERE key = 'store_id'": "meta has no store_id",
    "UPDATE meta SET value = 'x' WHERE key = 'generation'": "meta names no table of vectors",
    "UPDATE meta SET value = 'x' WHERE key = 'dimension'": "meta says no dimension",
    "DROP TABLE scopes": "the table scopes is missing",
    "ALTER TABLE memories DROP COLUMN speaker": "memories has no column speaker",
}


@pytest.mark.parametrize("sql", DAMAGE)
def test_a_wrong_cell_is_a_sentence_wherever_it_is_met(tmp_path: Path, clock: FakeClock, sql: str) -> None:
    path = tmp_path / "commonplace.db"
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        id = run(subject.remember("a fact", title="t"))
        db = subject.store._db
        db.execute("DROP INDEX memories_by_speaker" if "speaker" in sql else "SELECT 1")
        db.execute(sql)
        assert wrong_cell(db) == DAMAGE[sql]
        findings = {f.check: f for f in run(subject.engine.upkeep.doctor(WHO))}
        assert (findings["cells"].ok, findings["cells"].detail) == (False, DAMAGE[sql])
        for ask in (subject.get(id), subject.recall("fact"), subject.list(), subject.update(id, content="another")):
            with contextlib.suppress(Fault):
                run(ask)


def test_a_store_that_cannot_say_what_it_is_is_not_opened(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "commonplace.db"
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.remember("a fact"))
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM meta WHERE key = 'store_id'")
    db.close()
    with pytest.raises(UnusableStore, match="meta has no store_id"):
        SqliteStore(path, clock)


@pytest.mark.parametrize("row", [("x", None, 1, 0.5), ("x", b"", 2, 1.0)])
def test_rows_of_the_right_types_pass(row: tuple[Any, ...]) -> None:
    types = RowTypes("thing", {"a": "str", "b": "bytes | None", "c": "int", "d": "float"})
    assert types.checked(row) is row
    assert types.checked(row) is row
    with pytest.raises(DamagedCell, match="a of a thing is int, not str"):
        types.check((1, *row[1:]))
    with pytest.raises(DamagedCell, match="c of a thing is NoneType, not int"):
        types.check((*row[:2], None, row[3]))


@pytest.mark.parametrize("filled", [b"\xff" * 8, b"\xff" * 4096, b"not a number", b"\x01", b"", bytes(8)])
def test_a_lock_file_that_something_else_has_filled_still_serves(tmp_path: Path, filled: bytes) -> None:
    path = tmp_path / "lock"
    path.write_bytes(filled)
    first, second = FairLock(path), FairLock(path)
    for lock in (first, second, first):
        lock.acquire(1)
        lock.release()
    for lock in (first, second):
        lock.close()


def test_a_database_that_was_emptied_is_not_begun_anew(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "commonplace.db"
    path.touch()
    SqliteStore(path, clock)._writer.close()
    (tmp_path / "commonplace.segments" / "1").mkdir(parents=True)
    (tmp_path / "commonplace.segments" / "1" / "manifest.json").touch()
    path.write_bytes(b"")
    with pytest.raises(UnusableStore, match=r"it is empty, but commonplace\.segments has an index"):
        SqliteStore(path, clock)
