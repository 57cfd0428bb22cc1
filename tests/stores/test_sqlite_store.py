"""What only the SQLite store promises: its files, its migrations, its groups, and no erased byte left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from tampering import drop_guards

from commonplace.engine import BatchItem
from commonplace.engine.types import Draft
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.stores.sqlite import SqliteStore, schema, upkeep
from commonplace.stores.sqlite.files import StoreFiles
from commonplace.testing.subject import WHO, FakeClock, open_subject
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Fault, OperatorActionRequired, Unavailable, UnusableStore
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "commonplace.db"


def fill_store(path: Path, count: int = 40) -> list[str]:
    clock = FakeClock()
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        drafts = [Draft("agent", "semantic", f"fact {i} " + "lorem ipsum " * 20) for i in range(count)]
        return run(subject.remember_all(drafts))  # type: ignore[no-any-return]


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# files that must not be opened


@pytest.mark.parametrize("folder", ["there", "missing"])
def test_a_name_that_is_too_long_is_said_whether_or_not_its_folder_is_there(folder: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(OperatorActionRequired, match="name too long"):
        SqliteStore(tmp_path / folder / ("x" * 300))


def refused(path: Path, sentence: str) -> None:
    before = everything_in(path.parent)
    for _ in range(2):
        with pytest.raises(UnusableStore) as why:
            SqliteStore(path)
        assert sentence in why.value.message
    assert everything_in(path.parent) == before


def test_a_newer_schema_is_refused_untouched(path: Path) -> None:
    fill_store(path)
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode=DELETE; PRAGMA user_version=99").fetchall()
    db.close()
    refused(path, "written by a newer Commonplace (schema 99")


def test_a_newer_schema_still_in_the_log_is_refused(path: Path) -> None:
    fill_store(path)
    db = apsw.Connection(str(path))
    db.execute("PRAGMA wal_autocheckpoint=0; PRAGMA user_version=99").fetchall()
    with pytest.raises(UnusableStore) as why:
        SqliteStore(path)
    assert "newer Commonplace" in why.value.message
    assert db.pragma("user_version") == 99
    db.close()


@pytest.mark.parametrize("setup", ["PRAGMA application_id=7", "PRAGMA user_version=3", "SELECT 1"])
def test_the_database_of_another_program_is_refused_untouched(path: Path, setup: str) -> None:
    path.parent.mkdir()
    db = apsw.Connection(str(path))
    db.execute(f"CREATE TABLE theirs(x); INSERT INTO theirs VALUES('precious'); {setup}").fetchall()
    db.close()
    refused(path, "of another program")


def test_another_programs_open_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode=WAL; CREATE TABLE theirs(x)").fetchall()
    with pytest.raises(UnusableStore) as why:
        SqliteStore(path)
    assert "of another program" in why.value.message
    assert db.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    db.close()


@pytest.mark.parametrize("content", [b"not a database at all", b"x" * 9000, b"SQLite format 3\x00" + b"\xff" * 4080])
def test_garbage_is_refused_untouched(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    refused(path, "")


def test_an_empty_file_is_a_new_store(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    assert len(fill_store(path, 1)) == 1


@pytest.mark.parametrize("keep", [100, 4096, 0.5, -1])
def test_a_file_cut_short_is_refused_untouched(path: Path, keep: float) -> None:
    fill_store(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep) if 0 < keep < 1 else int(keep)])
    refused(path, "damaged")


def test_a_page_of_noise_is_refused_untouched(path: Path) -> None:
    fill_store(path, 200)
    data = bytearray(path.read_bytes())
    noise = np.random.default_rng(7)
    for page in range(2, len(data) // 4096, 3):
        data[page * 4096 : (page + 1) * 4096] = noise.bytes(4096)
    path.write_bytes(bytes(data))
    refused(path, "damaged")


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable):
        SqliteStore(tmp_path / "file" / "commonplace.db")


def test_the_writer_runs_with_the_settings_its_promises_rest_on(path: Path) -> None:
    store = SqliteStore(path)
    settings = {name: store._db.pragma(name) for name in ("journal_mode", "synchronous", "secure_delete")}
    asyncio.run(store.close())
    assert settings == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}


# migrations


def migrations(monkeypatch: pytest.MonkeyPatch, *more: Any) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *more))
    monkeypatch.setattr(schema, "VERSION", len(schema.MIGRATIONS))


def m998_add_a_table(db: apsw.Connection) -> None:
    db.execute("CREATE TABLE extra(x); INSERT INTO extra VALUES(1)")


def m999_fails(db: apsw.Connection) -> None:
    db.execute("CREATE TABLE half(x)")
    raise KeyboardInterrupt


def tables(path: Path) -> set[str]:
    db = apsw.Connection(str(path))
    try:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    finally:
        db.close()


def test_each_migration_leaves_a_copy_of_what_was_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = fill_store(path)
    before = tables(path)
    migrations(monkeypatch, m998_add_a_table)
    clock = FakeClock()
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        assert [m.id for m in run(subject.list(newest_first=False))] == sorted(ids)
    (copy,) = StoreFiles(path).before_migration()
    assert copy.name == "before-m998_add_a_table.db"
    assert tables(copy) == before
    assert tables(path) == {*before, "extra"}
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        assert StoreFiles(path).before_migration() == [copy]
        run(subject.forget(ids[0], hard_delete=True))
        assert StoreFiles(path).before_migration() == []


def test_an_approved_erasure_reaches_copies_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.engine.governance.decisions import Decision

    ids = fill_store(path)
    migrations(monkeypatch, m998_add_a_table)
    clock = FakeClock()
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.forget(ids[0], hard_delete=True, approval_required=True))
        assert len(StoreFiles(path).before_migration()) == 1
        (review,) = run(subject.engine.reviews.list(WHO))
        run(subject.engine.reviews.decide(WHO, review["id"], Decision(True, "Alice")))
        assert StoreFiles(path).before_migration() == []


def test_a_migration_that_breaks_off_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = fill_store(path)
    with monkeypatch.context() as patched:
        migrations(patched, m998_add_a_table, m999_fails)
        with pytest.raises(KeyboardInterrupt):
            SqliteStore(path)
        assert "half" not in tables(path)
        assert "extra" in tables(path)
        (copy,) = StoreFiles(path).before_migration()
        assert "extra" not in tables(copy)
        migrated = (*schema.MIGRATIONS[:-1], lambda db: db.execute("CREATE TABLE whole(x)"))
        migrated[-1].__name__ = "m999_works"
        patched.setattr(schema, "MIGRATIONS", migrated)
        clock = FakeClock()
        with open_subject(SqliteStore(path, clock), clock) as (subject, run):
            assert len(run(subject.list())) == len(ids)
        assert "whole" in tables(path)


def test_a_program_that_a_newer_one_has_overtaken_writes_no_more(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.remember("before"))
        db = apsw.Connection(str(path))
        db.pragma("user_version", schema.VERSION + 1)
        for _ in range(2):
            with pytest.raises(UnusableStore) as why:
                run(subject.remember("after"))
            assert "newer Commonplace" in why.value.message
        assert [m.content for m in run(subject.list())] == ["before"]
        db.pragma("user_version", schema.VERSION)
        db.close()
        run(subject.remember("after"))


# groups


@contextmanager
def counted_commits(store: SqliteStore) -> Iterator[list[int]]:
    """How many writes each commit held."""
    commits: list[int] = []
    told = store._writer._on_commit

    def count(changed: dict[int, int], erased: set[int]) -> None:
        commits.append(sum(changed.values()))
        told(changed, erased)

    store._writer._on_commit = count
    yield commits
    store._writer._on_commit = told


def test_many_writers_share_few_commits(path: Path, clock: FakeClock) -> None:
    store = SqliteStore(path, clock)
    with open_subject(store, clock) as (subject, run):

        async def crowd() -> None:
            await asyncio.gather(*(subject.remember(f"fact {i}") for i in range(200)))

        with counted_commits(store) as commits:
            run(crowd())
        assert sum(commits) == 200
        assert len(commits) <= 50


def test_one_who_fails_in_a_group_fails_alone(path: Path, clock: FakeClock) -> None:
    store = SqliteStore(path, clock)

    def put(tx: Transaction, content: str) -> str:
        memory = Memory(mint_id(clock()), "local", f"agent {content}", "semantic", content, created_at=tx.now)
        return tx.put(Entry(memory, None, b"")).id

    def fail(tx: Transaction) -> None:
        put(tx, "lost")
        raise LookupError("on purpose")

    async def crowd() -> list[Any]:
        work = [store.transact("local", fail if i % 3 == 0 else lambda tx, i=i: put(tx, str(i))) for i in range(30)]
        return await asyncio.gather(*work, return_exceptions=True)

    with open_subject(store, clock) as (_, run):
        with counted_commits(store) as commits:
            done = run(crowd())
        assert [isinstance(d, LookupError) for d in done] == [i % 3 == 0 for i in range(30)]
        assert len(commits) <= 3
        kept = run(store.get("local", [d for d in done if isinstance(d, str)]))
        assert sorted(int(m.content) for m in kept) == [i for i in range(30) if i % 3]
        assert sorted(m.seq for m in kept) == list(range(1, 21))
        assert "agent lost" not in run(store.agents("local"))


def test_a_fault_of_the_database_reaches_all_of_its_group_and_nobody_waits_for_ever(
    path: Path, clock: FakeClock
) -> None:
    store = SqliteStore(path, clock)

    def broken(tx: Any) -> None:
        tx._db.execute("INSERT INTO no_such_table VALUES(1)")

    def put(tx: Transaction) -> str:
        memory = Memory(mint_id(clock()), "local", "agent", "semantic", "x", created_at=tx.now)
        return tx.put(Entry(memory, None, b"")).id

    async def crowd() -> list[Any]:
        work = [store.transact("local", broken if i == 5 else put) for i in range(12)]
        return await asyncio.wait_for(asyncio.gather(*work, return_exceptions=True), 20)

    with open_subject(store, clock) as (_, run):
        done = run(crowd())
        assert isinstance(done[5], Unavailable)
        told = [d for d in done if isinstance(d, str)]
        assert len(run(store.scan(Reach("local", ("agent",)))).memories) == len(told)
        assert run(store.transact("local", put))


def test_writes_under_way_when_the_store_closes_are_answered(path: Path, clock: FakeClock) -> None:
    async def scenario() -> None:
        store = SqliteStore(path, clock)
        done: list[Any] = []

        async def write() -> None:
            try:
                done.append(await store.transact("local", lambda tx: tx.seq))
            except Fault as fault:
                done.append(fault)

        tasks = [asyncio.ensure_future(write()) for _ in range(5)]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.wait_for(asyncio.gather(*tasks), 20)
        assert done == [0] * 5
        with pytest.raises(Unavailable):
            await store.transact("local", lambda tx: None)
        await store.close()

    asyncio.run(scenario())


def test_a_caller_that_goes_away_disturbs_nobody(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):

        async def some_give_up() -> list[Any]:
            tasks = [asyncio.ensure_future(subject.remember(f"fact {i}")) for i in range(20)]
            await asyncio.sleep(0)
            for task in tasks[::4]:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        done = run(some_give_up())
        kept = {d for d in done if isinstance(d, str)}
        assert len(kept) == 15
        assert kept <= {m.id for m in run(subject.list())}
        assert run(subject.engine.ledger.verify(WHO)).first_bad is None


@pytest.mark.parametrize("name", ["x.lock", "x.segments", "x.sqlite", "x", "x.y.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    ids = fill_store(tmp_path / name, 3)
    fill_store(tmp_path / ("y.db" if name == "x.lock" else "x.db"), 3)
    clock = FakeClock()
    with open_subject(SqliteStore(tmp_path / name, clock), clock) as (subject, run):
        assert {m.id for m in run(subject.recall("fact"))} == set(ids)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux shows who holds a lock")
def test_opening_a_second_store_keeps_the_locks_of_the_first(path: Path, clock: FakeClock) -> None:
    """POSIX drops all locks of a process on a file when any handle to it is closed."""

    def held() -> bool:
        inode = f":{path.stat().st_ino} "
        return any(inode in line for line in Path("/proc/locks").read_text().splitlines())

    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.remember("a fact"))
        assert held()
        second = SqliteStore(path, clock)
        assert held()
        run(second.close())
        assert held()


# failing disks


class FullDisk(apsw.VFS):
    """The default file system until it is told that the disk is full."""

    full = False

    def __init__(self) -> None:
        super().__init__("full-disk", "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return FullFile(name, flags)


class FullFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if FullDisk.full:
            raise apsw.FullError("disk full")
        super().xWrite(data, offset)


@pytest.fixture
def full_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FullDisk]]:
    """Under the store at `path`."""
    vfs = FullDisk()
    opened = apsw.Connection

    def connection(name: str, *args: Any, **options: Any) -> apsw.Connection:
        return opened(name, *args, **({**options, "vfs": "full-disk"} if name == str(path) else options))

    monkeypatch.setattr("commonplace.stores.sqlite.files.apsw.Connection", connection)
    yield FullDisk
    FullDisk.full = False
    vfs.unregister()


def test_a_full_disk_loses_nothing_that_was_acknowledged(
    path: Path, clock: FakeClock, full_disk: type[FullDisk]
) -> None:
    ids = fill_store(path, 5)
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        before = run(subject.remember("before it was full"))
        full_disk.full = True
        for _ in range(2):
            with pytest.raises(Unavailable) as why:
                run(subject.remember("does not fit"))
            assert "is full; nothing was written" in why.value.message
        assert len(run(subject.list())) == len(ids) + 1
        full_disk.full = False
        after = run(subject.remember("after there was room"))
        assert {m.id for m in run(subject.list())} == {*ids, before, after}
        assert run(subject.engine.ledger.verify(WHO)).first_bad is None


def test_a_disk_that_is_full_at_the_close_is_a_sentence_in_the_log(
    path: Path,
    clock: FakeClock,
    full_disk: type[FullDisk],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    truncate = upkeep.truncate_log

    def fill_and_truncate(db: apsw.Connection) -> bool:
        full_disk.full = True
        try:
            return truncate(db)
        finally:
            full_disk.full = False  # or SQLite's own close would raise out of our file system, where nobody catches it

    monkeypatch.setattr(upkeep, "truncate_log", fill_and_truncate)
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        kept = run(subject.remember("before it was full"))
    assert [(each.getMessage(), each.exc_info) for each in caplog.records] == [
        (f"{path} could not be tidied up at its close, and is at the next: disk full", None)
    ]
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        assert run(subject.get(kept)).content == "before it was full"


def test_a_batch_is_one_answer_per_item_even_across_groups(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        done = run(
            subject.engine.remember_many(WHO, [BatchItem(Draft("agent", "semantic", f"{i}")) for i in range(1000)])
        )
        assert len({receipt.id for receipt in done}) == 1000
        contents = [m.content for m in run(subject.store.get("local", [r.id for r in done]))]
        assert contents == [str(i) for i in range(1000)]


@pytest.mark.parametrize("way", ["scan", "find", "erase"])
def test_what_was_merged_into_a_memory_is_looked_up_by_an_index(path: Path, clock: FakeClock, way: str) -> None:
    """An erasure asks for it again and again: without an index each time would read every memory of the agent."""
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        ids = run(subject.remember_all([Draft("agent", "semantic", f"fact {i}") for i in range(40)]))
        run(subject.merge(ids[0], ids[1]))
        merged = (Condition(("merged_into",), "eq", ids[0]),)
        reach = Reach("local", ("agent",), merged, statuses=("live", "archived", "deleted"))
        store, plans = subject.store, []
        assert isinstance(store, SqliteStore)
        store._readers._threads._scans.most = 1
        run(store.scan(reach))  # so that the reader of scans is connected

        def planned(cursor: Any, sql: str, values: Any) -> bool:
            if "merged_into" in sql and sql.startswith("SELECT"):
                db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
                plans.extend(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values))
                db.close()
            return True

        traced = [store._db] if way == "find" else list(store._readers._all)
        for db in traced:
            db.exec_trace = planned
        if way == "erase":
            found = run(subject.forget(ids[0], hard_delete=True)).sources
        elif way == "find":
            found = [m.id for m in run(store.transact("local", lambda tx: tx.find(reach)))]
        else:
            found = [m.id for m in run(store.scan(reach)).memories]
        for db in traced:
            db.exec_trace = None
        assert found == [ids[1]]
        assert any("memories_merged" in step for step in plans), plans


CHANGES_OF_THE_LEDGER = [
    "UPDATE audit SET principal = 'nobody' WHERE n = 1",
    "UPDATE audit SET n = 99 WHERE n = 1",
    "DELETE FROM audit WHERE n = 2",
    "DELETE FROM audit",
    "INSERT OR REPLACE INTO audit SELECT tenant_id, n, at, seq, 'made up', agent_id, principal, payload_hash, "
    "previous, hash FROM audit WHERE n = 1",
    "UPDATE audit_parts SET payload = x'7b7d' WHERE n = 1",
    "UPDATE audit_parts SET memory_id = 'other' WHERE n = 1",
    "UPDATE audit_parts SET hash = 'other', memory_id = NULL, payload = NULL, salt = NULL WHERE n = 1",
    "UPDATE audit_parts SET payload = NULL WHERE n = 1",
    "DELETE FROM audit_parts WHERE n = 1",
]


@pytest.mark.parametrize("statement", CHANGES_OF_THE_LEDGER)
def test_the_database_itself_refuses_to_change_the_ledger(tmp_path: Path, clock: FakeClock, statement: str) -> None:
    """In another connection as in ours; erasing the payload of a memory is all that it lets through."""
    with open_subject(SqliteStore(tmp_path / "commonplace.db", clock), clock) as (subject, run):
        ids = [run(subject.remember(f"fact {n}")) for n in range(3)]
        db = apsw.Connection(str(tmp_path / "commonplace.db"))
        with pytest.raises(apsw.ConstraintError, match="the ledger is append-only"):
            db.execute(statement)
        db.close()
        run(subject.forget(ids[0], hard_delete=True))
        verified = run(subject.engine.ledger.verify(WHO))
        assert (verified.entries, verified.problem) == (4, None)


def test_a_doctor_misses_the_guards_of_the_ledger(tmp_path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(tmp_path / "commonplace.db", clock), clock) as (subject, run):
        run(subject.remember("a fact"))
        drop_guards(subject.store._db)  # type: ignore[attr-defined]
        findings = {each.check: each for each in run(subject.engine.upkeep.doctor(WHO))}
        assert findings["schema"].detail == "the trigger audit_never_changed is missing"
