"""Everything of one primary into another that is empty, by the verbs that every primary has.

Versions are replayed in the order of their sequence, each at the time it had, so that the target has the same numbers
and times, `as_of` reads the same past, and the ledger, which is copied as it is, still tells the truth of every row.
It knows stores and no rules: what is copied was admitted where it was written.

The source may be written to meanwhile. So each attempt makes the target what the source is now, whatever it had before,
and the migration is over when both are found to hold the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from commonplace.embedders.base import Embedder
from commonplace.engine.checks import require_operator
from commonplace.engine.core import SYSTEM, Core
from commonplace.engine.ledger.audit import erased_ids
from commonplace.engine.transfer.migration_claim import Claim, release
from commonplace.engine.transfer.migration_marks import (
    MIGRATION,
    NAME_AN_EMPTY_ONE,
    OWNER,
    PROGRESS,
    check_target,
    holds_anything,
    is_copy,
    require_whole,
)
from commonplace.engine.transfer.sequence_filler import SequenceFiller
from commonplace.engine.transfer.source_histories import SourceHistories
from commonplace.engine.transfer.store_digest import (
    PAGE,
    TenantPlan,
    canonical_row,
    digest,
    memories_of,
    plan_tenants,
    record_kinds,
    records_of,
)
from commonplace.stores.base import AuditEntry, Entry, Primary, Transaction
from commonplace.stores.optional import Progress, RecordKinds
from commonplace.wire.errors import Conflict, Unavailable
from commonplace.wire.record import Memory, Principal

T = TypeVar("T")
Work = Callable[[Transaction], T]  # what a store runs in one transaction

_BATCH = 128  # versions of one unit of work
_ATTEMPTS = 4  # to catch up with whoever writes to the source meanwhile


class _ErasedMeanwhile(Exception):
    """A version of the plan is not there any more: what there is has to be looked at again."""


class Migration:
    """From one open store to another, which must be empty or hold a migration of the same source that was stopped."""

    def __init__(self, who: Principal, source: Primary, target: Primary, embedder: Embedder | None) -> None:
        require_operator(who, "move a store")
        self._source, self._target, self._embedder = source, target, embedder
        self._core = Core(target)
        self._claim = Claim(target)
        self._fillers: dict[str, SequenceFiller] = {}
        self._histories = SourceHistories(source)
        self._held: set[str] = set()  # ids of all tenants: of an erased one another tenant may have a copy
        self._again = False  # whether the target may have what the source has no more
        self._done = self._total = 0
        self._progress: Progress = lambda done, total: None

    async def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Copy everything that is not there yet, compare both stores, and say what was copied."""
        self._progress = progress or self._progress
        await require_whole(self._source)
        if await is_copy(self._target, self._source):
            return await self._compare_only()
        resumed = self._again = await check_target(self._target, self._source)
        await self._claim.begin(await self._ledger_beginnings())
        await self._core.use_embedder(self._embedder)
        before: list[dict[str, str]] = []
        for _ in range(_ATTEMPTS):
            plans = [await self._planned(plan) async for plan in plan_tenants(self._source)]
            self._held = {id for plan in plans for _, id, _, _ in plan.versions}
            self._histories = SourceHistories(self._source)
            self._done, self._total = 0, sum(len(plan.versions) + plan.head[0] for plan in plans)
            for plan in plans:
                if not await self._is_done(plan.tenant):
                    await self._claim.take(plan.tenant)
            try:
                for plan in plans:
                    await self._copy(plan)
            except _ErasedMeanwhile:
                continue
            finally:
                self._again = True
            digests = [await digest(self._source, plan) for plan in plans]
            differing = await self._differing(plans, digests)
            if differing is None and await self._is_as_planned(plans):
                break
            if differing is not None and digests == before:  # it has not changed, and was copied once more
                raise Conflict(
                    f"{differing} differ after they were copied; the source is as it was",
                    hint="empty the target, and run this again",
                )
            before = digests
        else:
            raise Unavailable("the source is written to all the time; stop what writes to it, and run this again")
        await self._end(plans)
        return _result(plans, digests, resumed=resumed)

    async def _compare_only(self) -> dict[str, Any]:
        """Of a migration that had come to its end before it could say so: whether everything is there."""
        plans = [await self._planned(plan) async for plan in plan_tenants(self._source)]
        self._fillers = {plan.tenant: SequenceFiller(0) for plan in plans}
        digests = [await digest(self._source, plan) for plan in plans]
        differing = await self._differing(plans, digests)
        if differing is not None or not await self._is_as_planned(plans):
            raise Conflict(
                "the target is a copy of this store, and one of both has been used since", hint=NAME_AN_EMPTY_ONE
            )
        return _result(plans, digests, already_there=True)

    async def _is_done(self, tenant: str) -> bool:
        """Whether an earlier run had come to its end with this tenant, and nothing is to be written there since."""
        marks = [await self._target.record(tenant, MIGRATION, key) for key in (PROGRESS, OWNER)]
        return tenant != SYSTEM and not any(marks) and await holds_anything(self._target, tenant)

    async def _ledger_beginnings(self) -> dict[str, str]:
        begins = {}
        for tenant in (SYSTEM, *await self._source.tenants()):
            for first in await self._source.audit_hashes(tenant, limit=1):
                begins[tenant] = first
        return begins

    async def _planned(self, plan: TenantPlan) -> TenantPlan:
        """With what only the target has, so that it is compared and taken away."""
        plan.agents = sorted({*plan.agents, *await self._target.agent_names(plan.tenant)})
        if isinstance(self._source, RecordKinds):
            plan.kinds = sorted({*plan.kinds, *await record_kinds(self._target, plan.tenant)})
        return plan

    async def _copy(self, plan: TenantPlan) -> None:
        await self._copy_versions(plan)
        await self._copy_statements(plan)
        await self._copy_records(plan)
        await self._copy_ledger(plan)
        if self._again:
            await self._copy_counters(plan)

    async def _copy_versions(self, plan: TenantPlan) -> None:
        record = await self._target.record(plan.tenant, MIGRATION, PROGRESS)
        at = await self._target.sequence(plan.tenant)
        known: dict[str, Any] = record.value if record is not None else {"seq": at, "filler": "", "version": 0}
        at = known["seq"]
        wanted = [each for each in plan.versions if each[0] > at]
        self._advance(len(plan.versions) - len(wanted))
        filler = SequenceFiller(
            plan.sequence - at - len(wanted), known["filler"], known["version"], used=known.get("used", 0)
        )
        if filler.left:
            said, _ = await erased_ids(self._source, plan.tenant)
            filler.erased = tuple(id for id in said if id not in self._held)
        self._fillers[plan.tenant] = filler
        if self._again:
            filler.gone = await self._gone(plan, filler.id)
        for batch in _batches(wanted, _BATCH):
            entries = await self._entries(plan.tenant, batch)
            at = await self._claim.transact(plan.tenant, _replay_versions(batch, entries, at, filler))
            self._advance(len(batch))
        if plan.sequence > at:
            agent = plan.agents[0] if plan.agents else "-"
            await self._claim.transact(plan.tenant, _take_rest(plan.sequence, at, filler, agent))

    async def _gone(self, plan: TenantPlan, filler: str) -> tuple[str, ...]:
        there = {id for _, id, _, _ in plan.versions} | {filler}
        held = [m async for m in memories_of(self._target, plan.tenant, plan.agents) if m.id not in there]
        # First those with another id: what was written since may have taken that.
        return tuple(memory.id for memory in sorted(held, key=lambda memory: not memory.aliases))

    async def _entries(self, tenant: str, batch: Sequence[tuple[int, str, int, bool]]) -> list[Entry]:
        """Versions with their vectors and terms, in the order asked."""
        current = [id for _, id, _, is_current in batch if is_current]
        found = {(m.id, m.version): m for m in await self._source.get(tenant, current)}
        for _, id, version, _ in batch:
            if (id, version) not in found:
                versions = await self._histories.of(tenant, id)
                if version not in versions:
                    raise _ErasedMeanwhile
                found[id, version] = versions[version]
        return await self._core.make_entries([found[id, version] for _, id, version, _ in batch])

    async def _copy_statements(self, plan: TenantPlan) -> None:
        for agent in plan.agents:
            held = {triple.id: triple for triple in await self._target.triples(plan.tenant, agent)}
            there = await self._source.triples(plan.tenant, agent)
            changed = [triple for triple in there if held.pop(triple.id, None) != triple]
            for gone in _batches(sorted(held)):
                await self._claim.transact(plan.tenant, _each(gone, lambda tx, id: tx.erase_triple(id)))
            for some in _batches(changed):
                await self._claim.transact(plan.tenant, _each(some, lambda tx, triple: tx.put_triple(triple)))

    async def _copy_records(self, plan: TenantPlan) -> None:
        for kind in plan.kinds:
            held = {r.key: canonical_row(r) for r in await records_of(self._target, plan.tenant, kind)}
            there = await records_of(self._source, plan.tenant, kind)
            changed = [record for record in there if held.pop(record.key, None) != canonical_row(record)]
            for some in _batches(changed):
                await self._claim.transact(plan.tenant, _each(some, lambda tx, record: tx.put_record(record)))
            for gone in _batches([(kind, key) for key in sorted(held)]):
                await self._claim.transact(plan.tenant, _each(gone, lambda tx, which: tx.drop_record(*which)))

    async def _copy_ledger(self, plan: TenantPlan) -> None:
        after, _ = await self._target.audit_head(plan.tenant)
        if self._again:
            await self._erase_payloads(plan)
        self._advance(after)
        while after < plan.head[0]:
            entries = await self._source.audit(plan.tenant, after=after, limit=PAGE)
            await self._claim.transact(plan.tenant, _each(entries, _append_entry))
            after = entries[-1].n
            self._advance(len(entries))

    async def _erase_payloads(self, plan: TenantPlan) -> None:
        """What copied entries still say of something that was staged, or stated, and is erased at the source by now."""
        there = {id for _, id, _, _ in plan.versions}
        after, gone = 0, set[str]()
        while held := await self._target.audit(plan.tenant, after=after, limit=PAGE):
            theirs = await self._source.audit(plan.tenant, after=after, limit=len(held))
            for entry, original in zip(held, theirs, strict=False):
                pairs = zip(entry.parts, original.parts, strict=False)
                gone |= {mine.memory_id for mine, other in pairs if mine.memory_id and other.memory_id is None}
            after = held[-1].n
        for some in _batches(sorted(gone - there)):
            await self._claim.transact(plan.tenant, _each(some, _erase_payload))

    async def _copy_counters(self, plan: TenantPlan) -> None:
        """What changes without a version: recalls and demotion of what was copied before."""
        held = {m.id: (m.recalls, m.demotion) async for m in memories_of(self._target, plan.tenant, plan.agents)}
        changed = []
        async for memory in memories_of(self._source, plan.tenant, plan.agents):
            if held.get(memory.id, (memory.recalls, memory.demotion)) != (memory.recalls, memory.demotion):
                changed.append(memory)
        for some in _batches(changed):
            await self._claim.transact(plan.tenant, _each(some, _set_counters))

    def _advance(self, steps: int) -> None:
        self._done += steps
        self._progress(self._done, self._total)

    async def _differing(self, plans: Sequence[TenantPlan], digests: Sequence[dict[str, str]]) -> str | None:
        """The first part of a tenant that is not the same in the target."""
        for plan, ours in zip(plans, digests, strict=True):
            theirs = await digest(self._target, plan, self._fillers[plan.tenant].id)
            for part, value in ours.items():
                if theirs[part] != value:
                    return f"the {part} of {plan.tenant or 'the installation'}"
        planned = {plan.tenant for plan in plans}
        for tenant in await self._target.tenants():
            if tenant not in planned and await holds_anything(self._target, tenant):
                raise Conflict(
                    f"the target holds a tenant that the source has not: {tenant!r}", hint="name an empty one"
                )
        return None

    async def _is_as_planned(self, plans: Sequence[TenantPlan]) -> bool:
        """Whether nothing was written since that no plan speaks of, such as by a new agent or tenant."""
        heads = {plan.tenant: plan.head for plan in plans}
        now = {tenant: await self._source.audit_head(tenant) for tenant in (SYSTEM, *await self._source.tenants())}
        return heads == now

    async def _end(self, plans: Sequence[TenantPlan]) -> None:
        """Take away what only a migration needs; the installation's mark last, so that until then it can go on."""
        for plan in reversed(plans):
            if await self._is_done(plan.tenant):
                continue
            await self._claim.transact(plan.tenant, _finish(self._fillers[plan.tenant]))


def _result(
    plans: Sequence[TenantPlan],
    digests: Sequence[dict[str, str]],
    *,
    resumed: bool = False,
    already_there: bool = False,
) -> dict[str, Any]:
    counts: Counter[str] = sum((plan.counts for plan in plans), Counter())
    hashes = [hashlib.sha256("".join(each.values()).encode()).hexdigest() for each in digests]
    named = {plan.tenant or "(installation)": each for plan, each in zip(plans, hashes, strict=True)}
    return {"counts": dict(counts), "tenants": named, "resumed": resumed, "already_there": already_there}


# units of work


def _replay_versions(
    batch: Sequence[tuple[int, str, int, bool]], entries: Sequence[Entry], at: int, filler: SequenceFiller
) -> Work[int]:
    def work(tx: Transaction) -> int:
        done, taken = at, replace(filler)  # a work that is run again begins as the first did
        for (seq, _, version, is_current), entry in zip(batch, entries, strict=True):
            memory = entry.memory
            tx.now = memory.updated_at
            taken.take_places(tx, memory.agent_id, seq - done - 1)
            put = tx.put(replace(entry, memory=replace(memory, version=version - 1)))
            if (put.seq, put.version) != (seq, version):
                raise Unavailable(
                    f"the target gave {memory.id} the number {put.seq}, not {seq}; empty it, and run this again"
                )
            if is_current and memory.recalls:
                _set_counters(tx, memory)
            done = seq
        tx.put_record(taken.progress(done))
        filler.become(taken)
        return done

    return work


def _take_rest(sequence: int, at: int, filler: SequenceFiller, agent: str) -> Work[None]:
    def work(tx: Transaction) -> None:
        taken = replace(filler)
        taken.take_places(tx, agent, sequence - at)
        tx.put_record(taken.progress(sequence))
        filler.become(taken)

    return work


def _finish(filler: SequenceFiller) -> Work[None]:
    def work(tx: Transaction) -> None:
        # Of a single place there was none left to erase it in: the target is one ahead then.
        replace(filler).erase(tx)
        tx.drop_record(MIGRATION, PROGRESS)
        release(tx)

    return work


def _set_counters(tx: Transaction, memory: Memory) -> None:
    held = tx.get(memory.id)
    if held is None:
        return
    if (missing := memory.recalls - held.recalls) > 0:
        tx.count_recalls([memory.id], memory.last_recalled_at or 0, missing)
    if held.demotion != memory.demotion:
        tx.demote([memory.id], memory.demotion)


def _erase_payload(tx: Transaction, id: str) -> None:
    # Of a memory that it still has, a filler takes the place in the sequence: an erasure here would take one too many.
    if tx.get(id) is None:
        tx.erase(id)


def _append_entry(tx: Transaction, entry: AuditEntry) -> None:
    tx.now = entry.at
    tx.append_audit(entry)


def _each(items: Sequence[T], do: Callable[[Transaction, T], None]) -> Work[None]:
    def work(tx: Transaction) -> None:
        for item in items:
            do(tx, item)

    return work


def _batches(items: Sequence[T], size: int = PAGE) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
