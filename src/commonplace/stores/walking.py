"""Following ties from memory to memory, and statements from thing to thing, without ever looking at everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from commonplace.stores.graph import Triple, folded, references, subject_of
from commonplace.wire.record import Memory

#: Of one node's ties so many are followed, the newest first; of statements about one thing, on a path, so many.
FANOUT = 32
PATH_FANOUT = 256
#: So many nodes are looked at in one walk beside those it starts from, and so many on the way along a path.
WALK_NODES = 512
PATH_NODES = 4096

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
    if not most:
        return _nearest(known, sources, hops)
    return {source: _reached(known, source, hops, most) for source in sources}


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
        back: dict[str, list[str]] = {}
        for id in sources:
            tied, thing = self._of[id]
            if thing is not None:
                self._together.setdefault(thing, []).append(id)
            for other in self.sources.intersection(tied):
                back.setdefault(other, []).append(id)
        for id, others in back.items():
            tied, thing = self._of[id]
            self._of[id] = list(dict.fromkeys([*tied, *others])), thing
        self._joined: dict[Thing, list[Thing]] = {}
        for thing in self._together:
            self._beside[thing] = ties.beside(thing)
            for hub in self._beside[thing]:
                self._joined.setdefault(hub, []).append(thing)
        for thing, beside in self._beside.items():
            beside += [other for other in self._joined.get(thing, ()) if other not in beside]

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


#: Where a source's search has come to: a memory, the thing that a memory it came to is about, or a thing that
#: statements led to.
_Node = tuple[str, Any]


class _Meetings:
    """Who came where, of each place only the first two, and how near each source is to another it met there.

    Two are enough: whoever comes later is no farther from one of them than from anything that lies beyond.
    """

    def __init__(self) -> None:
        self._came: dict[_Node, dict[str, int]] = {}
        self.found: dict[str, tuple[int, str]] = {}

    def arrive(self, node: _Node, source: str, at: int) -> bool:
        """Whether it is worth going on from there."""
        kind, key = node
        here = self._came.setdefault(node, {})
        self._meet(source, at + (kind == "within"), here)  # what shares a thing is a step apart
        if kind != "memory":
            self._meet(source, at, self._came.get(("beyond" if kind == "within" else "within", key), {}))
        if source in here or len(here) == 2:
            return False
        here[source] = at
        return True

    def _meet(self, source: str, at: int, others: dict[str, int]) -> None:
        for other, their in others.items():
            if other != source:
                for one, its in ((source, other), (other, source)):
                    self.found[one] = min(self.found.get(one, (at + their, its)), (at + their, its))


def _nearest(known: _Known, sources: Sequence[str], hops: int) -> dict[str, dict[str, int]]:
    """As `_reached`, from all sources at once: searching from each would name every pair of them."""
    met = _Meetings()
    now: list[tuple[_Node, str]] = [(("memory", id), id) for id in sources if met.arrive(("memory", id), id, 0)]

    def go(kind: str, keys: Iterable[Any], source: str, at: int, into: list[tuple[_Node, str]]) -> None:
        into += [((kind, key), source) for key in keys if met.arrive((kind, key), source, at)]

    for level in range(hops + 1):
        later: list[tuple[_Node, str]] = []
        for (kind, key), source in now:  # which grows: these places are no step further, so they come first
            if kind == "beyond":
                go("memory", known.about(key), source, level, now)
            elif kind == "memory" and level < hops and (own := known.of(key)[1]) is not None:
                go("within", [own], source, level, now)
        for (kind, key), source in now if level < hops else ():
            if kind == "memory":
                go("memory", known.of(key)[0], source, level + 1, later)
                continue
            if kind == "within":
                go("memory", known.about(key), source, level + 1, later)
            go("beyond", known.beside(key), source, level + 1, later)
        now = later
    near = {id: met.found.get(id, (hops + 1, "")) for id in sources}
    return {id: {other: distance} if distance <= hops else {} for id, (distance, other) in near.items()}


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
        left = PATH_NODES - len(came[0]) - len(came[1])
        if not frontiers[side] or left <= 0:
            return []
        frontiers[side] = _further(statements, frontiers[side], came[side], left)
        met = [name for name in frontiers[side] if name in came[1 - side]]
        if met:
            ways = [_led(came[0], name)[::-1] + _led(came[1], name) for name in met]
            return min(ways, key=len)
    return []


def _further(statements: Statements, frontier: Sequence[str], came: _Came, left: int) -> list[str]:
    later: list[str] = []
    for name in frontier:
        if len(later) >= left:
            break
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
