"""Handles that stand for an agent's memory, issued by us and good in one tenant only."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass

from commonplace.engine.core import Core
from commonplace.stores.base import Record, Transaction
from commonplace.wire.errors import Forbidden, ValidationError
from commonplace.wire.filters import Condition, Where, matches
from commonplace.wire.plain import check_field
from commonplace.wire.record import Memory, Principal, Role

PREFIX = "mem_"
REF = "memory_ref"
_NAME_CHARS = 256
_ISSUED = re.compile(r"mem_[0-9a-f]{32}\Z")
#: One sentence for a handle that never was, one of another tenant, and one of an agent that is not the caller's.
REFUSED = "this memoryRef is not one you may use; `POST /openwop/refs` issues one for an agent of yours"


@dataclass(slots=True, frozen=True)
class MemoryScope:
    """What a handle resolves to, within the tenant of whoever asks. Without a namespace: every project."""

    agent: str
    namespace: str | None = None

    @property
    def where(self) -> Where:
        return () if self.namespace is None else (Condition(("project",), "eq", self.namespace),)

    def covers(self, memory: Memory) -> bool:
        """Whether a memory belongs to what the handle stands for: live, and of its project."""
        return memory.agent_id == self.agent and memory.status == "live" and matches(memory, self.where)


class Refs:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def issue(self, who: Principal, agent: str, namespace: str | None = None) -> str:
        """The handle of this agent and namespace: always the same one."""
        self._core.check_names(agent=agent, namespace=namespace)
        self._core.require(who, agent, "reader")
        named = json.dumps([agent, namespace], ensure_ascii=False)

        def work(tx: Transaction) -> str:
            if (earlier := tx.record(REF, named)) is not None:
                return str(earlier.value["ref"])
            ref = PREFIX + secrets.token_hex(16)
            tx.put_record(Record(REF, named, {"ref": ref}))
            tx.put_record(Record(_kind(ref), "", {"agent": agent, "namespace": namespace}))
            return ref

        return await self._core.transact(who.tenant, work)

    async def resolve(self, who: Principal, ref: str, role: Role = "reader") -> MemoryScope:
        """Whose memory a handle means; a text that is none names an agent of the caller's own tenant."""
        if not 1 <= len(ref) <= _NAME_CHARS:
            raise ValidationError(f"memoryRef must be text of 1 to {_NAME_CHARS} characters", field="memoryRef")
        check_field(ref, "memoryRef")
        self._core.check_names(memoryRef=ref)
        if not ref.startswith(PREFIX):
            self._core.require(who, ref, role)
            return MemoryScope(ref)
        # Looked up in the caller's tenant alone, so one of another tenant is as unknown as one that never was.
        found = await self._core.primary.record(who.tenant, _kind(ref), "") if _ISSUED.match(ref) else None
        if found is None or not who.may_use(found.value["agent"]):
            raise Forbidden(REFUSED)
        scope = MemoryScope(found.value["agent"], found.value["namespace"])
        self._core.require(who, scope.agent, role)
        return scope


def _kind(ref: str) -> str:
    """Each handle has a kind of its own, with one record under the empty key."""
    return f"{REF}:{ref}"
