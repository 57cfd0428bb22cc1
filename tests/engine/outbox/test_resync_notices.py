"""Until it was resynced, it is said of a copy what it was never told."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attached_copies import LEFT_OUT_SAID, files_with_the_text, open_beside, remember, said_of_the_copy
from replica_house import run

from commonplace.engine import Draft, Engine, Forget, Query
from commonplace.engine.core import SYSTEM
from commonplace.engine.outbox import stores as stores_module
from commonplace.engine.outbox.outbox import LOOK_MS
from commonplace.engine.outbox.resync_notices import STORE_NAME, resync_advice
from commonplace.stores.base import Record
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.validate import check


async def _advice(engine: Engine) -> list[bool]:
    """Of each copy, whether it is said that it was never resynced, wherever one looks."""
    listed = (await engine.stores.list(WHO))[1:]
    check("memorywire/operations/stores.response", {"stores": listed})
    said = ["never resynced: memories from before it was attached" in each.get("last_error", "") for each in listed]
    found = await engine.stores.examine()
    assert ["; never resynced" in finding.detail for finding in found] == said
    assert [not finding.ok for finding in found] == said
    return said


@run
async def test_a_store_that_is_attached_to_one_with_memories_is_said_to_need_a_resync(tmp_path: Path) -> None:
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "a.db")
    for n in range(120):
        await engine.remember(WHO, Draft("agent", "semantic", f"fact {n}"))
    await engine.close()
    for stores, said in ((("a.db", "b.db"), [False, True]), (("b.db?name=spare", "a.db"), [True, False])):
        for _ in range(2):  # it is so also for those who open it afterwards
            engine = await open_beside(tmp_path, clock, *stores)
            assert await _advice(engine) == said
            await engine.remember(WHO, Draft("agent", "semantic", "a fact that every one of them is told"))
            await engine.close()
    engine = await open_beside(tmp_path, clock, "a.db", "b.db?name=spare")

    def stop(done: int, of: int) -> None:
        if done > 60:
            raise KeyError("the operator has seen enough")

    with pytest.raises(KeyError):
        await engine.stores.resync(WHO, "spare", stop)
    assert await _advice(engine) == [False, True], "half of it is not all"
    assert (await engine.stores.resync(WHO, "spare"))["equal"]
    await engine.close()
    for name in ("", "?name=other"):
        engine = await open_beside(tmp_path, clock, "a.db", f"b.db{name}")
        assert await _advice(engine) == [False, False]
        await engine.close()


@pytest.mark.parametrize("change", ["erase", "remember", "recall"])
@run
async def test_what_a_process_changes_without_a_store_that_others_have_is_said_of_it(
    tmp_path: Path, change: str
) -> None:
    """It is never told: of an erasure nobody would know that the copy is still there."""
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b.db")
    id = (await engine.remember(WHO, Draft("agent", "semantic", "PINCODE-ZEBRA opens the safe"))).id
    await engine.close()
    engine = await open_beside(tmp_path, clock)
    if change == "erase":
        await engine.forget(WHO, Forget("agent", [id], hard_delete=True))
    elif change == "remember":
        await engine.remember(WHO, Draft("agent", "semantic", "Bob likes tea"))
    else:
        await engine.recall(WHO, Query(("agent",), "what opens the safe?"))
    await engine.close()
    for name in ("", "?name=spare"):
        engine = await open_beside(tmp_path, clock, f"b.db{name}")
        listed = await engine.stores.list(WHO)
        check("memorywire/operations/stores.response", {"stores": listed})
        said = "by a process that did not have it" in listed[1].get("last_error", "")
        assert said is (change != "recall")
        assert (await engine.stores.examine())[0].ok is not said
        if name:
            assert (await engine.stores.resync(WHO, "spare"))["equal"]
            assert "last_error" not in (await engine.stores.list(WHO))[1]
        await engine.close()
    if change == "erase":
        assert files_with_the_text(tmp_path) == []


@run
async def test_a_resync_that_leaves_something_waiting_has_come_to_its_end(tmp_path: Path) -> None:
    """What it did not take is told of by what waits; nothing else is missing."""
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock)
    for text in ("tea", "milk"):
        await engine.remember(WHO, Draft("agent", "semantic", text))
    await engine.close()
    engine = await open_beside(tmp_path, clock, "a.db")
    copy = await engine._core.outbox.replicas.named("sqlite-2")._opened()  # type: ignore[union-attr]
    put = copy.put

    async def refuse(entries: Any) -> None:
        if any(entry.memory.content == "milk" for entry in entries):
            raise ValueError("milk")
        await put(entries)

    copy.put = refuse  # type: ignore[method-assign]
    assert not (await engine.stores.resync(WHO, "sqlite-2"))["equal"]
    said = (await engine.stores.list(WHO))[1]["last_error"]
    assert (said, (await engine.stores.list(WHO))[1]["waiting"]) == ("it failed: ValueError", 1)
    await engine.close()


@run
async def test_what_a_process_without_the_store_erases_while_it_is_resynced_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resync had read it already: the notice of before it, which it ends, is not that of after it."""
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b.db")
    id = await remember(engine, "PINCODE-ZEBRA opens the safe")
    without = await open_beside(tmp_path, clock)
    await remember(without, "Bob likes tea")
    assert LEFT_OUT_SAID in await said_of_the_copy(engine)
    clear = stores_module.clear_resync_notices

    async def cleared(*given: Any, **how: Any) -> None:  # when all was read and compared
        await without.forget(WHO, Forget("agent", [id], hard_delete=True))
        await clear(*given, **how)

    monkeypatch.setattr(stores_module, "clear_resync_notices", cleared)
    await engine.stores.resync(WHO, "sqlite-2")
    assert LEFT_OUT_SAID in await said_of_the_copy(engine)
    monkeypatch.setattr(stores_module, "clear_resync_notices", clear)
    assert (await engine.stores.resync(WHO, "sqlite-2"))["equal"]
    assert await said_of_the_copy(engine) == ""
    await without.close()
    await engine.close()
    assert files_with_the_text(tmp_path) == []


@run
async def test_a_change_is_noted_of_the_store_that_it_leaves_out_with_the_change_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is killed, or loses the first store, right after an erasure can note nothing of it any more."""
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b.db")
    id = await remember(engine, "PINCODE-ZEBRA opens the safe")
    await engine.close()
    without = await open_beside(tmp_path, clock)
    transact = without._core.primary.transact

    async def lost_after_the_erasure(tenant: str, work: Any) -> Any:
        if await without._core.primary.get(WHO.tenant, [id]):
            return await transact(tenant, work)
        raise Unavailable("lost")

    monkeypatch.setattr(without._core.primary, "transact", lost_after_the_erasure)
    with suppress(Unavailable):
        await without.forget(WHO, Forget("agent", [id], hard_delete=True))
    await without._core.primary.close()
    engine = await open_beside(tmp_path, clock, "b.db")
    assert await engine._core.primary.get(WHO.tenant, [id]) == []
    assert LEFT_OUT_SAID in await said_of_the_copy(engine)
    await engine.close()


@run
async def test_a_process_that_was_there_before_a_store_was_attached_finds_out_that_it_lacks_it(tmp_path: Path) -> None:
    clock = FakeClock()
    before = await open_beside(tmp_path, clock)
    await remember(before, "Alice likes tea")
    engine = await open_beside(tmp_path, clock, "b.db")
    assert (await engine.stores.resync(WHO, "sqlite-2"))["equal"]
    await engine.close()
    clock.advance(LOOK_MS)
    await remember(before, "Bob likes tea")
    await before.close()
    engine = await open_beside(tmp_path, clock, "b.db")
    assert LEFT_OUT_SAID in await said_of_the_copy(engine)
    await engine.close()


@run
async def test_a_store_of_a_program_is_resynced_by_the_program(tmp_path: Path) -> None:
    """No command can attach it."""
    clock = FakeClock()
    primary = SqliteStore(tmp_path / "primary.db", clock)
    await primary.transact(
        SYSTEM, lambda tx: tx.put_record(Record(STORE_NAME, "theirs", {"address": "", "at": 1, "incomplete": True}))
    )
    assert "run `await memory.resync('theirs')`" in (await resync_advice(primary, "theirs") or "")
    await primary.close()
