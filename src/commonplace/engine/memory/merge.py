"""Merging: which memories are meant, what becomes of them, and doing it in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commonplace.engine import procedures
from commonplace.engine.core import Core, StaleRead, memory_not_found
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.read import readable
from commonplace.engine.memory.retention import inherit_retention
from commonplace.engine.memory.write import check_change
from commonplace.engine.types import Merge, MergeResult, MergeStrategy
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.wire.canonical import content_hash, is_uuid, new_salt
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import Condition
from commonplace.wire.record import EVERYONE, Memory, Principal, altered

_MOST_NAMED = 1000  # memories that one entity name covers


def combine(canonical: Memory, duplicates: Sequence[Memory], strategy: MergeStrategy) -> MergeResult:
    if strategy == "keep_canonical":
        return MergeResult(canonical, list(duplicates), changed=False)
    everyone = [canonical, *duplicates]
    if strategy == "keep_highest_confidence":
        survivor = min(everyone, key=lambda m: (-m.confidence, m.created_at, m.id))
        return MergeResult(survivor, [m for m in everyone if m.id != survivor.id], changed=False)
    oldest_first = sorted(everyone, key=lambda m: (m.created_at, m.id))
    metadata: dict[str, Any] = {}
    for memory in oldest_first:
        metadata |= memory.metadata
    by_age = [canonical, *(m for m in oldest_first if m.id != canonical.id)]
    survivor = replace(
        canonical,
        content="\n".join(dict.fromkeys(m.content for m in by_age)),
        metadata=metadata,
        tags=list(dict.fromkeys(tag for m in oldest_first for tag in m.tags)),
        confidence=max(m.confidence for m in everyone),
    )
    survivor = inherit_retention(survivor, everyone)
    privacy = {name: value for name, value in survivor.privacy.items() if name != "share_with"}
    names = shared_with(everyone)
    survivor = replace(survivor, privacy={**privacy, "share_with": names} if names else privacy)
    return MergeResult(survivor, list(duplicates), changed=True)


def shared_with(memories: Sequence[Memory]) -> list[str]:
    """Who may be shown the text of all of these at once: whoever may be shown each of them."""
    given = [list(memory.privacy.get("share_with") or ()) for memory in memories]
    names = dict.fromkeys(name for each in given for name in each)
    return [name for name in names if all(name in each or EVERYONE in each for each in given)]


async def resolve_parties(core: Core, who: Principal, request: Merge) -> tuple[Memory, list[Memory]]:
    """The canonical memory and the duplicates that exist, each named by id, alias or entity name."""
    core.require(who, request.agent_id, "writer")
    core.check_names(canonical=request.canonical, duplicates=request.duplicates)
    if not request.duplicates:
        raise ValidationError("duplicates must name at least one memory", field="duplicates")
    named = await _find_named(core, who, request.agent_id, request.canonical)
    if not named:
        raise memory_not_found(request.agent_id, request.canonical)
    canonical = named[0]
    duplicates: dict[str, Memory] = {}
    for ref in request.duplicates:
        for memory in await _find_named(core, who, request.agent_id, ref, all_named=True):
            duplicates[memory.id] = memory
    if canonical.id in duplicates:
        if len(duplicates) == 1 or request.canonical in request.duplicates:
            raise ValidationError("duplicates must not name the canonical memory itself", field="duplicates")
        del duplicates[canonical.id]  # an entity name covers the canonical one too
    if not duplicates:
        raise memory_not_found(request.agent_id, request.duplicates[0])
    return canonical, list(duplicates.values())


async def _find_named(core: Core, who: Principal, agent_id: str, ref: str, all_named: bool = False) -> list[Memory]:
    now = core.clock()
    spelled = await core.primary.get(who.tenant, [ref]) if is_uuid(ref) else []
    found = [m for m in spelled if m.agent_id == agent_id and readable(m, now)]
    if not found:
        found = [m for m in await core.primary.find_alias(who.tenant, [agent_id], ref) if readable(m, now)]
    if not found:
        reach = Reach(who.tenant, (agent_id,), (Condition(("entity_name",), "eq", ref),), now=now)
        found = (await core.primary.scan(reach, limit=_MOST_NAMED, newest_first=False)).memories
    return found if all_named else found[:1]


async def merge(core: Core, who: Principal, request: Merge) -> MergeResult:
    async def attempt() -> MergeResult:
        canonical, duplicates = await resolve_parties(core, who, request)
        merged, entry = await merged_entry(core, canonical, duplicates, request)
        return await core.transact(who.tenant, lambda tx: apply_merge(tx, who, request, merged, entry))

    return await core.retry_on_conflict(attempt)


def merge_preview(core: Core, canonical: Memory, duplicates: Sequence[Memory], request: Merge) -> MergeResult:
    """What the merge would make, refused like an update if it is nothing we keep."""
    merged = combine(canonical, duplicates, request.strategy)
    if merged.changed:
        # Neither text may hold a secret that only shows when they stand together, or that was registered since.
        merged.survivor, _ = core.redactor.redact_record(merged.survivor, before=canonical)
        joined = merged.survivor
        machines = any(procedures.is_machine(m.content) for m in (canonical, *duplicates))
        if machines and joined.type == "procedural" and joined.content != canonical.content:
            raise ValidationError(
                "state machines cannot be joined into one text; merge with keep_canonical", field="strategy"
            )
        check_change(core, canonical, joined)
    return merged


async def merged_entry(
    core: Core, canonical: Memory, duplicates: Sequence[Memory], request: Merge
) -> tuple[MergeResult, Entry | None]:
    merged = merge_preview(core, canonical, duplicates, request)
    if not merged.changed:
        return merged, None
    salt = new_salt()
    merged.survivor = replace(merged.survivor, content_hash=content_hash(merged.survivor.content, salt), salt=salt)
    (entry,) = await core.make_entries([merged.survivor])
    return merged, entry


def apply_merge(
    tx: Transaction, who: Principal, request: Merge, merged: MergeResult, entry: Entry | None
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
        parts.append(version_part(merged.survivor, kept=True))
    for i, loser in enumerate(merged.losers):
        gone = replace(rows[loser.id], status="deleted", merged_into=merged.survivor.id)
        merged.losers[i] = tx.put(Entry(gone, None, b""))
        parts.append(version_part(merged.losers[i], merged_into=merged.survivor.id, strategy=request.strategy))
    audit.append(tx, who, "merge", request.agent_id, parts)
    return merged
