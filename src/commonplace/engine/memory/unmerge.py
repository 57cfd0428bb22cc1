"""Taking a merge back: what became part of another memory is one of its own again."""

from __future__ import annotations

from dataclasses import replace

from commonplace.engine.core import Core, StaleRead
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.read import expired, readable
from commonplace.stores.base import Transaction
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import Conflict, NotFound
from commonplace.wire.record import Memory, Principal

#: In the provenance of what was taken apart: from which memory. Nothing that merges by itself may do it again.
UNMERGED = "unmerged_from"


async def unmerge(core: Core, who: Principal, agent_id: str, id: str) -> Memory:
    """The memory, live again with its own words and names; the one it was merged into no longer goes by them. Only
    where that one kept its own words: joined contents cannot be told apart again."""
    core.require(who, agent_id, "writer")
    core.check_names(id=id)

    async def attempt() -> Memory:
        merged, survivor = await _parties(core, who, agent_id, id)
        names = {merged.id, *merged.aliases}
        kept = [name for name in survivor.provenance.get("merged", ()) if name not in names]
        survivor_next = replace(
            survivor,
            aliases=[alias for alias in survivor.aliases if alias not in names],
            provenance={**survivor.provenance, "merged": kept},
        )
        provenance = {**merged.provenance, UNMERGED: survivor.id}
        back, _ = await core.redactor.redact_record_async(
            replace(merged, status="live", merged_into=None, provenance=provenance)
        )
        first, second = await core.make_entries([survivor_next, back])

        def work(tx: Transaction) -> Memory:
            for seen in (survivor, merged):
                now = tx.get(seen.id)
                if now is None or now.version != seen.version:
                    raise StaleRead
            # The survivor first: only then are the names free.
            parts = [version_part(tx.put(first)), version_part(put := tx.put(second), unmerged_from=survivor.id)]
            audit.append(tx, who, "unmerge", agent_id, parts)
            return put

        return await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)


async def _parties(core: Core, who: Principal, agent_id: str, id: str) -> tuple[Memory, Memory]:
    found = await core.primary.get(who.tenant, [id]) if is_uuid(id) else []
    merged = next((m for m in found if m.agent_id == agent_id and not expired(m, core.clock())), None)
    if merged is None or merged.merged_into is None:
        raise NotFound(f"no memory {id:.300} of agent {agent_id} became part of another, or it was erased since")
    into = merged.merged_into
    survivor = next(iter(await core.primary.get(who.tenant, [into])), None)
    if survivor is None or not readable(survivor, core.clock()):
        raise Conflict(f"what {id} became part of is gone; bring {into} back first", id=into)
    if merged.content != survivor.content and merged.content in survivor.content.split("\n"):
        raise Conflict(f"the words of {id} are part of {survivor.id} now; write it anew instead", id=survivor.id)
    return merged, survivor
