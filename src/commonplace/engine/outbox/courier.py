"""One replica's deliveries: whatever waits goes out together, one group after the other, so that no older state of a
memory arrives after a newer one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from commonplace.engine.outbox.deliveries import Change, Order, is_ahead
from commonplace.engine.outbox.replicas import Replica, StoreRefused, StoreSkipped, StoreUnreachable, delete_copies
from commonplace.stores.base import Entry, Store
from commonplace.stores.optional import PerAgentStore
from commonplace.wire.errors import Fault, Unavailable

log = logging.getLogger("commonplace.stores")
GROUP = 200  # at most, and at first
GROWS_AFTER = 8  # groups that fitted into the store's timeout, one of twice the size is tried
_REMEMBERED = 10_000
QUEUE_MS = 30_000  # for which something may wait for its turn: its lease must not run out before it arrives
DOUBT_MS = 60_000  # for which a write that was not confirmed may still arrive
SPLIT_SECONDS = 30.0  # for finding what a store cannot take in a group: the lease of it must not run out meanwhile

#: Told what was sent, what of it was delivered (with the order of each), what was not and why, until when what was not
#: confirmed may still arrive, and when it was sent: what could arrive after that may lie over it, however late it is.
Settle = Callable[
    [str, Sequence[Change], Mapping[str, Order], Mapping[str, str], Mapping[str, int], int], Awaitable[None]
]


@dataclass(slots=True)
class _Delivery:
    change: Change
    future: asyncio.Future[str | None]
    given_at: int


class Courier:
    def __init__(self, replica: Replica, settle: Settle) -> None:
        self.replica = replica
        self._settle = settle
        self._waiting: dict[tuple[str, str], _Delivery] = {}
        self._sending: frozenset[tuple[str, str]] = frozenset()  # taken out of what waits, and not settled yet
        self._sent: dict[tuple[str, str], int] = {}  # the last sequence of what was delivered lately
        self._doubtful: dict[tuple[str, str], int] = {}  # until when a write that was not confirmed may arrive
        self._doubtful_deletions: dict[tuple[str, str], int] = {}  # the same of deletions
        self._task: asyncio.Task[None] | None = None
        self._operator_timeout: float | None = None  # seconds, while an operator waits
        self.fault: Unavailable | None = None  # the last within `operator_timeout`
        self.group_size = GROUP  # as many as it lately took within its timeout
        self._full_groups = 0  # of that size, which it took since the last that it did not
        self.operator_lock = asyncio.Lock()  # one at a time: the timeout and the fault are of one

    def __len__(self) -> int:
        return len(self._waiting)

    def holds(self, tenant: str, id: str) -> bool:
        """Whether it waits or is being sent."""
        return self.is_waiting(tenant, id) or (tenant, id) in self._sending

    def is_waiting(self, tenant: str, id: str) -> bool:
        return (tenant, id) in self._waiting

    def submit(self, tenant: str, changes: Sequence[Change]) -> list[asyncio.Future[str | None]]:
        """For each what became of it: None, or why it was not delivered."""
        futures = []
        for change in changes:
            key, now = (tenant, change.id), self.replica.clock()
            there = self._waiting.get(key)
            if there is None:
                there = self._waiting[key] = _Delivery(change, asyncio.get_running_loop().create_future(), now)
            elif change.order > there.change.order:
                there.change, there.given_at = change, now
            futures.append(there.future)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        return futures

    @property
    def timeout(self) -> float:
        """Seconds that one call may take now."""
        return max(self.replica.timeout, self._operator_timeout or 0.0)

    @contextmanager
    def operator_timeout(self, seconds: float) -> Iterator[None]:
        """Within it a call may take so long, and is made whatever the breaker says: an operator watches."""
        self._operator_timeout, self.fault = seconds, None
        try:
            yield
        finally:
            self._operator_timeout = None

    async def join(self) -> None:
        """Until what was handed over is delivered, or has failed."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """What is left waits in the outbox. The store is closed next, and would be opened once more for it."""
        left, self._waiting = self._waiting, {}
        for each in left.values():
            each.future.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._waiting:
            ordered = sorted(
                self._waiting, key=lambda key: self._waiting[key].change.entry is not None
            )  # erasures first
            tenant = ordered[0][0]
            keys = [key for key in ordered if key[0] == tenant][: self.group_size]
            group = [self._waiting.pop(key) for key in keys]
            self._sending = frozenset(keys)
            try:
                await self._send_group(tenant, group)
            finally:
                self._sending = frozenset()

    async def _send_group(self, tenant: str, group: Sequence[_Delivery]) -> None:
        sent_at = self.replica.clock()
        last = sent_at - QUEUE_MS
        failed = {each.change.id: "others took too long before it" for each in group if each.given_at < last}
        given = [each.change for each in group if each.change.id not in failed]
        sent = [change for change in given if not self._is_overtaken(tenant, change)]
        before = {each.change.id: self._doubt_of(tenant, each.change.id) for each in group}
        try:
            failed |= await self._deliver(tenant, sent)
        except BaseException as error:
            for each in group:
                each.future.cancel()
            if not isinstance(error, Exception):
                raise
            log.exception("deliveries to %s failed", self.replica.name)
            return
        for each in group:
            if not each.future.done():
                each.future.set_result(failed.get(each.change.id))
        done = {each.change.id: each.change.order for each in group if each.change.id not in failed}
        doubt = {id: until for id, known in before.items() if (until := max(known, self._doubt_of(tenant, id)))}
        try:
            await self._settle(tenant, sent, done, failed, doubt, sent_at)
        # The records are still there, and come up again when their lease is over.
        except Fault as fault:
            log.warning("what %s has was not noted: %s", self.replica.name, fault.message)
        except Exception:
            log.exception("what %s has was not noted", self.replica.name)

    def _is_overtaken(self, tenant: str, change: Change) -> bool:
        return change.seq < self._sent.get((tenant, change.id), 0)

    async def _deliver(self, tenant: str, changes: Sequence[Change]) -> dict[str, str]:
        """By id, why it was not delivered."""
        kept = [as_kept(self.replica, change) for change in changes]
        doubtful = self._in_doubt(tenant, kept)
        # An erasure depends on no write: those that the store does not take would keep it waiting for ever.
        failed = await self._send(tenant, [change for change in kept if change.entry is None])
        failed |= await self._send(tenant, [change for change in kept if change.entry is not None])
        failed = doubtful | failed
        for change in changes:
            if change.id not in failed:
                self._sent[tenant, change.id] = change.seq
        while len(self._sent) > _REMEMBERED:
            del self._sent[next(iter(self._sent))]
        return failed

    async def _send(self, tenant: str, changes: Sequence[Change]) -> dict[str, str]:
        """What fails as a whole though the store is there is halved until only what it cannot take is left, whatever
        the breaker says: it was asked about the whole. By id, why it was not taken."""
        failed: dict[str, str] = {}
        parts, is_whole, too_many = [list(changes)] if changes else [], True, 0
        give_up_at = asyncio.get_running_loop().time() + SPLIT_SECONDS
        while parts:
            part = parts.pop(0)
            try:
                await self._call(tenant, part, is_whole)
                self._fitted(len(part))
            except Unavailable as fault:
                if not isinstance(fault, StoreRefused | StoreSkipped):
                    self._doubt(tenant, part)
                    too_many = len(part)
                is_there = await self._is_there(fault, alone=is_whole and len(part) == 1)
                if is_there and len(part) > 1 and asyncio.get_running_loop().time() < give_up_at:
                    middle = len(part) // 2
                    parts[:0] = [part[:middle], part[middle:]]
                    is_whole = False
                    continue
                failed |= {change.id: fault.summary for change in part}
                if not is_there:
                    too_many = len(part) if isinstance(fault, StoreUnreachable) else 0
                    self.fault = fault
                    failed |= {change.id: fault.summary for rest in parts for change in rest}
                    break
                too_many = 0  # not how many there were, but this one was the reason
        if too_many > 1:
            self.group_size, self._full_groups = too_many // 2, 0
        return failed

    def _fitted(self, count: int) -> None:
        # Not at once: what is too much is in doubt, and has to be told twice, so it must be the rare case.
        self._full_groups += count >= self.group_size
        if self._full_groups >= GROWS_AFTER:
            self.group_size, self._full_groups = min(2 * self.group_size, GROUP), 0

    async def _is_there(self, fault: Unavailable, *, alone: bool) -> bool:
        """Whether what it was given is the reason. Products say that they are not available for either."""
        if isinstance(fault, StoreRefused):
            return True
        return not (alone or isinstance(fault, StoreSkipped | StoreUnreachable)) and await self.replica.answers()

    async def _call(self, tenant: str, changes: Sequence[Change], is_whole: bool) -> None:
        async def verb(store: Store) -> None:
            # What it keeps is known for certain now that it is open.
            await _tell(store, tenant, [as_kept(self.replica, each) for each in changes])

        if self._operator_timeout is not None:
            await self.replica.attempt(verb, seconds=self._operator_timeout)
        elif is_whole:
            await self.replica.deliver(verb)
        else:
            await self.replica.attempt(verb)

    def _doubt(self, tenant: str, changes: Sequence[Change]) -> None:
        """The store may go on with what nobody waits for any more."""
        now = self.replica.clock()
        for held, is_deletion in ((self._doubtful, False), (self._doubtful_deletions, True)):
            for key in [key for key, until in held.items() if not is_ahead(until, now)]:
                del held[key]
            held |= {(tenant, each.id): now + DOUBT_MS for each in changes if (each.entry is None) == is_deletion}

    def _doubt_of(self, tenant: str, id: str) -> int:
        """Until when what was sent of it before may still arrive over it, or 0. Also of deletions where it is to go:
        none undoes another, but whoever brings it back, perhaps in another process, has to know of them."""
        return max(held.get((tenant, id), 0) for held in (self._doubtful, self._doubtful_deletions))

    def _in_doubt(self, tenant: str, changes: Sequence[Change]) -> dict[str, str]:
        """Deletions, about to be sent, that an earlier write may overtake: to be done again once it is too late for
        that."""
        now = self.replica.clock()
        gone = [change.id for change in changes if change.entry is None]
        doubtful = [id for id in gone if is_ahead(self._doubtful.get((tenant, id), 0), now)]
        return dict.fromkeys(doubtful, "an earlier write may still arrive")


def as_kept(replica: Replica, change: Change) -> Change:
    """What it does not keep goes to it as a deletion."""
    omitted = change.entry is None or replica.omits(change.entry.memory) is not None
    return replace(change, entry=None) if omitted else change


async def _tell(store: Store, tenant: str, changes: Sequence[Change]) -> None:
    entries: list[Entry] = [change.entry for change in changes if change.entry is not None]
    await delete_copies(store, tenant, {change.id: change.agent_id for change in changes if change.entry is None})
    if isinstance(store, PerAgentStore):  # any other replaces what it has under the id, whoever's it was
        for agent in dict.fromkeys(agent for change in changes for agent in change.former_agents):
            await store.delete_of(tenant, agent, [change.id for change in changes if agent in change.former_agents])
    if entries:
        await store.put(entries)
