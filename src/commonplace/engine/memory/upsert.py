"""Storing a whole record under an id its author chose, and finding one by whatever id names it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from commonplace.engine.core import Core, StaleRead
from commonplace.engine.governance import reviews
from commonplace.engine.memory.read import readable
from commonplace.engine.memory.retention import bound
from commonplace.engine.memory.write import check, new_memory, redact_draft, write
from commonplace.engine.types import Draft, Receipt
from commonplace.stores.base import Transaction
from commonplace.wire.errors import Conflict, NotFound
from commonplace.wire.record import SHARED_AGENT, Memory, Principal

_UUID_AT_END = re.compile(r"(?:.*_)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z", re.DOTALL | re.IGNORECASE)
_REPLACED = (
    "content", "type", "kind", "title", "project", "tags", "metadata", "user_id", "confidence", "importance", "source",
    "expires_at", "event_time", "session_id", "speaker", "entity_name", "supersedes",
)  # fmt: skip
_ORIGIN = ("source", "from", "witnesses", "chain")  # of provenance


@dataclass(slots=True)
class UpsertResult:
    receipt: Receipt
    created: bool


def unknown(ref: str) -> NotFound:
    """The same sentence whether it never was, is forgotten, pending, or someone else's."""
    return NotFound(f"no record {ref:.300}")


async def find(core: Core, who: Principal, ref: str, agent: str | None = None) -> Memory:
    """The readable memory that a UUID, `anything_<uuid>` or an alias names: of one agent, else of all one may read."""
    if agent is not None:
        core.require(who, agent, "reader")
    found = await _find(core, who, ref, agent)
    if found is None:
        raise unknown(ref)
    return found


async def _find(core: Core, who: Principal, ref: str, agent: str | None) -> Memory | None:
    # Before aliases, so that nobody can hide a memory behind an alias that spells its id.
    spelled = await _by_uuid(core, who, ref)
    if spelled is not None and agent in (None, spelled.agent_id):
        return spelled
    agents = [agent] if agent is not None else [a for a in await core.primary.agent_names(who.tenant) if who.may_use(a)]
    found = [m for m in await core.primary.find_alias(who.tenant, agents, ref) if readable(m, core.clock())]
    if len(found) > 1:
        holders = ", ".join(sorted(m.agent_id for m in found)[:5])
        raise Conflict(f"{ref:.300} names {len(found)} records, of the agents {holders}; say which agent's")
    return found[0] if found else None


async def store(
    core: Core, who: Principal, draft: Draft, ref: str | None, agent: str | None, approval: dict[str, Any] | None = None
) -> UpsertResult:
    """Create the record, or replace all of the one `ref` names. Without `agent` a new one goes to the shared space
    and a known one stays where it lives; with it only that agent's are known."""
    draft = replace(draft, agent_id=agent or SHARED_AGENT)
    if ref is not None:
        core.redactor.check_name(ref, "id")
    draft, redacted = await redact_draft(core, draft)

    async def attempt() -> UpsertResult:
        if ref is None:
            return await _create(core, who, draft, approval)
        held = await _find(core, who, ref, agent)
        if held is None and agent is not None and (elsewhere := await _by_uuid(core, who, ref)) is not None:
            raise Conflict(f"{ref:.300} is a record of agent {elsewhere.agent_id}; a record stays with its agent")
        if held is None:
            return await _create(core, who, replace(draft, aliases=[ref]), approval, ref)
        if approval is not None:
            raise Conflict(f"{ref:.300} exists already; only a new record can wait for approval")
        return await _replace(core, who, replace(draft, agent_id=held.agent_id), held)

    stored: UpsertResult = await core.retry_on_conflict(attempt)
    stored.receipt.redacted = redacted
    return stored


async def _by_uuid(core: Core, who: Principal, ref: str) -> Memory | None:
    named = _UUID_AT_END.match(ref)
    for memory in await core.primary.get(who.tenant, [named[1].lower()]) if named else ():
        if who.may_use(memory.agent_id) and readable(memory, core.clock()):
            return memory
    return None


async def _create(
    core: Core, who: Principal, draft: Draft, approval: dict[str, Any] | None, ref: str | None = None
) -> UpsertResult:
    if approval is not None:
        return UpsertResult(await reviews.stage_remember(core, who, draft, approval, None), created=True)
    check(core, who, draft)
    (entry,) = await core.entries([new_memory(who, draft, core.clock())], [draft.embedding])

    def work(tx: Transaction) -> UpsertResult:
        if ref is not None and (holder := tx.by_alias(draft.agent_id, ref)) is not None and readable(holder, tx.now):
            raise StaleRead  # someone stored it meanwhile: now there is something to replace
        memory = write(tx, who, entry, "remember")
        return UpsertResult(_receipt(core, memory), created=True)

    return await core.transact(who.tenant, work)


async def _replace(core: Core, who: Principal, draft: Draft, held: Memory) -> UpsertResult:
    check(core, who, draft)
    fresh = new_memory(who, draft, core.clock(), id=held.id)
    (entry,) = await core.entries([fresh], [draft.embedding])

    def work(tx: Transaction) -> UpsertResult:
        now = tx.get(held.id)
        if now is None or not readable(now, tx.now):
            raise StaleRead
        # Nothing of the new record depends on what it replaces, so the last of several writers simply wins.
        memory = inherit(fresh, now)
        changed = [name for name in _REPLACED if getattr(now, name) != getattr(memory, name)]
        written = write(tx, who, replace(entry, memory=memory), "update", changed=changed, replaced=True)
        return UpsertResult(_receipt(core, written), created=False)

    return await core.transact(who.tenant, work)


def inherit(fresh: Memory, replaced: Memory) -> Memory:
    """What a record keeps when all of it is replaced: its identity, from whom it came, and promises to the person it is
    about."""
    origin = {name: replaced.provenance[name] for name in _ORIGIN if name in replaced.provenance}
    kept = replace(fresh, created_at=replaced.created_at, aliases=replaced.aliases,
                   provenance={**origin, **fresh.provenance})  # fmt: skip
    return bound(kept, [replaced])


def _receipt(core: Core, memory: Memory) -> Receipt:
    return Receipt(memory.id, memory.updated_at, [core.primary.name], memory=memory)
