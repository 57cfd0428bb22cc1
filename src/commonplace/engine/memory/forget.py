"""Forgetting and erasing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from commonplace.engine.core import IDEMPOTENCY, REVIEW, Core
from commonplace.engine.graph.graph import apply_erase
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.read import expired, find, read_all, readable
from commonplace.engine.types import Forget, ForgetResult
from commonplace.stores.base import AuditPart, Entry, Reach, Record, Transaction
from commonplace.wire import filters
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory, Principal, Status

CHUNK = 64  # memories per unit of work, so that a mass delete never holds the write lock for long


async def select(core: Core, who: Principal, request: Forget) -> list[Memory]:
    """The memories a forget means, oldest first: those of `ids` that also pass `filter` and `user_id`."""
    core.require(who, request.agent_id, "writer")
    core.check_names(ids=request.ids, user_id=request.user_id)
    if not request.ids and not request.filter:
        raise ValidationError("forget needs ids or filter: without either it would delete everything", field="ids")
    where = filters.parse(dict(request.filter) if request.filter else None)
    if request.user_id is not None:
        where += (Condition(("user_id",), "eq", request.user_id),)
    # A soft-deleted memory can still be erased; nothing else about it can be changed.
    statuses: tuple[Status, ...] = ("live", "archived", "deleted") if request.hard_delete else ("live", "archived")
    reach = Reach(who.tenant, (request.agent_id,), where, statuses=statuses)
    if not request.ids:
        return await read_all(core, reach)
    ids = dict.fromkeys(await _ids(core, who, request.agent_id, request.ids))
    named = [m for m in await core.primary.get(who.tenant, list(ids)) if reach.admits(m)]
    return sorted(named, key=lambda m: (m.created_at, m.id))


async def _ids(core: Core, who: Principal, agent_id: str, refs: Sequence[str]) -> list[str]:
    """Ids as they are, and what aliases name; a caller's own id may look like one of ours."""
    found = await core.primary.get(who.tenant, [ref for ref in refs if is_uuid(ref)])
    known = {m.id for m in found if m.agent_id == agent_id}
    ids = []
    for ref in refs:
        aliased = [] if ref in known else await core.primary.find_alias(who.tenant, [agent_id], ref)
        ids += [m.id for m in aliased] or [ref]
    return ids


async def forget(core: Core, who: Principal, request: Forget) -> ForgetResult:
    memories = await select(core, who, request)
    result = ForgetResult([], core.primary.name, erased=request.hard_delete)
    if request.hard_delete and request.cascade:
        memories += await descendants(core, who, memories)
    for start in range(0, len(memories), CHUNK):
        batch = memories[start : start + CHUNK]
        done = await core.transact(
            who.tenant,
            lambda tx, batch=batch: _apply(tx, core, who, request, batch),  # type: ignore[misc]
        )
        result.ids += done
    if request.hard_delete:
        if request.ids:
            known = {m.id for m in memories}
            loose = [id for id in await _ids(core, who, request.agent_id, request.ids) if id not in known]
            result.ids += await core.transact(who.tenant, lambda tx: erase_rejected(tx, who, request.agent_id, loose))
        gone = set(result.ids)
        result.descendants = [m.id for m in await descendants(core, who, memories) if m.id not in gone]
    if request.hard_delete or any(must_erase(m) for m in memories):
        await core.primary.delete_migration_backups()
        result.backups, result.backup_count = await core.backups(who)
    return result


async def delete(core: Core, who: Principal, ref: str, agent: str | None = None) -> bool:
    """Forget the one memory that an id of any kind names; whether it was there."""
    try:
        memory = await find(core, who, ref, agent)
    except NotFound:
        return False
    core.require(who, memory.agent_id, "writer")
    done = await core.transact(
        who.tenant, lambda tx: apply_forget(tx, core, who, memory.agent_id, [memory], hard=False)
    )
    if done and must_erase(memory):
        await core.primary.delete_migration_backups()
    return bool(done)


def _apply(tx: Transaction, core: Core, who: Principal, request: Forget, batch: Sequence[Memory]) -> list[str]:
    hard, unchanged = request.hard_delete, by_filter(request)
    return apply_forget(tx, core, who, request.agent_id, batch, hard=hard, reason=request.reason, unchanged=unchanged)


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


def must_erase(memory: Memory) -> bool:
    """A memory kept under a retention promise leaves nothing behind when it goes."""
    return "retain" in memory.privacy


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

    `reason` is the caller's, may quote the memory and so goes with it; `because` is the engine's own and stays.
    """
    if reason is not None:
        reason = core.redact_text(reason, "reason")
    done, parts = [], []
    for memory in memories:
        now = tx.get(memory.id)
        if now is None or now.agent_id != agent_id or (not hard and now.status not in ("live", "archived")):
            continue
        if unchanged and now.version != memory.version:
            continue
        done.append(now.id)
        if hard or must_erase(now):
            parts += [audit.part(None, {"id": now.id, "erased": True}), *erase(tx, core, now)]
        else:
            gone = tx.put(Entry(replace(now, status="deleted"), None, b""))
            why = {} if reason is None else {"reason": reason}
            parts.append(version_part(gone, **why))
    if done:
        if because is not None:
            parts.append(audit.part(None, {"reason": because}))
        audit.append(tx, who, "forget", agent_id, parts)
    return done


def erase_rejected(tx: Transaction, who: Principal, agent_id: str, ids: Sequence[str]) -> list[str]:
    """Writes that were turned down never became memories, but their reviews still quote them."""
    done = []
    for id in ids:
        quoted = [r for r in tx.records_about(id) if r.kind == REVIEW and r.value.get("memory_id") == id]
        if any(r.value["status"] == "rejected" and r.value["agent_id"] == agent_id for r in quoted):
            _erase_records(tx, id)
            done.append(id)
    if done:
        parts = [audit.part(None, {"id": id, "erased": True}) for id in done]
        audit.append(tx, who, "forget", agent_id, parts)
    return done


def _erase_records(tx: Transaction, id: str) -> None:
    """Take a memory's content out of everything the engine keeps about it."""
    for record in tx.records_about(id):
        others = tuple(other for other in record.about if other != id)
        if record.kind == IDEMPOTENCY:
            tx.put_record(Record(record.kind, record.key, {"at": record.value.get("at", 0), "erased": True}))
        elif record.kind == REVIEW:
            kept = {k: v for k, v in record.value.items() if k not in ("request", "draft", "diff", "reasoning")}
            if "decision" in kept:
                kept["decision"] = {k: v for k, v in kept["decision"].items() if k != "reason"}
            tx.put_record(Record(record.kind, record.key, {**kept, "erased": True}, others))
        else:
            tx.drop_record(record.kind, record.key)


def erase(tx: Transaction, core: Core, memory: Memory) -> list[AuditPart]:
    """Take it out of what the engine keeps about it, then out of the store; what else went with it."""
    _erase_records(tx, memory.id)
    derived = apply_erase(tx, [triple.id for triple in tx.triples_from(memory.id)])
    if core.embedding is not None:
        core.embedding.clear()  # earlier versions and questions that quoted it are in there, too
    tx.erase(memory.id)
    return derived


async def descendants(core: Core, who: Principal, memories: Sequence[Memory]) -> list[Memory]:
    """What these were merged into, all the way up: their text may live on there."""
    seen = {m.id for m in memories}
    found: list[Memory] = []
    todo = [m.merged_into for m in memories if m.merged_into]
    while todo:
        id = todo.pop()
        if id in seen:
            continue
        seen.add(id)
        for memory in await core.primary.get(who.tenant, [id]):
            found.append(memory)
            if memory.merged_into:
                todo.append(memory.merged_into)
    return found
