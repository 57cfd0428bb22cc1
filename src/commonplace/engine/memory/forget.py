"""Forgetting: which memories are meant, what a preview shows of them, and hiding or erasing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from commonplace.engine.checks import require_role
from commonplace.engine.core import REVIEW, Core
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.erase import (
    ALL_BUT_PENDING,
    erase,
    erase_drafts,
    merge_lineage,
    must_erase,
    staged_drafts,
)
from commonplace.engine.memory.read import expired, read_all, readable
from commonplace.engine.types import Forget, ForgetResult
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.wire import filters
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory, Principal, Status
from commonplace.wire.short_ids import expand_id

CHUNK = 64  # memories per unit of work, so that a mass delete never holds the write lock for long
_PASSES = 8  # over what keeps changing while it is being erased


async def reach_of(core: Core, who: Principal, request: Forget) -> Reach:
    """Where a forget looks, and for what; refused unless the caller may write there."""
    core.check_names(agent=request.agent_id, ids=request.ids, user_id=request.user_id)
    if not request.ids and not request.filter:
        raise ValidationError("forget needs ids or filter: without either it would delete everything", field="ids")
    agents: tuple[str, ...] = (request.agent_id,)
    if request.all_agents:
        require_role(who, "writer")
        agents = tuple(agent for agent in await _known_agents(core, who) if who.may_use(agent))
    else:
        core.require(who, request.agent_id, "writer")
    where = filters.parse(dict(request.filter) if request.filter else None)
    if request.user_id is not None:
        where += (Condition(("user_id",), "eq", request.user_id),)
    # A soft-deleted memory can still be erased; nothing else about it can be changed.
    statuses: tuple[Status, ...] = ALL_BUT_PENDING if request.hard_delete else ("live", "archived")
    return Reach(who.tenant, agents, where, statuses=statuses)


async def _known_agents(core: Core, who: Principal) -> list[str]:
    """Those that have memories, and those of which so far only a review speaks."""
    staged = {record.value["agent_id"] for record in await core.primary.records(who.tenant, REVIEW)}
    return sorted(staged.union(await core.primary.agent_names(who.tenant)))


async def select(core: Core, who: Principal, request: Forget) -> list[Memory]:
    """The memories a forget means, each agent's oldest first: those of `ids` that also pass `filter` and `user_id`,
    and when it cascades what was merged with them."""
    return await _select(core, who, request, await reach_of(core, who, request))


async def _select(core: Core, who: Principal, request: Forget, reach: Reach) -> list[Memory]:
    if request.ids:
        ids = dict.fromkeys(await _ids(core, who, reach.agents, request.ids))
        named = [m for m in await core.primary.get(who.tenant, list(ids)) if reach.admits(m)]
        memories = sorted(named, key=lambda m: (m.agent_id, m.created_at, m.id))
    else:
        memories = [m for agent in reach.agents for m in await read_all(core, replace(reach, agents=(agent,)))]
    if request.hard_delete and request.cascade:
        memories = sources_first([*memories, *(await merge_lineage(core, who, memories)).memories])
    for agent in dict.fromkeys(m.agent_id for m in memories):
        core.require(who, agent, "writer")
    return memories


def sources_first(memories: Sequence[Memory]) -> list[Memory]:
    """Each before what it was merged into: erasing that one first would change those it leaves behind."""
    into = {m.id: m.merged_into for m in memories}

    def depth(id: str | None) -> int:
        return 0 if id is None or id not in into else 1 + depth(into[id])

    return sorted(memories, key=lambda m: -depth(m.id))


async def select_drafts(
    core: Core, who: Principal, request: Forget, reach: Reach, memories: Sequence[Memory]
) -> list[Memory]:
    """Beside these memories, the staged writes that an erasure means: those turned down, and by a condition also those
    that still wait. Their reviews quote them."""
    if not request.hard_delete:
        return []
    if not request.ids:
        return await staged_drafts(core, who, reach)
    loose = {*await _ids(core, who, reach.agents, request.ids)}.difference(m.id for m in memories)
    found = await staged_drafts(core, who, reach) if loose else []
    return [draft for draft in found if draft.id in loose and draft.status != "pending"]


async def _ids(core: Core, who: Principal, agents: Sequence[str], refs: Sequence[str]) -> list[str]:
    """Ids as they are, and what aliases name; a caller's own id may look like one of ours."""
    refs = [expand_id(ref) for ref in refs]
    found = await core.primary.get(who.tenant, [ref for ref in refs if is_uuid(ref)])
    known = {m.id for m in found if m.agent_id in agents}
    ids = []
    for ref in refs:
        aliased = [] if ref in known else await core.primary.find_alias(who.tenant, agents, ref)
        ids += [m.id for m in aliased] or [ref]
    return ids


async def preview(core: Core, who: Principal, request: Forget) -> list[Memory]:
    """What a forget would take; of what nobody can read any more, or yet, only that it is there."""
    reach, now = await reach_of(core, who, request), core.clock()
    memories = await _select(core, who, request, reach)
    memories += await select_drafts(core, who, request, reach, memories)
    return [preview_of(memory, now) for memory in memories]


async def forget(core: Core, who: Principal, request: Forget) -> ForgetResult:
    reach = await reach_of(core, who, request)
    request = await redact_reason(core, request)
    memories = await _select(core, who, request, reach)
    if await core.policies.in_force(who.tenant):
        drafts = await select_drafts(core, who, request, reach, memories)
        await core.policies.admit_all(who, "forget", [*memories, *drafts])
    result = ForgetResult([], core.primary.name, erased=request.hard_delete)
    counts = dict.fromkeys(reach.agents, 0)
    todo, meant = memories, dict.fromkeys(m.id for m in memories)
    for attempt in range(_PASSES):
        for agent in dict.fromkeys(m.agent_id for m in todo):
            mine = [m for m in todo if m.agent_id == agent]
            if result.error is None:
                await _forget_of(core, who, request, agent, mine, result, counts)
        if not request.hard_delete or result.error is not None or len(result.ids) == len(meant):
            break
        try:  # changed meanwhile; what is still meant has to go as it is now
            todo = await _select(core, who, request, reach)
        except Fault as fault:
            _stop(result, fault, who)
            break
        meant |= dict.fromkeys(m.id for m in todo)
        if not todo:
            break
        if attempt == _PASSES - 1:
            result.error = "some kept changing while they were being erased; erase again"
    if request.hard_delete and result.error is None:
        try:
            await _forget_drafts(core, who, request, reach, memories, result, counts)
        except Fault as fault:
            _stop(result, fault, who)
    if request.all_agents:
        result.agents = counts
    gone = set(result.ids)
    if result.error is not None:
        result.remaining += [id for id in meant if id not in gone]
    if request.hard_delete or any(must_erase(m) for m in memories if m.id in gone):
        await finish_erasure(core, who, [m for m in memories if m.id in gone], result)
    return result


async def redact_reason(core: Core, request: Forget) -> Forget:
    """Before the write lock is taken: in a long text that takes seconds."""
    if request.reason is None:
        return request
    return replace(request, reason=await core.redact_async(request.reason, "reason"))


def _stop(result: ForgetResult, fault: Fault, who: Principal) -> None:
    """End with an answer where something is done already, else with the fault."""
    if not result.ids:
        raise fault
    result.error = fault.summary_for(is_operator=who.is_operator)


async def _forget_of(
    core: Core, who: Principal, request: Forget, agent: str, memories: Sequence[Memory], result: ForgetResult,
    counts: dict[str, int],
) -> None:  # fmt: skip
    def work(tx: Transaction, batch: Sequence[Memory]) -> list[str]:
        return apply_forget(
            tx, core, who, agent, batch, hard=request.hard_delete, reason=request.reason, unchanged=by_filter(request)
        )

    done, why = await core.transact_in_chunks(who, memories, CHUNK, work, begun=bool(result.ids))
    result.ids += done
    counts[agent] = counts.get(agent, 0) + len(done)
    result.error = why


async def _forget_drafts(
    core: Core, who: Principal, request: Forget, reach: Reach, memories: Sequence[Memory], result: ForgetResult,
    counts: dict[str, int],
) -> None:  # fmt: skip
    drafts: dict[str, list[str]] = {}
    for draft in await select_drafts(core, who, request, reach, memories):
        drafts.setdefault(draft.agent_id, []).append(draft.id)
    for agent, ids in drafts.items():

        def work(tx: Transaction, batch: Sequence[str], agent: str = agent) -> list[str]:
            return erase_drafts(tx, core, who, agent, batch, reason=request.reason)

        done, why = await core.transact_in_chunks(who, ids, CHUNK, work, begun=bool(result.ids))
        result.ids += done
        counts[agent] = counts.get(agent, 0) + len(done)
        if why is not None:
            result.error = why
            result.remaining += [id for id in ids if id not in done]
            return


async def finish_erasure(core: Core, who: Principal, erased: Sequence[Memory], result: ForgetResult) -> None:
    """Delete the copies the store made of itself, and say where else the text may be. What was erased stays erased,
    whatever goes wrong here."""
    why = await core.delete_migration_backups(who)
    try:
        gone = set(result.ids)
        merged = await merge_lineage(core, who, erased)
        result.descendants = [m.id for m in merged.descendants if m.id not in gone]
        result.sources = [m.id for m in merged.sources if m.id not in gone]
        result.backups, result.backup_count = await core.backups(who)
    except Fault as fault:
        said = fault.summary_for(is_operator=who.is_operator)
        why = why or f"where else the text may be could not be found out: {said}"
    result.error = result.error or why


async def delete(core: Core, who: Principal, memory: Memory) -> ForgetResult:
    """Forget one memory that was found, softly."""
    core.require(who, memory.agent_id, "writer")
    await core.policies.admit_all(who, "forget", [memory])
    done = await core.transact(
        who.tenant, lambda tx: apply_forget(tx, core, who, memory.agent_id, [memory], hard=False)
    )
    if done and must_erase(memory):
        await core.delete_migration_backups(who)
    return ForgetResult(done, core.primary.name, erased=False)


def by_filter(request: Forget) -> bool:
    """Whether what memories say chose them, so that one corrected meanwhile was never meant."""
    return not request.ids or bool(request.filter)


def preview_of(memory: Memory, now: int) -> Memory:
    """A memory as a preview shows it: of what nobody can read any more, that it is there and no more."""
    if readable(memory, now):
        return memory
    shown = ("status", "created_at", "updated_at", "version", "content_hash")
    content = f"({status_label(memory, now)})"
    kept = {name: getattr(memory, name) for name in shown}
    return Memory(memory.id, memory.tenant, memory.agent_id, memory.type, content, **kept)


def status_label(memory: Memory, now: int) -> str:
    """Its status, or that its time is over."""
    return "expired" if expired(memory, now) and memory.status != "deleted" else memory.status


def apply_forget(
    tx: Transaction,
    core: Core,
    who: Principal,
    agent_id: str,
    memories: Sequence[Memory],
    *,
    hard: bool,
    reason: str | None = None,
    because: str | None = None,
    unchanged: bool = False,
) -> list[str]:
    """Delete or erase what is still there, with one audit entry for all of it.

    `reason` is the caller's, redacted. Of something hidden it is kept with the memory, and goes when that is erased; of
    an erasure it is kept for good, because it is all that will be known of it. `because` is the engine's own.
    """
    done, parts, erased = [], [], False
    for memory in memories:
        now = tx.get(memory.id)
        if now is None or now.agent_id != agent_id or (not hard and now.status not in ("live", "archived")):
            continue
        if unchanged and now.version != memory.version:
            continue
        done.append(now.id)
        if hard or must_erase(now):
            parts += [audit.part(None, {"id": now.id, "erased": True}), *erase(tx, core, now)]
            erased = True
        else:
            gone = tx.put(Entry(replace(now, status="deleted"), None, b""))
            why = {} if reason is None else {"reason": reason}
            parts.append(version_part(gone, **why))
    if done:
        because = because or (reason if erased else None)
        if because is not None:
            parts.append(audit.part(None, {"reason": because}))
        audit.append(tx, who, "forget", agent_id, parts)
    return done
