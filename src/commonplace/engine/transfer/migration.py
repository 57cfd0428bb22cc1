"""Everything of one primary into another that is empty, by the verbs that every primary has.

Versions are replayed in the order of their sequence, each at the time it had, so that the target has the same numbers
and times, `as_of` reads the same past, and the ledger, which is copied as it is, still tells the truth of every row.
It knows stores and no rules: what is copied was admitted where it was written.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from commonplace.embedders.base import Embedder
from commonplace.engine.checks import require_operator
from commonplace.engine.core import SYSTEM, Core
from commonplace.engine.transfer.exports import stating_agents
from commonplace.stores.base import AuditEntry, Entry, Primary, Reach, Record, Transaction
from commonplace.stores.graph import Triple
from commonplace.stores.optional import Progress, RecordKinds
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Conflict, Unavailable
from commonplace.wire.record import EVERY_STATUS, Memory, Principal

T = TypeVar("T")
Work = Callable[[Transaction], T]  # what a store runs in one transaction

MIGRATION, PROGRESS = "migration", "progress"
_PAGE = 500
_BATCH = 128  # versions of one unit of work
_FILLER_VERSIONS = 500  # after which a filler is erased and another begun
_ATTEMPTS = 3  # to catch up with whoever writes to the source meanwhile


@dataclass(slots=True)
class TenantPlan:
    """What there is to carry of one tenant."""

    tenant: str
    counts: Counter[str] = field(default_factory=Counter)
    agents: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)  # of records
    versions: list[tuple[int, str, int, bool]] = field(default_factory=list)  # (seq, id, version, whether current)
    sequence: int = 0
    head: tuple[int, str] = (0, "")


@dataclass(slots=True)
class _Filler:
    """Takes the places in the sequence of what was erased: a memory of no content that is erased in the end."""

    left: int  # places that are still to be taken
    id: str = ""
    version: int = 0

    def burn(self, tx: Transaction, agent: str, places: int) -> None:
        for _ in range(places):
            last = self.left == 1 or self.version >= _FILLER_VERSIONS
            if self.id and last:
                self.erase(tx)
            else:
                self.id = self.id or mint_id(tx.now)
                filler = Memory(self.id, "", agent, "semantic", "-", status="deleted", created_at=1)
                tx.put(Entry(replace(filler, version=self.version), None, b""))
                self.version += 1
            self.left -= 1

    def erase(self, tx: Transaction) -> None:
        if self.id:
            tx.erase(self.id)
        self.id, self.version = "", 0


class Migration:
    """From one open store to another, which must be empty or hold a migration of the same source that was stopped."""

    def __init__(self, who: Principal, source: Primary, target: Primary, embedder: Embedder | None) -> None:
        require_operator(who, "move a store")
        self._source, self._target, self._embedder = source, target, embedder
        self._core = Core(target)
        self._done = self._total = 0
        self._progress: Progress = lambda done, total: None

    async def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Copy everything that is not there yet, compare both stores, and say what was copied."""
        self._progress = progress or self._progress
        resumed = await self._require_room()
        await self._core.use_embedder(self._embedder)
        for _ in range(_ATTEMPTS):
            plans = [plan async for plan in plan_tenants(self._source)]
            self._done, self._total = 0, sum(len(plan.versions) + plan.head[0] for plan in plans)
            for plan in plans:
                await self._copy(plan)
            if [await self._source.audit_head(plan.tenant) for plan in plans] == [plan.head for plan in plans]:
                break
        else:
            raise Unavailable("the source is written to all the time; stop what writes to it, and run this again")
        digests = {}
        for plan in plans:
            digests[plan.tenant] = await self._compare(plan)
            await self._target.transact(plan.tenant, lambda tx: tx.drop_record(MIGRATION, PROGRESS))
        counts: Counter[str] = sum((plan.counts for plan in plans), Counter())
        named = {tenant or "(installation)": digest for tenant, digest in digests.items()}
        return {"counts": dict(counts), "tenants": named, "resumed": resumed}

    async def _require_room(self) -> bool:
        """Whether a migration goes on that was stopped; refused where the target holds anything else."""
        resumed = False
        for tenant in {SYSTEM, *await self._target.tenants()}:
            begun = await self._target.record(tenant, MIGRATION, PROGRESS) is not None
            resumed |= begun
            empty = await self._target.sequence(tenant) == 0 and (await self._target.audit_head(tenant))[0] == 0
            if not begun and not empty:
                raise Conflict(
                    "the target is not empty, and a migration takes the place of everything in it",
                    hint="name an empty one, or add to this one with `commonplace export` and `commonplace import`",
                )
        return resumed

    async def _copy(self, plan: TenantPlan) -> None:
        await self._copy_versions(plan)
        for agent in plan.agents:
            triples = await self._source.triples(plan.tenant, agent)
            for start in range(0, len(triples), _PAGE):
                await self._target.transact(plan.tenant, _put_triples(triples[start : start + _PAGE]))
        for kind in plan.kinds:
            records = await self._source.records(plan.tenant, kind)
            for start in range(0, len(records), _PAGE):
                await self._target.transact(plan.tenant, _put_records(records[start : start + _PAGE]))
        await self._copy_ledger(plan)

    async def _copy_versions(self, plan: TenantPlan) -> None:
        record = await self._target.record(plan.tenant, MIGRATION, PROGRESS)
        known: dict[str, Any] = record.value if record is not None else {"seq": 0, "filler": "", "version": 0}
        wanted = [each for each in plan.versions if each[0] > known["seq"]]
        self._advance(len(plan.versions) - len(wanted))
        filler = _Filler(plan.sequence - known["seq"] - len(wanted), known["filler"], known["version"])
        at = known["seq"]
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            entries = await self._entries(plan.tenant, batch)
            at = await self._target.transact(plan.tenant, _replay_versions(batch, entries, at, filler))
            self._advance(len(batch))
        if plan.sequence > at or filler.id:
            agent = plan.agents[0] if plan.agents else "-"
            await self._target.transact(plan.tenant, _finish_sequence(plan.sequence, at, filler, agent))

    async def _entries(self, tenant: str, batch: Sequence[tuple[int, str, int, bool]]) -> list[Entry]:
        """Versions with their vectors and terms, in the order asked."""
        found: dict[tuple[str, int], Memory] = {}
        current = [id for _, id, _, is_current in batch if is_current]
        found |= {(m.id, m.version): m for m in await self._source.get(tenant, current)}
        for id in dict.fromkeys(id for _, id, version, _ in batch if (id, version) not in found):
            found |= {(m.id, m.version): m for m in await self._source.history(tenant, id)}
        missing = [id for _, id, version, _ in batch if (id, version) not in found]
        if missing:
            raise Unavailable(f"memory {missing[0]} was erased meanwhile; empty the target, and run this again")
        return await self._core.make_entries([found[id, version] for _, id, version, _ in batch])

    async def _copy_ledger(self, plan: TenantPlan) -> None:
        after, _ = await self._target.audit_head(plan.tenant)
        self._advance(after)
        while after < plan.head[0]:
            entries = await self._source.audit(plan.tenant, after=after, limit=_PAGE)
            await self._target.transact(plan.tenant, _append_entries(entries))
            after = entries[-1].n
            self._advance(len(entries))

    def _advance(self, steps: int) -> None:
        self._done += steps
        self._progress(self._done, self._total)

    async def _compare(self, plan: TenantPlan) -> str:
        ours, theirs = await digest(self._source, plan), await digest(self._target, plan)
        for part, value in ours.items():
            if theirs[part] != value:
                raise Conflict(
                    f"the {part} of {plan.tenant or 'the installation'} differ after they were copied; the source is "
                    "as it was",
                    hint="empty the target, and run this again",
                )
        return hashlib.sha256("".join(ours.values()).encode()).hexdigest()


# planning and comparing


async def plan_tenants(source: Primary) -> AsyncIterator[TenantPlan]:
    for tenant in (SYSTEM, *sorted(await source.tenants())):
        plan = TenantPlan(tenant, head=await source.audit_head(tenant), sequence=await source.sequence(tenant))
        plan.agents = sorted({*await source.agent_names(tenant), *await stating_agents(source, tenant)})
        kinds = await source.record_kinds(tenant) if isinstance(source, RecordKinds) else []
        plan.kinds = sorted(kind for kind in kinds if kind != MIGRATION)
        for memory in [m async for m in _memories(source, tenant, plan.agents)]:
            plan.counts["memory"] += 1
            if memory.version == 1:
                plan.versions.append((memory.seq, memory.id, 1, True))
                continue
            history = await source.history(tenant, memory.id)
            plan.versions += [(v.seq, v.id, v.version, v.version == memory.version) for v in history]
        plan.versions.sort()
        plan.counts["version"] = len(plan.versions)
        for agent in plan.agents:
            plan.counts["statement"] += len(await source.triples(tenant, agent))
        for kind in plan.kinds:
            plan.counts["record"] += len(await source.records(tenant, kind))
        plan.counts["ledger entry"] = plan.head[0]
        yield plan


async def _memories(source: Primary, tenant: str, agents: Sequence[str]) -> AsyncIterator[Memory]:
    for agent in agents:
        cursor = None
        while True:
            reach = Reach(tenant, (agent,), statuses=EVERY_STATUS)
            page = await source.scan(reach, limit=_PAGE, cursor=cursor, newest_first=False)
            for memory in page.memories:
                yield memory
            cursor = page.next_cursor
            if cursor is None:
                break


async def digest(store: Primary, plan: TenantPlan) -> dict[str, str]:
    """A hash of each part of a tenant; equal where two stores hold the same."""
    memories, statements, records = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
    async for memory in _memories(store, plan.tenant, plan.agents):
        one = memory.version == 1
        for version in [memory] if one else await store.history(plan.tenant, memory.id):
            memories.update(_canonical(version))
    for agent in plan.agents:
        for triple in sorted(await store.triples(plan.tenant, agent), key=lambda t: t.id):
            statements.update(_canonical(triple))
    for kind in plan.kinds:
        for record in sorted(await store.records(plan.tenant, kind), key=lambda r: r.key):
            records.update(_canonical(record))
    ledger = await store.audit_head(plan.tenant)
    return {
        "memories": memories.hexdigest(),
        "statements": statements.hexdigest(),
        "records": records.hexdigest(),
        "ledger": f"{ledger[0]} {ledger[1]}",
    }


_REAL = ("confidence", "importance", "demotion")  # whole numbers come back from a column of these as 1.0


def _canonical(row: Any) -> bytes:
    values = {each.name: getattr(row, each.name) for each in fields(row)}
    values |= {name: float(values[name]) for name in _REAL if values.get(name) is not None}
    said = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}
    return json.dumps(said, sort_keys=True, default=list).encode("ascii")


# units of work


def _replay_versions(
    batch: Sequence[tuple[int, str, int, bool]], entries: Sequence[Entry], at: int, filler: _Filler
) -> Work[int]:
    def work(tx: Transaction) -> int:
        done, taken = at, replace(filler)  # a work that is run again begins as the first did
        for (seq, _, version, is_current), entry in zip(batch, entries, strict=True):
            memory = entry.memory
            tx.now = memory.updated_at
            taken.burn(tx, memory.agent_id, seq - done - 1)
            put = tx.put(replace(entry, memory=replace(memory, version=version - 1)))
            if (put.seq, put.version) != (seq, version):
                raise Unavailable(f"the target gave {memory.id} the number {put.seq}, not {seq}")
            if is_current and memory.recalls:
                for _ in range(memory.recalls):
                    tx.count_recalls([memory.id], memory.last_recalled_at or 0)
            done = seq
        tx.put_record(Record(MIGRATION, PROGRESS, {"seq": done, "filler": taken.id, "version": taken.version}))
        filler.left, filler.id, filler.version = taken.left, taken.id, taken.version
        return done

    return work


def _finish_sequence(sequence: int, at: int, filler: _Filler, agent: str) -> Work[None]:
    def work(tx: Transaction) -> None:
        taken = replace(filler)
        taken.burn(tx, agent, sequence - at)
        taken.erase(tx)  # of one place alone there is none left to erase it in: the target is one ahead then
        tx.put_record(Record(MIGRATION, PROGRESS, {"seq": sequence, "filler": "", "version": 0}))
        filler.left, filler.id, filler.version = taken.left, taken.id, taken.version

    return work


def _put_triples(triples: Sequence[Triple]) -> Work[None]:
    def work(tx: Transaction) -> None:
        for triple in triples:
            tx.put_triple(triple)

    return work


def _put_records(records: Sequence[Record]) -> Work[None]:
    def work(tx: Transaction) -> None:
        for record in records:
            tx.put_record(record)

    return work


def _append_entries(entries: Sequence[AuditEntry]) -> Work[None]:
    def work(tx: Transaction) -> None:
        for entry in entries:
            tx.now = entry.at
            tx.append_audit(entry)

    return work
