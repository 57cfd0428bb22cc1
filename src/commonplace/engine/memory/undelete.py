"""Bringing back what was forgotten or archived, as the next version of it. What was erased cannot be."""

from __future__ import annotations

from dataclasses import replace

from commonplace.engine.core import Core, StaleRead
from commonplace.engine.memory.read import expired, part_of_another
from commonplace.engine.memory.write import write
from commonplace.stores.base import Transaction
from commonplace.wire.canonical import content_hash, is_uuid, new_salt
from commonplace.wire.errors import Conflict, NotFound
from commonplace.wire.record import Memory, Principal
from commonplace.wire.short_ids import expand_id

#: In the provenance of what someone brought back: when. Nothing that acts by itself may take it away at once again.
RESTORED = "restored_at"
#: In the provenance of what a recovery has hidden: which. Those it was hidden from cannot take that back.
QUARANTINED = "quarantined_by"


def mark_restored(memory: Memory, now: int) -> Memory:
    """It, with the mark that someone wanted it so."""
    kept = {name: value for name, value in memory.provenance.items() if name != QUARANTINED}
    return replace(memory, provenance={**kept, RESTORED: now})


def restored_since(memory: Memory, at: int) -> bool:
    return int(memory.provenance.get(RESTORED, -1)) >= at


async def admit_again(core: Core, who: Principal, memory: Memory) -> Memory:
    """What comes back, without secrets that were registered since, and as policies let a text come into memory."""
    back, _ = await core.redactor.redact_record_async(memory)
    if back.content != memory.content:
        salt = new_salt()
        back = replace(back, content_hash=content_hash(back.content, salt), salt=salt)
    return await core.policies.admit_memory(who, "remember", back)


async def undelete(
    core: Core, who: Principal, agent_id: str, id: str, reason: str | None = None, *, ranked: bool = False
) -> Memory:
    """The memory, live again, with its words and times as they were; `ranked` takes a demotion back, too."""
    core.require(who, agent_id, "writer")
    core.check_names(id=id)
    id = expand_id(id)
    why = {} if reason is None else {"reason": core.redact_text(reason, "reason")}

    async def attempt() -> Memory:
        hidden = await _hidden(core, who, agent_id, id)
        back = await admit_again(core, who, mark_restored(replace(hidden, status="live"), core.clock()))
        # Hiding it took it out of the indexes, so its terms and vectors are made anew.
        (entry,) = await core.make_entries([replace(back, demotion=1.0) if ranked else back])

        def work(tx: Transaction) -> Memory:
            now = tx.get(id)
            if now is None or now.version != hidden.version:
                raise StaleRead
            return write(tx, who, entry, "undelete", **why)

        return await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)


async def _hidden(core: Core, who: Principal, agent_id: str, id: str) -> Memory:
    found = await core.primary.get(who.tenant, [id]) if is_uuid(id) else []
    memory = next((m for m in found if m.agent_id == agent_id and not expired(m, core.clock())), None)
    if memory is None or memory.status == "pending":
        raise cannot_be_brought_back(id, agent_id)
    if memory.merged_into is not None:
        said = f"memory {id} has become part of {memory.merged_into}; read that one"
        raise await part_of_another(core, who, id, memory.merged_into, said)
    if memory.status == "live":
        raise Conflict(f"memory {id} is there; only what was forgotten or archived can be brought back")
    if (recovery := memory.provenance.get(QUARANTINED)) is not None and who.role != "admin":
        raise Conflict(f"memory {id} was quarantined; `commonplace recover --undo {recovery}` takes that back", id=id)
    return memory


def cannot_be_brought_back(id: str, agent_id: str | None = None) -> NotFound:
    """The same sentence whatever the reason, which is nobody's business but its owner's."""
    whose, option = ("", "") if agent_id is None else (f" of agent {agent_id}", f" --agent {agent_id}")
    return NotFound(
        f"no memory {id:.300}{whose} can be brought back: it was erased, its time is over, or it never was",
        hint=f"`commonplace audit list --operation forget{option}` shows what was forgotten",
    )
