"""`[routing] write = "primary_only"` keeps writes from the replicas; what goes, goes there too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from replica_house import AGENT, Flaky, House, house, run

from commonplace.config import RoutingConfig
from commonplace.engine import Draft, Expire, Forget, Merge, Query, Settings, Update
from commonplace.stores.base import Entry
from commonplace.stores.text import terms
from commonplace.testing.subject import DAY_MS, WHO, FakeClock

PRIMARY_ONLY = RoutingConfig(write="primary_only")


async def _forget(h: House, id: str) -> None:
    await h.engine.forget(WHO, Forget(AGENT, [id]))


async def _erase(h: House, id: str) -> None:
    await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))


async def _merge(h: House, id: str) -> None:
    other = await h.remember("Alice's diagnosis, in short")
    await h.engine.merge(WHO, Merge(AGENT, other, [id], "keep_canonical"))


async def _expire(h: House, id: str) -> None:
    h.clock.advance(40 * DAY_MS)
    await h.engine.expire(WHO, Expire(AGENT, older_than_days=30, action="forget"))


async def _time_over(h: House, id: str) -> None:
    h.clock.advance(40 * DAY_MS)
    await h.engine.lifecycle.run(WHO, "expire")


async def _retain(h: House, id: str) -> None:
    h.clock.advance(40 * DAY_MS)
    await h.engine.lifecycle.run(WHO, "retain")


WAYS: dict[str, tuple[Callable[[House, str], Awaitable[None]], dict[str, Any]]] = {
    "forget": (_forget, {}),
    "erase": (_erase, {}),
    "merge": (_merge, {}),
    "expire by policy": (_expire, {}),
    "time over": (_time_over, {"expires_at": 10 * DAY_MS}),
    "retention over": (_retain, {"privacy": {"retain": 1}}),
}


@pytest.mark.parametrize("down", [False, True], ids=["", "while it is away"])
@pytest.mark.parametrize("way", WAYS)
@run
async def test_what_goes_is_deleted_there_and_nothing_is_put(way: str, down: bool) -> None:
    change, fields = WAYS[way]
    async with house() as h:
        given = {**fields, "expires_at": h.clock() + fields["expires_at"]} if "expires_at" in fields else fields
        id = await h.remember("Alice's diagnosis", **given)
        await h.outbox.join()
        assert await h.copies[0].contents() == {"Alice's diagnosis"}
        again = house(primary=h.primary, clock=h.clock, stores=h.copies, settings=Settings(routing=PRIMARY_ONLY))
        async with again as withheld:
            h.copies[0].down = "away" if down else None
            with withheld.engine.reporting() as report:
                await change(withheld, id)
            await withheld.outbox.join()
            assert set(report.outcomes[id]) == {"copy"}
            assert (report.outcomes[id]["copy"] is None) is not down
            assert set(await withheld.waiting()) == ({id} if down else set())
            h.copies[0].down = None
            h.clock.advance(600_000)
            await withheld.outbox.run_due()
            assert await h.copies[0].contents() == set()
            assert await withheld.waiting() == {}


@run
async def test_writes_are_withheld_and_named_nowhere() -> None:
    async with house(settings=Settings(routing=PRIMARY_ONLY)) as h:
        with h.engine.reporting() as report:
            id = await h.remember("words")
            await h.engine.update(WHO, Update(AGENT, id, content="other words"))
            await h.engine.remember(WHO, Draft(AGENT, "semantic", "pending"), approval={"content": "x"})
        await h.outbox.requeue(await h.live())
        await h.outbox.requeue_all()
        assert report.outcomes == {}
        assert await h.waiting() == {}
        assert h.copies[0].calls == 0


@run
async def test_writes_that_waited_before_are_withheld_and_kept() -> None:
    async with house() as h:
        h.copies[0].down = "away"
        id = await h.remember("words")
        await h.outbox.join()
        h.copies[0].down = None
        h.clock.advance(600_000)
        again = house(primary=h.primary, clock=h.clock, stores=h.copies, settings=Settings(routing=PRIMARY_ONLY))
        async with again as withheld:
            assert await withheld.outbox.run_due() == 0
            assert set(await withheld.waiting()) == {id}
            assert await h.copies[0].contents() == set()
        async with house(primary=h.primary, clock=h.clock, stores=h.copies) as back:
            assert await back.outbox.run_due() == 1
            assert await back.equal()


@run
async def test_what_comes_back_before_its_deletion_was_delivered_is_not_put() -> None:
    async with house(settings=Settings(routing=PRIMARY_ONLY)) as h:
        h.copies[0].down = "away"
        id = await h.remember("words")
        await h.engine.forget(WHO, Forget(AGENT, [id]))
        await h.outbox.join()
        await h.engine.undelete(WHO, AGENT, id)
        h.copies[0].down = None
        h.clock.advance(600_000)
        await h.outbox.run_due()
        assert await h.copies[0].contents() == set()


@run
async def test_what_becomes_of_a_type_that_a_store_does_not_keep_is_deleted_there() -> None:
    clock = FakeClock()
    copy = Flaky(clock)
    async with house(clock=clock, stores=[copy]) as h:
        await h.engine.upsert(WHO, Draft(AGENT, "semantic", "Alice's diagnosis"), "mine", AGENT)
        await h.outbox.join()
        settings = Settings(routing=PRIMARY_ONLY)
        only = frozenset({"semantic"})
        async with house(primary=h.primary, clock=clock, stores=[copy], types=only, settings=settings) as withheld:
            await withheld.engine.upsert(WHO, Draft(AGENT, "episodic", "something else"), "mine", AGENT)
            await withheld.outbox.join()
            assert await copy.contents() == set()


ANSWER = "the wifi password of the office is on the fridge"
SAID = 'what was written under write = "primary_only" is not there'


async def _ask(h: House, **query: Any) -> Any:
    return await h.engine.recall(WHO, Query((AGENT,), ANSWER, min_score=0.0, **query))


async def _crowd(h: House) -> str:
    for n in range(30):
        await h.remember(f"office note number {n} about the fridge")
    changed = await h.remember("the wifi password of the office is lost")
    await h.settled()
    h.clock.advance(1_000)
    return changed


@pytest.mark.parametrize("fusion", ["rrf", "weighted", "max"])
@run
async def test_what_is_kept_from_a_copy_is_found_where_the_primary_has_it(fusion: str) -> None:
    """That it has the older text of one, or nothing of another, says nothing against them."""
    async with house() as h:
        changed = await _crowd(h)
        again = house(primary=h.primary, clock=h.clock, stores=h.copies, settings=Settings(routing=PRIMARY_ONLY))
        async with again as withheld:
            new = await withheld.remember(ANSWER)
            await withheld.engine.update(WHO, Update(AGENT, changed, content=f"{ANSWER}, says Bob"))
            h.clock.advance(1_000)
            for quorum in (1, 2):
                found = await _ask(withheld, k=5, fusion=fusion, quorum=quorum, explain=True)
                assert {hit.memory.id for hit in found.hits[:2]} == {new, changed}
                assert [hit.explain["stores"]["copy"]["assumed"] for hit in found.hits[:2]] == [True, True]
                assert found.errors == {}
            assert (await withheld.engine.stores.list(WHO))[1]["altered"] == 0


@run
async def test_a_text_that_a_memory_never_had_is_reported_also_where_writes_are_kept_from_the_copy() -> None:
    async with house() as h:
        changed = await _crowd(h)
        again = house(primary=h.primary, clock=h.clock, stores=h.copies, settings=Settings(routing=PRIMARY_ONLY))
        async with again as withheld:
            await withheld.engine.update(WHO, Update(AGENT, changed, content=ANSWER))
            h.clock.advance(1_000)
            (copy,) = await h.copies[0].get("local", [changed])
            altered = f"{ANSWER} of the cellar"
            await h.copies[0].put([Entry(replace(copy, content=altered), None, terms(altered))])
            assert "another text for 1 of the memories" in (await _ask(withheld, k=5)).errors["copy"]


@run
async def test_a_resync_is_asked_for_once_writes_go_to_a_copy_again() -> None:
    async def last_error(h: House) -> str:
        found = await h.engine.stores.examine()
        said = str((await h.engine.stores.list(WHO))[1].get("last_error", ""))
        assert (SAID in found[0].detail, found[0].ok) == (SAID in said, SAID not in said)
        return said

    async with house() as h:
        forgotten = await _crowd(h)
        settings = Settings(routing=PRIMARY_ONLY)
        async with house(primary=h.primary, clock=h.clock, stores=h.copies, settings=settings) as withheld:
            await _forget(withheld, forgotten)
        assert SAID not in await last_error(h), "a deletion is kept from nobody"
        async with house(primary=h.primary, clock=h.clock, stores=h.copies, settings=settings) as withheld:
            await _forget(withheld, await withheld.remember("gone before anybody asks"))
            assert SAID not in await last_error(withheld), "as long as it is meant to be so"
        id = (await last_error(h)) and await h.remember(ANSWER)
        assert SAID in await last_error(h)
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        assert SAID not in await last_error(h)
        await h.copies[0].delete("local", [id])
        assert id not in {hit.memory.id for hit in (await _ask(h, k=5, quorum=2)).hits}, "it was told"
