from __future__ import annotations

import asyncio
from typing import Any

from replica_house import Flaky, run

from commonplace.engine.outbox.courier import Courier
from commonplace.engine.outbox.deliveries import Change
from commonplace.engine.outbox.replicas import Attachment, Replica
from commonplace.stores.base import Entry
from commonplace.testing.subject import FakeClock
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
