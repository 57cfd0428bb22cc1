"""What a process could not write to the ledger is written by the next one: once, and to its own ledger."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from commonplace.engine import Engine, Query, Settings
from commonplace.engine.recall.saved_recalls import SavedRecalls
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable

QUESTION = "which drink does Alice like?"
FIELDS = {"tenant": "local", "ledger": None, "error": "no room", "failing_since": 1, "attempts": 2, "recalls": []}


class ModestStore(InMemory):
    """Outlives engines, and takes nothing while it is `full`."""

    full = False

    async def transact(self, tenant: str, work: Any) -> Any:
        if self.full:
            raise Unavailable("no room")
        return await super().transact(tenant, work)

    async def close(self) -> None:
        """The next engine goes on with it."""


async def recall_without_room(store: ModestStore, clock: FakeClock, folder: Path) -> None:
    engine = await Engine.open(store, clock=clock, settings=Settings(folder=folder))
    store.full = True
    await engine.recall(WHO, Query(("agent",), QUESTION))
    await engine.close()
    store.full = False


def test_it_is_written_by_the_next_process_to_the_same_ledger(clock: FakeClock, tmp_path: Path) -> None:
    async def scenario() -> None:
        store, other = ModestStore(clock), ModestStore(clock)
        for each in (store, other):
            engine = await Engine.open(each, clock=clock)
            await engine.policies.replace(WHO, [])  # an entry of its own, which tells the two apart
            await engine.close()
        await recall_without_room(store, clock, tmp_path)
        elsewhere = await Engine.open(other, clock=clock, settings=Settings(folder=tmp_path))
        assert (await elsewhere.upkeep.status(WHO))["unwritten_recalls"]["waiting"] == 1
        await elsewhere.close()
        assert await other.audit("local", operation="recall") == []
        for _ in range(2):
            engine = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path))
            await engine.close()
        (entry,) = await store.audit("local", operation="recall")
        assert entry.principal == WHO.name
        engine = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path))
        assert "unwritten_recalls" not in await engine.upkeep.status(WHO)
        assert (await engine.ledger.verify(WHO)).problem is None
        await engine.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("is_begun", [False, True])
def test_of_a_store_that_hangs_it_is_kept_too(
    clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    """Closing does not wait for ever: whoever ends it at last by force would end what was recalled with it."""

    class HungStore(ModestStore):
        async def transact(self, tenant: str, work: Any) -> Any:
            if self.full:
                await asyncio.Event().wait()
            return await super().transact(tenant, work)

    async def scenario() -> None:
        store = HungStore(clock)
        engine = await Engine.open(store, clock=clock)
        await engine.policies.replace(WHO, [])
        await engine.close()
        engine = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path))
        store.full = True
        await engine.recall(WHO, Query(("agent",), QUESTION))
        while is_begun and not engine._recall_log._writing:
            await asyncio.sleep(0)
        with monkeypatch.context() as patch:  # the next one has time to write
            patch.setattr("commonplace.engine.recall.recall_log.CLOSE_SECONDS", 0.01)
            await asyncio.wait_for(engine.close(), 30)
        store.full = False
        engine = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path))
        await engine.close()
        (entry,) = await store.audit("local", operation="recall")
        assert entry.principal == WHO.name

    asyncio.run(scenario())


def test_of_a_store_that_takes_it_while_it_is_kept_nothing_is_lost(
    clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that had hung may go on at any moment, and what failed is then no failure any more."""

    class LateStore(ModestStore):
        late: asyncio.Event | None = None

        async def transact(self, tenant: str, work: Any) -> Any:
            if self.late is not None:
                await self.late.wait()
            return await super().transact(tenant, work)

        async def audit_hashes(self, *args: Any, **options: Any) -> Any:
            if self.late is not None:  # asked by whoever keeps it
                self.late.set()
                while engine._recall_log._writing:
                    await asyncio.sleep(0)
            return await super().audit_hashes(*args, **options)

    async def scenario() -> None:
        nonlocal engine
        store = LateStore(clock)
        engine = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path, store="one"))
        await engine.recall(WHO, Query(("agent",), QUESTION))
        store.late = asyncio.Event()
        with monkeypatch.context() as patch:
            patch.setattr("commonplace.engine.recall.recall_log.CLOSE_SECONDS", 0.01)
            await asyncio.wait_for(engine.close(), 30)
        assert [entry.principal for entry in await store.audit("local", operation="recall")] == [WHO.name]

    engine: Any = None
    asyncio.run(scenario())


class LostStore(ModestStore):
    """Answers nothing at all while it is `full`."""

    async def audit_hashes(self, *args: Any, **options: Any) -> Any:
        if self.full:
            raise Unavailable("no connection")
        return await super().audit_hashes(*args, **options)


@pytest.mark.parametrize("begun", [False, True], ids=["an empty ledger", "a ledger"])
def test_what_a_store_that_is_down_is_owed_goes_to_no_other(clock: FakeClock, tmp_path: Path, begun: bool) -> None:
    async def scenario() -> None:
        store, other = LostStore(clock), LostStore(clock)
        if begun:
            for each in (store, other):
                engine = await Engine.open(each, clock=clock)
                await engine.policies.replace(WHO, [])
                await engine.close()
        at = Settings(folder=tmp_path, store="one")
        engine = await Engine.open(store, clock=clock, settings=at)
        await engine.recall(WHO, Query(("agent",), QUESTION))
        store.full = True
        await engine.close()
        store.full = False
        for name in ("another", ""):
            elsewhere = await Engine.open(other, clock=clock, settings=Settings(folder=tmp_path, store=name))
            await elsewhere.close()
        assert await other.audit("local", operation="recall") == []
        await (await Engine.open(store, clock=clock, settings=at)).close()
        assert len(await store.audit("local", operation="recall")) == 1

    asyncio.run(scenario())


def test_a_store_without_an_address_that_is_down_at_the_end_is_known_by_its_ledger(
    clock: FakeClock, tmp_path: Path
) -> None:
    """Such as an object that a program hands over: the settings say nothing of it."""

    async def scenario() -> None:
        store, other = LostStore(clock), LostStore(clock)
        for each in (store, other):
            engine = await Engine.open(each, clock=clock)
            await engine.policies.replace(WHO, [])
            await engine.close()
        engine = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path))
        await engine.recall(WHO, Query(("agent",), QUESTION))
        store.full = True  # between the answer and the moment when its entry would be written
        await engine.close()
        store.full = False
        elsewhere = await Engine.open(other, clock=clock, settings=Settings(folder=tmp_path))
        await elsewhere.close()
        assert await other.audit("local", operation="recall") == []
        again = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path))
        assert (await again.upkeep.status(WHO))["unwritten_recalls"]["waiting"] == 1, "until it is written"
        await again.flush()
        assert "unwritten_recalls" not in await again.upkeep.status(WHO)
        await again.close()
        assert len(await store.audit("local", operation="recall")) == 1

    asyncio.run(scenario())


def test_what_does_not_say_whose_it_is_is_written_nowhere(clock: FakeClock, tmp_path: Path) -> None:
    async def scenario() -> None:
        SavedRecalls(tmp_path).save(1_750_000_000_000, **FIELDS)
        for name in ("", "one"):
            store = ModestStore(clock)
            engine = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path, store=name))
            await engine.close()
        assert len(SavedRecalls(tmp_path).list_for("local")) == 1

    asyncio.run(scenario())


def test_without_a_place_to_keep_it_that_is_said(clock: FakeClock, tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "unwritten-recalls").write_text("in the way")
    asyncio.run(recall_without_room(ModestStore(clock), clock, tmp_path))
    assert "1 recalls are lost to the ledger (no room), and to later" in caplog.text


def test_of_two_one_takes_it_and_one_that_was_killed_keeps_it_from_nobody(tmp_path: Path) -> None:
    saved = SavedRecalls(tmp_path)
    saved.save(1_750_000_000_000, **FIELDS)
    (taken,) = saved.take()
    assert list(SavedRecalls(tmp_path).take()) == []
    assert [file.tenant for file in saved.list_for("local")] == ["local"], "it is owed until it is written"
    os.utime(taken.path, (1, 1))
    (again,) = SavedRecalls(tmp_path).take()
    again.give_back()
    (third,) = saved.take()
    third.remove()
    assert saved.list_for("local") == []


def test_a_file_that_is_damaged_harms_nothing(tmp_path: Path) -> None:
    saved = SavedRecalls(tmp_path)
    saved.save(1_750_000_000_000, **FIELDS)
    for path in (tmp_path / "unwritten-recalls").iterdir():
        path.write_text("{")
    assert (list(saved.take()), saved.list_for("local")) == ([], [])
