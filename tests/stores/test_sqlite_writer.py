"""The writer's thread: whatever goes wrong under it, every caller hears, and the next one is served."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from commonplace.stores.base import Entry, Transaction
from commonplace.stores.sqlite import SqliteStore, writer
from commonplace.stores.sqlite.fair_lock import FairLock
from commonplace.testing.subject import FakeClock, open_subject
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "commonplace.db"


def within_timeout(awaitable: Any) -> Any:
    """Fails where it would otherwise wait for ever."""
    return asyncio.wait_for(awaitable, 20)


def put(tx: Transaction) -> str:
    memory = Memory(mint_id(tx.now), "local", "agent", "semantic", "x", created_at=tx.now)
    return tx.put(Entry(memory, None, b"")).id


def test_a_lock_file_that_cannot_be_opened_fails_the_write_and_not_the_writer(path: Path, clock: FakeClock) -> None:
    async def scenario() -> None:
        store = SqliteStore(path, clock)
        store.files.lock.mkdir()
        for _ in range(2):
            with pytest.raises(Unavailable, match="nothing was written"):
                await within_timeout(store.transact("local", put))
        with pytest.raises(Unavailable, match="nothing was written"):
            await within_timeout(store.adopt_embedder("hashing-512", 512))
        store.files.lock.rmdir()
        assert await within_timeout(store.transact("local", put))
        await store.close()

    asyncio.run(scenario())


def test_a_program_that_changes_its_folder_goes_on_writing(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.chdir(path.parent)
        store = SqliteStore(Path(path.name), clock)
        await store.transact("local", put)
        monkeypatch.chdir("/")
        await store.transact("local", put)
        assert (await store.health())["memories"] == 2
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_written_to_a_file_that_its_path_no_longer_leads_to(
    path: Path, clock: FakeClock, replaced: bool
) -> None:
    """It can be: the file is open, and what it is given goes with it when it is closed."""

    async def scenario() -> None:
        store = SqliteStore(path, clock)
        id = await store.transact("local", put)
        await store.health()
        path.rename(path.with_name("moved.db"))
        if replaced:
            path.write_bytes(path.with_name("moved.db").read_bytes())
        said = "another file than the one that was opened" if replaced else "is gone"
        for write in (store.transact("local", put), store.adopt_embedder("hashing-512", 512), store.health()):
            with pytest.raises(Unavailable, match=f"{said}, and nothing"):
                await within_timeout(write)
        path.with_name("moved.db").replace(path)  # the very file: all that it has is where it should be
        assert (await store.health())["memories"] == 1
        assert await within_timeout(store.transact("local", put)) != id
        await store.close()

    asyncio.run(scenario())


def test_nothing_is_read_from_a_file_that_took_its_place(path: Path, clock: FakeClock) -> None:
    """Such as an older copy: what was erased since would be there again."""

    async def scenario() -> None:
        store = SqliteStore(path, clock)
        id = await store.transact("local", put)
        older = path.with_name("older.db")
        await store.backup(older)
        await store.transact("local", lambda tx: tx.erase(id))
        await store.close()
        store = SqliteStore(path, clock)
        path.rename(path.with_name("moved.db"))
        older.rename(path)
        with pytest.raises(Unavailable, match="another file than the one that was opened"):
            await store.get("local", [id])
        path.rename(older)
        path.with_name("moved.db").rename(path)
        assert await store.get("local", [id]) == []
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("replaced", [False, True])
def test_what_was_erased_is_scrubbed_from_no_file_that_took_its_place(
    path: Path, clock: FakeClock, replaced: bool
) -> None:
    """Its pages are written without SQLite, and beside whoever has that one open."""
    page = bytes([10, 0, 0, 0, 0, 16, 0]).ljust(16, b"-")  # as of an index with nothing in it
    theirs = (page + b"what Bob keeps here").ljust(4096, b".") * 2

    async def scenario() -> None:
        store = SqliteStore(path, clock)
        id = await store.transact("local", put)
        await store.transact("local", lambda tx: tx.erase(id))
        path.rename(path.with_name("moved.db"))
        if replaced:
            path.write_bytes(theirs)
        await store.close()

    asyncio.run(scenario())
    assert (path.read_bytes() if path.exists() else None) == (theirs if replaced else None)


def test_a_lock_that_others_keep_is_said_in_words(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "WAIT_SECONDS", 0.01)

    async def scenario() -> None:
        store = SqliteStore(path, clock)
        other = FairLock(store.files.lock)
        other.acquire(1.0)
        for attempt in (store.transact("local", put), store.compact()):
            with pytest.raises(Unavailable, match="other processes kept"):
                await within_timeout(attempt)
        other.release()
        assert await within_timeout(store.transact("local", put))
        other.close()
        await store.close()

    asyncio.run(scenario())


def test_a_lock_that_cannot_be_given_back_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = FairLock(tmp_path / "lock"), FairLock(tmp_path / "lock")
    first.acquire(1.0)
    with monkeypatch.context() as broken:

        def no_locks(*_: Any) -> None:
            raise OSError("no locks available")

        broken.setattr(first, "_set", no_locks)
        first.release()
    second.acquire(1.0)
    second.release()
    first.acquire(1.0)
    first.close()
    second.close()


def test_what_is_committed_is_answered_even_when_the_index_cannot_be_told(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):

        def broken(*_: Any) -> None:
            raise RuntimeError("on purpose")

        told, subject.store._writer._on_commit = subject.store._writer._on_commit, broken
        id = run(within_timeout(subject.store.transact("local", put)))
        subject.store._writer._on_commit = told
        assert [m.id for m in run(subject.store.get("local", [id]))] == [id]
        assert run(within_timeout(subject.store.transact("local", put)))


def test_a_commit_that_fails_for_callers_who_went_away_harms_nobody(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        store = SqliteStore(path, clock)
        reached = threading.Event()

        def fails(group: Any) -> None:
            reached.set()
            raise apsw.FullError("on purpose")

        with monkeypatch.context() as broken:
            broken.setattr(store._writer, "_finish", fails)
            task = asyncio.ensure_future(store.transact("local", put))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert await asyncio.to_thread(reached.wait, 20)
            with pytest.raises(Unavailable, match="is full"):
                await within_timeout(store.transact("local", put))
        assert await within_timeout(store.transact("local", put))
        await store.close()

    asyncio.run(scenario())


def test_a_fault_nobody_foresaw_is_told_and_the_next_write_goes_well(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        store = SqliteStore(path, clock)

        def lost(timeout: float) -> int:
            raise MemoryError

        with monkeypatch.context() as broken:
            broken.setattr(store._writer._lock, "acquire", lost)
            done = await within_timeout(
                asyncio.gather(*(store.transact("local", put) for _ in range(5)), return_exceptions=True)
            )
        assert [type(d) for d in done] == [MemoryError] * 5
        assert await within_timeout(store.transact("local", put))
        await store.close()

    asyncio.run(scenario())


def test_writes_from_another_loop_while_the_store_closes_are_answered(path: Path, clock: FakeClock) -> None:
    for _ in range(20):
        store = SqliteStore(path, clock)
        writing, ended = threading.Event(), []

        async def write(store: SqliteStore = store, writing: threading.Event = writing) -> str:
            while True:
                try:
                    await within_timeout(store._writer.submit("local", lambda tx: tx.seq))
                except Unavailable:
                    return "closed"
                writing.set()

        def other(write: Any = write, ended: list[str] = ended) -> None:
            ended.append(asyncio.run(write()))

        thread = threading.Thread(target=other)
        thread.start()
        assert writing.wait(20)
        asyncio.run(store.close())
        thread.join(30)
        assert ended == ["closed"]
