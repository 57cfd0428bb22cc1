"""Every change reaches every replica, at once or later, and nothing else does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jumping_loop import JumpingLoop, pass_seconds, standing_still
from replica_house import AGENT, Flaky, House, Late, LateDeletions, house, run

import commonplace.engine
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import (
    Attachment,
    BadSource,
    BatchItem,
    Decision,
    Draft,
    Engine,
    Expire,
    Fire,
    Forget,
    Merge,
    Query,
    Settings,
    Update,
)
from commonplace.engine.outbox.courier import DOUBT_MS
from commonplace.engine.outbox.deliveries import kind_of
from commonplace.engine.outbox.outbox import LEASE_MS, POLL_SECONDS
from commonplace.stores.base import Entry, Record, Store
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory, Principal

# every way of changing a memory


async def _approve(h: House) -> None:
    staged = await h.engine.remember(WHO, Draft(AGENT, "semantic", "pending words"), approval={"content": "x"})
    assert h.copies[0].down or await h.equal()  # what waits is nowhere else
    await h.engine.reviews.decide(WHO, staged.review_id or "", Decision(True, "Alice"))


async def _reject(h: House) -> None:
    staged = await h.engine.remember(WHO, Draft(AGENT, "semantic", "pending words"), approval={"content": "x"})
    await h.engine.reviews.decide(WHO, staged.review_id or "", Decision(False, "Alice"))


async def _forget(h: House, hard: bool = False) -> None:
    id = await h.remember("to be forgotten")
    assert h.copies[0].down or await h.equal()
    await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=hard))


async def _undelete(h: House) -> None:
    id = await h.remember("comes back")
    await h.engine.forget(WHO, Forget(AGENT, [id]))
    await h.engine.undelete(WHO, AGENT, id)


async def _merge(h: House, undo: bool = False) -> None:
    one, two = await h.remember("Alice lives in Rome"), await h.remember("Alice lives in Roma")
    await h.engine.merge(WHO, Merge(AGENT, one, [two], "keep_canonical" if undo else "merge_content"))
    if undo:
        assert h.copies[0].down or await h.equal()
        await h.engine.unmerge(WHO, AGENT, two)


async def _expire(h: House, action: Any = "forget") -> None:
    await h.remember("an old fact")
    h.clock.advance(40 * DAY_MS)
    await h.engine.expire(WHO, Expire(AGENT, older_than_days=30, action=action))


async def _ttl(h: House) -> None:
    await h.remember("brief", expires_at=h.clock() + DAY_MS)
    h.clock.advance(2 * DAY_MS)
    await h.engine.lifecycle.run(WHO, "expire")


async def _retention(h: House) -> None:
    await h.remember("promised to go", privacy={"retain": 1})
    h.clock.advance(2 * DAY_MS)
    await h.engine.lifecycle.run(WHO, "retain")


async def _update(h: House) -> None:
    id = await h.remember("the first text")
    await h.engine.update(WHO, Update(AGENT, id, content="the second text", metadata={"n": 1}))


async def _upsert(h: House) -> None:
    await h.engine.upsert(WHO, Draft(AGENT, "semantic", "one"), "mine", AGENT)
    await h.engine.upsert(WHO, Draft(AGENT, "semantic", "two"), "mine", AGENT)


async def _redact(h: House) -> None:
    await h.remember("the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH")
    assert not any("abcdefghijklmnop" in text for text in await h.copies[0].contents())


async def _batch(h: House) -> None:
    await h.engine.remember_many(WHO, [BatchItem(Draft(AGENT, "semantic", f"item {n}")) for n in range(70)])


async def _procedure(h: House) -> None:
    step = '{"trigger": "boil", "source": "cold", "dest": "hot"}'
    text = f'{{"name": "tea", "states": ["cold", "hot"], "transitions": [{step}]}}'
    id = await h.remember(text, type="procedural")
    await h.engine.procedures.fire(WHO, Fire(id, "boil"))


async def _undo_archiving(h: House) -> None:
    await _expire(h, "archive")
    old = [m.id for m in (await h.engine.list(WHO, (AGENT,))).memories]
    assert (await h.engine.undo(WHO, old)).restored


async def _recover(h: House, undo: bool = False) -> None:
    await h.remember("poison", source="https://evil.example")
    assert h.copies[0].down or await h.equal()
    done = await h.engine.recovery.recover(WHO, BadSource("https://evil.example"))
    assert len(done.affected) == 1
    if undo:
        assert h.copies[0].down or await h.equal()
        await h.engine.recovery.undo(WHO, done.recovery_id or "")


async def _approved(h: House, what: str) -> None:
    one, two = await h.remember("Alice lives in Rome"), await h.remember("Alice lives in Roma")
    if what == "forget":
        staged: Any = await h.engine.forget(WHO, Forget(AGENT, [one], hard_delete=True, approval_required=True))
    elif what == "merge":
        staged = await h.engine.merge(WHO, Merge(AGENT, one, [two], approval_required=True))
    else:
        staged = await h.engine.update(WHO, Update(AGENT, one, content="Alice moved", approval_required=True))
    assert h.copies[0].down or await h.equal()
    await h.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice"))


async def _share(h: House) -> None:
    id = await h.remember("shared later")
    await h.engine.update(WHO, Update(AGENT, id, privacy_intent={"share_with": ["Babel"]}))


async def _consolidate(h: House) -> None:
    for n in range(4):
        await h.remember("Alice takes the ferry at seven", metadata={"short_term": True, "keep": n == 0})
    h.clock.advance(3 * DAY_MS)
    assert sum((await h.engine.lifecycle.run(WHO, "consolidate")).counts.values())


async def _dream(h: House) -> None:
    for _ in range(3):
        await h.remember("Alice takes the ferry at seven in the morning", kind="drawer")
    h.clock.advance(3 * DAY_MS)
    assert sum((await h.engine.lifecycle.run(WHO, "dream")).counts.values())


async def _import(h: House) -> None:
    line = Memory("0199aaaa-0000-7000-8000-000000000001", "local", AGENT, "semantic", "imported", created_at=1)
    first = replace(line, version=1, seq=1, updated_at=1)
    versions = [first, replace(first, content="imported anew", version=2, seq=2)]
    (done,) = await h.engine.imports.memories(WHO, [versions])
    assert done.result == "written"


WAYS: dict[str, Callable[[House], Coroutine[Any, Any, None]]] = {
    "remember": lambda h: _plain(h),
    "remember a batch": _batch,
    "approve": _approve,
    "reject": _reject,
    "update": _update,
    "replace whole": _upsert,
    "redact": _redact,
    "forget": _forget,
    "erase": lambda h: _forget(h, hard=True),
    "undo forgetting": _undelete,
    "merge": _merge,
    "undo merging": lambda h: _merge(h, undo=True),
    "expire by policy": _expire,
    "archive by policy": lambda h: _expire(h, "archive"),
    "demote by policy": lambda h: _expire(h, "demote"),
    "time over": _ttl,
    "retention over": _retention,
    "fire a procedure": _procedure,
    "undo archiving": _undo_archiving,
    "recover": _recover,
    "undo recovering": lambda h: _recover(h, undo=True),
    "approve an erasure": lambda h: _approved(h, "forget"),
    "approve a merge": lambda h: _approved(h, "merge"),
    "approve an update": lambda h: _approved(h, "update"),
    "share": _share,
    "consolidate": _consolidate,
    "dream": _dream,
    "import": _import,
}


async def _plain(h: House) -> None:
    await h.remember("words", user_id="alice", metadata={"a": {"b": [1]}}, tags=["x"])


@pytest.mark.parametrize("way", WAYS)
@run
async def test_each_way_of_changing_a_memory_reaches_the_replicas(way: str) -> None:
    async with house(copies=2) as h:
        await h.remember("one that stays")
        await WAYS[way](h)
        await h.outbox.join()
        assert await h.equal(0)
        assert await h.equal(1)
        assert await h.waiting(0) == await h.waiting(1) == {}


@pytest.mark.parametrize("way", WAYS)
@run
async def test_each_way_waits_in_the_outbox_while_a_store_is_down(way: str) -> None:
    async with house() as h:
        h.copies[0].down = "gone for now"
        await h.remember("one that stays")
        await WAYS[way](h)
        await h.outbox.join()  # that it failed is written down, too
        assert await h.copies[0].contents() == set()
        assert await h.waiting()
        h.copies[0].down = None
        h.clock.advance(DAY_MS if "time" not in way else 10 * 60_000)
        await h.outbox.run_due()
        assert await h.waiting() == {}
        assert await h.equal()


@run
async def test_no_content_is_in_the_outbox() -> None:
    async with house() as h:
        h.copies[0].down = "gone"
        id = await h.remember("a very particular sentence", user_id="alice")
        assert "particular" not in repr(await h.waiting())
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        await h.outbox.join()  # that it failed is written down, too
        said = {"agent", "seq", "at", "attempts", "due", "owner", "until", "error", "doubt"}
        assert set((await h.waiting())[id]) == said


@run
async def test_without_replicas_nothing_is_recorded() -> None:
    async with house(copies=0) as h:
        await h.remember("words")
        assert not h.outbox
        assert [kind for kind in await h.primary.record_kinds("local") if kind.startswith("outbox")] == []


# trying again


@run
async def test_what_failed_is_tried_again_later_each_time_and_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    copy = Flaky(clock)
    copy.down = "no route"
    async with house(primary=SqliteStore(tmp_path / "p.db", clock), clock=clock, stores=[copy]) as h:
        id = await h.remember("durable words")
        await h.outbox.join()
        first = (await h.waiting())[id]
        assert (first["attempts"], first["error"], first["owner"]) == (1, "no route", None)
        assert 500 <= first["due"] - clock() <= 1500
        calls = copy.calls
        await h.outbox.run_due()
        assert copy.calls == calls  # not due yet
        delays = []
        for _ in range(6):
            due = (await h.waiting())[id]["due"]
            clock.advance(max(due, h.outbox.replicas.named("copy").breaker.retry_at or 0) - clock())
            await h.outbox.run_due()
            delays.append((await h.waiting())[id]["due"] - clock())
        assert delays[-1] > 10 * delays[0]
        assert (await h.waiting())[id]["attempts"] == 7
    copy.down = None
    async with house(primary=SqliteStore(tmp_path / "p.db", clock), clock=clock, stores=[copy]) as h:
        await h.outbox.run_due()
        assert await copy.contents() == set()
        clock.advance(600_000)
        assert await h.outbox.run_due() == 1
        assert await copy.contents() == {"durable words"}
        assert await h.waiting() == {}


@run
async def test_what_waits_is_delivered_though_the_clock_was_set_back(tmp_path: Path) -> None:
    """A record of what failed says when it is due, and a lease until when it is another's: both a year ahead now."""
    clock = FakeClock()
    copy = Flaky(clock)
    async with house(primary=SqliteStore(tmp_path / "p.db", clock), clock=clock, stores=[copy]) as h:
        id, other = await h.remember("to be erased"), await h.remember("in the hands of a process that was killed")
        copy.down = "no route"
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        for _ in range(3):  # until it is left alone
            await h.remember("later")
        await h.outbox.join()
        value = {"agent": AGENT, "seq": 1, "at": clock(), "attempts": 0, "due": clock()}
        value |= {"owner": "killed", "until": clock() + LEASE_MS, "doubt": clock() + DOUBT_MS}
        kind = kind_of("copy")
        await h.primary.transact("local", lambda tx: tx.put_record(Record(kind, other, value)))
        copy.down = None
        clock.advance(-365 * DAY_MS)
        assert await h.outbox.run_due() == 5
        assert await h.waiting() == {}
        assert "to be erased" not in await copy.contents()


def test_who_forgets_many_waits_for_a_store_that_hangs_three_times_at_most() -> None:
    """They go in several units of work, each of which waits, until the store is left alone."""

    async def work() -> None:
        async with house(timeout=5.0) as h:
            ids = [await h.remember(f"note {n}") for n in range(300)]
            await h.settled()
            h.copies[0].hangs = True
            before, calls = asyncio.get_running_loop().time(), h.copies[0].calls
            assert len((await h.engine.forget(WHO, Forget(AGENT, ids))).ids) == 300
            assert asyncio.get_running_loop().time() - before < 4 * 5.0
            assert h.copies[0].calls <= calls + 3

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@run
async def test_erasures_of_every_tenant_go_before_the_writes_of_any() -> None:
    """Writes that fail, of three tenants, would have the store left alone before the erasures of others have a turn."""
    clock = FakeClock()
    copy = Flaky(clock)
    put = copy.put

    async def full(entries: Any) -> None:
        raise Unavailable("no room left")

    people = [Principal("Alice", f"tenant{n}", "admin", ("*",)) for n in range(5)]
    async with house(clock=clock, stores=[copy]) as h:
        ids = [(await h.engine.remember(who, Draft(AGENT, "semantic", "to be erased"))).id for who in people]
        await h.settled()
        copy.down = "away"
        for who, id in zip(people, ids, strict=True):
            await h.engine.remember(who, Draft(AGENT, "semantic", "written meanwhile"))
            await h.engine.forget(who, Forget(AGENT, [id], hard_delete=True))
        await h.settled()
        copy.down, copy.put = None, full  # type: ignore[method-assign]
        clock.advance(600_000)
        await h.outbox.run_due()
        held = [await copy.get(who.tenant, [id]) for who, id in zip(people, ids, strict=True)]
        assert held == [[]] * len(people)
        copy.put = put  # type: ignore[method-assign]


@run
async def test_a_store_that_does_not_answer_keeps_nothing_that_waits_from_another() -> None:
    answers = asyncio.Event()

    class Silent(Flaky):
        async def put(self, entries: Any) -> None:
            await answers.wait()
            await super().put(entries)

    clock = FakeClock()
    copies = [Silent(clock, "silent"), Flaky(clock, "other")]
    async with house(clock=clock, stores=copies, timeout=600.0) as h:
        for copy in copies:
            copy.down = "away"
        answers.set()
        await h.remember("words")
        await h.settled()
        answers.clear()
        for copy in copies:
            copy.down = None
        clock.advance(600_000)
        task = asyncio.create_task(h.outbox.run_due())
        try:
            async with asyncio.timeout(60):
                while not await copies[1].contents():
                    await asyncio.sleep(0)
            assert not task.done()
        finally:
            answers.set()
        assert await task == 2


class SlowEmbedder(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answers = threading.Event(), threading.Event()

    def _encode(self, texts: list[str]) -> Any:
        self.asked.set()
        self.answers.wait()
        return super()._encode(texts)


@run
async def test_what_a_process_claimed_and_had_not_sent_when_it_ended_is_free_for_the_next() -> None:
    """A command that only reads ends while it still makes the vectors of what it was to deliver."""
    embedder = SlowEmbedder()
    async with house() as h:
        h.copies[0].down = "no route"
        id = await h.remember("words")
        await h.settled()
        h.copies[0].down = None
        h.clock.advance(10_000)
        async with house(clock=h.clock, primary=h.primary, stores=h.copies, embedder=embedder) as reader:
            task = asyncio.create_task(reader.outbox.run_due())
            try:
                async with asyncio.timeout(10):
                    while not embedder.asked.is_set():
                        await asyncio.sleep(0)
                assert (await h.waiting())[id]["owner"] is not None
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            finally:
                embedder.answers.set()
            left = (await h.waiting())[id]
            assert (left["owner"], left["until"], left["attempts"]) == (None, 0, 1)
            assert await h.outbox.run_due() == 1


def test_what_an_earlier_process_left_is_delivered_without_anyone_asking() -> None:
    async def work() -> None:
        async with house() as h:
            copy = h.copies[0]
            copy.down = "away"
            await h.remember("kept for later")
            await h.settled()
            copy.down = None
            h.clock.advance(LEASE_MS + 60_000)
            attached = [Attachment(copy.name, lambda: copy)]
            with standing_still():  # the copy is opened in a thread
                later = await Engine.open(h.primary, HashingEmbedder(), clock=h.clock, replicas=attached)
                await later.stores.wait_until_open(5)
            await pass_seconds(2 * POLL_SECONDS)
            with standing_still():  # a database may need longer than that for what the poll asks of it
                while await h.waiting():
                    await asyncio.sleep(0)
            assert await copy.contents() == {"kept for later"}
            await later.close()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@run
async def test_what_a_process_had_in_hand_when_it_died_is_taken_over() -> None:
    async with house() as h:
        h.copies[0].hangs = True
        h.outbox.replicas.named("copy").timeout = 0.01
        id = await h.remember("in hand")
        await h.outbox.join()
        held = (await h.waiting())[id]
        assert "did not answer" in held["error"]
        dead = "a process that died"
        await h.primary.transact("local", lambda tx: tx.put_record(_owned(tx, id, dead, h.clock() + 60_000)))
        h.copies[0].hangs = False
        h.clock.advance(5_000)
        assert await h.outbox.run_due() == 0
        h.clock.advance(60_000)
        assert await h.outbox.run_due() == 1
        assert await h.copies[0].contents() == {"in hand"}


@run
async def test_no_process_takes_over_what_a_slow_store_may_still_be_doing() -> None:
    """It could be overtaken by it, with an older state."""
    async with house(timeout=600.0) as h:
        put, held = h.copies[0].put, list[Any]()

        async def noted(entries: Any) -> None:
            held.extend((await h.waiting()).values())
            await put(entries)

        h.copies[0].put = noted  # type: ignore[method-assign]
        await h.remember("words")
        assert [each["until"] - h.clock() > 600_000 for each in held] == [True]


async def _until_under_way(copy: Late) -> None:
    while not copy.under_way:
        await asyncio.sleep(0)


async def _turns() -> None:
    """Long enough for whatever can go on without an answer of the store."""
    for _ in range(200):
        await asyncio.sleep(0)


@pytest.mark.parametrize("late_ms", [0, 10 * 60_000], ids=["its lease runs", "its lease is over"])
@run
async def test_what_is_under_way_is_not_sent_a_second_time_by_the_poll(late_ms: int) -> None:
    """The second would arrive after what another process does once the first is settled, such as an erasure."""
    clock = FakeClock()
    copy = Late(clock)
    async with house(clock=clock, stores=[copy]) as h:
        writer = asyncio.create_task(h.remember("Alice's diary"))
        await _until_under_way(copy)
        held = await h.waiting()
        clock.advance(late_ms)
        poll = asyncio.create_task(h.outbox.run_due())
        await _turns()
        assert await h.waiting() == held
        copy.arrives.set()
        await writer
        assert await poll == 0
        await h.outbox.join()
        assert len(copy.under_way) == 1
        assert await h.waiting() == {}


@pytest.mark.parametrize("is_confirmed", [True, False], ids=["confirmed", "not confirmed"])
@run
async def test_what_arrives_after_its_lease_does_not_outlast_what_another_process_delivered(is_confirmed: bool) -> None:
    """As where a machine sleeps in the middle of a delivery, and goes on with it when it wakes."""
    clock = FakeClock()
    copy = Late(clock)
    async with (
        house(clock=clock, stores=[copy], timeout=5.0 if is_confirmed else 0.05) as asleep,
        house(clock=clock, stores=[copy], primary=asleep.primary) as other,
    ):
        writer = asyncio.create_task(asleep.remember("Alice's diary"))
        await _until_under_way(copy)
        (id,) = await asleep.waiting()
        if not is_confirmed:
            asleep.outbox._couriers["copy"]._settle = _held(asleep, settled := asyncio.Event())
            await writer
        clock.advance(LEASE_MS + 10_000)
        copy.late = False
        await other.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        await other.outbox.join()
        assert await other.waiting() == {}
        copy.arrives.set()
        await asyncio.gather(*copy.under_way)
        assert await copy.contents() == {"Alice's diary"}
        if not is_confirmed:
            settled.set()
        await writer
        await asleep.outbox.join()
        for _ in range(3):
            clock.advance(DOUBT_MS + 10_000)
            await other.outbox.run_due()
        assert await copy.contents() == set()
        assert await other.waiting() == {}


def _held(h: House, released: asyncio.Event) -> Any:
    """Its courier's, which comes later: the machine sleeps before it is noted how the delivery went."""
    settle = h.outbox._couriers["copy"]._settle

    async def later(*given: Any) -> None:
        await released.wait()
        await settle(*given)

    return later


@run
async def test_what_a_writer_has_recorded_and_not_handed_over_yet_is_not_the_polls() -> None:
    async with house() as h:
        id = await h.remember("words")
        await h.outbox.join()
        calls, mine = h.copies[0].calls, _fresh(id, h.clock() + 60_000)
        mine.value["owner"] = h.outbox._owner
        await h.primary.transact("local", lambda tx: tx.put_record(mine))
        assert await h.outbox.run_due() == 0
        assert h.copies[0].calls == calls
        h.clock.advance(60_000)
        assert await h.outbox.run_due() == 1


@run
async def test_whoever_asks_while_a_poll_is_under_way_waits_for_it() -> None:
    """What the poll has claimed is nobody else's to send, so that an answer at once would be before it was sent."""
    clock = FakeClock()
    copy = Late(clock)
    async with house(clock=clock, stores=[copy]) as h:
        copy.down, copy.late = "away", False
        await h.remember("words")
        await h.outbox.join()
        copy.down, copy.late, copy.under_way = None, True, []
        clock.advance(DAY_MS)
        poll = asyncio.create_task(h.outbox.run_due())
        await _until_under_way(copy)
        asked = asyncio.create_task(h.outbox.run_due())
        await _turns()
        assert not asked.done()
        copy.arrives.set()
        assert [await poll, await asked] == [1, 0]
        assert await h.waiting() == {}


@run
async def test_what_changes_while_it_is_under_way_is_sent_once_more_and_not_twice() -> None:
    clock = FakeClock()
    copy = Late(clock)
    async with house(clock=clock, stores=[copy]) as h:
        first = asyncio.create_task(h.remember("first"))
        await _until_under_way(copy)
        (id,) = await h.waiting()
        second = asyncio.create_task(h.engine.update(WHO, Update(AGENT, id, content="second")))
        while not h.outbox._couriers[copy.name].is_waiting("local", id):  # a database takes more turns than a file
            await asyncio.sleep(0)
        copy.arrives.set()
        await asyncio.gather(first, second)
        await _turns()
        await h.outbox.join()
        assert len(copy.under_way) == 2
        assert await copy.contents() == {"second"}
        assert await h.waiting() == {}


class NotesVectors(Late):
    """It says how long the vector is that each copy has: by that a search finds it or not."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.lengths: dict[str, int] = {}

    async def put(self, entries: Any) -> None:
        await super().put(entries)
        self.lengths |= {e.memory.id: 0 if e.vectors is None else e.vectors.shape[1] for e in entries}


@pytest.mark.parametrize("later", [False, True], ids=["the newest", "an older one"])
@run
async def test_what_is_under_way_during_a_reindex_has_the_new_vector_afterwards(tmp_path: Path, later: bool) -> None:
    """Nothing of the memory changes, so that only the outbox can know of it, also of the tenant's last change."""
    clock = FakeClock()
    copy = NotesVectors(clock)
    async with house(primary=SqliteStore(tmp_path / "p.db", clock), clock=clock, stores=[copy]) as h:
        writer = asyncio.create_task(h.remember("words"))
        await _until_under_way(copy)
        others = [asyncio.create_task(h.remember("written since"))] if later else []
        while len(await h.waiting()) < 1 + later:  # it is committed in a thread
            await asyncio.sleep(0)
        await h.engine.upkeep.reindex(WHO, HashingEmbedder(64))
        copy.arrives.set()
        await asyncio.gather(writer, *others)
        await h.outbox.join()
        await h.outbox.run_due()
        assert list(copy.lengths.values()) == [64] * (1 + later)
        assert await h.waiting() == {}
        await h.engine.upkeep.reindex(WHO, HashingEmbedder(32))
        await h.outbox.run_due()
        assert list(copy.lengths.values()) == [32] * (1 + later)


@run
async def test_what_is_under_way_for_one_reindex_is_sent_again_for_the_next(tmp_path: Path) -> None:
    clock = FakeClock()
    copy = NotesVectors(clock)
    copy.late = False
    async with house(primary=SqliteStore(tmp_path / "p.db", clock), clock=clock, stores=[copy]) as h:
        await h.remember("words")
        await h.remember("written since")
        await h.outbox.join()
        await h.engine.upkeep.reindex(WHO, HashingEmbedder(64))
        copy.late, copy.under_way = True, []
        poll = asyncio.create_task(h.outbox.run_due())
        await _until_under_way(copy)
        await h.engine.upkeep.reindex(WHO, HashingEmbedder(32))
        copy.arrives.set()
        await poll
        await h.outbox.join()
        await h.outbox.run_due()
        assert list(copy.lengths.values()) == [32, 32]
        assert await h.waiting() == {}


@run
async def test_a_process_that_ends_still_delivers_what_another_changed_while_it_delivered() -> None:
    """Nobody else would, until its lease is over."""
    clock = FakeClock()
    copy = Late(clock)
    async with house(clock=clock, stores=[copy]) as h, house(primary=h.primary, clock=clock, stores=[copy]) as other:
        writer = asyncio.create_task(h.remember("first"))
        await _until_under_way(copy)
        (id,) = await h.waiting()
        await other.engine.update(WHO, Update(AGENT, id, content="second"))
        copy.arrives.set()
        await h.outbox.close()
        await writer
        assert await h.waiting() == {}
        assert await copy.contents() == {"second"}


@run
async def test_what_is_delivered_as_a_process_ends_has_its_vector() -> None:
    """Without one a store that finds by meaning alone would never find it, and nothing would say so."""
    clock = FakeClock()
    copy = NotesVectors(clock)
    async with house(clock=clock, stores=[copy]) as other:
        async with house(primary=other.primary, clock=clock, stores=[copy]) as h:
            writer = asyncio.create_task(h.remember("first"))
            await _until_under_way(copy)
            (id,) = await h.waiting()
            await other.engine.update(WHO, Update(AGENT, id, content="second"))
            copy.arrives.set()
        await writer
        assert await copy.contents() == {"second"}
        assert [*copy.lengths.values()] == [HashingEmbedder().dimension]
        assert await other.waiting() == {}


@pytest.mark.parametrize("texts", [["tea " * 20_000], ["tea " * 500] * 40], ids=["a long one", "many together"])
def test_what_is_too_long_to_be_waited_for_has_its_vector_in_every_copy(tmp_path: Path, texts: list[str]) -> None:
    """A server keeps such a memory first, and its vectors follow: in a copy by another delivery."""

    async def work() -> None:
        clock = FakeClock()
        copy = NotesVectors(clock)
        copy.late = False
        behind = Settings(embeds_behind=True)
        async with house(
            primary=SqliteStore(tmp_path / "p.db", clock), clock=clock, stores=[copy], settings=behind
        ) as h:
            for n, text in enumerate(texts):
                await h.remember(f"{n} {text}")
            await h.engine.wait_for_vectors()
            await h.outbox.run_due()
            assert {*copy.lengths.values()} == {HashingEmbedder().dimension}
            await copy.delete("local", [*copy.lengths])
            copy.lengths.clear()
            assert (await h.engine.stores.resync(WHO, copy.name))["sent"] == len(texts)
            assert {*copy.lengths.values()} == {HashingEmbedder().dimension}

    asyncio.run(work())


class Slow(Flaky):
    """It takes most of its timeout for whatever it is given."""

    async def put(self, entries: Any) -> None:
        await pass_seconds(4)
        await super().put(entries)


def test_a_store_is_given_nothing_more_when_it_is_closed() -> None:
    """It would be opened once more for that, and stay open: a folder of mem0 belongs to one at a time."""
    opened: list[Store] = []

    async def work() -> None:
        clock = FakeClock()
        copy, primary = Slow(clock), InMemory(clock)

        def open_copy() -> Store:
            opened.append(copy)
            return copy

        with standing_still():
            engine = await Engine.open(primary, None, clock=clock, replicas=[Attachment(copy.name, open_copy, 5.0)])
            await engine.stores.wait_until_open(5)
        engine._core.outbox._couriers[copy.name].group_size = 1
        await engine.remember_many(WHO, [BatchItem(Draft(AGENT, "semantic", f"item {n}")) for n in range(10)])
        await engine.close()
        taken = await copy.contents()
        await pass_seconds(60)
        assert opened == [copy]
        assert 0 < len(taken) < 10
        assert await copy.contents() == taken
        waiting = {each.key for each in await primary.records("local", kind_of(copy.name))}
        left = {memory.id for memory in await primary.get("local", list(waiting))}
        assert left == waiting
        assert len(waiting) + len(taken) >= 10

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@run
async def test_what_is_committed_is_told_also_where_the_process_ends_at_that_moment() -> None:
    """It waits from the same transaction on: a record that were written after it would never be."""
    async with house() as h:
        transact = h.primary.transact

        async def ends(tenant: str, work: Any) -> Any:
            await transact(tenant, work)
            raise KeyError("the process is gone")

        h.primary.transact = ends
        with pytest.raises(KeyError):
            await h.remember("acknowledged to nobody, and there")
        h.primary.transact = transact
        assert await h.copies[0].contents() == set()
        async with house(primary=h.primary, clock=h.clock, stores=h.copies) as next_one:
            h.clock.advance(600_000)
            assert await next_one.outbox.run_due() == 1
            assert await next_one.equal()


def test_stores_that_hang_are_waited_for_side_by_side() -> None:
    async def work() -> None:
        async with house(copies=3, timeout=5.0) as h:
            h.copies[0].hangs = h.copies[1].hangs = True
            loop = asyncio.get_running_loop()
            before = loop.time()
            await h.remember("words")
            assert loop.time() - before == pytest.approx(5.0)
            assert await h.copies[2].contents() == {"words"}

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@pytest.mark.parametrize("newer", ["an update", "a deletion"])
@pytest.mark.parametrize("restarted", [False, True])
@run
async def test_a_write_that_arrives_late_does_not_outlive_what_came_after_it(
    tmp_path: Path, restarted: bool, newer: str
) -> None:
    """Nobody knows of a write that was not confirmed whether it still arrives, nor does a process started since."""
    clock = FakeClock()
    copy = Late(clock)
    async with house(primary=SqliteStore(tmp_path / "p.db", clock), clock=clock, stores=[copy], timeout=0.05) as h:
        id = await h.remember("the first text")
        await h.outbox.join()
        if not restarted:
            await _newer_state(h, copy, id, newer)
    async with house(primary=SqliteStore(tmp_path / "p.db", clock), clock=clock, stores=[copy], timeout=5) as h:
        if restarted:
            await _newer_state(h, copy, id, newer)
        wanted = {"the second text"} if newer == "an update" else set()
        assert await copy.contents() == wanted
        assert id in await h.waiting()
        copy.arrives.set()
        await asyncio.gather(*copy.under_way)
        assert await copy.contents() == {"the first text"}
        clock.advance(DOUBT_MS + 2_000)
        await h.outbox.run_due()
        assert await copy.contents() == wanted
        assert await h.waiting() == {}


class SleepsMeanwhile(Late):
    """What was late arrives over what it is given next, and that is confirmed only when it could no longer: a machine
    slept in the middle of the exchange."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self._clock = clock

    async def put(self, entries: Any) -> None:
        await super().put(entries)
        await self._sleep()

    async def delete(self, tenant: str, ids: Any) -> int:
        count = await super().delete(tenant, ids)
        await self._sleep()
        return count

    async def _sleep(self) -> None:
        if not self.arrives.is_set():
            self.arrives.set()
            await asyncio.gather(*self.under_way)
            self._clock.advance(DOUBT_MS)


@pytest.mark.parametrize("newer", ["an update", "a deletion"])
@run
async def test_what_arrives_between_a_delivery_and_its_confirmation_does_not_outlive_it(newer: str) -> None:
    """It could when that was sent, whatever the time is by now."""
    clock = FakeClock()
    copy = SleepsMeanwhile(clock)
    async with house(clock=clock, stores=[copy]) as h:
        with _timeout(h, 0.05):
            id = await h.remember("the first text")
            await h.outbox.join()
        await _newer_state(h, copy, id, newer)
        assert await copy.contents() == {"the first text"}
        assert id in await h.waiting()
        clock.advance(2_000)
        await h.outbox.run_due()
        assert await copy.contents() == ({"the second text"} if newer == "an update" else set())
        assert await h.waiting() == {}


@contextmanager
def _timeout(h: House, seconds: float) -> Iterator[None]:
    (replica,) = h.outbox.replicas
    before, replica.timeout = replica.timeout, seconds
    yield
    replica.timeout = before


async def _newer_state(h: House, copy: Late, id: str, newer: str) -> None:
    copy.late = False
    if newer == "an update":
        await h.engine.update(WHO, Update(AGENT, id, content="the second text"))
    else:
        await h.engine.forget(WHO, Forget(AGENT, [id]))
    await h.outbox.join()


@run
async def test_a_deletion_that_arrives_late_does_not_take_away_what_was_brought_back() -> None:
    clock = FakeClock()
    copy = LateDeletions(clock)
    async with house(clock=clock, stores=[copy], timeout=0.05) as h:
        id = await h.remember("brought back")
        await h.outbox.join()
        copy.late = True
        await h.engine.forget(WHO, Forget(AGENT, [id]))
        await h.outbox.join()
        copy.late = False
        await h.engine.undo(WHO, [id])
        await h.outbox.join()
        copy.arrives.set()
        await asyncio.gather(*copy.under_way)
        assert await copy.contents() == set()
        clock.advance(DOUBT_MS + 2_000)
        await h.outbox.run_due()
        assert await copy.contents() == {"brought back"}
        assert await h.waiting() == {}


@pytest.mark.parametrize("is_repeated", [False, True], ids=["waiting", "confirmed since"])
@run
async def test_a_deletion_that_arrives_late_does_not_take_away_what_another_process_brought_back(
    is_repeated: bool,
) -> None:
    """Only what is recorded tells that one of it may still arrive."""
    clock = FakeClock()
    copy = LateDeletions(clock)
    async with house(clock=clock, stores=[copy]) as h:
        id = await h.remember("brought back")
        await h.outbox.join()
        copy.late = True
        with _timeout(h, 0.05):
            await h.engine.forget(WHO, Forget(AGENT, [id]))
            await h.outbox.join()
        copy.late = False
        clock.advance(2_000)
        if is_repeated:
            await h.outbox.run_due()
        async with house(primary=h.primary, clock=clock, stores=[copy]) as other:
            await other.engine.undo(WHO, [id])
            await other.outbox.join()
            copy.arrives.set()
            await asyncio.gather(*copy.under_way)
            assert await copy.contents() == set()
            clock.advance(DOUBT_MS + 2_000)
            await other.outbox.run_due()
            assert await copy.contents() == {"brought back"}
            assert await h.waiting() == {}


def _owned(tx: Any, id: str, owner: str, until: int) -> Any:
    there = tx.record(kind_of("copy"), id)
    return replace(there, value={**there.value, "owner": owner, "until": until, "due": 0})


@run
async def test_another_process_that_delivers_a_memory_delivers_its_newer_state_too() -> None:
    async with house() as h:
        id = await h.remember("first")
        await h.outbox.join()
        await h.primary.transact("local", lambda tx: tx.put_record(_fresh(id, h.clock() + 60_000)))
        with h.engine.reporting() as report:
            await h.engine.update(WHO, Update(AGENT, id, content="second"))
        assert report.outcomes[id]["copy"] == "another process is delivering it"
        held = (await h.waiting())[id]
        assert (held["owner"], held["seq"]) == ("other", 2)
        assert await h.copies[0].contents() == {"first"}


def _fresh(id: str, until: int) -> Any:
    value = {"agent": AGENT, "seq": 1, "at": 0, "attempts": 0, "due": 0, "owner": "other", "until": until}
    return Record(kind_of("copy"), id, value)


@run
async def test_one_that_a_store_cannot_take_does_not_hold_up_the_others() -> None:
    async with house() as h:
        h.copies[0].refuses = "poison"
        with h.engine.reporting() as report:
            texts = ["fine", "poison", "also fine"]
            receipts = await h.engine.remember_many(WHO, [BatchItem(Draft(AGENT, "semantic", t)) for t in texts])
        ids = [r.id for r in receipts if not isinstance(r, Exception)]
        assert await h.copies[0].contents() == {"fine", "also fine"}
        assert [report.outcomes[id]["copy"] is None for id in ids] == [True, False, True]
        assert "it failed: RuntimeError" in str(report.outcomes[ids[1]]["copy"])
        await h.outbox.join()
        assert set(await h.waiting()) == {ids[1]}


@run
async def test_a_sentence_that_ends_with_its_advice_goes_on_without_its_full_stop() -> None:
    async with house() as h:
        h.copies[0].down = "it is damaged; docs/upkeep.md says how."
        with h.engine.reporting() as report:
            id = await h.remember("words")
        assert str(report.outcomes[id]["copy"]).endswith("says how; it is kept and tried again")


def test_a_store_that_hangs_keeps_a_writer_no_longer_than_its_timeout() -> None:
    async def work() -> None:
        async with house(copies=2, timeout=5.0) as h:
            h.copies[0].hangs = True
            with h.engine.reporting() as report:
                id = await h.remember("words")
            assert report.outcomes[id]["copy"] == "it did not confirm within 5 s; it is kept and tried again"
            assert report.outcomes[id]["copy1"] is None
            assert await h.copies[1].contents() == {"words"}

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@run
async def test_after_failures_in_a_row_nobody_asks_until_a_pause_is_over() -> None:
    async with house() as h:
        h.copies[0].down = "gone"
        for n in range(5):
            await h.remember(f"words {n}")
            await h.outbox.join()
        assert h.copies[0].calls == 3
        found = await h.engine.recall(WHO, Query((AGENT,), "words"))
        assert "not asked for" in found.errors["copy"]
        assert "gone" in found.errors["copy"]
        h.copies[0].down = None
        h.clock.advance(20_000)
        await h.outbox.run_due()
        assert await h.equal()


@run
async def test_an_erasure_is_delivered_though_every_question_fails() -> None:
    """Each question would take the one try that a store left alone has, and make the pause longer."""
    async with house() as h:
        ids = [await h.remember(f"words {n}") for n in range(5)]
        await h.settled()

        async def fails(_: Any) -> Any:
            raise Unavailable("the index is gone")

        h.copies[0].search = fails  # type: ignore[method-assign]
        for _ in range(20):
            await h.engine.recall(WHO, Query((AGENT,), "words"))
            h.clock.advance(1_000)
        await h.engine.forget(WHO, Forget(AGENT, ids, hard_delete=True))
        await h.settled()
        assert await h.copies[0].contents() == set()


# by type


@run
async def test_a_store_gets_the_types_it_keeps_and_says_so_of_the_others() -> None:
    clock = FakeClock()
    copy = Flaky(clock)
    copy.capabilities = copy.capabilities - {"procedural"}
    async with house(clock=clock, stores=[copy]) as h:
        with h.engine.reporting() as report:
            id = await h.remember("how to make tea", type="procedural")
            fact = await h.remember("tea is a drink")
        assert report.outcomes[id]["copy"] == "it does not keep procedural memories"
        assert report.outcomes[fact]["copy"] is None
        await h.outbox.join()
        assert await copy.contents() == {"tea is a drink"}
        assert await h.waiting() == {}


async def _kept_then_another_type(h: House) -> str:
    """A memory that the copy has, and whose type is then one that the copy does not keep."""
    first = await h.engine.upsert(WHO, Draft(AGENT, "semantic", "Alice's diagnosis"), "mine", AGENT)
    await h.outbox.join()
    assert await h.copies[0].contents() == {"Alice's diagnosis"}
    return first.receipt.id


@pytest.mark.parametrize("down", [False, True])
@run
async def test_what_becomes_of_a_type_that_a_store_does_not_keep_is_deleted_there(down: bool) -> None:
    async with house(types=frozenset({"semantic"})) as h:
        id = await _kept_then_another_type(h)
        h.copies[0].down = "gone for now" if down else None
        with h.engine.reporting() as report:
            await h.engine.upsert(WHO, Draft(AGENT, "episodic", "something else"), "mine", AGENT)
        said = report.outcomes[id]["copy"] or ""
        assert ("tried again" in said) if down else (said == "it does not keep episodic memories")
        await h.outbox.join()
        h.copies[0].down = None
        h.clock.advance(60_000)
        await h.outbox.run_due()
        assert await h.copies[0].contents() == set()
        assert await h.waiting() == {}


@run
async def test_an_erasure_reaches_a_store_that_does_not_keep_the_type() -> None:
    """It may have a copy from when the memory was of another type, or when the store was to keep that one too."""
    async with house(types=frozenset({"semantic"})) as h:
        id = await _kept_then_another_type(h)
        (copy,) = await h.copies[0].get("local", [id])
        await h.engine.upsert(WHO, Draft(AGENT, "episodic", "something else"), "mine", AGENT)
        await h.outbox.join()
        await h.copies[0].put([Entry(copy, None, b"")])
        with h.engine.reporting() as report:
            await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        assert report.outcomes[id]["copy"] is None
        assert await h.copies[0].contents() == set()


def test_a_store_is_a_store() -> None:
    assert isinstance(Flaky(FakeClock()), Store)


def test_the_engine_changes_memories_by_the_one_door_alone() -> None:
    """What goes to the primary past `Core.transact` is told to nobody: only records may."""
    engine = Path(commonplace.engine.__file__).parent
    past = {
        path.relative_to(engine).as_posix()
        for path in engine.rglob("*.py")
        if "primary.transact(" in path.read_text("utf-8")
    }
    names = {"outbox/resync_notices.py", "outbox/store_names.py"}
    assert past == {"core.py", "outbox/outbox.py", *names}
    for name in past - {"core.py", "outbox/outbox.py"}:
        text = (engine / name).read_text("utf-8")
        assert "tx.put(" not in text
        assert "tx.erase(" not in text
