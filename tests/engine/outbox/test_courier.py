from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from jumping_loop import JumpingLoop, standing_still
from replica_house import Flaky, Late, run

from commonplace.engine.outbox.breaker import FAILURES
from commonplace.engine.outbox.courier import DOUBT_MS, GROWS_AFTER, QUEUE_MS, Courier
from commonplace.engine.outbox.deliveries import Change, Order
from commonplace.engine.outbox.replicas import Attachment, Replica
from commonplace.stores.base import Entry
from commonplace.testing.subject import FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory


def _change(content: str, seq: int, id: str = "m") -> Change:
    memory = Memory(id, "local", "agent", "semantic", content, created_at=1)
    return Change(id, "agent", "semantic", seq, Entry(memory, None, b""))


async def _settled(*_: Any) -> None: ...


@run
async def test_what_waits_together_goes_together_and_the_newest_wins() -> None:
    store = Flaky(FakeClock())
    courier = Courier(Replica(Attachment("copy", lambda: store), FakeClock()), _settled)
    futures = [f for n in range(3) for f in courier.submit("local", [_change(f"text {n}", n + 1)])]
    others = courier.submit("local", [_change(f"other {n}", 9, f"o{n}") for n in range(10)])
    assert await asyncio.gather(*futures, *others) == [None] * 13
    assert store.calls == 1
    assert "text 2" in await store.contents()
    assert len(await store.contents()) == 11


@run
async def test_an_older_state_never_arrives_after_a_newer_one() -> None:
    store = Flaky(FakeClock())
    courier = Courier(Replica(Attachment("copy", lambda: store), FakeClock()), _settled)
    await asyncio.gather(*courier.submit("local", [_change("new", 7)]))
    await asyncio.gather(*courier.submit("local", [_change("old", 6)]))
    assert await store.contents() == {"new"}


def _gone(seq: int, id: str = "m") -> Change:
    return Change(id, "agent", "semantic", seq, None)


@run
async def test_a_deletion_after_a_write_in_doubt_is_repeated_before_it_counts() -> None:
    """The write may arrive after it: one deletion that the store confirms later than that is what settles it."""
    clock, settled = FakeClock(), dict[str, Order]()

    async def settle(tenant: str, sent: Any, done: Any, failed: Any, doubt: Any, sent_at: Any) -> None:
        settled.update(done)

    store = Late(clock)
    replica = Replica(Attachment("copy", lambda: store, timeout=0.02), clock)
    await replica.ready(5)
    courier = Courier(replica, settle)
    (late,) = await asyncio.gather(*courier.submit("local", [_change("Alice's diary", 1)]))
    assert "did not answer" in str(late)
    assert await asyncio.gather(*courier.submit("local", [_gone(2)])) == ["an earlier write may still arrive"]
    await courier.join()
    assert settled == {}
    store.arrives.set()
    await asyncio.gather(*store.under_way)
    assert await store.contents() == {"Alice's diary"}
    clock.advance(DOUBT_MS)
    assert await asyncio.gather(*courier.submit("local", [_gone(2)])) == [None]
    await courier.join()
    assert settled == {"m": (2, 0)}
    assert await store.contents() == set()


@run
async def test_a_deletion_too_soon_after_a_write_in_doubt_does_not_count() -> None:
    clock = FakeClock()
    store = Late(clock)
    replica = Replica(Attachment("copy", lambda: store, timeout=0.02), clock)
    await replica.ready(5)
    courier = Courier(replica, _settled)
    await asyncio.gather(*courier.submit("local", [_change("Alice's diary", 1)]))
    for _ in range(2):
        assert await asyncio.gather(*courier.submit("local", [_gone(2)])) == ["an earlier write may still arrive"]
        clock.advance(DOUBT_MS // 2)
    assert await asyncio.gather(*courier.submit("local", [_gone(2)])) == [None]
    assert await asyncio.gather(*courier.submit("local", [_gone(3, "other")])) == [None]
    store.arrives.set()
    await asyncio.gather(*store.under_way)


@run
async def test_a_store_is_not_given_what_it_turns_out_not_to_keep_when_it_opens() -> None:
    store = Flaky(FakeClock())
    store.capabilities = store.capabilities - {"procedural"}
    courier = Courier(Replica(Attachment("copy", lambda: store), FakeClock()), _settled)
    memory = Memory("m", "local", "agent", "procedural", "how to make tea", created_at=1)
    change = Change("m", "agent", "procedural", 1, Entry(memory, None, b""))
    assert await asyncio.gather(*courier.submit("local", [change, _change("tea is a drink", 2, "n")])) == [None, None]
    assert await store.contents() == {"tea is a drink"}


@run
async def test_what_waits_of_two_tenants_goes_to_each_as_its_own() -> None:
    """A deletion under another tenant finds nothing, and would count as done."""
    store = Flaky(FakeClock())
    courier = Courier(Replica(Attachment("copy", lambda: store), FakeClock()), _settled)
    theirs = Memory("m", "elsewhere", "agent", "semantic", "a diary", created_at=1)
    await store.put([Entry(theirs, None, b"")])
    futures = [*courier.submit("local", [_gone(1, "o")]), *courier.submit("elsewhere", [_gone(2)])]
    assert await asyncio.gather(*futures) == [None, None]
    assert await store.get("elsewhere", ["m"]) == []


class TakesNoWrites(Flaky):
    """It deletes, and takes nothing new; nor does it say how it is."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.told: list[str] = []
        self.unwell = "away"
        self.takes_writes = False

    async def put(self, entries: Any) -> None:
        self.told += [entry.memory.id for entry in entries]
        if not self.takes_writes:
            raise Unavailable("no room")
        await super().put(entries)

    async def delete(self, tenant: str, ids: Any) -> int:
        self.told += ids
        return await super().delete(tenant, ids)


@run
async def test_an_erasure_goes_out_before_writes_that_were_handed_over_earlier() -> None:
    store = TakesNoWrites(FakeClock())
    store.takes_writes = True
    courier = Courier(Replica(Attachment("copy", lambda: store), FakeClock()), _settled)
    courier.group_size = 2
    writes = courier.submit("local", [_change(f"text {n}", n + 1, f"m{n}") for n in range(4)])
    await asyncio.gather(*writes, *courier.submit("local", [_gone(9, "gone")]))
    assert store.told == ["gone", "m0", "m1", "m2", "m3"]


@run
async def test_an_erasure_is_done_though_the_write_beside_it_is_the_last_that_a_store_may_fail_at() -> None:
    clock = FakeClock()
    store = TakesNoWrites(clock)
    courier = Courier(Replica(Attachment("copy", lambda: store), clock), _settled)
    for n in range(FAILURES - 1):
        assert await asyncio.gather(*courier.submit("local", [_change("text", n + 1)])) == ["no room"]
    outcomes = await asyncio.gather(*courier.submit("local", [_change("text", 8), _gone(9, "gone")]))
    assert outcomes == ["no room", None]


@run
async def test_what_was_not_tried_any_more_is_not_delivered() -> None:
    """A group is halved because of one that is refused, and then the store goes away."""
    clock, settled = FakeClock(), dict[str, Order]()

    async def settle(tenant: str, sent: Any, done: Any, failed: Any, doubt: Any, sent_at: Any) -> None:
        settled.update(done)

    class GoesAway(Flaky):
        async def put(self, entries: Any) -> None:
            if len(entries) == 4:
                raise RuntimeError("one of them is too long")
            if entries[0].memory.id == "m0":
                return await super().put(entries)
            self.unwell = "away"
            raise Unavailable("away")

    store = GoesAway(clock)
    courier = Courier(Replica(Attachment("copy", lambda: store), clock), settle)
    futures = courier.submit("local", [_change(f"text {n}", n + 1, f"m{n}") for n in (2, 3, 0, 1)])
    assert await asyncio.gather(*futures) == ["away"] * 4
    await courier.join()
    assert settled == {}
    futures = courier.submit("local", [_change(f"text {n}", n + 1, f"m{n}") for n in range(4)])
    assert await asyncio.gather(*futures) == [None, None, "away", "away"]


@pytest.mark.parametrize("renewed", [False, True])
@run
async def test_what_waited_too_long_for_its_turn_is_not_sent_any_more(renewed: bool) -> None:
    """Its lease may be over by the time it arrives, and another process have delivered it."""
    clock = FakeClock()
    store = Late(clock)
    courier = Courier(Replica(Attachment("copy", lambda: store, timeout=60.0), clock), _settled)
    first = courier.submit("local", [_change("slow", 1, "slow")])
    while not store.under_way:
        await asyncio.sleep(0)
    behind = courier.submit("local", [_change("older text", 2)])
    clock.advance(QUEUE_MS + 1)
    if renewed:
        courier.submit("local", [_change("newer text", 3)])
    store.arrives.set()
    told = await asyncio.gather(*first, *behind)
    assert told == [None, None if renewed else "others took too long before it"]
    assert await store.contents() == {"slow"} | ({"newer text"} if renewed else set())


class TakesFew(Flaky):
    """More than four at once take it too long."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.most = 4
        self.puts: list[int] = []

    async def put(self, entries: Any) -> None:
        self.puts.append(len(entries))
        self.hangs = len(entries) > self.most
        await super().put(entries)


async def _submit(courier: Courier, first: int, count: int) -> list[str | None]:
    changes = [_change(f"text {n}", n, f"m{n}") for n in range(first, first + count)]
    return list(await asyncio.gather(*courier.submit("local", changes)))


@run
async def test_a_store_that_too_many_at_once_take_too_long_is_given_fewer_and_later_more_again() -> None:
    clock = FakeClock()
    store = TakesFew(clock)
    replica = Replica(Attachment("copy", lambda: store, timeout=0.05), clock)
    await replica.ready(5)
    courier = Courier(replica, _settled)
    assert all(await _submit(courier, 1, 8))
    assert await _submit(courier, 1, 8) == [None] * 8
    assert store.puts == [8, 4, 4]
    store.most = 8
    assert await _submit(courier, 9, 4 * (GROWS_AFTER - 2)) == [None] * 4 * (GROWS_AFTER - 2)
    store.puts = []
    assert await _submit(courier, 100, 8) == [None] * 8
    assert store.puts == [8]


@run
async def test_that_one_is_not_taken_is_no_reason_to_give_fewer_at_once() -> None:
    class Picky(TakesFew):
        async def put(self, entries: Any) -> None:
            self.puts.append(len(entries))
            if any(entry.memory.id == "m4" for entry in entries):
                raise Unavailable("not that one")

    store = Picky(FakeClock())
    courier = Courier(Replica(Attachment("copy", lambda: store), FakeClock()), _settled)
    assert await _submit(courier, 1, 4) == [None, None, None, "not that one"]
    store.puts = []
    assert await _submit(courier, 5, 20) == [None] * 20
    assert store.puts == [20]


@run
async def test_one_that_says_it_is_down_is_not_given_a_group_in_halves() -> None:
    class Down(TakesFew):
        async def put(self, entries: Any) -> None:
            self.puts.append(len(entries))
            raise Unavailable("gone")

        async def health(self) -> Any:
            return {"status": "down"}

    store = Down(FakeClock())
    courier = Courier(Replica(Attachment("copy", lambda: store), FakeClock()), _settled)
    assert await _submit(courier, 1, 8) == ["gone"] * 8
    assert store.puts == [8]


def test_looking_for_what_a_store_refuses_in_a_group_ends_before_the_lease_of_the_others_does() -> None:
    class Slow(TakesFew):
        async def put(self, entries: Any) -> None:
            self.puts.append(len(entries))
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 20.0)
            raise RuntimeError("one of them is too long")

    async def work() -> None:
        store = Slow(FakeClock())
        replica = Replica(Attachment("copy", lambda: store, timeout=60.0), FakeClock())
        with standing_still():  # it is opened in a thread
            await replica.ready(5)
        assert await _submit(Courier(replica, _settled), 1, 16) == ["it failed: RuntimeError"] * 16
        assert store.puts == [16, 8, 8]

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@pytest.mark.parametrize(("error", "traces"), [(Unavailable("the connection is lost"), 0), (RuntimeError("a bug"), 1)])
@run
async def test_only_a_bug_leaves_a_stack_trace(error: Exception, traces: int, caplog: pytest.LogCaptureFixture) -> None:
    async def settle(*_: Any) -> None:
        raise error

    courier = Courier(Replica(Attachment("copy", lambda: Flaky(FakeClock())), FakeClock()), settle)
    await asyncio.wait(courier.submit("local", [_gone(1)]))
    await courier.join()
    (said,) = caplog.records
    assert said.getMessage().startswith("what copy has was not noted")
    assert (said.exc_info is not None, "the connection is lost" in said.getMessage()) == (bool(traces), not traces)
