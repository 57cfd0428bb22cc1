"""The outbox: every change of a memory reaches every replica, at once or as soon as it can.

It stands around the primary's transactions, so that no operation can forget it: whatever a unit of work puts or erases
is recorded with it, for each replica, and delivered when it is committed.
"""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from commonplace.engine.outbox import deliveries
from commonplace.engine.outbox.courier import GROUP, Courier, Settle, as_kept
from commonplace.engine.outbox.deliveries import Change, DeliveryReport, Order, RecordingTransaction, kind_of
from commonplace.engine.outbox.replicas import Replica, Replicas, delete_copies
from commonplace.engine.outbox.resync_notices import WITHHELD, note_left_out
from commonplace.engine.outbox.shown_problems import shown_problem
from commonplace.engine.outbox.store_names import known_names
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.wire.errors import Fault
from commonplace.wire.record import Memory, Principal

if TYPE_CHECKING:
    from commonplace.engine.core import Core

T = TypeVar("T")
log = logging.getLogger("commonplace.stores")

LEASE_MS = 60_000  # for which one process has a delivery in hand, beyond what the store may take for it
RELEASE_SECONDS = 1.0  # that a process which ends takes at most to give back what it had claimed
POLL_SECONDS = 5.0
LOOK_MS = 5_000  # between two looks for stores that another process has been given
PASS_SECONDS = 60.0  # for one attempt at what is due: an erasure that has come due meanwhile goes first in the next
_report: ContextVar[DeliveryReport | None] = ContextVar("delivery_report", default=None)


class Outbox:
    def __init__(self, core: Core, replicas: Replicas, *, writes: bool = True) -> None:
        self._core = core
        self.replicas = replicas
        self.writes = writes  # whether replicas are told more than what is to go
        self._owner = uuid.uuid4().hex
        self._chance = random.Random()
        self._couriers = {replica.name: Courier(replica, self._settler(replica)) for replica in replicas}
        self._loop: asyncio.Task[None] | None = None
        self._again: set[asyncio.Task[Any]] = set()
        self._watching: list[asyncio.Task[None]] = []
        self._attempt = asyncio.Lock()
        self._unattached: list[str] = []
        self._looked_at = 0  # when it was last looked for stores that this process does not have

    def __bool__(self) -> bool:
        return bool(self.replicas)

    @property
    def notes_changes(self) -> bool:
        """Whether a change is anything to it: also where a store that others have is not among its own, or may not be
        by now."""
        return bool(self.replicas) or bool(self._unattached) or self._is_look_due()

    def _is_look_due(self) -> bool:
        return not 0 <= self._core.clock() - self._looked_at < LOOK_MS  # also where the clock was set back

    # writing

    async def transact(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        """As the primary's own, and then the first attempt at every replica, side by side, each up to its timeout."""

        def recorded(tx: Transaction) -> tuple[T, list[Change], dict[str, dict[str, bool]]]:
            recording = RecordingTransaction(tx)
            result = work(cast("Transaction", recording))
            changes = list(recording.changes.values())
            if any(change.entry is not None or not change.is_first for change in changes):
                note_left_out(tx, self._unattached)
            note_left_out(tx, [] if self.writes else self._withheld_from(changes), WITHHELD)
            return result, changes, self._record(tx, changes)

        if self._is_look_due():
            await self.find_unattached_stores()
        result, changes, told = await self._core.primary.transact(tenant, recorded)
        if any(told.values()):
            await self._first_attempt(tenant, changes, told)
        return result

    def _record(self, tx: Transaction, changes: Sequence[Change]) -> dict[str, dict[str, bool]]:
        """By store, the ids that it is to be told of, each with whether this process delivers it."""
        told: dict[str, dict[str, bool]] = {}
        for replica in self.replicas:
            mine, lease = told.setdefault(replica.name, {}), lease_ms(self._couriers[replica.name].timeout)
            for change in changes:
                # Also of a type that it does not keep: it may have a copy from when the memory was of another one.
                if self.writes or self._deletes(replica, change):
                    owner = self._owner
                    mine[change.id] = deliveries.record_change(tx, replica.name, change, owner, tx.now, lease)
        return told

    def _withheld_from(self, changes: Sequence[Change]) -> list[str]:
        return [each.name for each in self.replicas if any(as_kept(each, c).entry is not None for c in changes)]

    def _deletes(self, replica: Replica, change: Change) -> bool:
        """Whether the replica may have a copy, which is to go: no policy keeps that from it."""
        return not change.is_first and as_kept(replica, change).entry is None

    async def _first_attempt(
        self, tenant: str, changes: Sequence[Change], told: Mapping[str, Mapping[str, bool]]
    ) -> None:
        report = _report.get()
        asked = [
            self._tell(replica, tenant, [c for c in changes if c.id in told[replica.name]], told[replica.name])
            for replica in self.replicas
        ]
        for replica, outcomes in zip(self.replicas, await asyncio.gather(*asked), strict=True):
            if report is not None:
                for id, error in outcomes.items():
                    report.add(replica.name, [id], error)

    async def _tell(
        self, replica: Replica, tenant: str, changes: Sequence[Change], ours: Mapping[str, bool]
    ) -> dict[str, str | None]:
        told: dict[str, str | None] = {c.id: "another process is delivering it" for c in changes if not ours[c.id]}
        mine = [as_kept(replica, change) for change in changes if ours[change.id]]
        futures = self._couriers[replica.name].submit(tenant, mine)
        if futures:
            await asyncio.wait(futures, timeout=replica.timeout)
        for change, future in zip(mine, futures, strict=True):
            if not future.done():
                told[change.id] = _later(f"it did not confirm within {replica.timeout:g} s")
            elif future.cancelled():
                told[change.id] = _later("it could not be delivered")
            else:
                error = future.result()
                told[change.id] = error and _later(error)
        for change in changes:
            if change.entry is not None and told[change.id] is None:
                told[change.id] = replica.omits(change.entry.memory)
        return told

    @contextmanager
    def reporting(self, who: Principal | None) -> Iterator[DeliveryReport]:
        """What replicas did with the changes made within, for the answer to this principal."""
        report = DeliveryReport(outer=_report.get(), shown=partial(shown_problem, who))
        token = _report.set(report)
        try:
            yield report
        finally:
            _report.reset(token)

    async def requeue(self, memories: Sequence[Memory]) -> None:
        """What a replica derives from them has changed without a version, such as their vectors: tell it again."""
        if not self or not self.writes or not memories:
            return

        def work(tx: Transaction) -> None:
            for memory in memories:
                # Another sequence, or else another turn: a delivery under way must find that it is not the last word.
                change = Change(memory.id, memory.agent_id, memory.type, tx.seq, None)
                for replica in self.replicas:
                    if replica.omits(memory) is None:
                        deliveries.record_change(tx, replica.name, change, "", tx.now, 0)

        await self._core.primary.transact(memories[0].tenant, work)

    async def requeue_all(self) -> None:
        """As `requeue`, of every live memory."""
        if not self or not self.writes:
            return
        for tenant in await self._core.primary.tenants():
            for agent in await self._core.primary.agent_names(tenant):
                cursor, more = None, True
                while more:
                    page = await self._core.primary.scan(Reach(tenant, (agent,)), limit=GROUP, cursor=cursor)
                    await self.requeue(page.memories)
                    cursor, more = page.next_cursor, page.next_cursor is not None

    # trying again

    async def find_unattached_stores(self) -> None:
        """Which stores the primary has been given and this process has not: of its changes they are never told."""
        with suppress(Fault):  # a store that is damaged is opened nevertheless, to be examined
            known = await known_names(self._core.primary)
            self._unattached = [name for name in known if self.replicas.named(name) is None]
        self._looked_at = self._core.clock()

    def start(self) -> None:
        """Deliver, in the background, what earlier processes and other ones have left."""
        for replica in self.replicas:
            replica.start()
        if self and self._loop is None:
            self._loop = asyncio.get_running_loop().create_task(self._run())

    def watch(self, seconds: float = POLL_SECONDS) -> None:
        """Find out, in the background, whether each replica is there, also while nothing is asked of it."""
        loop = asyncio.get_running_loop()
        self._watching += [loop.create_task(replica.watch(seconds)) for replica in self.replicas]

    async def _run(self) -> None:
        while True:
            try:
                await self.run_due()
            except Fault as fault:
                log.warning("the outbox could not be read: %s", fault.message)
            except Exception:
                log.exception("the outbox could not be worked on")
            await asyncio.sleep(POLL_SECONDS)

    async def run_due(self) -> int:
        """One attempt at everything that is due; how much was delivered."""
        # What another attempt has claimed is not due: without waiting for it this one would end before that was sent.
        async with self._attempt:
            tenants = await self._core.primary.tenants()
            counts = await asyncio.gather(*(self._run_replica(replica, tenants) for replica in self.replicas))
            return sum(counts)

    async def _run_replica(self, replica: Replica, tenants: Sequence[str]) -> int:
        if replica.breaker.is_open:
            return 0
        erasures: list[tuple[str, list[str]]] = []
        writes: list[tuple[str, list[str]]] = []
        for tenant in tenants:
            waiting, now = await self._core.primary.records(tenant, kind_of(replica.name)), self._core.clock()
            due = [r.key for r in waiting if deliveries.is_due(r.value, None, now)]
            live = await self._kept(replica, tenant, due)
            erasures.append((tenant, [id for id in due if id not in live]))
            writes.append((tenant, [id for id in due if id in live] if self.writes else []))
        delivered, courier = 0, self._couriers[replica.name]
        stop_at = asyncio.get_running_loop().time() + PASS_SECONDS
        # Of every tenant first: writes that fail, of whichever, would open the breaker before an erasure has its turn.
        for tenant, due in (*erasures, *writes):
            start = 0
            while start < len(due):
                if replica.breaker.is_open or asyncio.get_running_loop().time() > stop_at:
                    return delivered
                # No more than goes out at once: the lease of what waits behind a slow group would run out.
                claimed, start = due[start : start + courier.group_size], start + courier.group_size
                # A second delivery beside one under way would arrive after what others do once that is settled.
                idle = [id for id in claimed if not courier.holds(tenant, id)]
                delivered += (await self._redeliver(replica, tenant, idle, idle=True))[0] if idle else 0
        return delivered

    async def _kept(self, replica: Replica, tenant: str, ids: Sequence[str]) -> set[str]:
        """Those of them that it is to have copies of."""
        found: set[str] = set()
        for start in range(0, len(ids), GROUP):
            held = await self._core.primary.get(tenant, ids[start : start + GROUP])
            found.update(memory.id for memory in held if self._is_kept(replica, memory))
        return found

    def _is_kept(self, replica: Replica, memory: Memory) -> bool:
        return deliveries.is_current(memory, self._core.clock()) and replica.omits(memory) is None

    async def resend(
        self, replica: Replica, tenant: str, owners: Mapping[str, str], seconds: float, *, delete_first: bool = False
    ) -> list[str]:
        """Deliver these, each with its agent, as they are now, while an operator waits so long for a group; for each
        that it did not take, why. With `delete_first` the copies of these agents go before that. Like every delivery it
        is in the outbox meanwhile: what changes while it is under way is delivered after it, and what is left when this
        process is killed by the next one."""
        lease = lease_ms(seconds)

        def work(tx: Transaction) -> None:
            for id, agent in owners.items():
                # As in `requeue`: a delivery under way must find that it is not the last word.
                change = Change(id, agent, "", tx.seq, None)
                deliveries.record_change(tx, replica.name, change, self._owner, tx.now, lease, take_over=True)

        courier = self._couriers[replica.name]
        async with courier.operator_lock:
            await self._core.primary.transact(tenant, work)
            if delete_first:
                await replica.attempt(lambda store: delete_copies(store, tenant, owners), seconds=seconds)
                await self._core.primary.transact(tenant, work)  # a writer's own delivery may have settled it meanwhile
            with courier.operator_timeout(seconds):
                _, failed = await self._redeliver(replica, tenant, list(owners), lease)
            if courier.fault is not None:
                raise courier.fault
            return failed

    async def _redeliver(
        self, replica: Replica, tenant: str, ids: Sequence[str], lease: int | None = None, *, idle: bool = False
    ) -> tuple[int, list[str]]:
        """Deliver these as they are now, or those of them that nobody has in hand; how many it took, and of each that
        it did not take why."""
        until = lease or lease_ms(self._couriers[replica.name].timeout)
        claimed = await self._core.primary.transact(
            tenant, lambda tx: deliveries.claim(tx, replica.name, ids, self._owner, tx.now, until, idle=idle)
        )
        try:
            changes = await self.current(tenant, claimed, replica)
        except asyncio.CancelledError:  # this process ends: until the lease runs out nobody else would deliver them
            with suppress(Exception):  # which then is waited for
                async with asyncio.timeout(RELEASE_SECONDS):
                    await self._core.primary.transact(
                        tenant, lambda tx: deliveries.release(tx, replica.name, claimed, self._owner)
                    )
            raise
        if not self.writes and lease is None:  # an operator's resync tells it everything
            changes = [change for change in changes if change.entry is None]  # of what has come back meanwhile nothing
        futures = self._couriers[replica.name].submit(tenant, changes)
        if futures:
            await asyncio.wait(futures)
        await self._couriers[replica.name].join()
        said = ["it could not be delivered" if future.cancelled() else future.result() for future in futures]
        failed = [why for why in said if why is not None]
        return len(futures) - len(failed), failed

    async def current(self, tenant: str, claimed: Mapping[str, Mapping[str, Any]], replica: Replica) -> list[Change]:
        """What a replica should have now of these memories, each given with its record in the outbox."""
        held = {memory.id: memory for memory in await self._core.primary.get(tenant, list(claimed))}
        live = [memory for memory in held.values() if self._is_kept(replica, memory)]
        entries = {e.memory.id: e for e in await self._core.make_copies(live)} if live else {}
        changes = []
        for id, value in claimed.items():
            seq, turn = deliveries.order_of(value)
            agents = deliveries.agents_of(value)
            agent = held[id].agent_id if id in held else next(iter(agents), "")
            former = tuple(each for each in agents if each != agent)
            entry = _plain(entries.get(id))
            changes.append(Change(id, agent, "", seq, entry, turn=turn, former_agents=former))
        return changes

    def _settler(self, replica: Replica) -> Settle:
        async def settle(
            tenant: str,
            sent: Sequence[Change],
            done: Mapping[str, Order],
            failed: Mapping[str, str],
            doubt: Mapping[str, int],
            sent_at: int,
        ) -> None:
            def work(tx: Transaction) -> list[str]:
                deliveries.requeue_overtaken(tx, replica.name, sent, self._owner, tx.now)
                deliveries.note_doubt(tx, replica.name, doubt, sent_at)
                for error in set(failed.values()):
                    ids = [id for id, why in failed.items() if why == error]
                    deliveries.postpone(tx, replica.name, ids, error, self._owner, tx.now, self._chance)
                return deliveries.settle(tx, replica.name, done, sent_at)

            changed = await self._core.primary.transact(tenant, work)
            again = [id for id in changed if not self._couriers[replica.name].is_waiting(tenant, id)]
            if again:
                task = asyncio.get_running_loop().create_task(self._redeliver(replica, tenant, again))
                self._again.add(task)
                task.add_done_callback(self._again.discard)

        return settle

    # what waits

    async def waiting(self, tenant: str, store: str) -> list[dict[str, Any]]:
        return [{"id": r.key, **r.value} for r in await self._core.primary.records(tenant, kind_of(store))]

    async def is_waiting(self, tenant: str, store: str, id: str) -> bool:
        return await self._core.primary.record(tenant, kind_of(store), id) is not None

    async def join(self) -> None:
        """Until what is being delivered is done, and again where it had changed meanwhile."""
        await self._join_couriers()
        while self._again:
            await asyncio.wait(self._again)
            await self._join_couriers()

    async def _join_couriers(self) -> None:
        for courier in self._couriers.values():
            await courier.join()

    async def close(self) -> None:
        for watch in self._watching:
            watch.cancel()
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop
            self._loop = None
        with suppress(TimeoutError):
            async with asyncio.timeout(max((r.timeout for r in self.replicas), default=0.0) + 1):
                await self.join()
        for task in list(self._again):
            task.cancel()
        for courier in self._couriers.values():
            await courier.close()
        await self.replicas.close()


def lease_ms(timeout: float) -> int:
    """Another process that took over a delivery while it is under way could be overtaken by it, with an older state."""
    return LEASE_MS + round(timeout * 1000)


def _plain(entry: Entry | None) -> Entry | None:
    return None if entry is None else Entry(entry.memory, entry.vectors, entry.terms, entry.generation)


def _later(why: str) -> str:
    return f"{why.removesuffix('.')}; it is kept and tried again"
