"""A replica made equal to the primary: what differs is told again, what the primary does not have is deleted, and then
both are read once more and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.engine.outbox.deliveries import kind_of
from commonplace.engine.outbox.replicas import Replica, delete_copies
from commonplace.stores.base import Entry, Reach, Store, Transaction
from commonplace.stores.mixins import scan_all
from commonplace.stores.optional import Progress
from commonplace.wire.record import Memory

if TYPE_CHECKING:
    from commonplace.engine.core import Core

T = TypeVar("T")
_AT_ONCE = 50
TIMEOUT_SECONDS = 300.0  # for one group, while an operator watches
_COMPARED = ("id", "agent_id", "type", "content", "user_id", "created_at", "expires_at")


def digest(memories: Iterable[Memory]) -> str:
    """The same for the same memories, in whatever order: what every store must keep of them, hashed."""
    each = sorted(repr([getattr(memory, name) for name in _COMPARED]) for memory in memories)
    return hashlib.sha256("\n".join(each).encode("utf-8", "surrogatepass")).hexdigest()


def differences(held: Sequence[Memory], copies: Sequence[Memory]) -> tuple[list[Memory], list[Memory]]:
    """What of `held` is missing among the copies or is not as there, and which copies are of nothing."""
    there = {memory.id: digest([memory]) for memory in copies}
    wanted = {memory.id for memory in held}
    return [m for m in held if there.get(m.id) != digest([m])], [m for m in copies if m.id not in wanted]


class Resync:
    def __init__(self, core: Core, replica: Replica, total: int, progress: Progress) -> None:
        self._core = core
        self._replica = replica
        self._total = total
        self._progress = progress
        self._done = 0
        self._put = 0
        self._deleted = 0
        self._primary: list[str] = []
        self._copies: list[str] = []
        self._counts = [0, 0]

    async def run(self, reach: Reach) -> None:
        """One agent."""
        held = await self._wanted(reach)
        # Everything it has of this agent, also what has expired and is of a type it should not have.
        every = Reach(reach.tenant, reach.agents)
        copies = await self._call(lambda store: scan_all(store, every))
        wrong, extra = differences(held, copies)
        self._advance(len(held) - len(wrong))
        for start in range(0, len(wrong), _AT_ONCE):
            await self._tell(wrong[start : start + _AT_ONCE])
        if extra:
            ids = [memory.id for memory in extra]
            await self._call(lambda store: delete_copies(store, reach.tenant, dict.fromkeys(ids, reach.agents[0])))
            self._deleted += len(ids)
        await self._clear_outbox(reach, [m.id for m in held], [m.id for m in extra])
        await self._compare(reach, every)

    async def _tell(self, memories: Sequence[Memory]) -> None:
        made = await self._core.make_entries(memories)
        entries = [Entry(e.memory, e.vectors, e.terms, e.generation) for e in made]
        await self._call(lambda store: store.put(entries))
        self._put += len(entries)
        self._advance(len(entries))

    async def _clear_outbox(self, reach: Reach, held: Sequence[str], extra: Sequence[str]) -> None:
        """What waited is done, unless it has changed since it was read here, or an earlier write may still arrive."""
        seqs = {m.id: m.seq for m in await self._core.primary.get(reach.tenant, list(held))}
        kind = kind_of(self._replica.name)

        def work(tx: Transaction) -> None:
            for id in (*held, *extra):
                there = tx.record(kind, id)
                if there is None or there.value.get("doubt", 0) > tx.now:
                    continue
                if id not in seqs or there.value["seq"] <= seqs[id]:
                    tx.drop_record(kind, id)

        await self._core.primary.transact(reach.tenant, work)

    async def _wanted(self, reach: Reach) -> list[Memory]:
        """What it should have copies of."""
        held = await scan_all(self._core.primary, reach)
        return [memory for memory in held if self._replica.omits(memory) is None]

    async def _compare(self, reach: Reach, every: Reach) -> None:
        held = await self._wanted(reach)
        copies = await self._call(lambda store: scan_all(store, every))
        self._counts = [self._counts[0] + len(held), self._counts[1] + len(copies)]
        self._primary.append(digest(held))
        self._copies.append(digest(copies))

    async def _call(self, verb: Callable[[Store], Awaitable[T]]) -> T:
        return await self._replica.attempt(verb, seconds=TIMEOUT_SECONDS)

    def _advance(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self._total)

    def result(self) -> dict[str, Any]:
        primary, copies = (hashlib.sha256("".join(each).encode()).hexdigest() for each in (self._primary, self._copies))
        found = {"store": self._replica.name, "equal": primary == copies, "sent": self._put, "deleted": self._deleted}
        return found | {"memories": self._counts[0], "copies": self._counts[1], "hash": primary, "copies_hash": copies}
