"""Merging: which memories are meant, what becomes of them, and doing it in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from commonplace.engine.checks import memory_not_found
from commonplace.engine.core import Core, StaleRead
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.read import readable
from commonplace.engine.memory.retention import inherit_retention
from commonplace.engine.memory.write import check_change
from commonplace.engine.procedures import machine
from commonplace.engine.types import Merge, MergeResult, MergeStrategy
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.wire.canonical import content_hash, is_uuid, new_salt
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import Condition
from commonplace.wire.metadata_fields import BLANK, LISTS, fields_from_metadata, metadata_with_fields
from commonplace.wire.record import EVERYONE, Memory, Principal, replace_fields
from commonplace.wire.short_ids import expand_id

_MAX_NAMED = 1000  # memories that one entity name covers


def combine(canonical: Memory, duplicates: Sequence[Memory], strategy: MergeStrategy) -> MergeResult:
    """Who survives and as what. Whatever the strategy, nothing that someone relied on is lost: the survivor lives as
    long as any of them would have, is live if any was, and goes by every name of theirs."""
    everyone = [canonical, *duplicates]
    chosen = canonical
    if strategy == "keep_highest_confidence":
        chosen = min(everyone, key=lambda m: (-m.confidence, m.created_at, m.id))
    losers = [m for m in everyone if m.id != chosen.id]
    survivor = _join_contents(canonical, everyone) if strategy == "merge_content" else chosen
    ends = [m.expires_at for m in everyone]
    survivor = replace(
        _take_over_names(survivor, losers),
        expires_at=None if None in ends else max(end for end in ends if end is not None),
        status="live" if any(m.status == "live" for m in everyone) else chosen.status,
    )
    # A promise binds the text it was made for: only joined contents are under each other's.
    survivor = inherit_retention(survivor, everyone if strategy == "merge_content" else [chosen])
    return MergeResult(survivor, losers, changed=survivor != chosen)


def _join_contents(canonical: Memory, everyone: Sequence[Memory]) -> Memory:
    """All that was said, each thing once, under metadata in which the last written wins and lists are united."""
    oldest_first = sorted(everyone, key=lambda m: (m.created_at, m.id))
    shown: dict[str, Any] = {}
    for memory in oldest_first:
        shown |= metadata_with_fields(memory)
    for name in LISTS:
        if united := list(dict.fromkeys(each for m in oldest_first for each in getattr(m, name))):
            shown[name] = united
    written = {name for memory in everyone for name in memory.metadata}
    by_age = [canonical, *(m for m in oldest_first if m.id != canonical.id)]
    names = shared_with(everyone)
    privacy = {name: value for name, value in canonical.privacy.items() if name != "share_with"}
    fields: dict[str, Any] = {
        **BLANK,
        **fields_from_metadata(shown),
        "metadata": {name: value for name, value in shown.items() if name in written},
        "content": "\n".join(dict.fromkeys(m.content for m in by_age)),
        "confidence": max(m.confidence for m in everyone),
        "privacy": {**privacy, "share_with": names} if names else privacy,
    }
    return replace(canonical, **fields)


def _take_over_names(survivor: Memory, losers: Sequence[Memory]) -> Memory:
    """Whatever names one of the losers, by id or alias, or says that one of them replaces it, means the survivor."""
    merged = list(dict.fromkeys(name for loser in losers for name in (*loser.aliases, loser.id)))
    aliases = list(dict.fromkeys((*survivor.aliases, *merged)))
    own = {survivor.id, *aliases}  # nothing replaces itself
    replaced = dict.fromkeys(name for m in (survivor, *losers) for name in m.supersedes if name not in own)
    metadata = survivor.metadata
    if "supersedes" in metadata:
        metadata = {**metadata, "supersedes": list(replaced)}
    # Which names are its author's and which came by merging is told apart, because one of the first is its id in AMP.
    provenance = {**survivor.provenance, "merged": [*survivor.provenance.get("merged", ()), *merged]}
    return replace(survivor, aliases=aliases, supersedes=list(replaced), metadata=metadata, provenance=provenance)


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
    now, ref = core.clock(), expand_id(ref)
    spelled = await core.primary.get(who.tenant, [ref]) if is_uuid(ref) else []
    found = [m for m in spelled if m.agent_id == agent_id and readable(m, now)]
    if any(m.merged_into for m in spelled if m.agent_id == agent_id):
        return []  # it leads to another elsewhere; here it would make one memory of itself
    if not found:
        found = [m for m in await core.primary.find_alias(who.tenant, [agent_id], ref) if readable(m, now)]
    if not found:
        reach = Reach(who.tenant, (agent_id,), (Condition(("entity_name",), "eq", ref),), now=now)
        found = (await core.primary.scan(reach, limit=_MAX_NAMED, newest_first=False)).memories
    return found if all_named else found[:1]


Note = Callable[[Transaction, MergeResult], None]


async def merge(core: Core, who: Principal, request: Merge, note: Note | None = None) -> MergeResult:
    """`note` is told of it in the unit of work that does it."""

    async def attempt() -> MergeResult:
        canonical, duplicates = await resolve_parties(core, who, request)
        merged, entry = await merged_entry(core, who, canonical, duplicates, request)

        def work(tx: Transaction) -> MergeResult:
            done = apply_merge(tx, who, request, merged, entry)
            if note is not None:
                note(tx, done)
            return done

        return await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)


def merge_preview(core: Core, canonical: Memory, duplicates: Sequence[Memory], request: Merge) -> MergeResult:
    """What the merge would make, refused like an update if it is nothing we keep."""
    merged = combine(canonical, duplicates, request.strategy)
    before = next(m for m in (canonical, *duplicates) if m.id == merged.survivor.id)
    if request.strategy == "merge_content":
        # Neither text may hold a secret that only shows when they stand together, or that was registered since.
        merged.survivor, _ = core.redactor.redact_record(merged.survivor, before=before)
        joined = merged.survivor
        machines = any(machine.is_machine(m.content) for m in (canonical, *duplicates))
        if machines and joined.type == "procedural" and joined.content != canonical.content:
            raise ValidationError(
                "state machines cannot be joined into one text; merge with keep_canonical", field="strategy"
            )
    check_change(core, before, merged.survivor)
    return merged


async def admit_merge(
    core: Core, who: Principal, canonical: Memory, duplicates: Sequence[Memory], request: Merge, *, reviewed: bool
) -> MergeResult:
    """What the merge would make, as policies let it be: of those that go as of what stays."""
    merged = merge_preview(core, canonical, duplicates, request)
    before = next(m for m in (canonical, *duplicates) if m.id == merged.survivor.id)
    await core.policies.admit_all(who, "merge", merged.losers, reviewed=reviewed)
    merged.survivor = await core.policies.admit_memory(who, "merge", merged.survivor, before=before, reviewed=reviewed)
    return merged


async def would_merge(core: Core, who: Principal, canonical: Memory, duplicates: Sequence[Memory]) -> bool:
    """Whether rules would let these become one without a person; nothing is noted."""
    merged = combine(canonical, duplicates, "keep_canonical")
    free, _ = await core.policies.admitted(who, "merge", merged.losers)
    if len(free) != len(merged.losers):
        return False
    return await core.policies.would_admit(who, "merge", merged.survivor, before=canonical)


async def merged_entry(
    core: Core, who: Principal, canonical: Memory, duplicates: Sequence[Memory], request: Merge, *,
    reviewed: bool = False,
) -> tuple[MergeResult, Entry]:  # fmt: skip
    merged = await admit_merge(core, who, canonical, duplicates, request, reviewed=reviewed)
    if request.strategy == "merge_content":
        salt = new_salt()
        merged.survivor = replace(merged.survivor, content_hash=content_hash(merged.survivor.content, salt), salt=salt)
    (entry,) = await core.make_entries([merged.survivor])
    return merged, entry


def apply_merge(tx: Transaction, who: Principal, request: Merge, merged: MergeResult, entry: Entry) -> MergeResult:
    rows: dict[str, Memory] = {}
    for memory in (merged.survivor, *merged.losers):
        now = tx.get(memory.id)
        if now is None or now.version != memory.version:
            raise StaleRead
        rows[now.id] = now
    parts = []
    # The losers first: only then are their aliases free for the survivor.
    for i, loser in enumerate(merged.losers):
        gone = replace(rows[loser.id], status="deleted", merged_into=merged.survivor.id)
        merged.losers[i] = tx.put(Entry(gone, None, b""))
        parts.append(version_part(merged.losers[i], merged_into=merged.survivor.id, strategy=request.strategy))
    # A caller's own id may look like one of ours, and then it is not free.
    free = [name for name in entry.memory.aliases if _is_free_alias(tx, merged.survivor, name)]
    # A demotion makes no version, so it may have come after the rows were read.
    kept = replace_fields(entry.memory, demotion=rows[entry.memory.id].demotion, aliases=free)
    merged.survivor = tx.put(replace(entry, memory=kept))
    parts.insert(0, version_part(merged.survivor, kept=True))
    audit.append(tx, who, "merge", request.agent_id, parts)
    return merged


def _is_free_alias(tx: Transaction, survivor: Memory, alias: str) -> bool:
    holder = tx.by_alias(survivor.agent_id, alias)
    return holder is None or holder.id == survivor.id
