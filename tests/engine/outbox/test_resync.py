from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from replica_house import AGENT, Flaky, House, Late, house, run

from commonplace.engine import Draft, Engine, Forget, Merge, Update
from commonplace.engine.ledger import audit
from commonplace.engine.outbox import resync
from commonplace.engine.outbox.courier import DOUBT_MS
from commonplace.engine.outbox.resync import TIMEOUT_SECONDS, Comparison, digest
from commonplace.stores import mixins
from commonplace.stores.base import Entry, Reach
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.mixins import scan_all
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory


def _memory(id: str, content: str = "words") -> Memory:
    return Memory(id, "local", AGENT, "semantic", content, created_at=1)


def test_a_digest_is_of_what_they_say_and_not_of_their_order() -> None:
    one, two = _memory("a"), _memory("b")
    assert digest([one, two]) == digest([two, one]) != digest([one])
    assert digest([replace(one, content="Words")]) != digest([one])
    assert digest([replace(one, seq=7, recalls=3, demotion=0.25)]) == digest([one])


def test_what_differs_is_told_apart() -> None:
    compared = Comparison()
    for memory in (_memory("same"), _memory("changed"), _memory("missing"), _memory("twice"), _memory("twice changed")):
        compared.add_wanted(memory)
    copies = [_memory("same"), _memory("changed", "other"), _memory("extra"), _memory("extra", "again")]
    copies += [_memory("twice")] * 2 + [_memory("twice changed", "other"), _memory("twice changed")]
    for memory in copies:
        compared.add_copy(memory)
    assert compared.differing() == ["changed", "missing", "twice", "twice changed"]
    assert compared.extra() == ["extra"]


#: A field as the primary has it and as a product gave it back, and whether the copy is told again.
GIVEN_BACK: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "keys in another order": (
        {"metadata": {"a": 1, "b": {"c": 2, "d": 3}}},
        {"metadata": {"b": {"d": 3, "c": 2}, "a": 1}},
        False,
    ),
    "a whole number": ({"confidence": 1.0, "metadata": {"n": 2}}, {"confidence": 1, "metadata": {"n": 2.0}}, False),
    "another number": ({"metadata": {"n": 2}}, {"metadata": {"n": 2.5}}, True),
    "a number as a text": ({"metadata": {"n": 2}}, {"metadata": {"n": "2"}}, True),
    "tags in another order": ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, True),
    "half a character": ({"title": "\ud83c"}, {"title": "\ud83c"}, False),
    "a number that no JSON has": ({"metadata": {"n": 2**80}}, {"metadata": {"n": 2**80}}, False),
    "what only the primary has": ({}, {"recalls": 3, "seq": 9, "demotion": 0.5}, False),
}


@pytest.mark.parametrize("case", GIVEN_BACK)
def test_a_copy_is_told_again_where_a_field_says_something_else(case: str) -> None:
    kept, given_back, is_told = GIVEN_BACK[case]
    compared = Comparison()
    compared.add_wanted(replace(_memory("a"), **kept))
    compared.add_copy(replace(_memory("a"), **given_back))
    assert compared.differing() == (["a"] if is_told else [])


@run
async def test_no_more_than_a_few_pages_are_held_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Of either store, however many memories an agent has: both of them and what is sent are read page by page."""
    monkeypatch.setattr(mixins, "SCANNED_AT_ONCE", 10)
    monkeypatch.setattr(resync, "_AT_ONCE", 10)
    clock, most = FakeClock(), 0
    copy = PrimaryCopy(SqliteStore(tmp_path / "copy.db", clock))
    copy.name = "copy"
    primary = SqliteStore(tmp_path / "primary.db", clock)

    def noting(verb: Any) -> Any:
        async def noted(*args: Any, **how: Any) -> Any:
            nonlocal most
            answer = await verb(*args, **how)
            most = max(most, sum(type(each) is Memory for each in gc.get_objects()))
            return answer

        return noted

    # What a busy machine confirms too late is in doubt, and would be sent once more.
    async with house(primary=primary, clock=clock, stores=[copy], timeout=600.0) as h:
        await asyncio.gather(*(h.remember(f"fact {n}") for n in range(300)))
        await h.outbox.join()
        held = [memory.id for memory in await scan_all(copy, Reach("local", (AGENT,)))]
        await copy.delete("local", held[:150])
        await copy.put([Entry(_memory(f"0199-{n}", f"an invention {n}"), None, b"") for n in range(150)])
        gc.collect()
        gc.freeze()  # what was there before is not listed: a worker that ran many tests has a million of objects
        request.addfinalizer(gc.unfreeze)
        for store, verb in ((primary, "scan"), (copy, "scan"), (primary, "get"), (copy, "delete"), (copy, "put")):
            monkeypatch.setattr(store, verb, noting(getattr(store, verb)))
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["memories"], done["sent"], done["deleted"]) == (True, 300, 150, 150)
    assert 10 <= most <= 40


OTHER: dict[str, Any] = {
    "agent_id": "other", "type": "episodic", "content": "Words", "user_id": "bob", "created_at": 2, "expires_at": 9,
}  # fmt: skip


@pytest.mark.parametrize("field", OTHER)
def test_what_every_store_keeps_is_compared_and_proved(field: str) -> None:
    held = [_memory("a")]
    copies = [replace(held[0], **{field: OTHER[field]})]
    assert digest(copies) != digest(held)
    assert _compared(held, copies).differing() == ["a"]


def test_of_two_copies_one_is_too_many() -> None:
    held = [_memory("a")]
    assert _compared(held, held).differing() == []
    assert _compared(held, held * 2).differing() == ["a"]
    assert _compared([], held * 2).extra() == ["a"]


def _compared(held: list[Memory], copies: list[Memory]) -> Comparison:
    compared = Comparison()
    for memory in held:
        compared.add_wanted(memory)
    for memory in copies:
        compared.add_copy(memory)
    return compared


@run
async def test_a_replica_that_differs_in_every_way_becomes_equal() -> None:
    async with house() as h:
        ids = [await h.remember(f"fact {n}") for n in range(6)]
        await h.outbox.join()
        copy = h.copies[0]
        await copy.delete("local", ids[:1])
        (changed,) = await copy.get("local", ids[1:2])
        await copy.put([Entry(replace(changed, content="altered"), None, b"")])
        await copy.put([Entry(_memory("0199-invented", "an invention"), None, b"")])
        copy.down = "for a moment"
        await h.engine.forget(WHO, Forget(AGENT, [ids[2]]))
        await h.remember("written meanwhile")
        await h.outbox.join()
        copy.down = None
        seen: list[tuple[int, int]] = []
        done = await h.engine.stores.resync(WHO, "copy", lambda at, of: seen.append((at, of)))
        assert done["equal"]
        assert (done["memories"], done["copies"], done["sent"], done["deleted"]) == (6, 6, 3, 2)
        assert done["hash"] == done["copies_hash"]
        assert seen[-1] == (6, 6)
        assert await h.equal()
        # Neither the write nor the deletion was confirmed: what comes of both is looked at once more.
        doubtful = [*await h.waiting()]
        assert ids[2] in doubtful
        h.clock.advance(DOUBT_MS)
        await h.outbox.run_due()
        assert await h.waiting() == {}
        assert [m.content for m in await copy.get("local", doubtful)] == ["written meanwhile"]
        assert (await h.engine.stores.resync(WHO, "copy"))["sent"] == 0


Removal = Callable[[House, str], Awaitable[object]]


async def _expires(h: House, id: str) -> None:
    await h.engine.update(WHO, Update(AGENT, id, expires_at=h.clock() + DAY_MS))
    h.clock.advance(2 * DAY_MS)


async def _expires_and_is_erased(h: House, id: str) -> None:
    await _expires(h, id)
    h.clock.advance(400 * DAY_MS)
    await h.engine.lifecycle.run(WHO, "expire")


async def _is_merged(h: House, id: str) -> None:
    other = await h.remember("Alice likes tea")
    await h.engine.merge(WHO, Merge(AGENT, other, [id]))


REMOVALS: dict[str, Removal] = {
    "forgotten": lambda h, id: h.engine.forget(WHO, Forget(AGENT, [id])),
    "erased": lambda h, id: h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True)),
    "expired": _expires,
    "expired and erased": _expires_and_is_erased,
    "merged": _is_merged,
}


@pytest.mark.parametrize("how", REMOVALS)
@pytest.mark.parametrize("keep_unknown", [True, False])
@run
async def test_what_is_gone_here_is_deleted_and_is_not_called_unknown(how: str, keep_unknown: bool) -> None:
    async with house() as h:
        id = await h.remember("Alice drinks tea")
        await h.outbox.join()
        (copy,) = await h.copies[0].get("local", [id])
        await REMOVALS[how](h, id)
        await h.outbox.run_due()
        await h.outbox.join()
        await h.copies[0].put([Entry(copy, None, b"")])  # as if it had been away
        done = await h.engine.stores.resync(WHO, "copy", keep_unknown=keep_unknown)
        assert (done["equal"], done["deleted"], "unknown" in done) == (True, 1, False)
        assert await h.copies[0].get("local", [id]) == []


@run
async def test_what_was_never_here_is_named_and_left_where_that_was_asked_for() -> None:
    async with house() as h:
        await h.remember("Alice drinks tea")
        await h.outbox.join()
        await h.copies[0].put([Entry(_memory("0199-newer", "of a store that was lost"), None, b"")])
        unknown = [{"tenant": "local", "agent_id": AGENT, "id": "0199-newer"}]
        left = await h.engine.stores.resync(WHO, "copy", keep_unknown=True)
        assert (left["equal"], left["deleted"], left["unknown"], left["copies"]) == (False, 0, unknown, 2)
        gone = await h.engine.stores.resync(WHO, "copy")
        assert (gone["equal"], gone["deleted"], gone["unknown"], gone["copies"]) == (True, 1, unknown, 1)


@pytest.mark.parametrize("keep_unknown", [True, False])
@run
async def test_a_dry_run_counts_and_changes_nothing(keep_unknown: bool) -> None:
    async with house() as h:
        ids = [await h.remember(f"fact {n}") for n in range(4)]
        await h.outbox.join()
        copy = h.copies[0]
        await copy.delete("local", ids[:1])
        (changed,) = await copy.get("local", ids[1:2])
        await copy.put([Entry(replace(changed, content="altered"), None, b"")])
        await copy.put([Entry(_memory("0199-newer", "of a store that was lost"), None, b"")])
        before = await copy.contents()
        seen: list[tuple[int, int]] = []
        said = await h.engine.stores.resync(
            WHO, "copy", lambda at, of: seen.append((at, of)), dry_run=True, keep_unknown=keep_unknown
        )
        assert (said["sent"], said["deleted"], said["memories"], said["copies"]) == (2, 0 if keep_unknown else 1, 4, 4)
        assert (said["equal"], said["dry_run"], len(said["unknown"]), seen[-1]) == (False, True, 1, (4, 4))
        assert (await copy.contents(), await h.waiting()) == (before, {})
        await h.engine.stores.resync(WHO, "copy")
        assert (await h.engine.stores.resync(WHO, "copy", dry_run=True))["equal"]


@run
async def test_a_store_to_which_nothing_was_written_yet_is_no_equal_of_one_with_copies() -> None:
    """It has no tenant: no agent of any was looked at, and both had the same 0."""
    clock = FakeClock()
    copy = _WithoutTenants(clock)
    async with house(clock=clock, stores=[copy]) as h:
        await copy.put([Entry(_memory("0199-older", "of a store that was lost"), None, b"")])
        assert await h.primary.tenants() == []
        left = await h.engine.stores.resync(WHO, "copy", keep_unknown=True)
        assert (left["equal"], [each["id"] for each in left["unknown"]]) == (False, ["0199-older"])
        assert (await h.engine.stores.resync(WHO, "copy"))["deleted"] == 1


@run
async def test_what_has_expired_is_no_longer_there_afterwards() -> None:
    async with house() as h:
        await h.remember("brief", expires_at=h.clock() + DAY_MS)
        await h.remember("lasting")
        h.clock.advance(2 * DAY_MS)
        assert (await h.engine.stores.resync(WHO, "copy"))["deleted"] == 1
        assert await h.copies[0].contents() == {"lasting"}


@pytest.mark.parametrize("missing", [True, False])
@run
async def test_what_expires_meanwhile_makes_no_difference(missing: bool) -> None:
    async with house() as h:
        id = await h.remember("brief", expires_at=h.clock() + DAY_MS)
        await h.remember("lasting")
        await h.outbox.join()
        if missing:
            await h.copies[0].delete("local", [id])

        async def happens() -> None:
            h.clock.advance(2 * DAY_MS)

        _while_it_reads(h.copies[0], happens)
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["memories"], done["copies"]) == (True, 1, 1)


@run
async def test_an_agent_whose_memories_are_all_erased_is_looked_at_too() -> None:
    """What was erased while the store was not attached, of an agent that the primary has nothing else of."""
    async with house() as h:
        id = await h.remember("Carol's diary")
        await h.outbox.join()
        (copy,) = await h.copies[0].get("local", [id])
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        await h.outbox.join()
        await h.copies[0].put([Entry(copy, None, b"")])
        assert await h.primary.agent_names("local") == []
        _cannot_list_agents(h.copies[0])
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["deleted"]) == (True, 1)
        assert await h.copies[0].contents() == set()


def _cannot_list_agents(store: Flaky) -> None:
    async def agent_names(tenant: str) -> list[str]:
        return []

    store.agent_names = agent_names  # type: ignore[method-assign]


@run
async def test_an_agent_that_only_the_replica_has_is_looked_at_where_it_can_list_them() -> None:
    async with house() as h:
        await h.remember("words")
        await h.copies[0].put([Entry(replace(_memory("0199-invented"), agent_id="unheard of"), None, b"")])
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["deleted"], done["copies"]) == (True, 1, 1)
        assert await h.copies[0].get("local", ["0199-invented"]) == []


@run
async def test_entries_of_all_agents_name_none() -> None:
    """A product may read * as any agent: nothing may be asked, let alone deleted, by that name."""
    async with house() as h:
        await h.remember("words")
        await h.engine.policies.replace(WHO, [])  # in the ledger under *
        assert "*" in await audit.agents_in(h.primary, "local")
        asked: list[str] = []
        scan = h.copies[0].scan

        async def noted(reach: Any, **how: Any) -> Any:
            asked.extend(reach.agents)
            return await scan(reach, **how)

        h.copies[0].scan = noted  # type: ignore[method-assign]
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        assert set(asked) == {AGENT}


@pytest.mark.parametrize("erased", [True, False])
@run
async def test_an_agent_that_is_named_as_all_agents_are_is_one_agent(erased: bool) -> None:
    """The name is allowed, so what it has is made equal like any other's: an erasure while the store was away, too."""
    async with house() as h:
        id = (await h.engine.remember(WHO, Draft("*", "semantic", "starry words"))).id
        other = await h.remember("plain words")
        await h.outbox.join()
        (copy,) = await h.copies[0].get("local", [id])
        if erased:
            await h.engine.forget(WHO, Forget("*", [id], hard_delete=True))
            await h.outbox.join()
            await h.copies[0].put([Entry(copy, None, b"")])
        else:
            await h.copies[0].delete("local", [id])
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["deleted"], done["sent"]) == (True, int(erased), int(not erased))
        there = await h.copies[0].get("local", [id, other])
        assert [m.id for m in there] == ([other] if erased else [id, other])


@run
async def test_a_store_that_takes_the_name_for_all_agents_loses_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    async with house() as h:
        await h.engine.remember(WHO, Draft("*", "semantic", "starry words"))
        await h.remember("plain words")
        await h.outbox.join()
        copy, deleted = h.copies[0], list[str]()
        scan, delete = copy.scan, copy.delete

        async def scan_any(reach: Any, **how: Any) -> Any:
            agents = ("*", AGENT) if reach.agents == ("*",) else reach.agents
            return await scan(replace(reach, agents=agents), **how)

        async def noted(tenant: str, ids: Any) -> int:
            deleted.extend(ids)
            return await delete(tenant, ids)

        monkeypatch.setattr(copy, "scan", scan_any)
        monkeypatch.setattr(copy, "delete", noted)
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["deleted"], done["copies"], deleted) == (True, 0, 2, [])


@run
async def test_a_tenant_that_only_the_replica_has_is_looked_at_where_it_can_list_them() -> None:
    """As after a restore of a backup from before its first memory."""
    async with house() as h:
        await h.remember("words")
        await h.copies[0].put([Entry(replace(_memory("0199-theirs", "acme's words"), tenant="acme"), None, b"")])
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["deleted"], done["copies"], done["all_tenants"]) == (True, 1, 1, True)
        assert await h.copies[0].get("acme", ["0199-theirs"]) == []


@run
async def test_a_tenant_that_the_replica_has_of_its_own_is_left() -> None:
    async with house() as h:
        await h.remember("words")
        own = await Engine.open(h.copies[0]._primary, None, clock=h.clock)
        who = replace(WHO, tenant="acme")
        kept = await own.remember(who, Draft(AGENT, "semantic", "acme's own words"))
        with pytest.raises(Unavailable, match="ledger of its own"):
            await h.engine.stores.resync(WHO, "copy")
        assert [m.content for m in await h.copies[0].get("acme", [kept.id])] == ["acme's own words"]


@run
async def test_that_tenants_of_a_replica_were_not_looked_at_is_said() -> None:
    clock = FakeClock()
    async with house(clock=clock, stores=[_WithoutTenants(clock)]) as h:
        await h.remember("words")
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["all_tenants"]) == (True, False)


class _WithoutTenants(Flaky):
    """A store that does not say whose tenants' copies it has."""

    tenants = None  # type: ignore[assignment]


def _while_it_reads(store: Flaky, happens: Callable[[], Awaitable[object]]) -> None:
    """Once, when the primary was read and the copies are about to be."""
    scan = store.scan

    async def scanned(reach: Any, **how: Any) -> Any:
        store.scan = scan  # type: ignore[method-assign]
        await happens()
        return await scan(reach, **how)

    store.scan = scanned  # type: ignore[method-assign]


@pytest.mark.parametrize("waits", [True, False])
@run
async def test_older_metadata_is_told_again_whether_it_waits_or_not(waits: bool) -> None:
    async with house() as h:
        id = await h.remember("tea at four", metadata={"place": "Rome"}, tags=["secret"])
        await h.outbox.join()
        (before,) = await h.copies[0].get("local", [id])
        h.copies[0].down = "for a moment" if waits else None
        await h.engine.update(WHO, Update(AGENT, id, metadata={"place": "Porto"}, tags=[]))
        await h.outbox.join()
        h.copies[0].down = None
        h.clock.advance(DOUBT_MS)
        if not waits:
            await h.copies[0].put([Entry(before, None, b"")])
        assert (await h.engine.stores.resync(WHO, "copy"))["sent"] == 1
        (copy,) = await h.copies[0].get("local", [id])
        assert (copy.metadata, copy.tags) == ({"place": "Porto"}, [])
        assert await h.waiting() == {}


@run
async def test_what_no_comparison_sees_is_told_where_the_outbox_knows_of_it() -> None:
    async with house() as h:
        await h.remember("with a vector of another embedder")
        await h.outbox.join()
        await h.outbox.requeue_all()
        assert (await h.engine.stores.resync(WHO, "copy"))["sent"] == 1
        assert await h.waiting() == {}


#: What may be done to "old" by a writer while a resync is under way, and what is right afterwards.
MEANWHILE: dict[str, tuple[Callable[[House, str], Awaitable[object]], set[str]]] = {
    "an update": (lambda h, id: h.engine.update(WHO, Update(AGENT, id, content="new")), {"new"}),
    "a forgetting": (lambda h, id: h.engine.forget(WHO, Forget(AGENT, [id])), set()),
    "an erasure": (lambda h, id: h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True)), set()),
    "a write": (lambda h, id: h.remember("another"), {"old", "another"}),
}


@pytest.mark.parametrize("altered", [False, True], ids=["equal", "altered"])
@pytest.mark.parametrize("change", MEANWHILE)
@run
async def test_what_waits_since_it_was_read_goes_on_waiting(change: str, altered: bool) -> None:
    """The store does not take it at that moment, so nobody but the outbox knows of it."""
    async with house() as h:
        id = await h.remember("old")
        await h.outbox.join()
        if altered:
            await _alter(h, id)

        async def happens() -> None:
            h.copies[0].down = "for a moment"
            await MEANWHILE[change][0](h, id)
            await h.outbox.join()
            h.copies[0].down = None

        _while_it_reads(h.copies[0], happens)
        await h.engine.stores.resync(WHO, "copy")
        h.clock.advance(10 * DOUBT_MS)
        await h.outbox.run_due()
        assert await h.copies[0].contents() == MEANWHILE[change][1]
        assert await h.waiting() == {}


async def _alter(h: House, id: str) -> None:
    (copy,) = await h.copies[0].get("local", [id])
    await h.copies[0].put([Entry(replace(copy, content="altered"), None, b"")])


@pytest.mark.parametrize("change", MEANWHILE)
@run
async def test_no_older_state_is_put_over_what_another_process_delivers_meanwhile(change: str) -> None:
    async with house() as h, house(primary=h.primary, clock=h.clock, stores=h.copies) as other:
        id = await h.remember("old")
        await h.outbox.join()
        await _alter(h, id)  # so that it is told again
        _while_it_reads(h.copies[0], lambda: MEANWHILE[change][0](other, id))
        await h.engine.stores.resync(WHO, "copy")
        assert await h.copies[0].contents() == MEANWHILE[change][1]


@run
async def test_what_comes_back_while_it_is_taken_for_gone_is_there() -> None:
    async with house() as h:
        id = await h.remember("comes back")
        await h.outbox.join()
        (copy,) = await h.copies[0].get("local", [id])
        await h.engine.forget(WHO, Forget(AGENT, [id]))
        await h.outbox.join()
        await h.copies[0].put([Entry(copy, None, b"")])
        _while_it_reads(h.copies[0], lambda: h.engine.undelete(WHO, AGENT, id))
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        assert await h.copies[0].contents() == {"comes back"}


@pytest.mark.parametrize("late", [False, True], ids=["killed", "slow"])
@run
async def test_what_another_process_has_in_hand_is_told_now_and_once_more_when_theirs_cannot_arrive(late: bool) -> None:
    clock = FakeClock()
    copy = Late(clock)
    async with (
        house(clock=clock, stores=[copy]) as h,
        house(primary=h.primary, clock=clock, stores=[copy], timeout=5) as other,
    ):
        theirs = asyncio.create_task(other.remember("old"))
        while not copy.under_way:
            await asyncio.sleep(0)
        copy.late = False
        (id,) = await h.waiting()
        await h.engine.update(WHO, Update(AGENT, id, content="new"))
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        assert await copy.contents() == {"new"}
        if late:
            copy.arrives.set()
            await theirs
            await copy.under_way[0]
            assert await copy.contents() == {"old"}
            await other.outbox.join()  # it finds that this is not the last word, and that it is not due yet
        else:
            killed = other.outbox._couriers["copy"]._task
            killed.cancel()
            theirs.cancel()
            await asyncio.wait([killed, theirs])
            copy.under_way[0].cancel()
        assert set(await h.waiting()) == {id}
        clock.advance(10 * 60_000)
        await h.outbox.run_due()
        assert await copy.contents() == {"new"}
        assert await h.waiting() == {}


@run
async def test_one_that_was_killed_is_finished_by_the_next() -> None:
    async with house(copies=0) as h:
        for n in range(120):
            await h.remember(f"fact {n}")
        copy = Flaky(h.clock)
        async with house(primary=h.primary, clock=h.clock, stores=[copy]) as killed:
            work = asyncio.create_task(killed.engine.stores.resync(WHO, "copy"))
            while not await copy.contents():
                await asyncio.sleep(0)
            work.cancel()
        assert 0 < len(await copy.contents()) < 120
        async with house(primary=h.primary, clock=h.clock, stores=[copy]) as again:
            assert (await again.engine.stores.resync(WHO, "copy"))["equal"]
            assert await again.equal()
            h.clock.advance(10 * 60_000)
            await again.outbox.run_due()
            assert await again.waiting() == {}
            assert await again.equal()


@pytest.mark.parametrize("erased", [True, False], ids=["erased", "comes back"])
@run
async def test_an_extra_copy_is_in_the_outbox_before_it_is_deleted(erased: bool) -> None:
    """Whoever is killed between the two leaves nothing behind that nobody knows of."""
    async with house() as h:
        id = await h.remember("words")
        await h.outbox.join()
        (copy,) = await h.copies[0].get("local", [id])
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=erased))
        await h.outbox.join()
        await h.copies[0].put([Entry(copy, None, b"")])
        delete, known = h.copies[0].delete, list[set[str]]()

        async def killed(tenant: str, ids: Any) -> int:
            known.append(set(await h.waiting()))
            if not erased:
                await delete(tenant, ids)
                h.copies[0].down = "it goes away"
                await h.engine.undelete(WHO, AGENT, id)
            resync.cancel()
            await asyncio.Event().wait()
            raise AssertionError

        h.copies[0].delete = killed  # type: ignore[method-assign]
        resync = asyncio.create_task(h.engine.stores.resync(WHO, "copy"))
        with pytest.raises(asyncio.CancelledError):
            await resync
        assert known == [{id}]
        assert h.outbox._loop is not None
        h.outbox._loop.cancel()  # whoever is killed looks for nothing any more
        h.copies[0].delete, h.copies[0].down = delete, None  # type: ignore[method-assign]
        async with house(primary=h.primary, clock=h.clock, stores=h.copies) as later:
            h.clock.advance(10 * 60_000)
            await later.outbox.run_due()
            assert await h.copies[0].contents() == (set() if erased else {"words"})
            assert await later.waiting() == {}


@run
async def test_what_comes_back_and_is_delivered_while_its_copy_is_being_deleted_is_there() -> None:
    async with house() as h:
        id = await h.remember("comes back")
        await h.outbox.join()
        (copy,) = await h.copies[0].get("local", [id])
        await h.engine.forget(WHO, Forget(AGENT, [id]))
        await h.outbox.join()
        await h.copies[0].put([Entry(copy, None, b"")])
        delete = h.copies[0].delete

        async def slow(tenant: str, ids: Any) -> int:
            h.copies[0].delete = delete  # type: ignore[method-assign]
            await h.engine.undelete(WHO, AGENT, id)
            await h.outbox.join()
            assert await h.waiting() == {}
            return await delete(tenant, ids)

        h.copies[0].delete = slow  # type: ignore[method-assign]
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        assert await h.copies[0].contents() == {"comes back"}


@run
async def test_what_comes_back_is_there_though_the_store_confirms_it_only_after_its_copy_was_deleted() -> None:
    """It was put before the deletion; that it was is no reason to think that it is there."""
    async with house() as h:
        id = await h.remember("comes back")
        await h.outbox.join()
        (copy,) = await h.copies[0].get("local", [id])
        await h.engine.forget(WHO, Forget(AGENT, [id]))
        await h.outbox.join()
        await h.copies[0].put([Entry(copy, None, b"")])
        put, delete, transact = h.copies[0].put, h.copies[0].delete, h.primary.transact
        is_put, confirms = asyncio.Event(), asyncio.Event()

        async def puts(entries: Any) -> None:
            await put(entries)
            is_put.set()
            await confirms.wait()

        async def slow(tenant: str, ids: Any) -> int:
            h.copies[0].put, h.copies[0].delete = puts, delete  # type: ignore[method-assign]
            writers.append(asyncio.create_task(h.engine.undelete(WHO, AGENT, id)))
            await is_put.wait()
            h.primary.transact = recorded
            return await delete(tenant, ids)

        async def recorded(tenant: str, work: Any) -> Any:
            h.primary.transact = transact
            result = await transact(tenant, work)
            confirms.set()
            await asyncio.gather(*writers)
            await h.settled()
            return result

        writers = list[asyncio.Task[Any]]()
        h.copies[0].delete = slow  # type: ignore[method-assign]
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        assert await h.copies[0].contents() == {"comes back"}
        assert await h.waiting() == {}


@run
async def test_what_is_written_while_an_operator_waits_is_left_to_this_process_as_long() -> None:
    """It waits behind what may take so long; another process that took it over would be overtaken by it."""
    clock = FakeClock()
    copy = Late(clock)
    copy.late = False
    async with house(clock=clock, stores=[copy]) as h:
        id = await h.remember("words")
        await h.outbox.join()
        copy.late, copy.under_way = True, []
        replica = h.outbox.replicas.named("copy")
        resent = asyncio.create_task(h.outbox.resend(replica, "local", {id: AGENT}, TIMEOUT_SECONDS))
        while not copy.under_way:
            await asyncio.sleep(0)
        writer = asyncio.create_task(h.remember("written meanwhile"))
        while len(await h.waiting()) < 2:
            await asyncio.sleep(0)
        held = await h.waiting()
        assert {key: each["until"] - clock() for key, each in held.items()} == dict.fromkeys(held, 360_000)
        copy.arrives.set()
        await asyncio.gather(resent, writer)


@run
async def test_two_at_once_each_keep_an_operators_timeout() -> None:
    async with house() as h:
        one, two = await h.remember("one"), await h.remember("two")
        await h.outbox.join()
        replica, current, ordinary = h.outbox.replicas.named("copy"), h.outbox.current, list[object]()
        deliver = replica.deliver

        async def noted(verb: Any) -> Any:
            ordinary.append(verb)
            return await deliver(verb)

        async def after_the_first(tenant: str, claimed: Any, replica: Any) -> Any:
            if two in claimed:
                await asyncio.wait([first])
            return await current(tenant, claimed, replica)

        replica.deliver, h.outbox.current = noted, after_the_first
        first = asyncio.create_task(h.outbox.resend(replica, "local", {one: AGENT}, TIMEOUT_SECONDS))
        await asyncio.sleep(0)  # it begins
        assert await h.outbox.resend(replica, "local", {two: AGENT}, TIMEOUT_SECONDS) == await first == []
        assert ordinary == []


@run
async def test_a_store_that_goes_away_meanwhile_is_told_of_and_catches_up() -> None:
    async with house() as h:
        id = await h.remember("words")
        await h.outbox.join()
        await h.copies[0].delete("local", [id])

        async def happens() -> None:
            h.copies[0].down = "the cable was pulled"

        _while_it_reads(h.copies[0], happens)
        with pytest.raises(Unavailable, match="the cable was pulled"):
            await h.engine.stores.resync(WHO, "copy")
        h.copies[0].down = None
        h.clock.advance(10 * DOUBT_MS)
        await h.outbox.run_due()
        assert await h.copies[0].contents() == {"words"}


@run
async def test_one_that_a_store_cannot_take_does_not_keep_the_others_from_it() -> None:
    async with house(copies=0) as h:
        for text in ("fine", "poison", "also fine"):
            await h.remember(text)
        copy = Flaky(h.clock)
        copy.refuses = "poison"
        async with house(primary=h.primary, clock=h.clock, stores=[copy]) as attached:
            done = await attached.engine.stores.resync(WHO, "copy")
            assert (done["equal"], done["sent"], done["memories"], done["copies"]) == (False, 2, 3, 2)
            assert [each["error"] for each in (await attached.waiting()).values()] == ["it failed: RuntimeError"]


class Careless(Flaky):
    """As many copies as there should be, of something else."""

    async def put(self, entries: Any) -> None:
        await super().put([replace(each, memory=replace(each.memory, user_id="bob")) for each in entries])


@run
async def test_a_store_that_has_as_many_and_keeps_something_else_is_not_found_equal() -> None:
    clock = FakeClock()
    async with house(clock=clock, stores=[Careless(clock)]) as h:
        for number in range(3):
            await h.remember(f"of Alice {number}", user_id="alice")
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["sent"], done["memories"], done["copies"]) == (False, 3, 3, 3)
        assert done["hash"] != done["copies_hash"]
