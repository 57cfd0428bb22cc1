"""Traversing the graph: from memory to memory, and from entity to entity, without ever looking at all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from commonplace.stores.graph import Triple, entity_key, name_key, references
from commonplace.wire.record import Memory

#: Of one node's links so many are followed, the newest first; of statements about one entity, on a path, so many.
FANOUT = 32
PATH_FANOUT = 256
#: So many nodes are looked at in one traversal beside those it starts from, and so many on the way along a path.
WALK_NODES = 512
PATH_NODES = 4096

#: An entity, within one agent: the same name means another entity to another agent.
Entity = tuple[object, str]


class Links(Protocol):
    """One step from a node; each answer at most FANOUT long, newest first."""

    def of(self, id: str) -> tuple[list[str], Entity | None]:
        """The memories this one refers to, replaces, or is referred to or replaced by; and what it is about."""

    def about(self, entity: Entity) -> list[str]:
        """The memories about it."""

    def related(self, entity: Entity) -> list[Entity]:
        """The entities that statements join to it."""


def linked_memories(links: Links, sources: Sequence[str], hops: int, most: int) -> dict[str, dict[str, int]]:
    """What `linked` answers. Sources know each other whatever was cut for being too many."""
    # Among the sources alone, two steps never lead through a memory that is only about the same entity: from one end
    # or the other it is referred to. So what else is about an entity, the costly question, need not be asked.
    cache = _CachedLinks(links, sources, among_sources=not most and hops < 3)
    if not most:
        return _nearest_sources(cache, sources, hops)
    return {source: _within_hops(cache, source, hops, most) for source in sources}


class _CachedLinks:
    """Each node is looked at once, and all of them together not too often."""

    def __init__(self, links: Links, sources: Sequence[str], among_sources: bool) -> None:
        self._links = links
        self._among_sources = among_sources  # of what is about an entity only the sources count
        self._of: dict[str, tuple[list[str], Entity | None]] = {id: links.of(id) for id in sources}
        self._about: dict[Entity, list[str]] = {}
        self._related: dict[Entity, list[Entity]] = {}
        self._left = WALK_NODES
        self.sources = frozenset(sources)
        self._sources_about: dict[Entity, list[str]] = {}
        back: dict[str, list[str]] = {}
        for id in sources:
            linked, entity = self._of[id]
            if entity is not None:
                self._sources_about.setdefault(entity, []).append(id)
            for other in self.sources.intersection(linked):
                back.setdefault(other, []).append(id)
        for id, others in back.items():
            linked, entity = self._of[id]
            self._of[id] = list(dict.fromkeys([*linked, *others])), entity
        self._joined: dict[Entity, list[Entity]] = {}
        for entity in self._sources_about:
            self._related[entity] = links.related(entity)
            for hub in self._related[entity]:
                self._joined.setdefault(hub, []).append(entity)
        for entity, related in self._related.items():
            related += [other for other in self._joined.get(entity, ()) if other not in related]

    def of(self, id: str) -> tuple[list[str], Entity | None]:
        if id not in self._of:
            self._of[id] = self._links.of(id) if self._spend() else ([], None)
        return self._of[id]

    def about(self, entity: Entity) -> list[str]:
        if entity not in self._about:
            found = self._links.about(entity) if not self._among_sources and self._spend() else []
            self._about[entity] = list(dict.fromkeys([*found, *self._sources_about.get(entity, ())]))
        return self._about[entity]

    def related(self, entity: Entity) -> list[Entity]:
        if entity not in self._related:
            found = self._links.related(entity) if self._spend() else []
            self._related[entity] = list(dict.fromkeys([*found, *self._joined.get(entity, ())]))
        return self._related[entity]

    def _spend(self) -> bool:
        self._left -= 1
        return self._left >= 0


def _within_hops(cache: _CachedLinks, source: str, hops: int, most: int) -> dict[str, int]:
    """Breadth first. Memories about an entity that a statement leads to are as far away as the entity itself; those
    that share a memory's own entity are one step from that memory."""
    distances = {source: 0}
    entity_distances: dict[Entity, int] = {}
    memories, entities = [source], list[Entity]()

    def visit(ids: Iterable[str], at: int, into: list[str]) -> None:
        for id in ids:
            if id not in distances:
                distances[id] = at
                into.append(id)

    def follow_statements(entity: Entity, to: int, into: list[Entity]) -> None:
        for other in cache.related(entity):
            if entity_distances.get(other, to + 1) > to:
                entity_distances[other] = to
                into.append(other)

    for level in range(hops + 1):
        here = [entity for entity in entities if entity_distances[entity] == level]
        for entity in here:
            visit(cache.about(entity), level, memories)
        if level == hops or 0 < most < len(distances):  # what lies beyond is farther away
            break
        later, later_entities = list[str](), list[Entity]()
        for entity in here:
            follow_statements(entity, level + 1, later_entities)
        for id in memories:
            linked, own = cache.of(id)
            visit(linked, level + 1, later)
            if own is not None and entity_distances.get(own, level + 1) > level:
                entity_distances[own] = level
                visit(cache.about(own), level + 1, later)
                follow_statements(own, level + 1, later_entities)
        memories, entities = later, later_entities
    del distances[source]
    wanted = cache.sources.union(list(distances)[:most])
    return {id: distance for id, distance in distances.items() if id in wanted}


#: Where a source's search has come to: a memory, the entity that a memory it came to is about ("within"), or an
#: entity that statements led to ("beyond").
_Node = tuple[str, Any]


class _MultiSourceSearch:
    """Which sources reached each node, of each node only the first two, and how near each source is to another.

    Two are enough: whoever comes later is no farther from one of them than from anything that lies beyond.
    """

    def __init__(self) -> None:
        self._arrivals: dict[_Node, dict[str, int]] = {}
        self.found: dict[str, tuple[int, str]] = {}

    def visit(self, node: _Node, source: str, at: int) -> bool:
        """Whether it is worth going on from there."""
        kind, key = node
        here = self._arrivals.setdefault(node, {})
        self._meet(source, at + (kind == "within"), here)  # what shares an entity is a step apart
        if kind != "memory":
            self._meet(source, at, self._arrivals.get(("beyond" if kind == "within" else "within", key), {}))
        if source in here or len(here) == 2:
            return False
        here[source] = at
        return True

    def _meet(self, source: str, at: int, others: dict[str, int]) -> None:
        for other, their in others.items():
            if other != source:
                for one, its in ((source, other), (other, source)):
                    self.found[one] = min(self.found.get(one, (at + their, its)), (at + their, its))


def _nearest_sources(cache: _CachedLinks, sources: Sequence[str], hops: int) -> dict[str, dict[str, int]]:
    """As `_within_hops`, from all sources at once: searching from each would name every pair of them."""
    met = _MultiSourceSearch()
    now: list[tuple[_Node, str]] = [(("memory", id), id) for id in sources if met.visit(("memory", id), id, 0)]

    def go(kind: str, keys: Iterable[Any], source: str, at: int, into: list[tuple[_Node, str]]) -> None:
        into += [((kind, key), source) for key in keys if met.visit((kind, key), source, at)]

    for level in range(hops + 1):
        later: list[tuple[_Node, str]] = []
        for (kind, key), source in now:  # which grows: these nodes are no step further, so they come first
            if kind == "beyond":
                go("memory", cache.about(key), source, level, now)
            elif kind == "memory" and level < hops and (own := cache.of(key)[1]) is not None:
                go("within", [own], source, level, now)
        for (kind, key), source in now if level < hops else ():
            if kind == "memory":
                go("memory", cache.of(key)[0], source, level + 1, later)
                continue
            if kind == "within":
                go("memory", cache.about(key), source, level + 1, later)
            go("beyond", cache.related(key), source, level + 1, later)
        now = later
    near = {id: met.found.get(id, (hops + 1, "")) for id in sources}
    return {id: {other: distance} if distance <= hops else {} for id, (distance, other) in near.items()}


class Statements(Protocol):
    def touching(self, name: str) -> list[Triple]:
        """Those that hold with this name (a `name_key`) as subject or object, at most PATH_FANOUT, newest first."""


#: How each name was reached: from which, by which statement; None where the search began.
_Predecessors = dict[str, tuple[str, Triple] | None]


def shortest_path(statements: Statements, start: str, end: str, max_hops: int) -> list[Triple]:
    """What `path` answers. Searched from both ends in turn, so that a hub is met from its sides, not gone through."""
    ends = name_key(start), name_key(end)
    came: tuple[_Predecessors, _Predecessors] = {ends[0]: None}, {ends[1]: None}
    frontiers = [[ends[0]], [ends[1]]]
    if ends[0] == ends[1]:
        return []
    for step in range(max_hops):
        side = step % 2 if frontiers[step % 2] else 1 - step % 2
        left = PATH_NODES - len(came[0]) - len(came[1])
        if not frontiers[side] or left <= 0:
            return []
        frontiers[side] = _expand(statements, frontiers[side], came[side], left)
        met = [name for name in frontiers[side] if name in came[1 - side]]
        if met:
            paths = [_path_back(came[0], name)[::-1] + _path_back(came[1], name) for name in met]
            return min(paths, key=len)
    return []


def _expand(statements: Statements, frontier: Sequence[str], came: _Predecessors, left: int) -> list[str]:
    later: list[str] = []
    for name in frontier:
        if len(later) >= left:
            break
        for triple in statements.touching(name):
            for other in (name_key(triple.object), name_key(triple.subject)):
                if other not in came:
                    came[other] = (name, triple)
                    later.append(other)
    return later


def _path_back(came: _Predecessors, name: str) -> list[Triple]:
    """The statements from a name back to where the search began."""
    path = []
    step = came[name]
    while step is not None:
        path.append(step[1])
        step = came[step[0]]
    return path


class InMemoryGraph:
    """Links and statements worked out from rows at hand: for a store without indexes, and for the past."""

    def __init__(self, memories: Sequence[Memory], triples: Sequence[Triple]) -> None:
        """Memories oldest first; triples that hold at the instant in question, in the order they begin."""
        self._by_id = {m.id: m for m in memories}
        names = {(m.agent_id, alias): m.id for m in memories for alias in m.aliases}
        names |= {(m.agent_id, m.id): m.id for m in memories}
        self._out: dict[str, list[str]] = {}
        self._in: dict[str, list[str]] = {}
        self._members: dict[Entity, list[str]] = {}
        self._joined: dict[Entity, list[Entity]] = {}
        self._touching: dict[str, list[Triple]] = {}
        for m in reversed(memories):
            if name := entity_key(m.entity_name):
                self._members.setdefault((m.agent_id, name), []).append(m.id)
            for target in filter(None, (names.get((m.agent_id, ref)) for ref in references(m))):
                self._out.setdefault(m.id, []).append(target)
                self._in.setdefault(target, []).append(m.id)
        for t in reversed(triples):
            ends = (t.agent_id, name_key(t.subject)), (t.agent_id, name_key(t.object))
            for one, other in (ends, ends[::-1]):
                self._joined.setdefault(one, []).append(other)
            for name in {ends[0][1], ends[1][1]}:
                self._touching.setdefault(name, []).append(t)

    def of(self, id: str) -> tuple[list[str], Entity | None]:
        memory = self._by_id.get(id)
        if memory is None:
            return [], None
        linked = [*self._out.get(id, ())[:FANOUT], *self._in.get(id, ())[:FANOUT]]
        name = entity_key(memory.entity_name)
        return [other for other in dict.fromkeys(linked) if other != id], (memory.agent_id, name) if name else None

    def about(self, entity: Entity) -> list[str]:
        return self._members.get(entity, [])[:FANOUT]

    def related(self, entity: Entity) -> list[Entity]:
        return list(dict.fromkeys(self._joined.get(entity, ())))[:FANOUT]

    def touching(self, name: str) -> list[Triple]:
        return self._touching.get(name, [])[:PATH_FANOUT]
