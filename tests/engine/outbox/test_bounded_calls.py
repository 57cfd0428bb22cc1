"""Code of others neither holds up whoever asks nor ends the program."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from jumping_loop import JumpingLoop
from replica_house import Flaky, House, house, run

from commonplace.engine import Forget, Query
from commonplace.engine.outbox.bounded_calls import in_daemon_thread, run_with_timeout
from commonplace.engine.outbox.replicas import Attachment, Replica
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable


def test_what_goes_on_after_it_was_cancelled_is_left_to_itself() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # the second one, at the end of the loop, it heeds
            await asyncio.Event().wait()

    async def work() -> None:
        with pytest.raises(TimeoutError):
            await run_with_timeout(30, stubborn())
        assert asyncio.get_running_loop().time() < 31

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


async def _exit(*_: Any, **__: Any) -> Any:
    sys.exit(3)


class PanicException(BaseException):
    """As code in Rust raises where it meets what it did not expect."""


async def _panic(*_: Any, **__: Any) -> Any:
    raise PanicException


def _open_in_panic() -> Any:
    raise PanicException


@run
async def test_what_would_end_the_program_has_failed() -> None:
    with pytest.raises(Unavailable, match="it failed: SystemExit"):
        await run_with_timeout(1, _exit())
    with pytest.raises(Unavailable, match="it failed: SystemExit"):
        await in_daemon_thread(sys.exit)
    with pytest.raises(Unavailable, match="it failed: PanicException"):
        await run_with_timeout(1, _panic())
    with pytest.raises(Unavailable, match="it failed: PanicException"):
        await in_daemon_thread(_open_in_panic)


@run
async def test_an_open_that_raises_stop_iteration_has_failed() -> None:
    """No future takes it: whoever asks would be told for ever that the store is still starting."""

    def opened() -> Any:
        return next(iter(()))

    replica = Replica(Attachment("copy", opened), FakeClock())
    with pytest.raises(Unavailable, match="it failed: RuntimeError"):
        await replica.attempt(lambda store: store.health())
    assert replica.state()["status"] != "starting"


@run
async def test_who_interrupts_the_program_is_heard() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await in_daemon_thread(interrupted)


async def _forget(h: House) -> object:
    return await h.engine.forget(WHO, Forget("agent", [(await h.live())[0].id]))


#: What is asked of a store, and by which of its operations.
ASKED: dict[str, tuple[str, Any]] = {
    "put": ("put", lambda h: h.remember("more words")),
    "delete": ("delete", _forget),
    "search": ("search", lambda h: h.engine.recall(WHO, Query(("agent",), "words"))),
    "health": ("health", lambda h: h.engine.stores.list(WHO)),
}


@pytest.mark.parametrize(("fails", "said"), [(_exit, "SystemExit"), (_panic, "PanicException")])
@pytest.mark.parametrize("asked", ASKED)
@run
async def test_a_store_that_would_end_the_program_fails_and_the_others_go_on(
    asked: str, fails: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation, ask = ASKED[asked]
    async with house() as h:
        await h.remember("words")
        await h.outbox.join()
        monkeypatch.setattr(h.copies[0], operation, fails)
        await ask(h)
        await h.outbox.join()
        assert said in h.outbox.replicas.named("copy").state()["error"]
        assert (await h.engine.recall(WHO, Query(("agent",), "words"))).stores_queried


@run
async def test_a_store_whose_capabilities_would_end_the_program_cannot_be_opened() -> None:
    class Exits(Flaky):
        @property
        def capabilities(self) -> frozenset[str]:
            sys.exit(3)

        @capabilities.setter
        def capabilities(self, value: object) -> None:
            pass

    replica = Replica(Attachment("copy", lambda: Exits(FakeClock())), FakeClock())
    await replica.probe()
    assert replica.state() == {"status": "degraded", "error": "it failed: SystemExit"}
