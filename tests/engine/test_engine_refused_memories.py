"""What a store will not take holds up nothing else, an erasure least of all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from replica_house import AGENT, Flaky, House, house, run

from commonplace.engine import BatchItem, Draft, Forget, Query
from commonplace.engine.outbox.breaker import LONGEST_PAUSE_MS
from commonplace.engine.outbox.courier import GROUP
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Principal

SECRET = "Alice's diagnosis"
PAUSE_MS = 2 * LONGEST_PAUSE_MS  # longer than any breaker's, and than any delay of a delivery


class Picky(Flaky):
    """Refuses what has "poison" in it, as a product does: with an error of its own, or as if it were not there."""

    def __init__(self, clock: FakeClock, error: type[Exception]) -> None:
        super().__init__(clock)
        self.error = error
        self.puts: list[int] = []

    async def put(self, entries: Sequence[Any]) -> None:
        await self._gate()
        self.puts.append(len(entries))
        if any("poison" in entry.memory.content for entry in entries):
            raise self.error("did not take it")
        await super(Flaky, self).put(entries)


async def _poison(h: House, count: int, who: Principal = WHO) -> None:
    """Written one by one, and tried until the breaker has heard of all of them."""
    for n in range(count):
        await h.engine.remember(who, Draft(AGENT, "semantic", f"poison {n}"))
    for _ in range(30):
        h.clock.advance(5_000)
        await h.outbox.run_due()


async def _erase_while_away(h: House, id: str) -> None:
    h.copies[0].down = "away"
    await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
    await h.outbox.join()
    h.copies[0].down = None


@pytest.mark.parametrize("error", [RuntimeError, Unavailable])
@pytest.mark.parametrize("recalls", [False, True], ids=["", "recalls between"])
@run
async def test_an_erasure_does_not_wait_for_what_a_store_refuses(error: type[Exception], recalls: bool) -> None:
    clock = FakeClock()
    copy = Picky(clock, error)
    async with house(clock=clock, stores=[copy]) as h:
        id = await h.remember(SECRET)
        await _poison(h, 5)
        await _erase_while_away(h, id)
        clock.advance(PAUSE_MS)
        if recalls:
            await h.engine.recall(WHO, Query((AGENT,), "diagnosis"))
        await h.outbox.run_due()
        assert SECRET not in await copy.contents()
        assert id not in await h.waiting()
        assert len(await h.waiting()) == 5


@pytest.mark.parametrize("error", [RuntimeError, Unavailable])
@run
async def test_an_erasure_goes_before_writes_also_of_another_tenant(error: type[Exception]) -> None:
    clock = FakeClock()
    copy = Picky(clock, error)
    async with house(clock=clock, stores=[copy]) as h:
        id = await h.remember(SECRET)
        await _poison(h, 5, Principal("bob", "acme", "admin", ("*",)))
        await _erase_while_away(h, id)
        clock.advance(PAUSE_MS)
        await h.outbox.run_due()
        assert await copy.contents() == set()


@run
async def test_an_erasure_goes_before_more_writes_than_one_group_has() -> None:
    clock = FakeClock()
    copy = Picky(clock, Unavailable)
    async with house(clock=clock, stores=[copy]) as h:
        id = await h.remember(SECRET)
        copy.down = "away"
        await h.engine.remember_many(
            WHO, [BatchItem(Draft(AGENT, "semantic", f"poison {n}")) for n in range(GROUP + 50)]
        )
        await _erase_while_away(h, id)
        clock.advance(PAUSE_MS)
        copy.puts = []
        done = asyncio.create_task(h.outbox.run_due())
        while not copy.puts and not done.done():
            await asyncio.sleep(0)
        assert await copy.contents() == set()
        await done


@pytest.mark.parametrize("error", [RuntimeError, Unavailable])
@run
async def test_of_a_group_with_one_that_is_refused_the_others_arrive(error: type[Exception]) -> None:
    clock = FakeClock()
    copy = Picky(clock, error)
    async with house(clock=clock, stores=[copy]) as h:
        copy.down = "away"
        texts = [*(f"fine {n}" for n in range(30)), "poison", *(f"good {n}" for n in range(30))]
        await h.engine.remember_many(WHO, [BatchItem(Draft(AGENT, "semantic", text)) for text in texts])
        await h.outbox.join()
        copy.down = None
        clock.advance(PAUSE_MS)
        await h.outbox.run_due()
        assert len(await copy.contents()) == 60
        assert len(copy.puts) < 20
        # What a store did not confirm is told once more, when nothing of it can arrive late any more.
        for _ in range(20):
            clock.advance(60_000)
            await h.outbox.run_due()
        assert [each["attempts"] > 0 for each in (await h.waiting()).values()] == [True]


@run
async def test_refused_writes_do_not_keep_a_store_from_being_asked() -> None:
    clock = FakeClock()
    copy = Picky(clock, RuntimeError)
    async with house(clock=clock, stores=[copy]) as h:
        await h.remember("tea at five")
        await _poison(h, 5)
        found = await h.engine.recall(WHO, Query((AGENT,), "tea"))
        assert found.errors == {}


@run
async def test_what_a_store_that_is_away_cannot_take_is_not_tried_one_by_one() -> None:
    clock = FakeClock()
    copy = Picky(clock, RuntimeError)

    async def health() -> dict[str, Any]:
        raise Unavailable("away")

    copy.health = health  # type: ignore[method-assign]
    async with house(clock=clock, stores=[copy]) as h:
        copy.down = "away"
        await h.engine.remember_many(WHO, [BatchItem(Draft(AGENT, "semantic", f"fine {n}")) for n in range(40)])
        await h.outbox.join()
        assert copy.calls <= 3  # a batch may be written in parts
