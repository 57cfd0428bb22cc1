"""A backup is worth what it restores: the drill, and everything that must not happen on the way."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from tampering import drop_guards

from commonplace.engine.core import SYSTEM
from commonplace.engine.transfer.migration_marks import MIGRATION, SOURCE
from commonplace.engine.types import Draft
from commonplace.engine.upkeep.restore import restore_backup
from commonplace.stores.base import Record
from commonplace.stores.sqlite import SqliteStore, files
from commonplace.testing.subject import WHO, FakeClock, open_subject
from commonplace.wire import durable
from commonplace.wire.errors import Conflict, Fault, NotFound, UnusableStore, ValidationError
from commonplace.wire.record import Principal


def restore(*args: Any, **options: Any) -> dict[str, Any]:
    return asyncio.run(restore_backup(*args, **options))


class Drill:
    """A store with a backup of it, and what was in it then."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.clock = clock
        self.database, self.backup = folder / "data" / "commonplace.db", folder / "backup.db"
        with self.opened() as (subject, run):
            ids = [run(subject.remember(f"fact {n}", title=f"t{n}")) for n in range(20)]
            run(subject.update(ids[0], content="a changed fact"))
            run(subject.forget(ids[1]))
            run(subject.forget(ids[2], hard_delete=True))
            run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="likes", object="tea"))
            run(subject.engine.remember(Principal("bob", "acme"), Draft("agent", "semantic", "theirs")))
            run(subject.engine.upkeep.backup(WHO, self.backup))
            self.kept = self.read(subject, run)
            run(subject.remember("written after the backup"))
            run(subject.forget(ids[5]))

    def opened(self) -> Any:
        return open_subject(SqliteStore(self.database, self.clock), self.clock)

    @staticmethod
    def read(subject: Any, run: Any) -> Any:
        memories = sorted(run(subject.list()), key=lambda m: m.id)
        histories = [run(subject.engine.history(WHO, "agent", m.id)) for m in memories]
        statements = run(subject.engine.graph.query(WHO, "agent", "Alice"))
        others = run(subject.engine.list(Principal("bob", "acme"), ("agent",))).memories
        return memories, histories, statements, others, [m.id for m in run(subject.recall("fact 7"))]

    def check(self) -> None:
        """Everything of the backup is there, and verifies."""
        with self.opened() as (subject, run):
            assert self.read(subject, run) == self.kept
            assert run(subject.engine.ledger.verify(WHO)).problem is None
            assert [f for f in run(subject.engine.upkeep.doctor(WHO, repair=False)) if not f.ok] == []
            run(subject.remember("life goes on"))


@pytest.fixture
def drill(tmp_path: Path, clock: FakeClock) -> Drill:
    return Drill(tmp_path, clock)


def test_a_store_that_is_gone_comes_back(drill: Drill) -> None:
    for path in drill.database.parent.rglob("*"):
        if path.is_file():
            path.unlink()
    done = restore(drill.backup, drill.database)
    assert (done["memories"], done["replaces"]) == (19, False)
    drill.check()


@pytest.mark.parametrize("damage", [b"", b"rubbish", b"SQLite format 3\x00" + bytes(200)])
def test_a_store_that_is_damaged_is_replaced_and_kept(drill: Drill, damage: bytes) -> None:
    drill.database.write_bytes(damage)
    done = restore(drill.backup, drill.database, replace_existing=True)
    assert Path(done["kept"]).read_bytes() == damage
    drill.check()


def test_a_store_that_is_sound_is_replaced_and_kept(drill: Drill) -> None:
    done = restore(drill.backup, drill.database, replace_existing=True)
    drill.check()
    with open_subject(SqliteStore(Path(done["kept"]), drill.clock), drill.clock) as (subject, run):
        assert next(m.content for m in run(subject.recall("written after"))) == "written after the backup"
    again = restore(drill.backup, drill.database, replace_existing=True)
    assert again["kept"] != done["kept"], "nothing that was kept is overwritten"


def test_without_consent_nothing_is_replaced(drill: Drill) -> None:
    before = drill.database.read_bytes()
    with pytest.raises(Conflict, match="--force"):
        restore(drill.backup, drill.database)
    assert drill.database.read_bytes() == before
    assert not list(drill.database.parent.glob("*.restoring"))


def test_a_dry_run_changes_nothing(drill: Drill) -> None:
    def state() -> dict[str, bytes]:
        folder = drill.database.parent.parent
        return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    before = state()
    done = restore(drill.backup, drill.database, dry_run=True)
    assert (done["dry_run"], done["memories"], done["replaces"]) == (True, 19, True)
    assert state() == before


@pytest.mark.parametrize(
    "sql", ["UPDATE memories SET content = 'changed' WHERE title = 't7'", "DELETE FROM audit", "DROP TABLE scopes"]
)
def test_a_damaged_backup_is_refused(drill: Drill, sql: str) -> None:
    db = apsw.Connection(str(drill.backup))
    drop_guards(db)
    db.execute(sql)
    db.close()
    before = drill.database.read_bytes()
    with pytest.raises(Fault, match="damaged"):
        restore(drill.backup, drill.database, replace_existing=True)
    assert drill.database.read_bytes() == before


def test_a_cut_backup_is_refused(drill: Drill) -> None:
    drill.backup.write_bytes(drill.backup.read_bytes()[:9000])
    with pytest.raises(UnusableStore):
        restore(drill.backup, drill.database, replace_existing=True)


@pytest.mark.parametrize("written", [b"hello", b""])
def test_a_file_that_is_no_store_is_called_by_its_own_name(drill: Drill, written: bytes) -> None:
    drill.backup.write_bytes(written)
    with pytest.raises(UnusableStore) as refused:
        restore(drill.backup, drill.database, replace_existing=True)
    assert str(refused.value).startswith(f"{drill.backup} cannot be restored: it is damaged")
    assert str(refused.value).endswith("Nothing was changed; try another backup")
    assert "restoring" not in str(refused.value), "that copy is gone by now"


@pytest.mark.parametrize("sql", ["CREATE TABLE theirs(x)", "CREATE TABLE t(x); DROP TABLE t"])
def test_a_database_that_is_no_store_is_refused(drill: Drill, sql: str) -> None:
    drill.backup.unlink()
    db = apsw.Connection(str(drill.backup))
    db.execute(sql)
    db.close()
    before = drill.database.read_bytes()
    with pytest.raises(UnusableStore, match="cannot be restored: it is an SQLite database of another program"):
        restore(drill.backup, drill.database, replace_existing=True)
    assert drill.database.read_bytes() == before


def test_a_backup_of_an_empty_store_is_one(tmp_path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(tmp_path / "empty.db", clock), clock) as (subject, run):
        run(subject.engine.upkeep.backup(WHO, tmp_path / "backup.db"))
    assert restore(tmp_path / "backup.db", tmp_path / "data" / "commonplace.db")["memories"] == 0


def test_what_is_no_backup_is_refused(drill: Drill, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="`commonplace backup FILE` makes one"):
        restore(tmp_path / "nothing.db", drill.database)
    with pytest.raises(ValidationError, match="is the store itself"):
        restore(drill.database, drill.database, replace_existing=True)


def test_a_store_in_use_is_not_replaced(drill: Drill) -> None:
    with drill.opened() as (subject, run):
        run(subject.list())
        with pytest.raises(Conflict, match="is in use"):
            restore_in_thread(drill)
        run(subject.remember("nothing has happened"))


def restore_in_thread(drill: Drill) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(restore, drill.backup, drill.database, replace_existing=True).result()


class Killed(BaseException):
    pass


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> list[str]:
    """The process ends before this change of its files; which ones there were until then."""
    made: list[str] = []

    def watched(name: str, real: Any) -> Any:
        def change(*args: Any, **options: Any) -> Any:
            if len(made) == step:
                raise Killed
            made.append(name)
            return real(*args, **options)

        return change

    for module, name in ((os, "replace"), (os, "link"), (os, "unlink"), (shutil, "rmtree")):
        monkeypatch.setattr(module, name, watched(name, getattr(module, name)))
    return made


@pytest.mark.parametrize("linked", [True, False], ids=["links", "no links"])
def test_killed_at_any_step_there_is_a_store(drill: Drill, monkeypatch: pytest.MonkeyPatch, linked: bool) -> None:
    """Otherwise whoever comes next would begin an empty one, whose first erasure takes away what was kept aside."""

    def refuse(*args: Any, **options: Any) -> None:
        raise OSError(errno.EPERM, "this file system has none")

    seen: set[int] = set()
    for step in itertools.count():
        with monkeypatch.context() as patch:
            if not linked:
                patch.setattr(os, "link", refuse)
            made = kill_at(patch, step)
            with suppress(Killed):
                restore(drill.backup, drill.database, replace_existing=True)
                break
        assert drill.database.exists(), made
        with drill.opened() as (subject, run):
            seen.add(len(run(subject.list())))
    assert step > 4
    assert seen == {18}, "as many as there were, and as the backup has"
    drill.check()


def test_what_was_kept_goes_with_the_next_erasure(drill: Drill) -> None:
    done = restore(drill.backup, drill.database, replace_existing=True)
    with drill.opened() as (subject, run):
        id = run(subject.remember("a secret"))
        run(subject.forget(id, hard_delete=True))
    assert not Path(done["kept"]).exists()


def test_a_backup_and_a_restore_are_on_the_disk_before_they_are_told(
    drill: Drill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    synced: list[str] = []
    real = durable.sync_file

    def note(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}") if os.path.exists("/proc/self/fd") else "?")
        real(handle)

    monkeypatch.setattr(files, "sync_file", note)
    monkeypatch.setattr(durable, "sync_file", note)
    monkeypatch.setattr("commonplace.engine.upkeep.restore.sync_file", note)
    (tmp_path / "copies").mkdir()
    with drill.opened() as (subject, run):
        run(subject.engine.upkeep.backup(WHO, tmp_path / "copies" / "two.db"))
    assert [Path(name).name for name in synced][-2:] == ["two.db.partial", "copies"]
    synced.clear()
    restore(tmp_path / "copies" / "two.db", drill.database, replace_existing=True)
    names = [Path(name).name for name in synced]
    assert names[0] == "commonplace.db"
    assert names[-2:] == ["commonplace.backups", "data"]


def test_half_of_a_store_does_not_take_the_place_of_one(tmp_path: Path, clock: FakeClock) -> None:
    """A copy of the target of a migration that was stopped: it would not open afterwards."""
    drill = Drill(tmp_path, clock)
    before = drill.database.read_bytes()
    with open_subject(SqliteStore(drill.backup, clock), clock) as (subject, run):
        run(subject.store.transact(SYSTEM, lambda tx: tx.put_record(Record(MIGRATION, SOURCE, {"begins": {}}))))
    with pytest.raises(UnusableStore, match="a migration into it has not come to its end"):
        restore(drill.backup, drill.database, replace_existing=True)
    assert drill.database.read_bytes() == before
