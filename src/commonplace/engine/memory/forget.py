"""Forgetting, erasing and merging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from commonplace.engine import procedures
from commonplace.engine.core import Core, StaleRead, missing
from commonplace.engine.graph import statements
from commonplace.engine.ledger import audit
from commonplace.engine.memory.merge import MergeResult, combine
from commonplace.engine.memory.read import expired, readable
from commonplace.engine.memory.write import IDEMPOTENCY, check_change
from commonplace.engine.types import ForgetResult
from commonplace.stores.base import AuditPart, Entry, Reach, Record, Transaction
from commonplace.wire import filters
from commonplace.wire.canonical import content_hash, is_uuid, new_salt
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import Condition
from commonplace.wire.models import ForgetRequest, MergeRequest
from commonplace.wire.record import Memory, Principal, Status, altered

SYSTEM = ""  # the tenant under which the store's own records lie
BACKUP = "backup"
REVIEW = "review"
CHUNK = 64  # memories per unit of work, so that a mass delete never holds the write lock for long
_MERGE_FIRST = 1000


async def chosen(core: Core, who: Principal, request: ForgetRequest) -> list[Memory]:
    """The memories a forget means, oldest first: those of `ids` that also pass `filter` and `user_id`."""
    core.require(who, request.agent_id, "writer")
    if not request.ids and not request.filter:
        raise ValidationError("forget needs ids or filter: without either it would delete everything", field="ids")
    where = filters.parse(request.filter)
    if request.user_id is not None:
        where += (Condition(("user_id",), "eq", request.user_id),)
    # A soft-deleted memory can still be erased; nothing else about it can be changed.
    statuses: tuple[Status, ...] = ("live", "archived", "deleted") if request.hard_delete else ("live", "archived")
    reach = Reach(who.tenant, (request.agent_id,), where, statuses=statuses)
    if not request.ids:
        return await every(core, reach)
    ids = dict.fromkeys(await _ids(core, who, request.agent_id, request.ids))
    named = [m for m in await core.primary.get(who.tenant, list(ids)) if reach.admits(m)]
    return sorted(named, key=lambda m: (m.created_at, m.id))


async def every(core: Core, reach: Reach) -> list[Memory]:
    """All in reach, oldest first."""
    found: list[Memory] = []
    cursor: str | None = None
    while True:
        page = await core.primary.scan(reach, limit=1000, cursor=cursor, newest_first=False)
        found += page.memories
        cursor = page.next_cursor
        if cursor is None:
            return found


async def _ids(core: Core, who: Principal, agent_id: str, refs: Sequence[str]) -> list[str]:
    """Ids as they are, and what aliases name; a caller's own id may look like one of ours."""
    found = await core.primary.get(who.tenant, [ref for ref in refs if is_uuid(ref)])
    known = {m.id for m in found if m.agent_id == agent_id}
    ids = []
    for ref in refs:
        aliased = [] if ref in known else await core.primary.find_alias(who.tenant, [agent_id], ref)
        ids += [m.id for m in aliased] or [ref]
    return ids


async def forget(core: Core, who: Principal, request: ForgetRequest) -> ForgetResult:
    memories = await chosen(core, who, request)
    result = ForgetResult([], core.primary.name, erased=request.hard_delete)
    if request.hard_delete and request.cascade:
        memories += await descendants(core, who, memories)
    for start in range(0, len(memories), CHUNK):
        batch = memories[start : start + CHUNK]
        done = await core.transact(
            who.tenant,
            lambda tx, batch=batch: _forget_now(tx, core, who, request, batch),  # type: ignore[misc]
        )
        result.ids += done
    if request.hard_delete:
        if request.ids:
            known = {m.id for m in memories}
            loose = [id for id in await _ids(core, who, request.agent_id, request.ids) if id not in known]
            result.ids += await core.transact(who.tenant, lambda tx: erase_rejected(tx, who, request.agent_id, loose))
        gone = set(result.ids)
        result.descendants = [m.id for m in await descendants(core, who, memories) if m.id not in gone]
    if request.hard_delete or any(erases(m) for m in memories):
        await core.primary.delete_migration_backups()
        result.backups, result.backup_count = await backups(core, who)
    return result


async def backups(core: Core, who: Principal) -> tuple[list[str], int]:
    """The backups that may still hold what was erased, and how many."""
    paths = [record.value["path"] for record in await core.primary.records(SYSTEM, BACKUP)]
    # Where they lie is the operator's business; that they still hold it is everybody's.
    return (paths if who.operates else []), len(paths)


def _forget_now(
    tx: Transaction, core: Core, who: Principal, request: ForgetRequest, batch: Sequence[Memory]
) -> list[str]:
    return forget_now(
        tx, core, who, request.agent_id, batch, hard=request.hard_delete, reason=request.reason,
        unchanged=by_filter(request),
    )  # fmt: skip


def by_filter(request: ForgetRequest) -> bool:
    """Whether what memories say chose them, so that one corrected meanwhile was never meant."""
    return not request.ids or bool(request.filter)


def preview_of(memory: Memory, now: int) -> Memory:
    """A memory as a preview shows it: of what nobody can read any more, that it is there and no more."""
    if readable(memory, now):
        return memory
    return Memory(
        memory.id, memory.tenant, memory.agent_id, memory.type, f"({standing(memory, now)})", status=memory.status,
        created_at=memory.created_at, updated_at=memory.updated_at, version=memory.version,
        content_hash=memory.content_hash,
    )  # fmt: skip


def standing(memory: Memory, now: int) -> str:
    """Its status, or that its time is over."""
    return "expired" if expired(memory, now) and memory.status != "deleted" else memory.status


def erases(memory: Memory) -> bool:
    """A memory kept under a retention promise leaves nothing behind when it goes."""
    return "retain" in memory.privacy


def forget_now(
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
        if hard or erases(now):
            parts += [audit.part(None, {"id": now.id, "erased": True}), *erase(tx, core, now)]
        else:
            gone = tx.put(Entry(replace(now, status="deleted"), None, b""))
            why = {} if reason is None else {"reason": reason}
            parts.append(audit.part(now.id, {"version": gone.version, "status": "deleted", **why}))
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
            _unquote(tx, id)
            done.append(id)
    if done:
        parts = [audit.part(None, {"id": id, "erased": True}) for id in done]
        audit.append(tx, who, "forget", agent_id, parts)
    return done


def _unquote(tx: Transaction, id: str) -> None:
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
    _unquote(tx, memory.id)
    derived = statements.erase_now(tx, [triple.id for triple in tx.triples_from(memory.id)])
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


# merging


async def parties(core: Core, who: Principal, request: MergeRequest) -> tuple[Memory, list[Memory]]:
    """The canonical memory and the duplicates that exist, each named by id, alias or entity name."""
    core.require(who, request.agent_id, "writer")
    named = await _named(core, who, request.agent_id, request.canonical)
    if not named:
        raise missing(request.agent_id, request.canonical)
    canonical = named[0]
    duplicates: dict[str, Memory] = {}
    for ref in request.duplicates:
        for memory in await _named(core, who, request.agent_id, ref, every=True):
            duplicates[memory.id] = memory
    if canonical.id in duplicates:
        if len(duplicates) == 1 or request.canonical in request.duplicates:
            raise ValidationError("duplicates must not name the canonical memory itself", field="duplicates")
        del duplicates[canonical.id]  # an entity name covers the canonical one too
    if not duplicates:
        raise missing(request.agent_id, request.duplicates[0])
    return canonical, list(duplicates.values())


async def _named(core: Core, who: Principal, agent_id: str, ref: str, every: bool = False) -> list[Memory]:
    now = core.clock()
    spelled = await core.primary.get(who.tenant, [ref]) if is_uuid(ref) else []
    found = [m for m in spelled if m.agent_id == agent_id and readable(m, now)]
    if not found:
        found = [m for m in await core.primary.find_alias(who.tenant, [agent_id], ref) if readable(m, now)]
    if not found:
        reach = Reach(who.tenant, (agent_id,), (Condition(("entity_name",), "eq", ref),), now=now)
        found = (await core.primary.scan(reach, limit=_MERGE_FIRST, newest_first=False)).memories
    return found if every else found[:1]


async def merge(core: Core, who: Principal, request: MergeRequest) -> MergeResult:
    async def attempt() -> MergeResult:
        canonical, duplicates = await parties(core, who, request)
        merged, entry = await merged_entry(core, canonical, duplicates, request)
        return await core.transact(who.tenant, lambda tx: merge_now(tx, who, request, merged, entry))

    result: MergeResult = await core.retry_on_conflict(attempt)
    return result


def combined(core: Core, canonical: Memory, duplicates: Sequence[Memory], request: MergeRequest) -> MergeResult:
    """What the merge would make, refused like an update if it is nothing we keep."""
    merged = combine(canonical, duplicates, request.strategy)
    if merged.changed:
        # Neither text may hold a secret that only shows when they stand together, or that was registered since.
        merged.survivor, _ = core.redactor.record(merged.survivor, before=canonical)
        joined = merged.survivor
        machines = any(procedures.is_machine(m.content) for m in (canonical, *duplicates))
        if machines and joined.type == "procedural" and joined.content != canonical.content:
            raise ValidationError(
                "state machines cannot be joined into one text; merge with keep_canonical", field="strategy"
            )
        check_change(core, canonical, joined)
    return merged


async def merged_entry(
    core: Core, canonical: Memory, duplicates: Sequence[Memory], request: MergeRequest
) -> tuple[MergeResult, Entry | None]:
    merged = combined(core, canonical, duplicates, request)
    if not merged.changed:
        return merged, None
    salt = new_salt()
    merged.survivor = replace(merged.survivor, content_hash=content_hash(merged.survivor.content, salt), salt=salt)
    (entry,) = await core.entries([merged.survivor])
    return merged, entry


def merge_now(
    tx: Transaction, who: Principal, request: MergeRequest, merged: MergeResult, entry: Entry | None
) -> MergeResult:
    rows: dict[str, Memory] = {}
    for memory in (merged.survivor, *merged.losers):
        now = tx.get(memory.id)
        if now is None or now.version != memory.version:
            raise StaleRead
        rows[now.id] = now
    parts = []
    if entry is not None:
        # A demotion makes no version, so it may have come after the rows were read.
        kept = altered(entry.memory, demotion=rows[entry.memory.id].demotion)
        merged.survivor = tx.put(replace(entry, memory=kept))
        parts.append(audit.part(merged.survivor.id, {"version": merged.survivor.version, "kept": True}))
    for i, loser in enumerate(merged.losers):
        gone = replace(rows[loser.id], status="deleted", merged_into=merged.survivor.id)
        merged.losers[i] = tx.put(Entry(gone, None, b""))
        parts.append(audit.part(loser.id, {"merged_into": merged.survivor.id, "strategy": request.strategy}))
    audit.append(tx, who, "merge", request.agent_id, parts)
    return merged
