"""`sqlite-vec://`: the vec0 table is real, answers, follows every writer, and is made anew when it is lost."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
import sqlite_vec

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.upkeep.restore import restore_backup
from commonplace.plugins import open_store
from commonplace.stores.base import Reach, Search
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.sqlite.search import RowSource
from commonplace.stores.sqlite_vec import SqliteVecStore
from commonplace.testing.subject import DAY_MS, WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import OperatorActionRequired

REACH = Reach("local", ("agent",))
VEC0 = "commonplace.vec0.db"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Subject, Callable[[Any], Any]]]:
    clock = FakeClock()
    with open_subject(SqliteVecStore(tmp_path / "commonplace.db", clock), clock) as (subject, run):
        yield subject, run


def vec0(tmp_path: Path) -> apsw.Connection:
    """The file as any other program opens it."""
    db = apsw.Connection(str(tmp_path / VEC0))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    return db


def by_meaning(s: Subject, text: str, limit: int = 3) -> Any:
    return s.store.search(Search(REACH, None, HashingEmbedder().embed([text])[0], limit))


def test_other_programs_read_the_table(opened: Any, tmp_path: Path) -> None:
    s, run = opened
    id = run(s.remember("Alice grows tomatoes"))
    run(s.remember("Bob repairs clocks"))
    run(s.recall("tomatoes"))
    (version,) = run(_row(s, id))
    db = vec0(tmp_path)
    question = HashingEmbedder().embed(["Alice grows tomatoes"])[0].tobytes()
    found = db.execute(
        "SELECT p.mid, v.distance FROM (SELECT rowid, distance FROM memories_vec WHERE embedding MATCH ? AND k = 1 "
        "AND scope = 1) v JOIN parts p ON p.part = v.rowid", (question,)
    ).fetchall()  # fmt: skip
    db.close()
    assert found == [(version, pytest.approx(0.0, abs=1e-4))]


async def _row(s: Subject, id: str) -> tuple[int]:
    store: Any = s.store
    return await store._readers.run(lambda db: db.execute("SELECT mid FROM memories WHERE id = ?", (id,)).fetchone())


def test_it_is_the_table_that_finds_by_meaning(opened: Any, tmp_path: Path) -> None:
    s, run = opened
    id = run(s.remember("Alice grows tomatoes"))
    assert [c.memory.id for c in run(by_meaning(s, "Alice grows tomatoes"))] == [id]
    db = vec0(tmp_path)
    db.execute("DELETE FROM memories_vec")
    db.close()
    assert run(by_meaning(s, "Alice grows tomatoes")) == []
    assert [m.id for m in run(s.recall("tomatoes"))] == [id]  # words are not its business


@pytest.mark.parametrize("harm", ["lost", "damaged", "of another store"])
def test_a_table_that_is_not_right_is_made_anew(tmp_path: Path, harm: str) -> None:
    clock = FakeClock()
    with open_subject(SqliteVecStore(tmp_path / "commonplace.db", clock), clock) as (s, run):
        id = run(s.remember("Alice grows tomatoes"))
        run(s.recall("tomatoes"))
    if harm == "lost":
        (tmp_path / VEC0).unlink()
    elif harm == "damaged":
        (tmp_path / VEC0).write_bytes(b"SQLite format 3\x00" + b"\xff" * 8000)
    else:
        db = vec0(tmp_path)
        db.execute("UPDATE source SET store_id = 'another'; DELETE FROM memories_vec")
        db.close()
    with open_subject(SqliteVecStore(tmp_path / "commonplace.db", clock), clock) as (s, run):
        assert [c.memory.id for c in run(by_meaning(s, "Alice grows tomatoes"))] == [id]


def test_it_follows_what_another_program_wrote(opened: Any, tmp_path: Path) -> None:
    s, run = opened
    run(s.remember("Bob repairs clocks"))
    run(s.recall("clocks"))
    with open_subject(SqliteStore(tmp_path / "commonplace.db", s.clock), s.clock) as (plain, wait):
        id = wait(plain.remember("Alice grows tomatoes"))
    assert run(by_meaning(s, "Alice grows tomatoes", 1))[0].memory.id == id


def test_what_has_expired_takes_no_place_among_the_nearest(opened: Any) -> None:
    s, run = opened
    for _ in range(5):
        run(s.remember("tea at noon", expires_at=s.clock() + 1000))
    lasting = run(s.remember("tea at one"))
    s.clock.advance(DAY_MS)
    reach = Reach("local", ("agent",), now=s.clock())
    search = Search(reach, None, HashingEmbedder().embed(["tea at noon"])[0], 2)
    assert [c.memory.id for c in run(s.store.search(search))] == [lasting]


def test_a_larger_neighbour_takes_no_place_among_the_nearest(opened: Any) -> None:
    s, run = opened
    for _ in range(20):
        run(s.remember("tea at noon", agent="neighbour"))
    run(s.recall("tea at noon", agent="neighbour"))  # which the table follows from then on
    mine = run(s.remember("tea at one"))
    assert [c.memory.id for c in run(by_meaning(s, "tea at noon"))] == [mine]


def test_after_a_clean_stop_no_erased_vector_is_left(tmp_path: Path) -> None:
    clock = FakeClock()
    vector = HashingEmbedder().embed(["a secret that must go"])[0]
    with open_subject(SqliteVecStore(tmp_path / "commonplace.db", clock), clock) as (s, run):
        id = run(s.remember("a secret that must go"))
        run(s.remember("another that stays"))
        run(s.recall("secret"))
        db = vec0(tmp_path)
        (held,) = [bytes(e) for (e,) in db.execute("SELECT embedding FROM memories_vec WHERE rowid = 1")]
        db.close()
        assert abs(float((_floats(held) * vector).sum()) - 1) < 1e-3
        run(s.forget(id, hard_delete=True))
    assert held[:64] not in b"".join(path.read_bytes() for path in tmp_path.glob(f"{VEC0}*"))


def _floats(data: bytes) -> Any:
    import numpy as np

    return np.frombuffer(data, "<f4")


def test_a_missing_package_is_named_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with pytest.raises(OperatorActionRequired, match=r"pip install 'commonplace-memory\[sqlite-vec\]'"):
        open_store(f"sqlite-vec://{tmp_path}/mine.db", FakeClock())
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_memory_leaves_nothing_behind() -> None:
    store = open_store("sqlite-vec://:memory:", FakeClock())
    assert isinstance(store, SqliteVecStore)
    folder = store.files.database.parent
    assert (folder / "memory.vec0.db").exists()
    asyncio.run(store.close())
    assert not folder.exists()


def _first_and_second(tmp_path: Path) -> tuple[Path, FakeClock]:
    """A store with memories, a backup of when it had few, and a table that has followed them all."""
    clock, backup = FakeClock(), tmp_path / "backup.db"
    with open_subject(SqliteVecStore(tmp_path / "commonplace.db", clock), clock) as (s, run):
        for n in range(3):
            run(s.remember(f"first batch item {n}"))
        run(s.engine.upkeep.backup(WHO, backup))
        for n in range(20):
            run(s.remember(f"second batch entry {n}"))
        run(s.recall("second batch entry 3"))
    return backup, clock


def _require_found_by_meaning(tmp_path: Path, clock: FakeClock) -> None:
    texts = [f"w{n}a x{n}b y{n}c z{n}d" for n in range(12)]
    with open_subject(SqliteVecStore(tmp_path / "commonplace.db", clock), clock) as (s, run):
        run(by_meaning(s, "anything"))
        for text in texts:
            run(s.remember(text))
        best = [max(run(by_meaning(s, text)), key=lambda c: c.dense or 0.0).memory.content for text in texts]
        assert best == texts
        db = vec0(tmp_path)
        assert db.execute("SELECT count(*) FROM parts").fetchall() == [(3 + len(texts),)]
        db.close()


def test_what_is_written_after_a_restore_is_found_by_meaning(tmp_path: Path) -> None:
    backup, clock = _first_and_second(tmp_path)
    asyncio.run(restore_backup(backup, tmp_path / "commonplace.db", replace_existing=True))
    assert list(tmp_path.glob(f"{VEC0}*")) == []
    _require_found_by_meaning(tmp_path, clock)


def test_a_table_that_is_ahead_of_its_store_is_made_anew(tmp_path: Path) -> None:
    """As it is after someone copied an older file into its place by hand."""
    backup, clock = _first_and_second(tmp_path)
    shutil.copy(backup, tmp_path / "commonplace.db")
    shutil.rmtree(tmp_path / "commonplace.segments", ignore_errors=True)
    _require_found_by_meaning(tmp_path, clock)


def test_a_search_that_began_before_another_followed_does_not_begin_the_table_anew(opened: Any, tmp_path: Path) -> None:
    s, run = opened
    run(s.remember("Alice grows tomatoes"))
    run(s.recall("tomatoes"))
    old = apsw.Connection(str(tmp_path / "commonplace.db"))
    old.execute("BEGIN; SELECT count(*) FROM memories").fetchall()
    source = RowSource(old)
    run(s.remember("Bob repairs clocks"))
    run(s.recall("clocks"))
    s.store._vec0.nearest(source, 1, HashingEmbedder().embed(["clocks"])[0], 3, None)
    old.close()
    db = vec0(tmp_path)
    assert db.execute("SELECT max(part), count(*) FROM parts").fetchall() == [(2, 2)]
    db.close()
