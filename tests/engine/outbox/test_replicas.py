from __future__ import annotations

import asyncio
import threading
import traceback
from pathlib import Path

import pytest
from jumping_loop import JumpingLoop, pass_seconds, standing_still
from replica_house import Flaky, run

from commonplace.engine.outbox.replicas import Attachment, Replica, Replicas, StoreRefused, StoreSkipped
from commonplace.stores.base import Reach, Search, Store
from commonplace.testing.subject import FakeClock
from commonplace.wire.errors import Conflict, Fault, OperatorActionRequired, Unavailable, ValidationError, fault_of

SEARCH = Search(Reach("local", ("agent",)), "words")


async def _ask(store: Store) -> int:
    return len(await store.search(SEARCH))


@run
async def test_it_is_opened_when_it_is_first_needed_and_once() -> None:
    opened: list[Flaky] = []

    def open_it() -> Flaky:
        opened.append(Flaky(FakeClock()))
        return opened[-1]

    replica = Replica(Attachment("copy", open_it), FakeClock())
    assert opened == []
    assert await asyncio.gather(*(replica.search(_ask) for _ in range(5))) == [0] * 5
    assert len(opened) == 1
    assert replica.state() == {"status": "ok"}
    await replica.close()


@run
async def test_one_that_is_closed_is_opened_for_nobody_who_asks_it_still() -> None:
    """As a recall that is under way does: nobody would close it, and its folder may be one process's at a time."""
    opened: list[Flaky] = []

    def open_store() -> Flaky:
        opened.append(Flaky(FakeClock()))
        return opened[-1]

    replica = Replica(Attachment("copy", open_store), FakeClock())
    await replica.ready(5)
    await replica.close()
    with pytest.raises(Unavailable, match="it is closed"):
        await replica.search(_ask)
    assert len(opened) == 1


@run
async def test_one_that_is_down_at_the_start_is_opened_when_it_is_back() -> None:
    clock, there = FakeClock(), False

    def open_it() -> Flaky:
        if not there:
            raise Unavailable("connection refused")
        return Flaky(clock)

    replica = Replica(Attachment("copy", open_it), clock)
    with pytest.raises(Unavailable, match="connection refused"):
        await replica.search(_ask)
    assert replica.state() == {"status": "degraded", "error": "connection refused"}
    assert replica.takes("procedural")  # nobody knows yet what it keeps
    there = True
    assert await replica.search(_ask) == 0
    assert replica.state() == {"status": "ok"}


@run
async def test_one_whose_opening_hangs_costs_no_more_than_its_timeout() -> None:
    forever = threading.Event()
    replica = Replica(Attachment("copy", forever.wait, timeout=0.02), FakeClock())  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match=r"it is still starting after 0.02 s"):
        await replica.search(_ask)
    assert replica.state()["status"] == "starting"
    await replica.close()
    forever.set()


@run
async def test_whatever_a_product_raises_is_a_sentence() -> None:
    store = Flaky(FakeClock())
    replica = Replica(Attachment("copy", lambda: store), FakeClock())

    async def broken(_: Store) -> None:
        raise KeyError("vendor")

    with pytest.raises(StoreRefused, match="it failed: KeyError"):
        await replica.search(broken)

    async def refused(_: Store) -> None:
        raise OperatorActionRequired("the disk is full")

    with pytest.raises(Unavailable, match="the disk is full"):
        await replica.search(refused)
    assert replica.search_breaker.failures == 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("'Alice's diagnosis' is too long"), "it failed: ValueError"),
        (ValidationError("content: 'Alice's diagnosis' is too long"), "it refused: validation_error"),
        (Conflict("'Alice's diagnosis' is there"), "it refused: conflict"),
    ],
)
@run
async def test_what_it_says_of_a_memory_is_neither_told_nor_logged(
    error: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its state is shown to every tenant, and outlives the memory."""
    replica = Replica(Attachment("copy", lambda: Flaky(FakeClock())), FakeClock())

    async def refuse(_: Store) -> None:
        raise error

    with pytest.raises(StoreRefused) as refused:
        await replica.deliver(refuse)
    assert refused.value.summary == said
    assert replica.state() == {"status": "degraded", "error": said}
    shown = "".join(traceback.format_exception(refused.value))
    assert "diagnosis" not in caplog.text + shown
    if not isinstance(error, Fault):
        assert f"{Path(__file__).name}:{refuse.__code__.co_firstlineno + 1}" in caplog.text


@run
async def test_another_servers_words_are_neither_told_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    """They are called unavailable where it is, and where it quotes what it could not do."""
    replica = Replica(Attachment("copy", lambda: Flaky(FakeClock())), FakeClock())
    answer = {"error": {"code": "unavailable", "message": "could not embed: Alice's diagnosis\x1b[31m"}}

    async def fail(_: Store) -> None:
        raise fault_of(answer)

    for ask in (replica.search, replica.deliver, replica.attempt):
        with pytest.raises(Unavailable) as failed:
            await ask(fail)
        assert failed.value.message == "it failed: unavailable"
        assert "diagnosis" not in "".join(traceback.format_exception(failed.value)) + caplog.text
    assert replica.state() == {"status": "degraded", "error": "it failed: unavailable"}


@pytest.mark.parametrize("answers", ["probe", "search", "deliver"])
@run
async def test_what_a_look_at_it_found_does_not_outlast_its_next_answer(answers: str) -> None:
    """Only deliveries cleared it: one look while it was away, and a server on which nothing is written said so on."""
    clock = FakeClock()
    store = Flaky(clock)
    replica = Replica(Attachment("copy", lambda: store), clock)
    store.unwell = "gone"
    await replica.probe()
    assert replica.state() == {"status": "degraded", "error": "gone"}
    store.unwell = None
    await (replica.probe() if answers == "probe" else getattr(replica, answers)(_ask))
    assert replica.state() == {"status": "ok"}


@run
async def test_a_look_that_goes_well_says_nothing_of_deliveries_that_failed() -> None:
    clock = FakeClock()
    replica = Replica(Attachment("copy", lambda: Flaky(clock)), clock)

    async def fail(_: Store) -> None:
        raise Unavailable("it is full")

    with pytest.raises(Unavailable):
        await replica.deliver(fail)
    await replica.probe()
    assert replica.state() == {"status": "degraded", "error": "it is full"}


@pytest.mark.parametrize("look", ["look", "probe"])
@run
async def test_that_searches_fail_is_said_until_a_look_finds_that_they_do_not(look: str) -> None:
    """On an idle server nobody asks it anything, and it was said to be degraded for ever."""
    clock = FakeClock()
    store = Flaky(clock)
    replica = Replica(Attachment("copy", lambda: store), clock)
    store.down = "no index"
    for _ in range(2):
        with pytest.raises(Unavailable, match="no index"):
            await replica.search(_ask)
        await getattr(replica, look)()
        assert replica.state() == {"status": "degraded", "error": "its searches fail: no index"}
    with pytest.raises(Unavailable, match="no index"):
        await replica.search(_ask)
    store.down, calls = None, store.calls
    await getattr(replica, look)()
    assert (store.calls, replica.state()["status"]) == (calls, "degraded"), "while it is left alone nothing is asked"
    clock.advance(5_000)
    await getattr(replica, look)()
    assert (store.calls, replica.state()) == (calls + 1, {"status": "ok"})
    await getattr(replica, look)()
    assert store.calls == calls + 1, "and once is enough"


def test_that_it_goes_and_that_it_is_back_is_in_the_log_once_each(caplog: pytest.LogCaptureFixture) -> None:
    """Also where it goes away long after the start, and nobody asks it anything."""
    store = Flaky(FakeClock())

    async def work() -> None:
        replica = Replica(Attachment("copy", lambda: store), FakeClock())
        with standing_still():  # it is opened in a thread
            await replica.ready(5)
        watching = asyncio.create_task(replica.watch(5))
        for unwell, state in ((None, "ok"), ("no route", "degraded"), (None, "ok"), ("no route", "degraded")):
            store.unwell = unwell
            await pass_seconds(1000)
            assert replica.state()["status"] == state
        watching.cancel()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())
    away, back = "the store copy does not answer: no route", "the store copy answers again"
    assert [record.getMessage() for record in caplog.records] == [away, back, away]


@run
async def test_what_a_question_about_a_store_found_ends_when_a_look_finds_it_well() -> None:
    """Nothing else asks it on an idle server, which would call it degraded for ever."""
    store = Flaky(FakeClock())
    replica = Replica(Attachment("copy", lambda: store), FakeClock())
    store.unwell = "no route"
    await replica.probe()
    assert replica.state() == {"status": "degraded", "error": "no route"}
    store.unwell = None
    assert await replica.look()
    assert replica.state() == {"status": "ok"}


@run
async def test_that_it_calls_itself_down_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Down(Flaky):
        async def health(self) -> dict[str, str]:
            return {"status": "down"}

    replica = Replica(Attachment("copy", lambda: Down(FakeClock())), FakeClock())
    for _ in range(2):
        assert not await replica.look()
    (said,) = caplog.records
    assert said.getMessage() == "the store copy does not answer: it says of itself that it is down"


@run
async def test_deliveries_are_tried_while_searches_fail() -> None:
    """A store whose search is broken must still be told what is erased; one that takes nothing is not asked either."""
    clock = FakeClock()
    replica = Replica(Attachment("copy", lambda: Flaky(clock)), clock)

    async def fail(_: Store) -> None:
        raise Unavailable("gone")

    for failing, other, goes_on in ((replica.search, replica.deliver, True), (replica.deliver, replica.search, False)):
        for _ in range(3):
            with pytest.raises(Unavailable, match="gone"):
                await failing(fail)
        with pytest.raises(StoreSkipped):
            await failing(fail)
        if goes_on:
            assert await other(_ask) == 0
        else:
            with pytest.raises(StoreSkipped, match="not asked for 5 s more: it failed 3 times in a row, last: gone"):
                await other(_ask)
        says = {"status": "degraded", "error": "its searches fail: gone"}
        assert replica.state() == (says if goes_on else {"status": "down", "error": "gone"})
        clock.advance(60_000)
        assert await failing(_ask) == 0
        assert replica.state() == {"status": "ok"}


@pytest.mark.parametrize("how", ["closes slowly", "goes on"])
def test_a_store_that_does_not_let_go_costs_no_more_than_its_timeout(how: str) -> None:
    async def work() -> None:
        replica = Replica(Attachment("copy", lambda: Flaky(FakeClock()), timeout=2.0), FakeClock())
        with standing_still():  # it is opened in a thread
            await replica.ready(5)
        let_go = asyncio.Event()

        async def hang(_: Store) -> None:
            for _ in range(3):
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    if how == "closes slowly":
                        await let_go.wait()
                        raise

        for ask in (replica.search, replica.deliver):
            with pytest.raises(Unavailable, match="it did not answer within 2 s"):
                await asyncio.wait_for(ask(hang), 2.2)  # which would raise another error, and nobody waits for real
        let_go.set()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@run
async def test_a_store_that_cancels_itself_has_failed_and_whoever_asked_goes_on() -> None:
    replica = Replica(Attachment("copy", lambda: Flaky(FakeClock())), FakeClock())

    async def cancel(_: Store) -> None:
        raise asyncio.CancelledError

    for _ in range(3):
        with pytest.raises(Unavailable, match="it failed: cancelled"):
            await replica.deliver(cancel)
    assert replica.state() == {"status": "down", "error": "it failed: cancelled"}


@run
async def test_who_is_cancelled_while_a_store_works_is_cancelled_and_so_is_the_store() -> None:
    replica, let_go = Replica(Attachment("copy", lambda: Flaky(FakeClock())), FakeClock()), asyncio.Event()
    begun = asyncio.Event()

    async def hang(_: Store) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            let_go.set()

    asking = asyncio.create_task(replica.search(hang))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert let_go.is_set()
    assert replica.state() == {"status": "ok"}


@run
async def test_why_it_could_not_be_opened_is_told() -> None:
    """Nothing of a memory is in it yet, and whoever looks after it needs the words."""

    def open_it() -> Store:
        raise ValidationError("it needs an embedder")

    replica = Replica(Attachment("copy", open_it), FakeClock())
    with pytest.raises(Unavailable, match="it needs an embedder"):
        await replica.search(_ask)


@run
async def test_an_operator_may_ask_while_the_breaker_is_open() -> None:
    store = Flaky(FakeClock())
    replica = Replica(Attachment("copy", lambda: store), FakeClock())
    store.down = "gone"
    for _ in range(3):
        with pytest.raises(Unavailable):
            await replica.search(_ask)
    store.down = None
    with pytest.raises(StoreSkipped, match="not asked for 5 s more: it failed 3 times in a row, last: gone"):
        await replica.search(_ask)
    assert await replica.attempt_search(_ask) == 0
    assert await replica.search(_ask) == 0


def test_they_are_found_by_name() -> None:
    replicas = Replicas([Attachment("a", Flaky), Attachment("b", Flaky)], FakeClock())  # type: ignore[arg-type]
    assert [each.name for each in replicas] == ["a", "b"]
    assert (replicas.named("b") is not None, replicas.named("c")) == (True, None)
    assert not Replicas([], FakeClock())
