"""What a caller may carry away: exactly what that caller can read, with its history.

What is forgotten, erased, expired, merged away, withheld by a rule or waiting for a reviewer is not readable, and so
never in an export.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from commonplace.engine.checks import require_role
from commonplace.engine.core import Core
from commonplace.engine.graph.statements import ASSERT
from commonplace.engine.ledger import audit
from commonplace.engine.memory.read import READABLE, count_shown
from commonplace.engine.palaces.palaces import Palace, Palaces
from commonplace.engine.transfer.originals import as_original
from commonplace.stores.base import Primary, Reach
from commonplace.stores.graph import Triple
from commonplace.wire.errors import NotFound
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import Memory, Principal

IMPORT = "import"
_PAGE = 200


class Exports:
    def __init__(self, core: Core, palaces: Palaces) -> None:
        self._core = core
        self._palaces = palaces

    async def agents(self, who: Principal, agent: str | None = None) -> list[str]:
        """Whose memories there are to carry away: the one that is named, else all that the caller may use."""
        if agent is not None:
            self._core.require(who, agent, "reader")
        else:
            require_role(who, "reader")
        found = {*await self._core.usable_agents(who), *await self._palaces.names(who)}
        found |= {name for name in await stating_agents(self._core.primary, who.tenant) if who.may_use(name)}
        if agent is not None and agent not in found:
            named = ", ".join(self._shown(found)[:10]) or "none at all"
            raise NotFound(f"there is nothing of agent {agent!r} to export; there are {named}")
        return [agent] if agent is not None else self._shown(found)

    def _shown(self, names: Iterable[str]) -> list[str]:
        return sorted(name for name in names if self._core.redactor.is_name(name))

    async def count_left_out(self, who: Principal) -> int:
        """How many more the caller may use whose names hold a secret, which no list of agents shows."""
        require_role(who, "reader")
        found = {*await self._core.primary.agent_names(who.tenant), *await self._palaces.names(who)}
        found |= await stating_agents(self._core.primary, who.tenant)
        return sum(who.may_use(name) and not self._core.redactor.is_name(name) for name in found)

    async def count(self, who: Principal, agent: str, user: str | None = None) -> int:
        self._core.require(who, agent, "reader")
        return await count_shown(self._core, who, self._reach(who, agent, user))

    async def memories(self, who: Principal, agent: str, user: str | None = None) -> AsyncIterator[list[Memory]]:
        """Each memory as its versions, oldest first; memories in order of (created_at, id). All as they were at one
        instant: of a merge meanwhile, half would be the old state of the one and half the new state of the other, and
        the text of neither be there. What was forgotten since is left out all the same."""
        self._core.require(who, agent, "reader")
        began = await self._core.primary.sequence(who.tenant)
        reach, cursor = replace(self._reach(who, agent, user), as_of=began), None
        while True:
            page = await self._core.primary.scan(reach, limit=_PAGE, cursor=cursor, newest_first=False)
            there = {m.id for m in await self._core.primary.get(who.tenant, [m.id for m in page.memories]) if _stays(m)}
            shown = await self._core.policies.shown_versions(who, page.memories)
            for memory in (each for each in shown if each.id in there):
                seen = [memory] if memory.version == 1 else await self._versions(who, memory.id, began)
                if seen:  # it may have been erased this moment
                    yield [as_original(version) for version in seen]
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _versions(self, who: Principal, id: str, until: int) -> list[Memory]:
        history = [version for version in await self._core.primary.history(who.tenant, id) if version.seq <= until]
        return await self._core.policies.shown_versions(who, history)

    async def statements(self, who: Principal, agent: str) -> list[Triple]:
        """Those of all times, in the order they begin."""
        self._core.require(who, agent, "reader")
        found = await self._core.primary.triples(who.tenant, agent)
        return sorted(await self._core.policies.shown_triples(who, found), key=lambda t: (t.valid_from, t.id))

    async def palace(self, who: Principal, agent: str) -> Palace | None:
        """What was said of the agent as a palace, if anything was."""
        found = await self._palaces.find(who, agent)
        return found if found is not None and (found.description or found.identity) else None

    def _reach(self, who: Principal, agent: str, user: str | None) -> Reach:
        where: Where = () if user is None else (Condition(("user_id",), "eq", user),)
        return Reach(who.tenant, (agent,), where, statuses=READABLE, now=self._core.clock())


def _stays(now: Memory) -> bool:
    """Whether what was readable when an export began is still carried away: merged away since, its text is elsewhere
    by now, and as it was then only here."""
    return now.status in READABLE or now.merged_into is not None


async def stating_agents(store: Primary, tenant: str) -> set[str]:
    """Agents of whom something is stated: one without any memory is in no list of agents."""
    return await audit.agents_in(store, tenant, (ASSERT, IMPORT))
