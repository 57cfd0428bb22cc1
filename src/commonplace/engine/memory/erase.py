"""Erasing: a memory out of the store, and its text out of everything else the engine keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from commonplace.engine.core import REVIEW, Core
from commonplace.engine.graph.statements import apply_erase
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.erase_records import erase_records, reject_pending
from commonplace.engine.memory.read import read_all
from commonplace.engine.memory.write import new_memory
from commonplace.engine.types import Draft
from commonplace.stores.base import AuditPart, Entry, Reach, Transaction
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory, Principal, Status

ALL_BUT_PENDING: tuple[Status, ...] = ("live", "archived", "deleted")


def must_erase(memory: Memory) -> bool:
    """A memory kept under a retention promise leaves nothing behind when it goes."""
    return "retain" in memory.privacy


def erase(tx: Transaction, core: Core, memory: Memory) -> list[AuditPart]:
    """Take it out of what the engine keeps about it, then out of the store; what else went with it."""
    erase_records(tx, memory.id)
    derived = apply_erase(tx, [triple.id for triple in tx.triples_from(memory.id)])
    if core.embedding is not None:
        core.embedding.clear()  # earlier versions and questions that quoted it are in there, too
    core.second.clear()
    if memory.merged_into is not None:
        # What had been merged into it stays tied to where its text is now, for whoever erases that one.
        merged = (Condition(("merged_into",), "eq", memory.id),)
        for source in tx.find(Reach(memory.tenant, (memory.agent_id,), merged, statuses=ALL_BUT_PENDING)):
            tied = tx.put(Entry(replace(source, merged_into=memory.merged_into), None, b""))
            derived.append(version_part(tied, merged_into=tied.merged_into))
    tx.erase(memory.id)
    return derived


# what was merged


@dataclass(slots=True)
class MergeLineage:
    """What shares text with some memories: those they were merged into, and those merged into any of them."""

    descendants: list[Memory] = field(default_factory=list)
    sources: list[Memory] = field(default_factory=list)

    @property
    def memories(self) -> list[Memory]:
        return [*self.descendants, *self.sources]


async def merge_lineage(core: Core, who: Principal, memories: Sequence[Memory]) -> MergeLineage:
    """All the way in both directions: memories are merged because they say the same. Never beyond their agent, whatever
    a row that was imported says it became part of."""
    found = MergeLineage()
    seen = {m.id for m in memories}
    beside = list(memories)
    while beside:
        into = {(m.merged_into, m.agent_id) for m in beside if m.merged_into and m.merged_into not in seen}
        survivors = await core.primary.get(who.tenant, sorted({id for id, _ in into}))
        above = [m for m in survivors if (m.id, m.agent_id) in into]
        below: list[Memory] = []
        for agent in dict.fromkeys(m.agent_id for m in beside):
            ids = [m.id for m in beside if m.agent_id == agent]
            # One is looked up in an index; of many the store reads all that was merged, once.
            merged = (
                Condition(("merged_into",), "in", ids) if len(ids) > 1 else Condition(("merged_into",), "eq", ids[0]),
            )
            below += await read_all(core, Reach(who.tenant, (agent,), merged, statuses=ALL_BUT_PENDING))
        below = [m for m in below if m.id not in seen]
        found.descendants += above
        found.sources += below
        beside = [*above, *below]
        seen.update(m.id for m in beside)
    return found


# writes that were staged and never became memories


async def staged_drafts(core: Core, who: Principal, reach: Reach) -> list[Memory]:
    """What reviews quote that no memory was made of: turned down, expired or still waiting. As the memories that they
    would be."""
    found = []
    for record in await core.primary.records(who.tenant, REVIEW):
        review = record.value
        if review.get("draft") is None or review["status"] == "approved" or review["agent_id"] not in reach.agents:
            continue
        draft = new_memory(who, Draft(**review["draft"]), review["created_at"], id=review["memory_id"])
        if reach.admits(replace(draft, created_at=review["created_at"], updated_at=review["created_at"])):
            status: Status = "pending" if review["status"] == "pending" else "deleted"
            found.append(replace(draft, status=status, created_at=review["created_at"]))
    return found


def erase_drafts(
    tx: Transaction, core: Core, who: Principal, agent_id: str, ids: Sequence[str], *, reason: str | None = None
) -> list[str]:
    """Take staged writes out of the reviews that quote them. Those that still wait are turned down by it; what was
    approved meanwhile is left."""
    done = []
    statuses = ("rejected", "expired", "pending")
    for id in ids:
        quoted = [r for r in tx.records_about(id) if r.kind == REVIEW and r.value.get("memory_id") == id]
        if not any(r.value["status"] in statuses and r.value["agent_id"] == agent_id for r in quoted):
            continue
        erase_records(tx, id)
        tx.erase(id)
        for record in quoted:
            reject_pending(tx, who, record.key)
        done.append(id)
    if done:
        parts = [audit.part(None, {"id": id, "erased": True}) for id in done]
        if reason is not None:
            parts.append(audit.part(None, {"reason": reason}))
        audit.append(tx, who, "forget", agent_id, parts)
    return done
