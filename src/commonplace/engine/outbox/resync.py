"""A replica made equal to the primary: what differs is told again, what the primary has no more is deleted, and then
both are read once more and compared. What the primary never had is named, and can be left: where the primary was lost,
or is older than the replica, there is no other copy of it.

Of each memory no more is kept than its id and a hash: an agent may have more of them than fit into memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from commonplace.engine.ledger.audit import erased_ids
from commonplace.engine.outbox.answers import read_memories
from commonplace.engine.outbox.deliveries import kind_of
from commonplace.engine.outbox.replicas import Replica
from commonplace.stores.base import Reach, Store
from commonplace.stores.documents import DamagedCopy, UnreadableCopy
from commonplace.stores.mixins import scan_pages
from commonplace.stores.optional import CopyListing, Progress
from commonplace.wire.record import ALL_AGENTS, Memory

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
_EVERYTHING = (*_COMPARED, *_MOSTLY_KEPT)


def digest(memories: Iterable[Memory]) -> str:
    """The same for the same memories, in whatever order: what every store must keep of them, hashed."""
    return _digest_of([_hash(memory, _COMPARED) for memory in memories])


def _digest_of(hashes: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(sorted(hashes))).hexdigest()


def _hash(memory: Memory, names: Iterable[str]) -> bytes:
    said = repr([_ordered(getattr(memory, name)) for name in names])
    return hashlib.sha256(said.encode()).digest()


def _ordered(value: Any) -> Any:
    """The same for what is equal: products give keys in an order of their own, and 1.0 for 1. Not by `canonical`, which
    refuses half a surrogate pair and numbers beyond 2**53: a copy has to be compared whatever is in it."""
    if isinstance(value, dict):
        return sorted((repr(key), repr(_ordered(held))) for key, held in value.items())
    if isinstance(value, list | tuple):
        return [_ordered(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Comparison:
    """What a store should have beside what it has, of one agent: an id and a hash of each, and no memory."""

    def __init__(self) -> None:
        self._wanted: dict[str, bytes] = {}
        self._right: set[str] = set()
        self._wrong: set[str] = set()
        self._extra: dict[str, None] = {}  # in the order they came
        self._unreadable: dict[str, str] = {}  # by the store's own id, ours

    def add_wanted(self, memory: Memory) -> None:
        self._wanted[memory.id] = _hash(memory, _EVERYTHING)

    def add_copy(self, memory: Memory) -> None:
        """A copy; to be called when everything is wanted that is."""
        id = memory.id
        if id not in self._wanted and isinstance(memory, UnreadableCopy):
            self._unreadable[memory.store_id] = id
        elif id not in self._wanted:
            self._extra[id] = None
        elif id in self._right or self._wanted[id] != _hash(memory, _EVERYTHING):
            self._wrong.add(id)
        else:
            self._right.add(id)

    @property
    def wanted(self) -> int:
        return len(self._wanted)

    @property
    def held(self) -> int:
        """How many memories it has copies of."""
        return len(self._right | self._wrong) + len(self._extra)

    def differing(self, or_in: Set[str] = frozenset()) -> list[str]:
        """What is wanted and missing there, or is not as here, or is there twice, or is one of these."""
        right = self._right - self._wrong - or_in
        return [id for id in self._wanted if id not in right]

    def extra(self) -> list[str]:
        """What is there and not wanted, each once."""
        return list(self._extra)

    def unreadable(self) -> list[str]:
        """By the store's own ids, what may be its own: to be named, and not deleted. An id that a copy has which can be
        read is one of ours."""
        return [store_id for store_id, id in self._unreadable.items() if id not in self._extra]


def _groups(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))


async def _copy_pages(store: Store, tenant: str, agent: str) -> AsyncGenerator[Sequence[Memory], None]:
    reach = Reach(tenant, (agent,))
    pages = store.copy_pages(tenant, agent) if isinstance(store, CopyListing) else scan_pages(store, reach)
    async for page in pages:
        held = read_memories(page)
        # By that name, which an agent may have, a product may give the memories of every agent: they would be deleted.
        yield held if agent != ALL_AGENTS else [memory for memory in held if memory.agent_id == agent]


class Resync:
    def __init__(
        self, core: Core, replica: Replica, total: int, progress: Progress, *, dry_run: bool, keep_unknown: bool
    ) -> None:
        self._core = core
        self._replica = replica
        self._total = total
        self._progress = progress
        self._dry_run = dry_run
        self._keep_unknown = keep_unknown
        self._erased: dict[str, tuple[int, frozenset[str]]] = {}  # by tenant, and the last entry read
        self._waiting: dict[str, frozenset[str]] = {}  # by tenant, what was in the outbox at the beginning
        self._done = 0
        self._put = 0
        self._deleted = 0
        self._primary: list[str] = []
        self._copies: list[str] = []
        self._counts = [0, 0]
        self._unreadable: list[dict[str, str]] = []
        self._errors: Counter[str] = Counter()
        self._unknown: list[dict[str, str]] = []

    async def run(self, reach: Reach) -> None:
        """One agent."""
        waiting = await self._waiting_in(reach.tenant)
        compared = Comparison()
        async for memory in self._wanted(reach):
            compared.add_wanted(memory)
        async for memory in self._held_there(reach):
            compared.add_copy(memory)
        for store_id in compared.unreadable():
            self._unreadable.append(_named(reach, store_id))
        # What a copy has beside its fields, such as the vector of another embedder, only the outbox knows to be old.
        differing = compared.differing(or_in=waiting)
        self._advance(compared.wanted - len(differing))
        extra = compared.extra()
        unknown = await self._never_had(reach.tenant, extra)
        self._unknown += [_named(reach, id) for id in extra if id in unknown]
        if self._keep_unknown:
            extra = [id for id in extra if id not in unknown]
        if self._dry_run:
            self._put, self._deleted = self._put + len(differing), self._deleted + len(extra)
            self._counts = [self._counts[0] + compared.wanted, self._counts[1] + compared.held]
            self._advance(len(differing))
            return
        for some in _groups(differing):
            self._put += len(some) - len(await self._resend(reach, some))
            self._advance(len(some))
        for some in _groups(extra):
            # It may be another agent's there, or have come back since it was read here.
            await self._resend(reach, some, delete_first=True)
        del compared
        left = await self._compare(reach, frozenset(extra), frozenset(differing))
        self._deleted += len(extra) - len(left)

    async def _waiting_in(self, tenant: str) -> frozenset[str]:
        if tenant not in self._waiting:
            records = await self._core.primary.records(tenant, kind_of(self._replica.name))
            self._waiting[tenant] = frozenset(record.key for record in records)
        return self._waiting[tenant]

    async def _never_had(self, tenant: str, ids: Sequence[str]) -> set[str]:
        """Those of them of which the primary has no row, of whatever status, and its ledger no erasure."""
        left, primary = set(ids), self._core.primary
        for some in _groups(ids):
            left -= {memory.id for memory in await primary.get(tenant, some)}
        if left:
            after, known = self._erased.get(tenant, (0, frozenset()))
            more, after = await erased_ids(primary, tenant, after)  # it is erased on meanwhile
            self._erased[tenant] = after, known.union(more)
            left -= self._erased[tenant][1]
        return left

    async def _resend(self, reach: Reach, ids: Sequence[str], *, delete_first: bool = False) -> list[str]:
        """As they are by now; of each that it did not take why."""
        owners = dict.fromkeys(ids, reach.agents[0])
        outbox, tenant = self._core.outbox, reach.tenant
        failed = await outbox.resend(self._replica, tenant, owners, TIMEOUT_SECONDS, delete_first=delete_first)
        self._errors.update(failed)
        return failed

    async def _wanted(self, reach: Reach) -> AsyncIterator[Memory]:
        """What it should have copies of."""
        async for page in scan_pages(self._core.primary, reach):
            for memory in page:
                if self._replica.omits(memory) is None:
                    yield memory

    async def _compare(self, reach: Reach, extra: Set[str], replaced: Set[str]) -> set[str]:
        """Both read once more; which of `extra`, whose copies were deleted, are still there. The store does not find
        those by their ids: whoever wrote them put them somewhere else. So it is with a damaged one beside the copy
        that was to take its place."""
        left: set[str] = set()
        # What has expired since the start was no longer delivered, and a copy from before may stay until it is removed.
        began, now = reach.now or 0, self._core.clock()
        held = {memory.id: _hash(memory, _COMPARED) async for memory in self._wanted(replace(reach, now=now))}
        copies: list[bytes] = []
        async for memory in self._held_there(reach):
            if began < (memory.expires_at or 0) <= now:
                continue
            copies.append(_hash(memory, _COMPARED))
            is_left = memory.id in extra and memory.id not in held
            if is_left:
                left.add(memory.id)
            if is_left or (memory.id in replaced and isinstance(memory, DamagedCopy)):
                store_id = memory.store_id if isinstance(memory, DamagedCopy) else memory.id
                self._unreadable.append(_named(reach, store_id))
        self._counts = [self._counts[0] + len(held), self._counts[1] + len(copies)]
        self._primary.append(_digest_of(held.values()))
        self._copies.append(_digest_of(copies))
        return left

    async def _held_there(self, reach: Reach) -> AsyncIterator[Memory]:
        """Everything it has of this agent, also what has expired and is of a type it should not have. Each page has a
        time of its own: that there are many is no failure."""

        async def begin(store: Store) -> AsyncGenerator[Sequence[Memory], None]:
            return _copy_pages(store, reach.tenant, reach.agents[0])

        pages = await self._replica.attempt(begin, seconds=TIMEOUT_SECONDS)

        async def following(store: Store) -> Sequence[Memory] | None:
            return await anext(pages, None)

        try:
            while (page := await self._replica.attempt(following, seconds=TIMEOUT_SECONDS)) is not None:
                for memory in page:
                    yield memory
        finally:
            with suppress(RuntimeError):  # of a store that goes on after it was cancelled: it is still running
                await pages.aclose()

    def _advance(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self._total)

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = {"store": self._replica.name, "sent": self._put, "deleted": self._deleted}
        found |= {"memories": self._counts[0], "copies": self._counts[1]}
        found |= {"unknown": self._unknown} if self._unknown else {}
        found |= {"unreadable": self._unreadable} if self._unreadable else {}
        if self._dry_run:
            differs = self._put or self._deleted or self._unknown or self._unreadable
            return found | {"dry_run": True, "equal": not differs}
        primary, copies = (hashlib.sha256("".join(each).encode()).hexdigest() for each in (self._primary, self._copies))
        errors = [{"error": why, "count": count} for why, count in self._errors.most_common()]
        found |= {"errors": errors} if errors else {}
        return found | {"equal": primary == copies, "hash": primary, "copies_hash": copies}


def _named(reach: Reach, id: str) -> dict[str, str]:
    return {"tenant": reach.tenant, "agent_id": reach.agents[0], "id": id}
