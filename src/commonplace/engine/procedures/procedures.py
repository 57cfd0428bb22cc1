"""Procedures as memories: where one stands, moving it on, and drawing it.

To fire is to update: the new state is the next version, with an update's rights, audit, approval and conflicts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from commonplace.engine.core import Core
from commonplace.engine.memory.read import find, record_not_found
from commonplace.engine.procedures import drawing, machine, runner
from commonplace.engine.procedures.machine import StateMachine
from commonplace.engine.types import Fire, Update, UpdateResult
from commonplace.wire.errors import Conflict, Forbidden, Unavailable, ValidationError
from commonplace.wire.record import Memory, Principal

_RETRIES = 32


@dataclass(slots=True, frozen=True)
class ProcedureResult:
    """A procedure as it is now; while a change waits `review_id` names its review."""

    memory: Memory
    machine: StateMachine
    review_id: str | None = None


class Procedures:
    def __init__(self, core: Core, update: Callable[[Principal, Update], Awaitable[UpdateResult]]) -> None:
        self._core = core
        self._update = update
        #: Fires of one procedure wait for each other here; those of other processes are told apart by the version.
        self._firing: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def show(self, who: Principal, ref: str, agent: str | None = None) -> ProcedureResult:
        memory = (await self._shown(who, ref, agent))[1]
        return ProcedureResult(memory, _machine(memory))

    async def draw(self, who: Principal, ref: str, agent: str | None = None, format: str = "svg") -> str:
        found = (await self.show(who, ref, agent)).machine
        return await asyncio.to_thread(drawing.draw, found, format)  # thousands of arrows take a while

    async def fire(self, who: Principal, fire: Fire) -> ProcedureResult:
        """Move it by a trigger. Where nothing can move, a fault says why and nothing has changed."""
        return await self._move(who, fire, lambda found: runner.fire(found, fire.trigger, fire.facts))

    async def reset(self, who: Principal, fire: Fire) -> ProcedureResult:
        """Back to where it starts, wherever it stands; the trigger of the request means nothing."""
        return await self._move(who, fire, lambda found: found.initial)

    async def _shown(self, who: Principal, ref: str, agent: str | None) -> tuple[Memory, Memory]:
        """As it is, and as the caller may see it."""
        memory = await find(self._core, who, ref, agent)
        seen = await self._core.policies.shown(who, [memory])
        if not seen:
            raise record_not_found(ref)
        return memory, seen[0]

    async def _move(self, who: Principal, fire: Fire, next_state: Callable[[StateMachine], str]) -> ProcedureResult:
        named, seen = await self._shown(who, fire.id, fire.agent_id)
        if seen.content != named.content:
            raise Forbidden("a rule hides a part of this procedure from you, so it cannot be moved by you")
        lock = self._firing.setdefault((who.tenant, named.id), asyncio.Lock())
        async with lock:
            for _ in range(_RETRIES):
                memory = await find(self._core, who, named.id, named.agent_id)
                if fire.expected_version not in (None, memory.version):
                    raise Conflict(
                        f"procedure {fire.id:.300} is at version {memory.version}, not {fire.expected_version}; read "
                        "it again and retry",
                        version=memory.version,
                    )
                found = _machine(memory)
                moved = replace(found, current=next_state(found))
                update = Update(
                    memory.agent_id,
                    memory.id,
                    content=found.at(moved.current),
                    expected_version=memory.version,
                    approval_required=fire.approval_required,
                    reasoning=fire.reasoning,
                )
                try:
                    result = await self._update(who, update)
                except Conflict as fault:
                    if "version" in fault.details:  # someone else moved it: what the trigger means now may differ
                        continue
                    raise
                # Known without reading the answer, of which a policy may hide the words.
                return ProcedureResult(result.memory, found if result.review_id else moved, result.review_id)
        raise Unavailable("the procedure kept changing while this was being done; try again")


def _machine(memory: Memory) -> StateMachine:
    if memory.type != "procedural":
        raise ValidationError(f"memory {memory.id} is {memory.type}, not a procedure", field="id")
    found = machine.parse(memory.content)
    if found is None:
        raise ValidationError(
            f"memory {memory.id} is a how-to in words; only a state machine can be run or drawn", field="id"
        )
    return found
