"""Stores beside a primary, for tests: real ones that can be taken away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from jumping_loop import standing_still
from store_kinds import STORE

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Attachment, Draft, Engine, Settings
from commonplace.engine.outbox.deliveries import kind_of
from commonplace.engine.outbox.resync import digest
from commonplace.stores.base import Reach
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.memory import InMemory
from commonplace.stores.mixins import scan_all
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory

if STORE:
    from postgres_primary import IN_MEMORY
else:
    IN_MEMORY = InMemory

AGENT = "agent"
_EMBEDDER = HashingEmbedder()
EVERYTHING = Reach("local", (AGENT,), statuses=("live", "pending", "archived", "deleted"))


class Flaky(PrimaryCopy):
    """A real store that can be taken away, and counts what it is asked."""

    def __init__(self, clock: FakeClock, name: str = "copy") -> None:
        super().__init__(IN_MEMORY(clock))
        self.name = name
        self.down: str | None = None
        self.unwell: str | None = None  # why it does not say how it is, whatever else it does
        self.hangs = False
        self.refuses = ""
        self.calls = 0

    async def _gate(self) -> None:
        self.calls += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.down:
            raise Unavailable(self.down)

    async def put(self, entries: Any) -> None:
        await self._gate()
        if self.refuses and any(self.refuses in e.memory.content for e in entries):
            raise RuntimeError(f"cannot take {self.refuses}")
        await super().put(entries)

    async def delete(self, tenant: str, ids: Any) -> int:
        await self._gate()
        return await super().delete(tenant, ids)

    async def search(self, search: Any) -> Any:
        await self._gate()
        return await super().search(search)

    async def health(self) -> Any:
        if self.unwell:
            raise Unavailable(self.unwell)
        return await super().health()

    async def contents(self) -> set[str]:
        return {m.content for m in await scan_all(self, EVERYTHING)}


class Late(Flaky):
    """A server that goes on with a request whose caller has gone, as one does with a POST."""

    def __init__(self, clock: FakeClock, name: str = "copy") -> None:
        super().__init__(clock, name)
        self.late = True  # whether what is put from now on arrives only when it is told to
        self.arrives = asyncio.Event()
        self.under_way: list[asyncio.Task[None]] = []

    async def put(self, entries: Any) -> None:
        async def work(late: bool) -> None:
            if late:
                await self.arrives.wait()
            await super(Late, self).put(entries)

        self.under_way.append(asyncio.create_task(work(self.late)))
        await asyncio.shield(self.under_way[-1])


class LateDeletions(Flaky):
    """As `Late`, of what it is to delete."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.late = False
        self.arrives = asyncio.Event()
        self.under_way: list[asyncio.Task[int]] = []

    async def delete(self, tenant: str, ids: Any) -> int:
        async def work(late: bool) -> int:
            if late:
                await self.arrives.wait()
            return await super(LateDeletions, self).delete(tenant, ids)

        self.under_way.append(asyncio.create_task(work(self.late)))
        return await asyncio.shield(self.under_way[-1])


@dataclass
class House:
    engine: Engine
    clock: FakeClock
    primary: Any
    copies: list[Flaky]

    async def remember(self, content: str, **fields: Any) -> str:
        return (await self.engine.remember(WHO, Draft(AGENT, fields.pop("type", "semantic"), content, **fields))).id

    @property
    def outbox(self) -> Any:
        return self.engine._core.outbox

    async def settled(self) -> None:
        """Until it is noted what the copies have; an answer comes as soon as they have it, a commit earlier."""
        await self.outbox.join()

    async def waiting(self, copy: int = 0) -> dict[str, dict[str, Any]]:
        found = await self.primary.records("local", kind_of(self.copies[copy].name))
        return {r.key: r.value for r in found}

    async def live(self) -> list[Memory]:
        return await scan_all(self.primary, Reach("local", (AGENT,), now=self.clock()))

    async def equal(self, copy: int = 0) -> bool:
        held = await scan_all(self.copies[copy], EVERYTHING)
        return digest(held) == digest(await self.live())


@asynccontextmanager
async def house(
    copies: int = 1,
    primary: Any = None,
    clock: FakeClock | None = None,
    timeout: float = 5.0,
    stores: Any = None,
    types: frozenset[str] | None = None,
    settings: Settings | None = None,
    embedder: HashingEmbedder | None = _EMBEDDER,
) -> AsyncIterator[House]:
    clock = clock or FakeClock()
    held = stores or [Flaky(clock, f"copy{n or ''}") for n in range(copies)]
    attached = [Attachment(each.name, lambda each=each: each, timeout, types=types) for each in held]  # type: ignore[misc]
    primary = primary or InMemory(clock)
    settings = settings or Settings()
    with standing_still():  # stores are opened in threads
        engine = await Engine.open(primary, embedder, clock=clock, replicas=attached, settings=settings)
        if engine._core.outbox._loop is not None:
            engine._core.outbox._loop.cancel()  # tests say when something is tried again
        await engine.stores.wait_until_open(5)
    try:
        yield House(engine, clock, primary, held)
    finally:
        await engine.close()


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def call(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return call
