"""Statements and ties as rows: their verbs inside a transaction, and how they are read and walked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

import apsw

from commonplace.stores.base import Reach
from commonplace.stores.graph import Instant, Triple, entity_key, name_key, references
from commonplace.stores.sqlite import pages, reader, rows
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.stores.traversal import FANOUT, PATH_FANOUT, Entity, InMemoryGraph, linked_memories, shortest_path
from commonplace.wire.record import Memory

REFERS, ABOUT = 0, 1  # kinds of rows in `links`
#: Rows of one target looked at before what cannot be seen is left out, so that no hub is ever read whole.
_LOOKED_AT = 8 * FANOUT
#: Statuses under which a memory keeps its ties; which of them a reader sees is settled when it reads.
_TIED = ("live", "archived")

_FIELDS = [f.name for f in fields(Triple)]
_COLUMNS = ", ".join("s.agent_id" if name == "agent_id" else f"t.{name}" for name in _FIELDS)
_OWN_COLUMNS = [name for name in _FIELDS if name != "agent_id"]
_values = attrgetter(*_OWN_COLUMNS)
_PUT = (
    f"INSERT INTO triples(scope_id, subject_key, object_key, {', '.join(_OWN_COLUMNS)}) "
    f"VALUES(?, ?, ?{', ?' * len(_OWN_COLUMNS)}) "
    "ON CONFLICT(id) DO UPDATE SET valid_from = excluded.valid_from, valid_to = excluded.valid_to"
)
_SELECT = f"SELECT {_COLUMNS} FROM triples t JOIN scopes s ON s.id = t.scope_id"
_OF = f"{_SELECT} WHERE t.scope_id = ? AND t.subject_key = ? AND t.subject = ?"
_ONE = f"{_OF} AND t.predicate = ?"
_REAL = "(t.valid_to IS NULL OR t.valid_to > t.valid_from)"
_HOLDS = "t.valid_from <= ? AND (t.valid_to IS NULL OR t.valid_to > ?)"
_ORDER = "ORDER BY t.valid_from, t.tid"


def to_triple(row: tuple[Any, ...]) -> Triple:
    return Triple(*row)


# inside a transaction


def one(db: apsw.Connection, tenant_id: int, id: str) -> Triple | None:
    found = db.execute(f"{_SELECT} WHERE t.id = ? AND s.tenant_id = ?", (id, tenant_id)).fetchone()
    return None if found is None else to_triple(found)


def at(db: apsw.Connection, scope: int | None, subject: str, predicate: str, when: int) -> Triple | None:
    # They never overlap, so of those that have begun only the last can hold: one step down the index.
    sql = f"{_ONE} AND t.valid_from <= ? AND {_REAL} ORDER BY t.valid_from DESC, t.tid DESC LIMIT 1"
    found = db.execute(sql, (scope, name_key(subject), subject, predicate, when)).fetchone()
    triple = None if found is None else to_triple(found)
    return triple if triple is not None and triple.holds(when) else None


def after(db: apsw.Connection, scope: int | None, subject: str, predicate: str, when: int) -> Triple | None:
    sql = f"{_ONE} AND t.valid_from > ? AND {_REAL} {_ORDER} LIMIT 1"
    found = db.execute(sql, (scope, name_key(subject), subject, predicate, when)).fetchone()
    return None if found is None else to_triple(found)


def triples_about(db: apsw.Connection, tenant: str, agent_id: str, subject: str, mentions: bool) -> list[Triple]:
    scope = _scope(db, tenant, agent_id)
    key = name_key(subject)
    found = db.execute(f"{_OF} {_ORDER}", (scope, key, subject)).fetchall()
    if mentions:
        sql = f"{_SELECT} WHERE t.scope_id = ? AND t.object_key = ? AND t.object = ? AND t.subject <> ? {_ORDER}"
        found += db.execute(sql, (scope, key, subject, subject)).fetchall()
    return [to_triple(row) for row in found]


def derived_from(db: apsw.Connection, tenant_id: int, memory_id: str) -> list[Triple]:
    sql = f"{_SELECT} WHERE t.memory_id = ? AND s.tenant_id = ? {_ORDER}"
    return [to_triple(row) for row in db.execute(sql, (memory_id, tenant_id))]


def put(db: apsw.Connection, scope: int, t: Triple) -> None:
    db.execute(_PUT, (scope, name_key(t.subject), name_key(t.object), *_values(t)))


def erase(db: apsw.Connection, tenant_id: int, id: str) -> None:
    db.execute(
        "DELETE FROM triples WHERE id = ? AND scope_id IN (SELECT id FROM scopes WHERE tenant_id = ?)", (id, tenant_id)
    )
    if db.changes():
        db.execute("UPDATE audit_parts SET memory_id = NULL, payload = NULL, salt = NULL WHERE memory_id = ?", (id,))
        db.execute("INSERT OR IGNORE INTO meta VALUES(?, 1)", (pages.DUE,))


def tie(db: apsw.Connection, scope: int, mid: int, memory: Memory, fresh: bool) -> None:
    """Write what a memory is tied to, in place of what it was."""
    if not fresh:
        db.execute("DELETE FROM links WHERE mid = ?", (mid,))
    if memory.status in _TIED and (found := list(ties_of(memory))):
        db.executemany(
            "INSERT OR IGNORE INTO links VALUES(?, ?, ?, ?)", [(scope, kind, target, mid) for kind, target in found]
        )


def ties_of(memory: Memory) -> Iterable[tuple[int, str]]:
    yield from ((REFERS, target) for target in references(memory))
    if name := entity_key(memory.entity_name):
        yield ABOUT, name


def rebuild_links(db: apsw.Connection) -> int:
    """Derive every tie again from the rows; how many there are."""
    db.execute("DELETE FROM links")
    for scope, mid, memory in _tied_rows(db):
        tie(db, scope, mid, memory, fresh=True)
    return int(rows.one(db, "SELECT count(*) FROM links")[0])


def links_differ(db: apsw.Connection) -> int:
    """How many ties are missing or say what no row says."""
    expected = {(scope, kind, target, mid) for scope, mid, m in _tied_rows(db) for kind, target in ties_of(m)}
    return len(expected.symmetric_difference(db.execute("SELECT scope_id, kind, target, mid FROM links").fetchall()))


def _tied_rows(db: apsw.Connection) -> Iterable[tuple[int, int, Memory]]:
    sql = (
        "SELECT scope_id, mid, id, status, entity_name, supersedes, metadata FROM memories WHERE status IN (?, ?) AND "
        "(entity_name IS NOT NULL OR supersedes IS NOT NULL OR instr(metadata, '\"references\"') > 0)"
    )
    found: Iterable[tuple[Any, ...]] = db.execute(sql, _TIED)
    for scope, mid, id, status, entity_name, supersedes, metadata in found:
        memory = Memory(id, "", "", "semantic", "", entity_name=entity_name, status=status)
        memory.supersedes = json.loads(supersedes) if supersedes else []
        memory.metadata = json.loads(metadata) if metadata else {}
        yield scope, mid, memory


# reading


def triples(
    db: apsw.Connection, tenant: str, agent_id: str, subject: str | None = None, predicate: str | None = None,
    at: Instant | None = None, limit: int | None = None,
) -> list[Triple]:  # fmt: skip
    values: list[Any] = [_scope(db, tenant, agent_id)]
    sql = f"{_SELECT} WHERE t.scope_id = ?"
    if subject is not None:
        sql, values = sql + " AND t.subject_key = ? AND t.subject = ?", [*values, name_key(subject), subject]
    if predicate is not None:
        sql, values = sql + " AND t.predicate = ?", [*values, predicate]
    if at is not None:
        sql, values = f"{sql} AND {_HOLDS}", [*values, *[_settled(db, tenant, at)] * 2]
    found = db.execute(f"{sql} {_ORDER} LIMIT ?", (*values, -1 if limit is None else limit))
    return [to_triple(row) for row in found]


def counts(db: apsw.Connection, tenant: str, agent_id: str, at: Instant) -> tuple[int, int, int]:
    when = _settled(db, tenant, at)
    sql = (
        f"SELECT count(*), count(*) FILTER (WHERE {_HOLDS}), count(DISTINCT t.subject) FILTER (WHERE {_HOLDS}) "
        "FROM triples t WHERE t.scope_id = ?"
    )
    total, active, subjects = rows.one(db, sql, (when, when, when, when, _scope(db, tenant, agent_id)))
    return total, active, subjects


def path(db: apsw.Connection, tenant: str, agent_id: str, start: str, end: str, hops: int, at: Instant) -> list[Triple]:
    return shortest_path(_Statements(db, _scope(db, tenant, agent_id), _settled(db, tenant, at)), start, end, hops)


def linked(
    db: apsw.Connection, reach: Reach, ids: Sequence[str], hops: int, at: Instant, most: int
) -> dict[str, dict[str, int]]:
    scopes = reader.scope_ids(db, reach.tenant, reach.agents)
    if reach.as_of is None:
        return linked_memories(_IndexedLinks(db, reach, scopes, _settled(db, reach.tenant, at)), ids, hops, most)
    # The past has no index: as when it is searched, what was there then is read.
    agents = {scope: agent for agent in reach.agents for scope in reader.scope_ids(db, reach.tenant, [agent])}
    memories = [
        _outline(agents[scope], row)
        for table, condition, values in reader.versions_in(reach, scopes)
        for scope, *row in db.execute(_OUTLINE.format(table, condition), values)
    ]
    memories.sort(key=lambda m: (m.created_at, m.id))
    then = [t for agent in reach.agents for t in triples(db, reach.tenant, agent, at=at)]
    return linked_memories(InMemoryGraph(memories, then), ids, hops, most)


_OUTLINE = (
    "SELECT m.scope_id, m.id, m.created_at, m.entity_name, m.supersedes, m.aliases, "
    "CASE WHEN instr(m.metadata, '\"references\"') > 0 THEN m.metadata END "
    "FROM {} m LEFT JOIN recalls r ON r.mid = m.mid WHERE {}"
)


def _outline(agent_id: str, row: Sequence[Any]) -> Memory:
    """What ties a memory, and nothing else of it."""
    id, created_at, entity_name, supersedes, aliases, metadata = row
    memory = Memory(id, "", agent_id, "semantic", "", created_at=created_at, entity_name=entity_name)
    memory.supersedes = json.loads(supersedes) if supersedes else []
    memory.aliases = json.loads(aliases) if aliases else []
    memory.metadata = json.loads(metadata) if metadata else {}
    return memory


def _settled(db: apsw.Connection, tenant: str, at: Instant) -> int:
    last = None if at.given else db.execute("SELECT at FROM tenants WHERE name = ?", (tenant,)).fetchone()
    return at.resolve(int(str(last[0])) if last else 0)


def _scope(db: apsw.Connection, tenant: str, agent_id: str) -> int:
    return next(iter(reader.scope_ids(db, tenant, [agent_id])), -1)


class _Statements:
    def __init__(self, db: apsw.Connection, scope: int, when: int) -> None:
        self._db, self._scope, self._when = db, scope, when

    def touching(self, name: str) -> list[Triple]:
        found: dict[str, Triple] = {}
        for key in ("subject_key", "object_key"):
            sql = f"{_SELECT} WHERE t.scope_id = ? AND t.{key} = ? AND {_HOLDS} ORDER BY t.valid_from DESC LIMIT ?"
            for row in self._db.execute(sql, (self._scope, name, self._when, self._when, PATH_FANOUT)):
                found[row[0]] = to_triple(row)
        return sorted(found.values(), key=lambda t: -t.valid_from)[:PATH_FANOUT]


class _IndexedLinks:
    """Ties of the present, looked up one node at a time."""

    def __init__(self, db: apsw.Connection, reach: Reach, scopes: Sequence[int], when: int) -> None:
        self._db, self._scopes, self._when = db, frozenset(scopes), when
        seen, self._values = reach_sql(reach)
        join = "LEFT JOIN recalls r ON r.mid = m.mid"
        self._out = (
            "SELECT m.id FROM links l JOIN memories m ON m.mid = coalesce("
            "(SELECT x.mid FROM memories x WHERE x.id = l.target AND x.scope_id = l.scope_id), "
            "(SELECT a.mid FROM aliases a WHERE a.scope_id = l.scope_id AND a.alias = l.target)) "
            f"{join} WHERE l.mid = ? AND l.kind = {REFERS} AND {seen} ORDER BY m.mid DESC LIMIT {FANOUT}"
        )
        self._in = (
            "SELECT m.id FROM (SELECT mid FROM links WHERE scope_id = ? AND kind = ? AND target = ? "
            f"ORDER BY mid DESC LIMIT {_LOOKED_AT}) l JOIN memories m ON m.mid = l.mid {join} "
            f"WHERE {seen} ORDER BY m.mid DESC LIMIT {FANOUT}"
        )

    def of(self, id: str) -> tuple[list[str], Entity | None]:
        sql = "SELECT mid, scope_id, entity_name, aliases FROM memories WHERE id = ?"
        found = self._db.execute(sql, (id,)).fetchone()
        if found is None or found[1] not in self._scopes:
            return [], None
        mid, scope, entity_name, aliases = found
        tied = [row[0] for row in self._db.execute(self._out, (mid, *self._values))]
        for name in (id, *(json.loads(str(aliases)) if aliases else ())):
            tied += self._pointing(scope, REFERS, name)
        thing = entity_key(None if entity_name is None else str(entity_name))
        return [other for other in dict.fromkeys(tied) if other != id], (scope, thing) if thing else None

    def about(self, thing: Entity) -> list[str]:
        return self._pointing(thing[0], ABOUT, thing[1])

    def related(self, thing: Entity) -> list[Entity]:
        sql = (
            f"SELECT DISTINCT {{}} FROM (SELECT * FROM triples t WHERE t.scope_id = ? AND t.{{}} = ? AND {_HOLDS} "
            f"ORDER BY t.valid_from DESC LIMIT {FANOUT})"
        )
        values = (*thing, self._when, self._when)
        found = [
            row[0]
            for ends in (("object_key", "subject_key"), ("subject_key", "object_key"))
            for row in self._db.execute(sql.format(*ends), values)
        ]
        return [(thing[0], name) for name in dict.fromkeys(found)][:FANOUT]

    def _pointing(self, scope: object, kind: int, target: str) -> list[str]:
        return [row[0] for row in self._db.execute(self._in, (scope, kind, target, *self._values))]
