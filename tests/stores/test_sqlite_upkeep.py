"""What a store does with its own files: private, complete, counted while they change, and never made by a reader."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.core import BACKUP, SYSTEM
from commonplace.engine.types import Draft
from commonplace.stores.sqlite import SqliteStore, upkeep
from commonplace.stores.sqlite.files import StoreFiles, backup_to
from commonplace.stores.sqlite.index import compaction, manifest
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Conflict, Unavailable

private = pytest.mark.skipif(os.name != "posix", reason="files have no such modes there")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "commonplace.db"


@contextmanager
def open_flushed(path: Path, clock: FakeClock) -> Iterator[tuple[Subject, Callable[[Any], Any]]]:
    """A store with a segment on disk, and nobody at work on it in the background."""
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        for start in (0, 1):
            run(
                subject.remember_all(
                    [Draft("agent", "semantic", f"fact {start} {i}") for i in range(compaction.FLUSH_ROWS // 2)]
                )
            )
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.store.warm())
        yield subject, run


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@private
def test_a_backup_is_private_from_its_first_byte_on(path: Path, clock: FakeClock, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    seen: list[int] = []
    before = os.umask(0)
    try:
        with open_subject(SqliteStore(path, clock), clock) as (subject, run):
            run(subject.remember("a secret"))
            run(subject.engine.upkeep.backup(WHO, target, lambda *_: seen.append(mode(tmp_path / "copy.db.partial"))))
    finally:
        os.umask(before)
    assert seen
    assert {*seen, mode(target)} == {0o600}


@private
def test_the_folder_of_an_index_is_private(path: Path, clock: FakeClock) -> None:
    before = os.umask(0)
    try:
        with open_flushed(path, clock):
            pass
    finally:
        os.umask(before)
    made = [StoreFiles(path).segments, *(p for p in StoreFiles(path).segments.iterdir() if p.is_dir())]
    assert [mode(p) for p in made] == [0o700] * 2


def test_a_backup_is_noted_before_there_is_one_and_not_when_it_fails(
    path: Path, clock: FakeClock, tmp_path: Path
) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.remember("a fact"))
        target = tmp_path / "copy.db"

        def notes() -> list[str]:
            return [record.key for record in run(subject.store.records(SYSTEM, BACKUP))]

        def look(*_: Any) -> None:
            db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            noted.append(db.execute("SELECT key FROM records WHERE kind = ?", (BACKUP,)).fetchall())
            db.close()
            if breaks:
                raise LookupError("on purpose")

        noted: list[Any] = []
        breaks = True
        with pytest.raises(LookupError):
            run(subject.engine.upkeep.backup(WHO, target, look))
        assert noted == [[(str(target),)]]
        assert notes() == []
        assert not target.exists()
        assert not (tmp_path / "copy.db.partial").exists()
        breaks = False
        run(subject.engine.upkeep.backup(WHO, target, look))
        assert notes() == [str(target)]
        with pytest.raises(Conflict):
            run(subject.engine.upkeep.backup(WHO, target))
        assert notes() == [str(target)]  # the one that is there is still known


def test_what_is_left_of_a_copy_that_broke_off_goes_with_the_copies(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        id = run(subject.remember("a secret"))
        left = subject.store.files.backups / "before-m002_something.db.partial"
        backup_to(subject.store._db, left)
        assert subject.store.files.before_migration() == [left]
        run(subject.forget(id, hard_delete=True))
        assert not left.exists()


def test_a_reader_never_creates_a_database(path: Path, clock: FakeClock) -> None:
    async def scenario() -> None:
        store = SqliteStore(path, clock)
        path.rename(path.with_name("moved.db"))
        with pytest.raises(Unavailable, match="cannot open"):
            await store.get("local", ["x"])
        assert not path.exists()
        path.with_name("moved.db").rename(path)
        assert await store.get("local", ["x"]) == []
        await store.close()

    asyncio.run(scenario())


def test_files_that_go_while_they_are_counted_do_not_count(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_flushed(path, clock) as (subject, run):
        before = run(subject.store.sizes())
        real = os.walk

        def swept(root: Path) -> Any:
            for where, names, files in real(root):
                yield where, names, [*files, "swept-away-just-now.seg"]

        monkeypatch.setattr(manifest.os, "walk", swept)
        assert run(subject.store.sizes()) == before
        assert before["index"]["files"] >= 2
        assert before["size_bytes"] > before["index"]["bytes"] > 0


def test_making_vectors_anew_looks_versions_up_by_number(path: Path, clock: FakeClock) -> None:
    """Without an index every batch would read every memory."""
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        ids = run(subject.remember_all([Draft("agent", "semantic", f"fact {i}") for i in range(20)]))
        run(subject.update(ids[0], content="changed"))
        db = subject.store._db
        before = set(db.execute("SELECT name FROM sqlite_schema"))
        generation, _ = run(subject.store.begin_generation("other-8", 8))
        db.execute("DROP INDEX memories_by_vid")  # as when it was begun by a version that made none
        assert run(subject.store.begin_generation("other-8", 8)) == (generation, True)
        plans: list[str] = []

        def planned(cursor: Any, sql: str, values: Any) -> bool:
            if not sql.startswith("EXPLAIN"):
                plans.extend(row[3] for row in db.cursor().execute(f"EXPLAIN QUERY PLAN {sql}", values))
            return True

        run(subject.store.tenants())  # so that a reader is connected, and stays the only one
        subject.store._readers._threads._threads.most = 1
        for reader in subject.store._readers._all:
            reader.exec_trace = planned
        found = run(subject.store.without_vectors(generation, 0, 10))
        for reader in subject.store._readers._all:
            reader.exec_trace = None
        assert len(found) == 10
        assert not [step for step in plans if step.startswith("SCAN")]
        assert any("memories_by_vid" in step for step in plans)
        assert any("versions_by_vid" in step for step in plans)
        run(subject.engine.upkeep.reindex(WHO, HashingEmbedder(64)))
        after = set(db.execute("SELECT name FROM sqlite_schema"))
        assert {name for (name,) in after ^ before} == {"vectors_1", f"vectors_{generation + 1}"}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux shows which files are open")
def test_compacting_keeps_its_temporary_copy_on_disk_in_the_stores_own_folder(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SQLITE_TMPDIR", raising=False)
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        db = subject.store._db
        db.execute("CREATE TABLE bulk(data BLOB)")
        with db:
            db.executemany("INSERT INTO bulk VALUES(randomblob(4000))", [()] * 8000)
        seen: set[str] = set()

        def look() -> bool:
            for name in os.listdir("/proc/self/fd"):
                try:
                    target = os.readlink(f"/proc/self/fd/{name}")
                except OSError:
                    continue
                if target.endswith("(deleted)"):
                    seen.add(os.path.dirname(target))
            return False

        db.set_progress_handler(look, 1000)
        run(subject.engine.upkeep.compact(WHO))
        db.set_progress_handler(None)
        assert str(path.parent) in seen
        assert db.pragma("temp_store") == 2
        assert "SQLITE_TMPDIR" not in os.environ


def test_a_compaction_says_when_a_reader_kept_what_was_before(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        ids = run(subject.remember_all([Draft("agent", "semantic", f"fact {i}") for i in range(50)]))
        run(subject.forget(ids[0], hard_delete=True))
        reader = apsw.Connection(str(path))
        reader.execute("BEGIN; SELECT count(*) FROM memories").fetchall()
        subject.store._db.set_busy_timeout(10)
        with pytest.raises(Unavailable, match="another program is reading"):
            run(subject.engine.upkeep.compact(WHO))
        reader.execute("COMMIT")
        reader.close()
        run(subject.engine.upkeep.compact(WHO))
        assert upkeep.truncate_log(subject.store._db)
        assert len(run(subject.list())) == 49
