"""A disk that fails at any single write: after opening again, what is there is what the answer said.

SQLite's own file layer is in between, so each write, sync and truncation of the database and its log is one point.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Engine
from commonplace.engine.types import Draft, Forget, Merge, Receipt
from commonplace.stores.base import Reach
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Fault

pytestmark = pytest.mark.skipif("unix" not in apsw.vfs_names(), reason="stands on SQLite's file layer for POSIX")
MANY = 200
FEW_POINTS = 5
UNSURE = "whether this was kept shows when it is opened again"


class FaultyDisk(apsw.VFS):
    """Fails the write of a given number since it was armed: that one alone (a bad sector), or from then on (full)."""

    def __init__(self) -> None:
        self.count, self._fails_at, self._lasting = 0, 0, False
        self._fault: type[Exception] = apsw.IOError
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return FaultyFile(self, name, flags)

    def arm(self, number: int, fault: type[Exception]) -> None:
        self.count, self._fails_at, self._fault = 0, number, fault
        self._lasting = fault is apsw.FullError

    def step(self, syncing: bool = False) -> None:
        self.count += 1
        at = self._fails_at
        if at and (self.count == at or (self._lasting and self.count > at)):
            error: Any = apsw.IOError("on purpose") if syncing else self._fault("on purpose")
            if syncing:  # as SQLite says it whatever the reason
                error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error


class FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.step()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.step(syncing=True)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._disk.step()
        super().xTruncate(size)


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    vfs = FaultyDisk()
    yield vfs
    vfs.unregister()


class OpenStore:
    """A copy of the prepared store, and what is in it."""

    def __init__(self, engine: Engine, store: SqliteStore) -> None:
        self.engine, self.store = engine, store

    @classmethod
    async def at(cls, path: Path) -> OpenStore:
        store = SqliteStore(path, FakeClock())
        return cls(await Engine.open(store, HashingEmbedder(), clock=FakeClock()), store)

    async def rows(self) -> dict[str, tuple[Any, ...]]:
        every = Reach("local", ("agent",), statuses=("live", "archived", "deleted"))
        found = (await self.store.scan(every, limit=4 * MANY)).memories
        return {m.id: (m.status, m.content, m.version, m.merged_into) for m in found}


Rows = dict[str, tuple[Any, ...]]
Check = Callable[[Rows, Rows], None]


async def _forget(kept: OpenStore, hard: bool) -> Check:
    done = await kept.engine.forget(WHO, Forget("agent", filter={"type": "semantic"}, hard_delete=hard))

    def check(before: Rows, after: Rows) -> None:
        gone = {id for id in before if id not in after or after[id][0] == "deleted"}
        unsure = UNSURE in (done.error or "")
        assert set(done.ids) <= gone if unsure else set(done.ids) == gone, (len(done.ids), len(gone), done.error)
        assert set(done.ids) | set(done.remaining) == set(before)
        assert bool(done.remaining) <= (done.error is not None)

    return check


async def _merge(kept: OpenStore) -> Check:
    first, *rest = await kept.rows()
    done = await kept.engine.merge(WHO, Merge("agent", first, rest, "merge_content"))

    def check(before: Rows, after: Rows) -> None:
        assert {id for id, row in after.items() if row[3] == done.survivor.id} == set(rest)

    return check


async def _remember_many(kept: OpenStore) -> Check:
    drafts = [Draft("agent", "semantic", f"new {i}") for i in range(MANY)]
    done = await kept.engine.remember_many(WHO, [BatchItem(draft) for draft in drafts])

    def check(before: Rows, after: Rows) -> None:
        kept, new = {receipt.id for receipt in done if isinstance(receipt, Receipt)}, set(after) - set(before)
        unsure = any(isinstance(fault, Fault) and UNSURE in fault.message for fault in done)
        assert kept <= new if unsure else kept == new

    return check


def _is_whole(operation: str, before: Rows, after: Rows) -> bool:
    """Whether what was done to the rows was done to as many as one unit of work takes."""
    changed = [id for id in {*before, *after} if before.get(id) != after.get(id)]
    return len(changed) == (MANY if operation == "merge" else min(MANY, len(changed))) and len(changed) > 1


OPERATIONS: dict[str, Callable[[OpenStore], Awaitable[Check]]] = {
    "forget": lambda kept: _forget(kept, False),
    "erase": lambda kept: _forget(kept, True),
    "merge": _merge,
    "remember_many": _remember_many,
}
FAULTS = {"EIO": apsw.IOError, "ENOSPC": apsw.FullError}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")

    async def fill() -> None:
        kept = await OpenStore.at(folder / "commonplace.db")
        drafts = [Draft("agent", "semantic", f"fact {i} about Alice") for i in range(MANY)]
        await kept.engine.remember_many(WHO, [BatchItem(draft) for draft in drafts])
        await kept.engine.close()

    asyncio.run(fill())
    return folder


@contextmanager
def copy_of(prepared: Path, folder: Path) -> Iterator[Path]:
    shutil.copytree(prepared, folder)
    yield folder / "commonplace.db"
    shutil.rmtree(folder)


def attempt(disk: FaultyDisk, prepared: Path, folder: Path, operation: str, number: int, fault: str) -> int:
    """Do it with the write of this number failing, and open again; how many writes there were."""

    async def run(path: Path) -> int:
        kept = await OpenStore.at(path)
        before = await kept.rows()
        disk.arm(number, FAULTS[fault])
        check, said = None, ""
        try:
            check = await OPERATIONS[operation](kept)
        except Fault as refused:
            said = refused.message
        count = disk.count
        with suppress(apsw.Error):  # SQLite swallows what fails in tidying up; only its Python file layer tells
            await kept.engine.close()
        disk.arm(0, FAULTS[fault])
        again = await OpenStore.at(path)
        try:
            after = await again.rows()
            if check is not None:
                check(before, after)
            else:
                unsure = UNSURE in said
                assert unsure or "nothing was written" in said
                assert unsure or after == before, "a refusal is of all of it"
                if unsure:  # then still all or nothing of it
                    assert after == before or _is_whole(operation, before, after)
            assert (await again.engine.ledger.verify(WHO)).first_bad is None
            assert all(finding.ok for finding in await again.engine.upkeep.doctor(WHO, False))
        finally:
            await again.engine.close()
        return count

    with copy_of(prepared, folder) as path:
        try:
            return asyncio.run(run(path))
        except AssertionError as error:
            raise AssertionError(f"{operation}, write {number} fails with {fault}: {error}") from error


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_after_a_failed_write_there_is_what_the_answer_said(
    disk: FaultyDisk, prepared: Path, tmp_path: Path, operation: str, fault: str
) -> None:
    last = attempt(disk, prepared, tmp_path / "whole", operation, 0, fault)
    assert last > 3
    for number in sorted({1 + (last - 1) * i // (FEW_POINTS - 1) for i in range(FEW_POINTS)}):
        attempt(disk, prepared, tmp_path / str(number), operation, number, fault)


@pytest.mark.sweep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_after_any_failed_write_there_is_what_the_answer_said(
    disk: FaultyDisk, prepared: Path, tmp_path: Path, operation: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    number, wrong = 1, []
    while True:
        try:
            if attempt(disk, prepared, tmp_path / str(number), operation, number, fault) < number:
                break
        except AssertionError as error:
            wrong.append(str(error))
        number += 1
    with capsys.disabled():
        print(f"\n{operation}, {fault}: {number - 1} writes, each failed once; {len(wrong)} wrong")
    assert not wrong, wrong
