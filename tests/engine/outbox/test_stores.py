from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from replica_house import AGENT, house, run

from commonplace.engine import Draft, Engine, Forget, Query
from commonplace.engine.core import SYSTEM
from commonplace.engine.outbox.deliveries import kind_of
from commonplace.engine.outbox.resync_notices import STORE_NAME
from commonplace.stores.base import Record
from commonplace.testing.subject import WHO
from commonplace.wire.errors import Forbidden, NotFound
from commonplace.wire.record import Principal, Role
from commonplace.wire.validate import check


@run
async def test_they_are_listed_with_what_waits_for_them() -> None:
    async with house(copies=2) as h:
        h.copies[0].down = "no route"
        await h.remember("words")
        await h.outbox.join()
        h.clock.advance(4_000)
        primary, first, second = await h.engine.stores.list(WHO)
        assert (primary["name"], primary["role"], primary["status"]) == (h.primary.name, "primary", "ok")
        assert (first["status"], first["waiting"], first["failing"], first["behind_ms"]) == ("degraded", 1, 1, 4_000)
        assert first["error"] == first["last_error"] == "no route"
        assert (second["status"], second["waiting"]) == ("ok", 0)
        assert "semantic" in second["capabilities"]


@run
async def test_what_fails_is_known_by_what_failed_and_not_by_its_words() -> None:
    async with house() as h:
        h.copies[0].down = "its searches fail"
        await h.remember("words")
        assert h.engine.stores.failing(WHO) == ["the store copy does not answer: its searches fail"]
        h.copies[0].down = None
        await h.remember("more words")
        h.copies[0].down = "no route"
        await h.engine.recall(WHO, Query((AGENT,), "words"))
        assert h.engine.stores.failing(WHO) == ["the store copy takes what is written, but its searches fail: no route"]


@run
async def test_only_an_operator_resyncs_and_only_what_is_there() -> None:
    async with house() as h:
        with pytest.raises(NotFound, match="there is no store 'mem0' with copies; there are: copy"):
            await h.engine.stores.resync(WHO, "mem0")
        with pytest.raises(Forbidden):
            await h.engine.stores.resync(Principal(role="writer"), "copy")


@pytest.mark.parametrize("role", ["reader", "writer", "reviewer", "admin"])
@run
async def test_a_status_shows_their_details_from_reviewers_upwards(role: Role) -> None:
    async with house() as h:
        found = await h.engine.upkeep.status(Principal("alice", "local", role, ("*",)))
        assert ("stores" in found) is (role in ("reviewer", "admin"))


@run
async def test_no_tenant_is_told_another_ones_words() -> None:
    async with house() as h:
        h.copies[0].refuses = "merger"  # and says so
        await h.engine.remember(
            Principal("alice", "acme", "writer", ("*",)), Draft("a", "semantic", "the merger price")
        )
        await h.outbox.join()
        bob = Principal("bob", "other", "admin", ("*",))
        shown = [await h.engine.health(), await h.engine.upkeep.status(bob), await h.engine.stores.list(bob)]
        assert "RuntimeError" in repr(shown[0])
        assert "merger" not in repr(shown)
        assert "merger" not in repr(await h.primary.records("acme", kind_of("copy")))


@run
async def test_one_that_is_no_longer_configured_is_listed_while_something_waits_for_it() -> None:
    """What waits may be an erasure, which nobody would miss."""
    async with house() as h:
        id = await h.remember("Carol's diary")
        await h.outbox.join()
        h.copies[0].down = "no route"
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        await h.outbox.join()
        async with house(copies=0, primary=h.primary, clock=h.clock) as without:
            h.clock.advance(7_000)
            _, left = await without.engine.stores.list(WHO)
            assert (left["name"], left["status"], left["waiting"], left["behind_ms"]) == ("copy", "down", 1, 7_000)
            assert left["error"].startswith("it is not among the configured stores")
            check("memorywire/operations/stores.response", {"stores": await without.engine.stores.list(WHO)})
            with pytest.raises(NotFound, match="there is no store 'copy' with copies"):
                await without.engine.stores.resync(WHO, "copy")
        h.copies[0].down = None
        h.clock.advance(600_000)
        async with house(primary=h.primary, clock=h.clock, stores=h.copies) as back:
            await back.outbox.run_due()
            assert await h.copies[0].contents() == set()
            assert len(await back.engine.stores.list(WHO)) == 2
        async with house(copies=0, primary=h.primary, clock=h.clock) as without:
            assert len(await without.engine.stores.list(WHO)) == 1


@run
async def test_an_operator_sees_what_waits_in_every_tenant_and_others_what_waits_in_theirs() -> None:
    acme, other, absent = (Principal(tenant, tenant, "admin", ("*",)) for tenant in ("acme", "other", "absent"))
    some_agents = Principal("alice", "local", "admin", ("support",))
    async with house() as h:
        kept = await h.engine.remember(acme, Draft("a", "semantic", "the merger price"))
        await h.outbox.join()
        h.copies[0].down = "no route"
        await h.engine.forget(acme, Forget("a", [kept.id], hard_delete=True))
        await h.outbox.join()
        h.clock.advance(3_000)
        await h.engine.remember(other, Draft("b", "semantic", "a diary"))
        await h.outbox.join()
        h.clock.advance(4_000)

        async def shown(engine: Engine, who: Principal) -> list[tuple[int, int, int | None]]:
            copies = (await engine.stores.list(who))[1:]
            assert {each["name"] for each in copies} <= {"copy"}
            return [(each["waiting"], each["failing"], each.get("behind_ms")) for each in copies]

        assert await shown(h.engine, WHO) == [(2, 2, 7_000)]
        assert await shown(h.engine, acme) == [(1, 1, 7_000)]
        assert await shown(h.engine, other) == [(1, 1, 4_000)]
        assert await shown(h.engine, absent) == await shown(h.engine, some_agents) == [(0, 0, None)]
        async with house(copies=0, primary=h.primary, clock=h.clock) as without:
            assert await shown(without.engine, WHO) == [(2, 2, 7_000)]
            assert await shown(without.engine, acme) == [(1, 1, 7_000)]
            assert await shown(without.engine, other) == [(1, 1, 4_000)]
            assert await shown(without.engine, absent) == await shown(without.engine, some_agents) == []


@run
async def test_one_that_was_away_at_the_start_is_well_when_it_answers() -> None:
    """Nothing is asked of it meanwhile but how it is, and nothing is held against it."""
    async with house() as h:
        h.copies[0].unwell = "no route"
        h.outbox.watch(0)
        while not (said := h.engine.stores.failing(WHO)):
            await asyncio.sleep(0)
        assert list(said) == ["the store copy does not answer: no route"]
        health = await h.engine.health(WHO)
        assert (health["status"], health["note"]) == ("degraded", *said)
        await h.remember("what is written is tried at once")
        assert await h.copies[0].contents()
    async with house() as h:
        h.copies[0].unwell = "no route"
        h.outbox.watch(0)
        while not h.engine.stores.failing(WHO):
            await asyncio.sleep(0)
        h.copies[0].unwell = None
        while h.engine.stores.failing(WHO):
            await asyncio.sleep(0)
        assert (await h.engine.health())["status"] == "ok"


@pytest.mark.parametrize("refuses", ["", "tea"])
@run
async def test_that_a_name_means_another_store_is_said_until_a_resync_has_made_it_equal(refuses: str) -> None:
    async with house() as h:
        value = {"address": "x", "at": 1, "waited_for_another": True}
        await h.primary.transact(SYSTEM, lambda tx: tx.put_record(Record(STORE_NAME, "copy", value)))
        h.copies[0].refuses = refuses
        await h.remember("tea")
        await h.outbox.join()
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"] is not bool(refuses)
        said = (await h.engine.stores.list(WHO))[1].get("last_error", "")
        assert ("was given to another address" in said) is bool(refuses)


@run
async def test_the_last_error_is_of_what_was_tried_last() -> None:
    async with house() as h:
        for why in ("no route", "no room"):
            h.copies[0].down = why
            await h.remember(f"written when there was {why}")
            await h.outbox.join()
            h.clock.advance(10_000)
        assert (await h.engine.stores.list(WHO))[1]["last_error"] == "no room"


@run
async def test_what_was_delivered_and_waits_to_be_delivered_once_more_says_why() -> None:
    async with house() as h:
        h.copies[0].down = "no route"
        await h.remember("words")
        await h.settled()
        h.copies[0].down = None
        h.clock.advance(10_000)
        await h.outbox.run_due()
        await h.settled()
        shown = (await h.engine.stores.list(Principal(role="reviewer")))[1]
        assert (shown["status"], shown["waiting"], shown["failing"]) == ("ok", 1, 0)
        assert shown["last_error"] == "an earlier write may still arrive; it is delivered once more then"
        h.clock.advance(60_000)
        await h.outbox.run_due()
        await h.settled()
        shown = (await h.engine.stores.list(WHO))[1]
        assert (shown["waiting"], "last_error" in shown) == (0, False)


@run
async def test_a_store_that_is_well_and_did_not_take_something_is_a_finding() -> None:
    async with house() as h:
        h.copies[0].refuses = "poison"
        await h.remember("poison")
        await h.remember("tea")
        await h.outbox.join()
        (found,) = await h.engine.stores.examine()
        assert (found.ok, found.detail) == (False, "ok; 1 of 1 changes that wait for it failed")


@run
async def test_only_an_operator_sees_where_a_store_is() -> None:
    async with house() as h:
        replica = h.outbox.replicas.named("copy")
        replica.attachment = replace(replica.attachment, shown="sqlite:///srv/copy.db")
        for who in (WHO, Principal("alice", "acme", "admin", ("*",)), Principal("bob", "local", "writer", ("*",))):
            shown = (await h.engine.stores.list(who))[1]
            assert shown.get("url") == ("sqlite:///srv/copy.db" if who is WHO else None)
