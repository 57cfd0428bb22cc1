"""Undo: what was forgotten, archived, demoted or merged is as it was before, as the next version of it.

Asked twice it changes nothing the second time, so that whoever lost the answer may ask again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from commonplace.engine.checks import require_role
from commonplace.engine.core import Core, StaleRead
from commonplace.engine.memory.read import expired
from commonplace.engine.memory.undelete import cannot_be_brought_back, mark_restored, undelete
from commonplace.engine.memory.unmerge import unmerge
from commonplace.engine.memory.write import write
from commonplace.stores.base import Transaction
from commonplace.wire.canonical import uuid_in
from commonplace.wire.errors import Conflict, Fault, ValidationError
from commonplace.wire.record import Memory, Principal
from commonplace.wire.short_ids import expand_id

MAX_UNDONE = 1000  # memories of one request


@dataclass(slots=True)
class UndoResult:
    restored: list[str] = field(default_factory=list)  # live again, or at full rank again
    unchanged: list[str] = field(default_factory=list)  # those that are so already
    faults: dict[str, Fault] = field(default_factory=dict)  # why not, by the id that was given

    def settle(self) -> UndoResult:
        """Each id once; raises where there is nothing but faults."""
        self.restored = list(dict.fromkeys(self.restored))
        self.unchanged = [id for id in dict.fromkeys(self.unchanged) if id not in self.restored]
        if self.faults and not self.restored and not self.unchanged:
            raise next(iter(self.faults.values()))
        return self


async def undo(
    core: Core, who: Principal, ids: Sequence[str], agent_id: str | None = None, reason: str | None = None
) -> UndoResult:
    """Each its own outcome; raises where there is nothing but faults."""
    if agent_id is not None:
        core.require(who, agent_id, "writer")
    require_role(who, "writer")
    core.check_names(ids=ids)
    if not 1 <= len(ids) <= MAX_UNDONE:
        raise ValidationError(f"ids must name 1 to {MAX_UNDONE} memories, not {len(ids)}", field="ids")
    why = None if reason is None else await core.redact_async(reason, "reason")
    result = UndoResult()
    for id in dict.fromkeys(ids):
        await undo_one(core, who, id, result, agent_id=agent_id, reason=why)
    return result.settle()


async def undo_one(
    core: Core, who: Principal, id: str, result: UndoResult, *, agent_id: str | None = None, reason: str | None = None,
    version: int | None = None,
) -> None:  # fmt: skip
    """Into the result. Given the `version` that was left by what is to be undone, only that is: what was done to the
    memory later is another's."""
    try:
        memory = await _find(core, who, id, agent_id)
        if memory.status == "live" and memory.merged_into is None and memory.demotion == 1.0:
            result.unchanged.append(memory.id)
        elif version is not None and memory.version != version:
            raise Conflict(f"memory {id} was changed since; undo it by its own id if you mean that, too", id=id)
        elif memory.merged_into is not None:
            back = [each.id for each in await unmerge(core, who, memory.agent_id, memory.id, reason)]
            # Others come back with it, and what a rule withholds is not named to a caller who did not name it.
            withheld = await core.policies.withheld(who, back)
            result.restored += [each for each in back if each == memory.id or each not in withheld]
        elif memory.status != "live":
            result.restored.append((await undelete(core, who, memory.agent_id, memory.id, reason, ranked=True)).id)
        else:
            result.restored.append((await _restore_rank(core, who, memory.id, reason)).id)
    except Fault as fault:
        result.faults[id] = fault


async def _find(core: Core, who: Principal, id: str, agent_id: str | None) -> Memory:
    """Whatever became of it, if it is the caller's and still there."""
    named = uuid_in(expand_id(id))
    for memory in await core.primary.get(who.tenant, [named]) if named else ():
        mine = memory.agent_id == agent_id if agent_id is not None else who.may_use(memory.agent_id)
        if mine and memory.status != "pending" and not expired(memory, core.clock()):
            return memory
    raise cannot_be_brought_back(id)


async def _restore_rank(core: Core, who: Principal, id: str, reason: str | None) -> Memory:
    """As a version, though a demotion makes none: what demotes by itself sees from it that someone took it back."""

    async def attempt() -> Memory:
        demoted = next(iter(await core.primary.get(who.tenant, [id])), None)
        if demoted is None:
            raise cannot_be_brought_back(id)
        back = mark_restored(demoted, core.clock())
        back = await core.policies.admit_memory(who, "update", back, before=demoted)
        (entry,) = await core.make_entries([replace(back, demotion=1.0)])

        def work(tx: Transaction) -> Memory:
            now = tx.get(id)
            if now is None or now.version != demoted.version:
                raise StaleRead
            return write(tx, who, entry, "undo", **({} if reason is None else {"reason": reason}))

        return await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)
