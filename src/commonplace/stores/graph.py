"""The graph beside the memories: statements about things, and what ties one memory to another.

A statement (a triple) holds during an interval; those of one subject and predicate never overlap. Memories are tied
by what they refer to or replace, by the thing they are about, and by statements that join two such things.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from commonplace.wire.record import Memory

if TYPE_CHECKING:
    from commonplace.stores.base import Reach

#: Of one node's ties so many are followed, the newest first; of statements about one thing, on a path, so many.
FANOUT = 32
PATH_FANOUT = 256
#: So many nodes are looked at in one walk beside those it starts from, and so many on the way along a path.
WALK_NODES = 512
PATH_NODES = 4096
#: So many of what a memory refers to are tied to it; a longer name than this names nothing.
REFERENCES = 64
LONGEST_NAME = 1024


@dataclass(slots=True, frozen=True)
class Triple:
    """One statement: it holds from `valid_from` until before `valid_to`; None is until further notice."""

    id: str
    agent_id: str
    subject: str
    predicate: str
    object: str
    valid_from: int
    valid_to: int | None = None
    confidence: float = 1.0
    provenance: str | None = None
    asserted_by: str = ""
    memory_id: str | None = None  # the memory that `provenance` names: erasing that one erases this

    def holds(self, at: int) -> bool:
        return self.valid_from <= at and (self.valid_to is None or at < self.valid_to)

    @property
    def empty(self) -> bool:
        """Whether it holds at no instant: it was replaced in the millisecond it began, or before."""
        return self.valid_to is not None and self.valid_to <= self.valid_from


@dataclass(slots=True, frozen=True)
class At:
    """An instant in ms: a given one, or the present, which is never before the tenant's last commit."""

    ms: int
    given: bool = False

    def settled(self, last_commit: int) -> int:
        return self.ms if self.given else max(self.ms, last_commit)


class GraphWork(Protocol):
    """What a unit of work may do to statements."""

    def triple(self, id: str) -> Triple | None: ...

    def triple_at(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        """The one that holds then."""

    def triple_after(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        """The first that begins later and is not empty."""

    def triples_of(self, agent_id: str, subject: str, mentions: bool = False) -> list[Triple]:
        """Every version about a subject, oldest first; with `mentions` also those that have it as their object."""

    def triples_from(self, memory_id: str) -> list[Triple]:
        """Those that name this memory as where they come from."""

    def put_triple(self, triple: Triple) -> None:
        """Keep it, in place of the one with its id."""

    def erase_triple(self, id: str) -> None:
        """Remove it and its audit payloads."""


class GraphReads(Protocol):
    """What can be asked of a primary about its statements and ties."""

    async def triples(
        self, tenant: str, agent_id: str, *, subject: str | None = None, predicate: str | None = None,
        at: At | None = None, limit: int | None = None,
    ) -> list[Triple]:  # fmt: skip
        """In the order they begin: all of them, or those that hold then."""

    async def triple_counts(self, tenant: str, agent_id: str, at: At) -> tuple[int, int, int]:
        """How many there are, how many hold then, and about how many subjects those are."""

    async def path(self, tenant: str, agent_id: str, start: str, end: str, max_hops: int, at: At) -> list[Triple]:
        """The fewest statements that lead from one thing to another, in either direction of each."""

    async def linked(self, reach: Reach, ids: Sequence[str], hops: int, at: At, most: int) -> dict[str, dict[str, int]]:
        """For each of these memories the distance of the `most` nearest that are tied to it, nearest first, and of
        others of `ids` met on the way; when `most` is 0 that of every other one of `ids` within `hops`, and no more.
        Only memories in reach are named or walked through."""


def folded(name: str) -> str:
    """How names of things are compared when the graph is walked."""
    return name.strip().casefold()


def references(memory: Memory) -> list[str]:
    """The ids and aliases of what a memory refers to or replaces."""
    given = memory.metadata.get("references", ())
    named = [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else ()
    both = [*memory.supersedes, *(name for name in named if isinstance(name, str))]
    return [name for name in dict.fromkeys(both) if 0 < len(name) <= LONGEST_NAME][:REFERENCES]


def subject_of(entity_name: str | None) -> str:
    """The name of what a memory is about, as it is compared; "" when it is about nothing."""
    return folded(entity_name) if entity_name and len(entity_name) <= LONGEST_NAME else ""


# walking

#: A thing, within one agent: the same name means another thing to another agent.
Thing = tuple[object, str]


class Ties(Protocol):
    """One step from a node; each answer at most FANOUT long, newest first."""

    def of(self, id: str) -> tuple[list[str], Thing | None]:
        """The memories this one refers to, replaces, or is referred to or replaced by; and what it is about."""

    def about(self, thing: Thing) -> list[str]: ...

    def beside(self, thing: Thing) -> list[Thing]:
        """The things that statements join to it."""


def walk(ties: Ties, sources: Sequence[str], hops: int, most: int) -> dict[str, dict[str, int]]:
    """What `linked` answers. Sources know each other whatever was cut for being too many."""
    # Among the sources alone, two steps never lead through a memory that is only about the same thing: from one end
    # or the other it is referred to. So what else is about a thing, the costly question, need not be asked.
    known = _Known(ties, sources, among=not most and hops < 3)
    found = {source: _reached(known, source, hops, most) for source in sources}
    if not most:
        for source, near in found.items():
            for other, distance in near.items():
                found[other][source] = min(distance, found[other].get(source, hops))
    return found


class _Known:
    """Each node is looked at once, and all of them together not too often."""

    def __init__(self, ties: Ties, sources: Sequence[str], among: bool) -> None:
        self._ties = ties
        self._among = among  # of what is about a thing only the sources count
        self._of: dict[str, tuple[list[str], Thing | None]] = {id: ties.of(id) for id in sources}
        self._about: dict[Thing, list[str]] = {}
        self._beside: dict[Thing, list[Thing]] = {}
        self._left = WALK_NODES
        self.sources = frozenset(sources)
        self._together: dict[Thing, list[str]] = {}
        for id in sources:
            tied, thing = self._of[id]
            if thing is not None:
                self._together.setdefault(thing, []).append(id)
            for other in tied:
                if other in self.sources and id not in self._of[other][0]:
                    self._of[other][0].append(id)
        self._joined: dict[Thing, list[Thing]] = {}
        for thing in self._together:
            self._beside[thing] = ties.beside(thing)
            for hub in self._beside[thing]:
                self._joined.setdefault(hub, []).append(thing)
        for thing, others in self._beside.items():
            others += [other for other in self._joined.get(thing, ()) if other not in others]

    def of(self, id: str) -> tuple[list[str], Thing | None]:
        if id not in self._of:
            self._of[id] = self._ties.of(id) if self._spend() else ([], None)
        return self._of[id]

    def about(self, thing: Thing) -> list[str]:
        if thing not in self._about:
            found = self._ties.about(thing) if not self._among and self._spend() else []
            self._about[thing] = list(dict.fromkeys([*found, *self._together.get(thing, ())]))
        return self._about[thing]

    def beside(self, thing: Thing) -> list[Thing]:
        if thing not in self._beside:
            found = self._ties.beside(thing) if self._spend() else []
            self._beside[thing] = list(dict.fromkeys([*found, *self._joined.get(thing, ())]))
        return self._beside[thing]

    def _spend(self) -> bool:
        self._left -= 1
        return self._left >= 0


def _reached(known: _Known, source: str, hops: int, most: int) -> dict[str, int]:
    """Breadth first. Memories about a thing that a statement leads to are as far away as the thing itself; those
    that share a memory's own thing are one step from that memory."""
    distances = {source: 0}
    places: dict[Thing, int] = {}
    memories, things = [source], list[Thing]()

    def arrive(ids: Iterable[str], at: int, into: list[str]) -> None:
        for id in ids:
            if id not in distances:
                distances[id] = at
                into.append(id)

    def lead_on(thing: Thing, to: int, into: list[Thing]) -> None:
        for other in known.beside(thing):
            if places.get(other, to + 1) > to:
                places[other] = to
                into.append(other)

    for level in range(hops + 1):
        here = [thing for thing in things if places[thing] == level]
        for thing in here:
            arrive(known.about(thing), level, memories)
        if level == hops or 0 < most < len(distances):  # what lies beyond is farther away
            break
        later, later_things = list[str](), list[Thing]()
        for thing in here:
            lead_on(thing, level + 1, later_things)
        for id in memories:
            tied, own = known.of(id)
            arrive(tied, level + 1, later)
            if own is not None and places.get(own, level + 1) > level:
                places[own] = level
                arrive(known.about(own), level + 1, later)
                lead_on(own, level + 1, later_things)
        memories, things = later, later_things
    del distances[source]
    wanted = known.sources.union(list(distances)[:most])
    return {id: distance for id, distance in distances.items() if id in wanted}


class Statements(Protocol):
    def touching(self, name: str) -> list[Triple]:
        """Those that hold with this (folded) name as subject or object, at most PATH_FANOUT, newest first."""


#: How each name was reached: from which, by which statement; None where the search began.
_Came = dict[str, tuple[str, Triple] | None]


def shortest(statements: Statements, start: str, end: str, max_hops: int) -> list[Triple]:
    """What `path` answers. Searched from both ends in turn, so that a hub is met from its sides, not gone through."""
    ends = folded(start), folded(end)
    came: tuple[_Came, _Came] = {ends[0]: None}, {ends[1]: None}
    frontiers = [[ends[0]], [ends[1]]]
    if ends[0] == ends[1]:
        return []
    for step in range(max_hops):
        side = step % 2 if frontiers[step % 2] else 1 - step % 2
        if not frontiers[side] or len(came[0]) + len(came[1]) > PATH_NODES:
            return []
        frontiers[side] = _further(statements, frontiers[side], came[side])
        met = [name for name in frontiers[side] if name in came[1 - side]]
        if met:
            ways = [_led(came[0], name)[::-1] + _led(came[1], name) for name in met]
            return min(ways, key=len)
    return []


def _further(statements: Statements, frontier: Sequence[str], came: _Came) -> list[str]:
    later = []
    for name in frontier:
        for triple in statements.touching(name):
            for other in (folded(triple.object), folded(triple.subject)):
                if other not in came:
                    came[other] = (name, triple)
                    later.append(other)
    return later


def _led(came: _Came, name: str) -> list[Triple]:
    """The statements from a name back to where the search began."""
    path = []
    step = came[name]
    while step is not None:
        path.append(step[1])
        step = came[step[0]]
    return path


class Recorded:
    """Ties and statements worked out from rows at hand: for a store without indexes, and for the past."""

    def __init__(self, memories: Sequence[Memory], triples: Sequence[Triple]) -> None:
        """Memories oldest first; triples that hold at the instant in question, in the order they begin."""
        self._by_id = {m.id: m for m in memories}
        names = {(m.agent_id, alias): m.id for m in memories for alias in m.aliases}
        names |= {(m.agent_id, m.id): m.id for m in memories}
        self._out: dict[str, list[str]] = {}
        self._in: dict[str, list[str]] = {}
        self._members: dict[Thing, list[str]] = {}
        self._joined: dict[Thing, list[Thing]] = {}
        self._touching: dict[str, list[Triple]] = {}
        for m in reversed(memories):
            if name := subject_of(m.entity_name):
                self._members.setdefault((m.agent_id, name), []).append(m.id)
            for target in filter(None, (names.get((m.agent_id, ref)) for ref in references(m))):
                self._out.setdefault(m.id, []).append(target)
                self._in.setdefault(target, []).append(m.id)
        for t in reversed(triples):
            ends = (t.agent_id, folded(t.subject)), (t.agent_id, folded(t.object))
            for one, other in (ends, ends[::-1]):
                self._joined.setdefault(one, []).append(other)
            for name in {ends[0][1], ends[1][1]}:
                self._touching.setdefault(name, []).append(t)

    def of(self, id: str) -> tuple[list[str], Thing | None]:
        memory = self._by_id.get(id)
        if memory is None:
            return [], None
        tied = [*self._out.get(id, ())[:FANOUT], *self._in.get(id, ())[:FANOUT]]
        name = subject_of(memory.entity_name)
        return [other for other in dict.fromkeys(tied) if other != id], (memory.agent_id, name) if name else None

    def about(self, thing: Thing) -> list[str]:
        return self._members.get(thing, [])[:FANOUT]

    def beside(self, thing: Thing) -> list[Thing]:
        return list(dict.fromkeys(self._joined.get(thing, ())))[:FANOUT]

    def touching(self, name: str) -> list[Triple]:
        return self._touching.get(name, [])[:PATH_FANOUT]
