"""Storing a whole record under an id its author chose: created, or all of it replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from commonplace.engine.core import Core, StaleRead
from commonplace.engine.governance.policies import ReviewRequired
from commonplace.engine.governance.staging import stage_remember, stage_replace
from commonplace.engine.memory.change import inherit
from commonplace.engine.memory.read import find_by_uuid, lookup, readable
from commonplace.engine.memory.write import admit_draft, check, new_memory, write
from commonplace.engine.types import Draft, Receipt, UpsertResult
from commonplace.stores.base import Transaction
from commonplace.wire.errors import Conflict
from commonplace.wire.record import SHARED_AGENT, Memory, Principal

_REPLACED = (
    "content", "type", "kind", "title", "project", "tags", "metadata", "user_id", "confidence", "importance", "source",
    "expires_at", "event_time", "session_id", "speaker", "entity_name", "supersedes",
)  # fmt: skip


async def upsert(
    core: Core, who: Principal, draft: Draft, ref: str | None, agent: str | None,
    approval: dict[str, Any] | ReviewRequired | None = None,
) -> UpsertResult:  # fmt: skip
    """Create the record, or replace all of the one `ref` names. Without `agent` a new one goes to the shared space
    and a known one stays where it lives; with it only that agent's are known. `approval` is what a reviewer is
    shown, or the policy that asks for a review."""
    # A protocol that upserts may leave the agent open, so it is given beside the draft, whose own says nothing.
    draft = replace(draft, agent_id=agent or SHARED_AGENT)
    core.check_names(id=ref)
    redacted: list[str] = []

    async def admitted(draft: Draft, *, replaces: bool = False) -> Draft:
        clean, redacted[:] = await admit_draft(core, who, draft, replaces=replaces, reviewed=approval is not None)
        return clean

    async def attempt() -> UpsertResult:
        if ref is None:
            return await _create(core, who, await admitted(draft), approval)
        held = await lookup(core, who, ref, agent)
        if held is None and agent is not None and (elsewhere := await find_by_uuid(core, who, ref)) is not None:
            shown = await core.policies.shown(who, [elsewhere])
            whose = f"agent {elsewhere.agent_id}" if shown else "another agent"
            raise Conflict(f"{ref:.300} is a record of {whose}; a record stays with its agent")
        if held is None:
            return await _create(core, who, await admitted(replace(draft, aliases=[ref])), approval, ref)
        known = await admitted(replace(draft, agent_id=held.agent_id), replaces=True)
        if approval is not None:
            asked = approval if isinstance(approval, ReviewRequired) else None
            return UpsertResult(await stage_replace(core, who, known, held, asked), created=False)
        return await _replace(core, who, known, held)

    stored = await core.retry_on_conflict(attempt)
    stored.receipt.redacted = redacted
    return stored


async def _create(
    core: Core, who: Principal, draft: Draft, approval: dict[str, Any] | ReviewRequired | None, ref: str | None = None
) -> UpsertResult:
    if isinstance(approval, ReviewRequired):
        return UpsertResult(await stage_remember(core, who, draft, None, None, asked=approval), created=True)
    if approval is not None:
        return UpsertResult(await stage_remember(core, who, draft, approval, None), created=True)
    check(core, who, draft)
    (entry,) = await core.make_entries([new_memory(who, draft, core.clock())], [draft.embedding])

    def work(tx: Transaction) -> UpsertResult:
        if ref is not None and (holder := tx.by_alias(draft.agent_id, ref)) is not None and readable(holder, tx.now):
            raise StaleRead  # someone stored it meanwhile: now there is something to replace
        memory = write(tx, who, entry, "remember")
        return UpsertResult(_receipt(core, memory), created=True)

    return await core.transact(who.tenant, work)


async def _replace(core: Core, who: Principal, draft: Draft, held: Memory) -> UpsertResult:
    check(core, who, draft)
    fresh = new_memory(who, draft, core.clock(), id=held.id)
    (entry,) = await core.make_entries([fresh], [draft.embedding])

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


def _receipt(core: Core, memory: Memory) -> Receipt:
    return Receipt(memory.id, memory.updated_at, [core.primary.name], memory=memory)
