"""A replica made equal to the primary: what differs is told again, what the primary does not have is deleted, and then
both are read once more and compared."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from commonplace.engine.outbox.deliveries import kind_of
from commonplace.engine.outbox.replicas import Replica
from commonplace.stores.base import Reach, Store
from commonplace.stores.mixins import scan_all, scan_pages
from commonplace.stores.optional import CopyListing, Progress
from commonplace.wire.record import Memory

if TYPE_CHECKING:
    from commonplace.engine.core import Core

_AT_ONCE = 50
TIMEOUT_SECONDS = 300.0  # for one group, or one page, while an operator watches
#: What every store must keep, and so is proved; and what most keep beside it: one that does not is told it each time.
_COMPARED = ("id", "agent_id", "type", "content", "user_id", "created_at", "expires_at")
_MOSTLY_KEPT = (
    *("kind", "project", "title", "entity_name", "tags", "metadata", "confidence", "importance", "source", "privacy"),
    *("event_time", "session_id", "speaker", "supersedes"),
)


def digest(memories: Iterable[Memory]) -> str:
    """The same for the same memories, in whatever order: what every store must keep of them, hashed."""
    each = sorted(repr([getattr(memory, name) for name in _COMPARED]) for memory in memories)
    return hashlib.sha256("\n".join(each).encode("utf-8", "surrogatepass")).hexdigest()


def _groups(memories: Sequence[Memory]) -> Iterator[Sequence[Memory]]:
    return (memories[start : start + _AT_ONCE] for start in range(0, len(memories), _AT_ONCE))


def differences(held: Sequence[Memory], copies: Sequence[Memory]) -> tuple[list[Memory], list[Memory]]:
    """What of `held` is missing among the copies, is not as there or is there twice, and which copies are of nothing,
    each memory once."""
    values = attrgetter(*_COMPARED, *_MOSTLY_KEPT)
    there: dict[str, list[Any]] = {}
    for memory in copies:
        there.setdefault(memory.id, []).append(values(memory))
    wanted = {memory.id for memory in held}
    extra = {memory.id: memory for memory in copies if memory.id not in wanted}
    return [m for m in held if there.get(m.id) != [values(m)]], list(extra.values())


async def _copy_pages(store: Store, tenant: str, agent: str) -> AsyncGenerator[Sequence[Memory], None]:
    reach = Reach(tenant, (agent,))
    pages = store.copy_pages(tenant, agent) if isinstance(store, CopyListing) else scan_pages(store, reach)
    async for page in pages:
        yield page


class Resync:
    def __init__(self, core: Core, replica: Replica, total: int, progress: Progress) -> None:
        self._core = core
        self._replica = replica
        self._total = total
        self._progress = progress
        self._waiting: dict[str, frozenset[str]] = {}  # by tenant, what was in the outbox at the beginning
        self._done = 0
        self._put = 0
        self._deleted = 0
        self._primary: list[str] = []
        self._copies: list[str] = []
        self._counts = [0, 0]

    async def run(self, reach: Reach) -> None:
        """One agent."""
        waiting = await self._waiting_in(reach.tenant)
        held = await self._wanted(reach)
        copies = await self._held_there(reach)
        wrong, extra = differences(held, copies)
        differing = {memory.id for memory in wrong}
        # What a copy has beside its fields, such as the vector of another embedder, only the outbox knows to be old.
        wrong += [memory for memory in held if memory.id in waiting and memory.id not in differing]
        self._advance(len(held) - len(wrong))
        for some in _groups(wrong):
            self._put += len(some) - await self._resend(reach, some)
            self._advance(len(some))
        for some in _groups(extra):
            # It may be another agent's there, or have come back since it was read here.
            await self._resend(reach, some, delete_first=True)
            self._deleted += len(some)
        await self._compare(reach)

    async def _waiting_in(self, tenant: str) -> frozenset[str]:
        if tenant not in self._waiting:
            records = await self._core.primary.records(tenant, kind_of(self._replica.name))
            self._waiting[tenant] = frozenset(record.key for record in records)
        return self._waiting[tenant]

    async def _resend(self, reach: Reach, memories: Sequence[Memory], *, delete_first: bool = False) -> int:
        """As they are by now; how many it did not take."""
        owners = {memory.id: reach.agents[0] for memory in memories}
        outbox = self._core.outbox
        return await outbox.resend(self._replica, reach.tenant, owners, TIMEOUT_SECONDS, delete_first=delete_first)

    async def _wanted(self, reach: Reach) -> list[Memory]:
        """What it should have copies of."""
        held = await scan_all(self._core.primary, reach)
        return [memory for memory in held if self._replica.omits(memory) is None]

    async def _compare(self, reach: Reach) -> None:
        # What has expired since the start was no longer delivered, and a copy from before may stay until it is removed.
        began, now = reach.now or 0, self._core.clock()
        held = await self._wanted(replace(reach, now=now))
        found = await self._held_there(reach)
        copies = [memory for memory in found if not began < (memory.expires_at or 0) <= now]
        self._counts = [self._counts[0] + len(held), self._counts[1] + len(copies)]
        self._primary.append(digest(held))
        self._copies.append(digest(copies))

    async def _held_there(self, reach: Reach) -> list[Memory]:
        """Everything it has of this agent, also what has expired and is of a type it should not have. Each page has a
        time of its own: that there are many is no failure."""

        async def begin(store: Store) -> AsyncGenerator[Sequence[Memory], None]:
            return _copy_pages(store, reach.tenant, reach.agents[0])

        found: list[Memory] = []
        async with aclosing(await self._replica.attempt(begin, seconds=TIMEOUT_SECONDS)) as pages:

            async def following(store: Store) -> Sequence[Memory] | None:
                return await anext(pages, None)

            while (page := await self._replica.attempt(following, seconds=TIMEOUT_SECONDS)) is not None:
                found += page
        return found

    def _advance(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self._total)

    def result(self) -> dict[str, Any]:
        primary, copies = (hashlib.sha256("".join(each).encode()).hexdigest() for each in (self._primary, self._copies))
        found = {"store": self._replica.name, "equal": primary == copies, "sent": self._put, "deleted": self._deleted}
        return found | {"memories": self._counts[0], "copies": self._counts[1], "hash": primary, "copies_hash": copies}
