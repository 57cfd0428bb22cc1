"""What a store holds, tenant by tenant: what there is to carry, and a hash of each part, equal where two hold the same.

It reads by the verbs that every primary has, and writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from commonplace.engine.core import SYSTEM
from commonplace.engine.lifecycle.scheduler import LEASE, LIFECYCLE
from commonplace.engine.transfer.exports import stating_agents
from commonplace.engine.transfer.migration_marks import MIGRATION
from commonplace.stores.base import Primary, Reach, Record
from commonplace.stores.optional import RecordKinds
from commonplace.wire.record import EVERY_STATUS, Memory

PAGE = 500
_REAL = ("confidence", "importance", "demotion")  # whole numbers come back from a column of these as 1.0


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


async def plan_tenants(source: Primary) -> AsyncIterator[TenantPlan]:
    for tenant in (SYSTEM, *sorted(await source.tenants())):
        plan = TenantPlan(tenant, head=await source.audit_head(tenant), sequence=await source.sequence(tenant))
        plan.agents = sorted({*await source.agent_names(tenant), *await stating_agents(source, tenant)})
        plan.kinds = await record_kinds(source, tenant)
        async for memory in memories_of(source, tenant, plan.agents):
            plan.counts["memory"] += 1
            if memory.version == 1:
                plan.versions.append((memory.seq, memory.id, 1, True))
                continue
            history = await source.history(tenant, memory.id)
            plan.versions += [(v.seq, v.id, v.version, v.version == memory.version) for v in history]
        # What was written since is for the next plan: of that some was read here and some was not, and what is carried
        # beyond a gap hides it.
        plan.versions = sorted(version for version in plan.versions if version[0] <= plan.sequence)
        plan.counts["version"] = len(plan.versions)
        for agent in plan.agents:
            plan.counts["statement"] += len(await source.triples(tenant, agent))
        for kind in plan.kinds:
            plan.counts["record"] += len(await records_of(source, tenant, kind))
        plan.counts["ledger entry"] = plan.head[0]
        yield plan


async def memories_of(store: Primary, tenant: str, agents: Sequence[str]) -> AsyncIterator[Memory]:
    """Whatever their status."""
    for agent in agents:
        cursor = None
        while True:
            reach = Reach(tenant, (agent,), statuses=EVERY_STATUS)
            page = await store.scan(reach, limit=PAGE, cursor=cursor, newest_first=False)
            for memory in page.memories:
                yield memory
            cursor = page.next_cursor
            if cursor is None:
                break


async def record_kinds(store: Primary, tenant: str) -> list[str]:
    """None of a store that cannot say it."""
    kinds = await store.record_kinds(tenant) if isinstance(store, RecordKinds) else []
    return sorted(kind for kind in kinds if kind != MIGRATION)


async def records_of(store: Primary, tenant: str, kind: str) -> list[Record]:
    """Without the lease of the process that runs the jobs: it holds for servers of this very store, and changes by the
    minute without anyone writing."""
    found = await store.records(tenant, kind)
    return [record for record in found if (kind, record.key) != (LIFECYCLE, LEASE)]


async def digest(store: Primary, plan: TenantPlan, without: str = "") -> dict[str, str]:
    """A hash of each part of a tenant; `without` is the id of a memory that does not count."""
    memories, statements, records, ledger = (hashlib.sha256() for _ in range(4))
    async for memory in memories_of(store, plan.tenant, plan.agents):
        if memory.id == without:
            continue
        one = memory.version == 1
        for version in [memory] if one else await store.history(plan.tenant, memory.id):
            memories.update(canonical_row(version))
    for agent in plan.agents:
        for triple in sorted(await store.triples(plan.tenant, agent), key=lambda t: t.id):
            statements.update(canonical_row(triple))
    for kind in plan.kinds:
        for record in sorted(await records_of(store, plan.tenant, kind), key=lambda r: r.key):
            records.update(canonical_row(record))
    after = 0
    while entries := await store.audit(plan.tenant, after=after, limit=PAGE):
        for entry in entries:
            ledger.update(f"{entry.n} {entry.hash}".encode())
            for part in entry.parts:  # the chain does not say whether what an entry tells of was erased
                ledger.update(canonical_row(part))
        after = entries[-1].n
    parts = {"memories": memories, "statements": statements, "records": records, "ledger": ledger}
    return {name: each.hexdigest() for name, each in parts.items()}


def canonical_row(row: Any) -> bytes:
    """The same bytes for the same row of any store."""
    values = {each.name: getattr(row, each.name) for each in fields(row)}
    values |= {name: float(values[name]) for name in _REAL if values.get(name) is not None}
    said = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}
    return json.dumps(said, sort_keys=True, default=list).encode("ascii")
