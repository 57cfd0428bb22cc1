"""Taking a merge or a promotion back: what became part of another memory is one of its own again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commonplace.engine.core import Core, StaleRead
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.erase import must_erase
from commonplace.engine.memory.forget import apply_forget
from commonplace.engine.memory.merge import combine
from commonplace.engine.memory.read import expired, part_of_another, read_all, readable
from commonplace.engine.memory.undelete import admit_again, mark_restored
from commonplace.engine.types import MergeStrategy
from commonplace.stores.base import Reach, Transaction
from commonplace.wire.canonical import content_hash, is_uuid, new_salt
from commonplace.wire.errors import NotFound
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory, Principal, replace_fields
from commonplace.wire.short_ids import expand_id

#: In the provenance of what was taken apart: from which memory. Nothing that merges by itself may do it again.
UNMERGED = "unmerged_from"


async def unmerge(core: Core, who: Principal, agent_id: str, id: str, reason: str | None = None) -> list[Memory]:
    """The memory with its own words and names, as it was before; what it was merged into is as it would be without it.
    The source of a promotion comes with all the others, and what they were promoted to goes."""
    core.require(who, agent_id, "writer")
    core.check_names(id=id)
    id = expand_id(id)
    why = {} if reason is None else {"reason": core.redact_text(reason, "reason")}

    async def attempt() -> list[Memory]:
        merged = await _merged(core, who, agent_id, id)
        survivors = await core.primary.get(who.tenant, [merged.merged_into or ""])
        # Another agent's is not there for this caller, whatever a row that was imported says.
        survivor = next((m for m in survivors if m.agent_id == agent_id), None)
        if survivor is not None and id in survivor.provenance.get("chain", ()):
            return await _take_promotion_back(core, who, merged, survivor, why)
        return [await _take_apart(core, who, merged, survivor, why)]

    return await core.retry_on_conflict(attempt)


async def _merged(core: Core, who: Principal, agent_id: str, id: str) -> Memory:
    found = await core.primary.get(who.tenant, [id]) if is_uuid(id) else []
    merged = next((m for m in found if m.agent_id == agent_id and not expired(m, core.clock())), None)
    if merged is None or merged.merged_into is None:
        raise NotFound(f"no memory {id:.300} of agent {agent_id} became part of another, or it was erased since")
    return merged


# a merge


async def _take_apart(
    core: Core, who: Principal, merged: Memory, survivor: Memory | None, why: dict[str, Any]
) -> Memory:
    if survivor is not None and not readable(survivor, core.clock()):
        said = f"what {merged.id} became part of is gone; bring {survivor.id} back first"
        raise await part_of_another(core, who, merged.id, survivor.id, said)
    back = await _restored_source(core, who, merged)
    memories, seen = [back], [merged]
    if survivor is not None:  # else it was erased, and nothing goes by these names any more
        memories.insert(0, await _without(core, who, survivor, merged))
        seen.insert(0, survivor)
    entries = await core.make_entries(memories)

    def work(tx: Transaction) -> Memory:
        parts = []
        # The survivor first: only then are the names free.
        for entry, before in zip(entries, seen, strict=True):
            now = _unchanged(tx, before)
            # A demotion makes no version, so it may have come after the row was read.
            put = tx.put(replace(entry, memory=replace_fields(entry.memory, demotion=now.demotion)))
            more = {} if before is survivor else {"unmerged_from": merged.merged_into, **why}
            parts.append(version_part(put, **more))
        audit.append(tx, who, "unmerge", merged.agent_id, parts)
        return put

    return await core.transact(who.tenant, work)


async def _without(core: Core, who: Principal, survivor: Memory, merged: Memory) -> Memory:
    """What the survivor is without this one: where nothing was done to it since, what the merge of the others alone
    would have made; else as it is, without the names."""
    names = {merged.id, *merged.aliases}
    versions = await core.primary.history(who.tenant, survivor.id)
    joined = next((n for n, v in enumerate(versions) if merged.id in v.provenance.get("merged", ())), 0)
    if joined and joined == len(versions) - 1:
        before = versions[joined - 1]
        others = [
            await _before_merge(core, who, other)
            for other in await core.primary.get(who.tenant, _merged_between(before, survivor))
            if other.id != merged.id and other.merged_into == survivor.id and other.agent_id == survivor.agent_id
        ]
        strategy: MergeStrategy = "merge_content" if before.content != survivor.content else "keep_canonical"
        after = combine(before, others, strategy).survivor if others else before
        after = replace(after, aliases=[name for name in after.aliases if name in survivor.aliases])
    elif merged.content != survivor.content and merged.content in survivor.content.split("\n"):
        said = f"the words of {merged.id} are part of {survivor.id}, which was changed since; write it anew instead"
        raise await part_of_another(core, who, merged.id, survivor.id, said)
    else:
        kept = [name for name in survivor.provenance.get("merged", ()) if name not in names]
        after = replace(
            survivor,
            aliases=[alias for alias in survivor.aliases if alias not in names],
            provenance={**survivor.provenance, "merged": kept},
        )
    after, _ = await core.redactor.redact_record_async(after, before=survivor)
    after = await core.policies.admit_memory(who, "update", after, before=survivor)
    if content_hash(after.content, after.salt) != after.content_hash:
        salt = new_salt()
        after = replace(after, content_hash=content_hash(after.content, salt), salt=salt)
    return after


def _merged_between(before: Memory, after: Memory) -> list[str]:
    known = set(before.provenance.get("merged", ()))
    return [name for name in after.provenance.get("merged", ()) if name not in known and is_uuid(name)]


async def _before_merge(core: Core, who: Principal, merged: Memory) -> Memory:
    """As it was; its status then says whether it was archived."""
    versions = await core.primary.history(who.tenant, merged.id)
    return next((v for v in reversed(versions) if v.merged_into is None), merged)


async def _restored_source(core: Core, who: Principal, merged: Memory) -> Memory:
    was = await _before_merge(core, who, merged)
    status = was.status if was.status in ("live", "archived") else "live"
    provenance = {**merged.provenance, UNMERGED: merged.merged_into}
    own = replace(merged, status=status, merged_into=None, provenance=provenance)
    return await admit_again(core, who, mark_restored(own, core.clock()))


def _unchanged(tx: Transaction, seen: Memory) -> Memory:
    now = tx.get(seen.id)
    if now is None or now.version != seen.version:
        raise StaleRead
    return now


# a promotion


async def _take_promotion_back(
    core: Core, who: Principal, source: Memory, promoted: Memory, why: dict[str, Any]
) -> list[Memory]:
    """Its sources are short-term memories again. A promoted memory that someone has changed is theirs by now."""
    there = readable(promoted, core.clock())
    # The second version of one that was archived says that and no more: nobody has changed it.
    changed = promoted.version > (2 if promoted.status == "archived" else 1)
    if there and changed:
        said = (
            f"{source.id} was promoted to {promoted.id}, which was changed since; forget that one first, then undo "
            "again"
        )
        raise await part_of_another(core, who, source.id, promoted.id, said)
    sources: Sequence[Memory] = [source]
    if there:
        part_of = (Condition(("merged_into",), "eq", promoted.id),)
        reach = Reach(who.tenant, (source.agent_id,), part_of, statuses=("archived",), now=core.clock())
        others = [m for m in await read_all(core, reach) if m.id != source.id]
        sources = [source, *others]
        await core.policies.admit_all(who, "forget", [promoted])
    entries = await core.make_entries([await _restored_source(core, who, each) for each in sources])

    def work(tx: Transaction) -> list[Memory]:
        for seen in (*sources, *([promoted] if there else ())):
            _unchanged(tx, seen)
        back = [tx.put(entry) for entry in entries]
        parts = [version_part(put, unmerged_from=promoted.id, **why) for put in back]
        audit.append(tx, who, "unmerge", source.agent_id, parts)
        if there:
            apply_forget(tx, core, who, source.agent_id, [promoted], hard=False, because="its promotion was undone")
        return back

    done = await core.transact(who.tenant, work)
    if there and must_erase(promoted):
        await core.delete_migration_backups(who)
    return done
