"""Reading single memories and pages of them: what may be read, by which id, and as of when. Changes nothing."""

from __future__ import annotations

from typing import TypedDict, Unpack

from commonplace.engine.checks import check_page_size, memory_not_found
from commonplace.engine.core import Core
from commonplace.engine.types import NumberedPage, Snapshot
from commonplace.stores.base import Page, Reach
from commonplace.wire.canonical import is_uuid, uuid_in
from commonplace.wire.errors import Conflict, NotFound
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import MAX_PAGE, SHARED_AGENT, Memory, Principal, Status
from commonplace.wire.short_ids import expand_id

READABLE: tuple[Status, ...] = ("live", "archived")


def readable(memory: Memory, now: int) -> bool:
    return memory.status in READABLE and not expired(memory, now)


def expired(memory: Memory, now: int) -> bool:
    return memory.expires_at is not None and memory.expires_at <= now


def tagged(tag: str) -> Condition:
    return Condition(("tags",), "contains", tag)


def with_shared(who: Principal, agents: tuple[str, ...]) -> tuple[str, ...]:
    """These agents and the shared space, if the caller may look there."""
    return agents if SHARED_AGENT in agents or not who.may_use(SHARED_AGENT) else (*agents, SHARED_AGENT)


async def instant(core: Core, who: Principal, as_of: int | None, snapshot: Snapshot | None = None) -> int | None:
    """The sequence number that is read at; None is now."""
    if snapshot is not None:
        return snapshot.seq
    return None if as_of is None else await core.primary.sequence(who.tenant, as_of)


# one memory


async def resolve(core: Core, who: Principal, agent_id: str, ref: str) -> Memory:
    """The readable memory an id or alias names, within one agent."""
    core.check_names(id=ref)
    ref = expand_id(ref)
    if is_uuid(ref):
        for memory in await core.primary.get(who.tenant, [ref]):
            if memory.agent_id == agent_id and readable(memory, core.clock()):
                return memory
    found = [m for m in await core.primary.find_alias(who.tenant, [agent_id], ref) if readable(m, core.clock())]
    if len(found) > 1:
        raise Conflict(f"{ref!r} names {len(found)} memories; use the id")
    if not found:
        raise memory_not_found(agent_id, ref)
    return found[0]


async def get(
    core: Core, who: Principal, agent_id: str, ref: str, *, as_of: int | None = None, snapshot: Snapshot | None = None
) -> Memory:
    core.require(who, agent_id, "reader")
    core.check_names(id=ref)
    at = await instant(core, who, as_of, snapshot)
    if at is None:
        return await resolve(core, who, agent_id, ref)
    ref = expand_id(ref)
    versions = await core.primary.history(who.tenant, ref) if is_uuid(ref) else []
    if not versions and (aliased := await core.primary.find_alias(who.tenant, [agent_id], ref)):
        versions = await core.primary.history(who.tenant, aliased[0].id)
    then = [v for v in versions if v.seq <= at]
    now = core.clock()
    if not then or then[-1].agent_id != agent_id or not readable(then[-1], now) or expired(versions[-1], now):
        raise memory_not_found(agent_id, ref)
    return then[-1]


async def history(core: Core, who: Principal, agent_id: str, ref: str) -> list[Memory]:
    core.require(who, agent_id, "reader")
    memory = await resolve(core, who, agent_id, ref)
    return await core.primary.history(who.tenant, memory.id)


async def find(core: Core, who: Principal, ref: str, agent: str | None = None) -> Memory:
    """The readable memory that a UUID, `anything_<uuid>` or an alias names: of one agent, else of all one may read."""
    if agent is not None:
        core.require(who, agent, "reader")
    found = await lookup(core, who, ref, agent)
    if found is None:
        raise record_not_found(ref)
    return found


def record_not_found(ref: str) -> NotFound:
    """The same sentence whether it never was, is forgotten, pending, withheld, or someone else's."""
    return NotFound(f"no record {ref:.300}")


async def part_of_another(core: Core, who: Principal, id: str, other: str, said: str) -> Conflict:
    """Why nothing can be done to a memory that has become part of another: `said` names the other, and is for whom a
    recall would show it. For everyone else one sentence, whatever the reason is."""
    there = [m for m in await core.primary.get(who.tenant, [other]) if who.may_use(m.agent_id)]
    if await core.policies.shown(who, there):
        return Conflict(said, id=other)
    return Conflict(
        f"memory {id:.300} has become part of another memory, which stands in the way of this; whoever may read all "
        "of the agent's memories is told which, and what to do"
    )


async def lookup(core: Core, who: Principal, ref: str, agent: str | None) -> Memory | None:
    core.check_names(id=ref, agent_id=agent)
    ref = expand_id(ref)
    # Before aliases, so that nobody can hide a memory behind an alias that spells its id.
    spelled = await find_by_uuid(core, who, ref)
    if spelled is not None and agent in (None, spelled.agent_id):
        return spelled
    agents = [agent] if agent is not None else await core.usable_agents(who)
    found = [m for m in await core.primary.find_alias(who.tenant, agents, ref) if readable(m, core.clock())]
    if not found and (named := uuid_in(ref)) and named != ref:
        # The id of one that has become part of another, as a protocol spells it.
        merged = await core.primary.find_alias(who.tenant, agents, named)
        found = [m for m in merged if readable(m, core.clock())]
    if len(found) > 1:
        shown = {m.id for m in await core.policies.shown(who, found)}  # what is withheld is as if it were not there
        found = [m for m in found if m.id in shown]
        if not found:
            raise record_not_found(ref)
    if len(found) > 1:
        holders = ", ".join(sorted(m.agent_id for m in found)[:5])
        raise Conflict(f"{ref:.300} names {len(found)} records, of the agents {holders}; say which agent's")
    return found[0] if found else None


async def find_by_uuid(core: Core, who: Principal, ref: str) -> Memory | None:
    named = uuid_in(ref)
    for memory in await core.primary.get(who.tenant, [named]) if named else ():
        if who.may_use(memory.agent_id) and readable(memory, core.clock()):
            return memory
    return None


# many


async def read_all(core: Core, reach: Reach) -> list[Memory]:
    """All in reach, oldest first."""
    found: list[Memory] = []
    cursor: str | None = None
    while True:
        page = await core.primary.scan(reach, limit=MAX_PAGE, cursor=cursor, newest_first=False)
        found += page.memories
        cursor = page.next_cursor
        if cursor is None:
            return found


class ListOptions(TypedDict, total=False):
    """How a listing is cut and ordered; the defaults are the newest hundred, archived ones too, as they are now."""

    limit: int
    cursor: str | None
    newest_first: bool
    archived: bool
    as_of: int | None
    snapshot: Snapshot | None


async def list_page(
    core: Core, who: Principal, agents: tuple[str, ...], where: Where = (), **options: Unpack[ListOptions]
) -> Page:
    for agent in agents:
        core.require(who, agent, "reader")
    limit = options.get("limit", 100)
    check_page_size(limit)
    statuses: tuple[Status, ...] = READABLE if options.get("archived", True) else ("live",)
    at = await instant(core, who, options.get("as_of"), options.get("snapshot"))
    reach = Reach(who.tenant, agents, where, statuses=statuses, now=core.clock(), as_of=at)
    newest_first = options.get("newest_first", True)
    return await core.primary.scan(reach, limit=limit, cursor=options.get("cursor"), newest_first=newest_first)


async def count(core: Core, who: Principal, agents: tuple[str, ...], where: Where = ()) -> int:
    """How many a listing of these would show."""
    for agent in agents:
        core.require(who, agent, "reader")
    return await count_shown(core, who, Reach(who.tenant, agents, where, statuses=READABLE, now=core.clock()))


async def count_shown(core: Core, who: Principal, reach: Reach) -> int:
    """How many in reach the caller may see: a number must not tell of what a rule withholds."""
    if not await core.policies.limit_reading(who):
        return await core.primary.count(reach)
    return len(await core.policies.shown(who, await read_all(core, reach)))


async def numbered_page(
    core: Core, who: Principal, agents: tuple[str, ...], where: Where, *, limit: int, offset: int, newest_first: bool
) -> NumberedPage:
    total = await count(core, who, agents, where)
    there = total  # pages are of all there is, and a rule may show less of one
    if await core.policies.limit_reading(who):
        there = await core.primary.count(Reach(who.tenant, agents, where, statuses=READABLE, now=core.clock()))
    cursor: str | None = None
    skip = offset
    while 0 < skip < there:
        step = min(skip, MAX_PAGE)
        skipped = await list_page(core, who, agents, where, limit=step, cursor=cursor, newest_first=newest_first)
        skip, cursor = skip - step, skipped.next_cursor
        if cursor is None:
            return NumberedPage([], total)
    if skip >= there:
        return NumberedPage([], total)
    found = await list_page(core, who, agents, where, limit=limit, cursor=cursor, newest_first=newest_first)
    return NumberedPage(found.memories, total)
