"""What was dated by a clock far ahead: found, told, and dated anew.

The ledger is never rewritten: its entries keep the time they were made with, and what is repaired gets an entry of its
own that says so.
"""

from __future__ import annotations

from dataclasses import replace

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.engine.memory.read import read_all
from commonplace.engine.memory.write import write
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.stores.graph import LEAP_MS, Triple
from commonplace.stores.optional import Finding
from commonplace.wire.filters import Condition
from commonplace.wire.record import ALL_AGENTS, EVERY_STATUS, Memory, Principal
from commonplace.wire.times import iso
from commonplace.wire.words import plural

REPAIR = "mend_time"
_AT_ONCE = 1000


async def examine(core: Core, who: Principal, repair: bool) -> Finding:
    """Whether anything of a tenant is dated farther ahead than a clock that was set back explains."""
    check, limit = f"time of {who.tenant}", core.clock() + LEAP_MS
    times, head = await _entries_ahead(core, who.tenant, limit)
    memories = await _memories_ahead(core, who.tenant, limit)
    triples = await _statements_ahead(core, who.tenant, limit, set(times))
    if not memories and not triples and not head:
        return Finding(check, True, "ok")
    latest = max([head, *(m.created_at for m in memories), *(t.valid_from for t in triples)])
    dated = f"{plural(len(memories), 'memory')} and {plural(len(triples), 'statement')} are dated up to {iso(latest)}"
    ahead = f"{dated}, far ahead of the clock"
    total = (await core.primary.audit_head(who.tenant))[0]
    if not repair:
        return Finding(check, False, f"{ahead}; `commonplace doctor` dates them anew")
    if len(times) * 2 > total:
        return Finding(check, False, f"{ahead}, and so is most of the ledger: set this machine's clock, then try again")
    for memory in memories:
        await _repair_memory(core, who, memory, limit)
    await core.transact(who.tenant, lambda tx: _repair_statements(tx, who, triples))
    return Finding(check, True, f"{ahead}; they were dated anew", repaired=True)


async def _entries_ahead(core: Core, tenant: str, limit: int) -> tuple[list[int], int]:
    """The times of entries that are ahead, and that of the last entry if it is one of them."""
    times: list[int] = []
    last = after = 0
    while found := await core.primary.audit(tenant, after=after, limit=_AT_ONCE, since=limit + 1):
        times += [entry.at for entry in found]
        last = after = found[-1].n
    number, _ = await core.primary.audit_head(tenant)
    return times, times[-1] if times and last == number else 0


async def _memories_ahead(core: Core, tenant: str, limit: int) -> list[Memory]:
    agents = tuple(await core.primary.agent_names(tenant))
    where = (Condition(("created_at",), "gt", limit),)
    return await read_all(core, Reach(tenant, agents, where, statuses=EVERY_STATUS))


async def _statements_ahead(core: Core, tenant: str, limit: int, times: set[int]) -> list[Triple]:
    """Those that begin when they were written; whoever gave a time of its own meant it."""
    found: list[Triple] = []
    for agent in await core.primary.agent_names(tenant) if times else ():
        for triple in await core.primary.triples(tenant, agent):
            if triple.valid_from > limit and triple.valid_from in times:
                found.append(triple)
    return found


async def _repair_memory(core: Core, who: Principal, memory: Memory, limit: int) -> None:
    live = memory.status == "live"
    entry = (await core.make_entries([memory]))[0] if live else Entry(memory, None, b"")

    def work(tx: Transaction) -> None:
        now = tx.get(memory.id)
        if now is not None and now.version == memory.version and now.created_at > limit:
            write(tx, who, replace(entry, memory=replace(now, created_at=tx.now)), REPAIR, changed=["created_at"])

    await core.transact(who.tenant, work)


def _repair_statements(tx: Transaction, who: Principal, triples: list[Triple]) -> None:
    parts = []
    for triple in triples:
        now = tx.triple(triple.id)
        if now is not None and now.valid_from == triple.valid_from:
            tx.put_triple(replace(now, valid_from=tx.now))
            said = {"subject": now.subject, "predicate": now.predicate, "object": now.object}
            parts.append(audit.part(now.id, {**said, "valid_from": tx.now, "valid_to": now.valid_to}))
    # One entry even for nothing: the tenant's time is the clock's again from here on.
    audit.append(tx, who, REPAIR, ALL_AGENTS, parts or [audit.part(None, {"mended": 0})])
