"""A store that takes only so many memories within its timeout gets them all, in groups that fit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from replica_house import AGENT, Flaky, House, house, run

from commonplace.engine import BatchItem, Draft
from commonplace.engine.outbox.courier import GROUP, GROWS_AFTER, QUEUE_MS, Courier
from commonplace.engine.outbox.deliveries import Change
from commonplace.engine.outbox.replicas import Attachment, Replica
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable


class Slow(Flaky):
    """Takes so many before its timeout; of more it has the first ones, and its caller is told nothing of them."""

    def __init__(self, clock: FakeClock, fits: int, *, hangs: bool) -> None:
        super().__init__(clock)
        self.fits = fits
        self.hangs_over = hangs  # or says itself that it ran out of time
        self.puts: list[int] = []

    async def put(self, entries: Sequence[Any]) -> None:
        await self._gate()
        self.puts.append(len(entries))
        await super().put(entries[: self.fits])
        if len(entries) > self.fits:
            if self.hangs_over:
                await asyncio.Event().wait()
            raise Unavailable("it did not answer within 2 s")


async def _catch_up(h: House, hours: float) -> None:
    for _ in range(round(hours * 360)):
        h.clock.advance(10_000)
        await h.outbox.run_due()
        if not await h.waiting():
            return


@pytest.mark.parametrize("hangs", [True, False])
@pytest.mark.parametrize("fits", [1, 30])
@run
async def test_it_catches_up(fits: int, hangs: bool) -> None:
    clock = FakeClock()
    copy = Slow(clock, fits, hangs=hangs)
    many = 300 if fits > 1 else 20
    async with house(clock=clock, stores=[copy], timeout=0.05) as h:
        copy.down = "away"
        for start in range(0, many, 100):
            texts = [f"memory {n}" for n in range(start, min(start + 100, many))]
            await h.engine.remember_many(WHO, [BatchItem(Draft(AGENT, "semantic", text)) for text in texts])
        await h.outbox.join()
        copy.down = None
        await _catch_up(h, hours=2)
        assert await h.waiting() == {}
        assert await h.equal()


def _gone(id: str) -> Change:
    return Change(id, "agent", "semantic", 1, None)


@run
async def test_groups_shrink_when_they_time_out_and_grow_again() -> None:
    store, sizes = Flaky(FakeClock()), list[int]()
    delete = store.delete

    async def noted(tenant: str, ids: Any) -> int:
        sizes.append(len(ids))
        return await delete(tenant, ids)

    store.delete = noted  # type: ignore[method-assign]

    async def settled(*_: Any) -> None: ...

    replica = Replica(Attachment("copy", lambda: store, timeout=0.02), FakeClock())
    await replica.ready(5)
    courier = Courier(replica, settled)
    store.hangs = True
    await asyncio.gather(*courier.submit("local", [_gone(f"a{n}") for n in range(GROUP)]))
    assert courier.group_size == GROUP // 2
    await asyncio.gather(*courier.submit("local", [_gone("one")]))
    assert courier.group_size == GROUP // 2  # nothing is smaller than one
    store.hangs = False
    await asyncio.gather(*courier.submit("local", [_gone(f"b{n}") for n in range(6 * GROUP)]))
    assert sizes == [GROUP, 1, *[GROUP // 2] * GROWS_AFTER, GROUP, GROUP]


@run
async def test_what_has_waited_too_long_for_its_turn_is_left_to_whoever_is_next() -> None:
    """Its lease may be over before it arrives, and another process have delivered a newer state."""
    clock = FakeClock()
    store, under_way, goes_on = Flaky(clock), asyncio.Event(), asyncio.Event()
    delete = store.delete

    async def slowly(tenant: str, ids: Any) -> int:
        under_way.set()
        await goes_on.wait()
        return await delete(tenant, ids)

    store.delete = slowly  # type: ignore[method-assign]

    async def settled(*_: Any) -> None: ...

    courier = Courier(Replica(Attachment("copy", lambda: store), clock), settled)
    first = courier.submit("local", [_gone("first")])
    await under_way.wait()
    second = courier.submit("local", [_gone("second")])
    clock.advance(QUEUE_MS + 1)
    third = courier.submit("local", [_gone("third")])
    goes_on.set()
    assert await asyncio.gather(*first, *third) == [None, None]
    assert "others took too long before it" in str(await second[0])
