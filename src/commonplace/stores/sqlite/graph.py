"""Statements and links as rows: how they are read and traversed, and how links are derived from memories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from apsw import Connection

from commonplace.stores.base import Reach
from commonplace.stores.graph import ABOUT, LINKED, REFERS, Instant, Triple, entity_key, links_of, name_key
from commonplace.stores.row_format import RowTypes
from commonplace.stores.sqlite.connections import StorePart, read
from commonplace.stores.sqlite.queries import fetch_one, scope_ids, versions_in_reach
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.stores.traversal import FANOUT, PATH_FANOUT, Entity, InMemoryGraph, linked_memories, shortest_path
from commonplace.wire.record import Memory

#: Rows of one target looked at before what cannot be seen is left out, so that no hub is ever read whole.
_LOOKED_AT = 8 * FANOUT

#: Of triples `t`, whose rows make a Triple.
SELECT_TRIPLES = (
    f"SELECT {', '.join('s.agent_id' if f.name == 'agent_id' else f't.{f.name}' for f in fields(Triple))} "
    "FROM triples t JOIN scopes s ON s.id = t.scope_id"
)
TRIPLE = RowTypes("statement", {f.name: str(f.type) for f in fields(Triple)})
ABOUT_SUBJECT = f"{SELECT_TRIPLES} WHERE t.scope_id = ? AND t.subject_key = ? AND t.subject = ?"
IN_ORDER = "ORDER BY t.valid_from, t.tid"
_HOLDS = "t.valid_from <= ? AND (t.valid_to IS NULL OR t.valid_to > ?)"


class SqliteGraphReads(StorePart):
    @read
    def triples(
        self,
        db: Connection,
        tenant: str,
        agent_id: str,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        at: Instant | None = None,
        limit: int | None = None,
    ) -> list[Triple]:
        sql, values = f"{SELECT_TRIPLES} WHERE t.scope_id = ?", [_scope_id(db, tenant, agent_id)]
        if subject is not None:
            sql, values = f"{sql} AND t.subject_key = ? AND t.subject = ?", [*values, name_key(subject), subject]
        if predicate is not None:
            sql, values = f"{sql} AND t.predicate = ?", [*values, predicate]
        if at is not None:
            sql, values = f"{sql} AND {_HOLDS}", [*values, *[_resolve(db, tenant, at)] * 2]
        found = db.execute(f"{sql} {IN_ORDER} LIMIT ?", (*values, -1 if limit is None else limit))
        return [Triple(*TRIPLE.checked(row)) for row in found]

    @read
    def triples_about(
        self, db: Connection, tenant: str, agent_id: str, subject: str, mentions: bool = False
    ) -> list[Triple]:
        scope, key = _scope_id(db, tenant, agent_id), name_key(subject)
        found: list[Any] = db.execute(f"{ABOUT_SUBJECT} {IN_ORDER}", (scope, key, subject)).fetchall()
        if mentions:
            named = "WHERE t.scope_id = ? AND t.object_key = ? AND t.object = ? AND t.subject <> ?"
            found += db.execute(f"{SELECT_TRIPLES} {named} {IN_ORDER}", (scope, key, subject, subject)).fetchall()
        return [Triple(*TRIPLE.checked(row)) for row in found]

    @read
    def triple_counts(self, db: Connection, tenant: str, agent_id: str, at: Instant) -> tuple[int, int, int]:
        when = _resolve(db, tenant, at)
        sql = (
            f"SELECT count(*), count(*) FILTER (WHERE {_HOLDS}), count(DISTINCT t.subject) FILTER (WHERE {_HOLDS}) "
            "FROM triples t WHERE t.scope_id = ?"
        )
        total, active, subjects = fetch_one(db, sql, (when, when, when, when, _scope_id(db, tenant, agent_id)))
        return total, active, subjects

    @read
    def path(
        self, db: Connection, tenant: str, agent_id: str, start: str, end: str, max_hops: int, at: Instant
    ) -> list[Triple]:
        statements = _Statements(db, _scope_id(db, tenant, agent_id), _resolve(db, tenant, at))
        return shortest_path(statements, start, end, max_hops)

    @read
    def linked(
        self, db: Connection, reach: Reach, ids: Sequence[str], hops: int, at: Instant, most: int
    ) -> dict[str, dict[str, int]]:
        scopes = scope_ids(db, reach.tenant, reach.agents)
        when = _resolve(db, reach.tenant, at)
        if reach.as_of is None:
            return linked_memories(_IndexedLinks(db, reach, scopes, when), ids, hops, most)
        # The past has no index: as when it is searched, what was there then is read.
        agents = {scope: agent for agent in reach.agents for scope in scope_ids(db, reach.tenant, [agent])}
        memories = [
            _outline(row, agents[row[0]])
            for table, condition, values in versions_in_reach(db, reach)
            for row in db.execute(f"{_OUTLINE.format(table)} WHERE {condition}", values)
        ]
        memories.sort(key=lambda m: (m.created_at, m.id))
        holding = f"{SELECT_TRIPLES} WHERE t.scope_id = ? AND {_HOLDS} {IN_ORDER}"
        triples = [Triple(*TRIPLE.checked(row)) for scope in scopes for row in db.execute(holding, (scope, when, when))]
        return linked_memories(InMemoryGraph(memories, triples), ids, hops, most)


def _resolve(db: Connection, tenant: str, at: Instant) -> int:
    last = None if at.given else db.execute("SELECT at FROM tenants WHERE name = ?", (tenant,)).fetchone()
    return at.resolve(int(str(last[0])) if last else 0)


def _scope_id(db: Connection, tenant: str, agent_id: str) -> Any:
    return next(iter(scope_ids(db, tenant, [agent_id])), -1)


class _Statements:
    def __init__(self, db: Connection, scope: int, when: int) -> None:
        self._db, self._scope, self._when = db, scope, when

    def touching(self, name: str) -> list[Triple]:
        found: dict[str, Triple] = {}
        for key in ("subject_key", "object_key"):
            where = f"WHERE t.scope_id = ? AND t.{key} = ? AND {_HOLDS} ORDER BY t.valid_from DESC LIMIT ?"
            values = (self._scope, name, self._when, self._when, PATH_FANOUT)
            found |= {
                row[0]: Triple(*TRIPLE.checked(row)) for row in self._db.execute(f"{SELECT_TRIPLES} {where}", values)
            }
        return sorted(found.values(), key=lambda t: -t.valid_from)[:PATH_FANOUT]


class _IndexedLinks:
    """Links of the present, looked up one node at a time."""

    def __init__(self, db: Connection, reach: Reach, scopes: Sequence[int], when: int) -> None:
        self._db, self._scopes, self._when = db, frozenset(scopes), when
        seen, self._values = reach_sql(reach)
        join = "LEFT JOIN recalls r ON r.mid = m.mid"
        self._out = (
            "SELECT m.id FROM links l JOIN memories m ON m.mid = coalesce("
            # What was merged goes by the aliases of what it has become part of.
            "(SELECT x.mid FROM memories x WHERE x.id = l.target AND x.scope_id = l.scope_id "
            "AND x.merged_into IS NULL), "
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
        found: Any = self._db.execute(sql, (id,)).fetchone()
        if found is None or found[1] not in self._scopes:
            return [], None
        mid, scope, entity_name, aliases = found
        linked = [row[0] for row in self._db.execute(self._out, (mid, *self._values))]
        for name in (id, *(json.loads(aliases) if aliases else ())):
            linked += self._pointing_at(scope, REFERS, name)
        key = entity_key(entity_name)
        return [other for other in dict.fromkeys(linked) if other != id], (scope, key) if key else None

    def about(self, entity: Entity) -> list[str]:
        return self._pointing_at(entity[0], ABOUT, entity[1])

    def related(self, entity: Entity) -> list[Entity]:
        sql = (
            f"SELECT DISTINCT {{}} FROM (SELECT * FROM triples t WHERE t.scope_id = ? AND t.{{}} = ? AND {_HOLDS} "
            f"ORDER BY t.valid_from DESC LIMIT {FANOUT})"
        )
        values = (*entity, self._when, self._when)
        found = [
            row[0]
            for ends in (("object_key", "subject_key"), ("subject_key", "object_key"))
            for row in self._db.execute(sql.format(*ends), values)
        ]
        return [(entity[0], name) for name in dict.fromkeys(found)][:FANOUT]

    def _pointing_at(self, scope: object, kind: int, target: str) -> list[str]:
        return [row[0] for row in self._db.execute(self._in, (scope, kind, target, *self._values))]


# links, derived from memories


def write_links(db: Connection, scope: int, mid: int, memory: Memory, fresh: bool) -> None:
    """Write what a memory is linked to, in place of what it was."""
    if not fresh:
        db.execute("DELETE FROM links WHERE mid = ?", (mid,))
    if memory.status in LINKED and (found := list(links_of(memory))):
        db.executemany(
            "INSERT OR IGNORE INTO links VALUES(?, ?, ?, ?)", [(scope, kind, target, mid) for kind, target in found]
        )


def rebuild_links(db: Connection) -> None:
    """Derive every link again from the rows."""
    db.execute("DELETE FROM links")
    for scope, mid, memory in _linked_rows(db):
        write_links(db, scope, mid, memory, fresh=True)


def count_wrong_links(db: Connection) -> int:
    """How many links are missing or say what no row says."""
    expected = {(scope, kind, target, mid) for scope, mid, m in _linked_rows(db) for kind, target in links_of(m)}
    return len(expected.symmetric_difference(db.execute("SELECT scope_id, kind, target, mid FROM links").fetchall()))


#: What links a memory, and nothing else of it.
_OUTLINE = (
    "SELECT m.scope_id, m.mid, m.id, m.status, m.created_at, m.entity_name, m.supersedes, m.aliases, "
    "CASE WHEN instr(m.metadata, '\"references\"') > 0 THEN m.metadata END "
    "FROM {} m LEFT JOIN recalls r ON r.mid = m.mid"
)


def _linked_rows(db: Connection) -> Iterable[tuple[int, int, Memory]]:
    where = (
        "WHERE m.status IN (?, ?) AND (m.entity_name IS NOT NULL OR m.supersedes IS NOT NULL "
        "OR instr(m.metadata, '\"references\"') > 0)"
    )
    for row in db.execute(f"{_OUTLINE.format('memories')} {where}", LINKED):
        yield row[0], row[1], _outline(row)


def _outline(row: Sequence[Any], agent_id: str = "") -> Memory:
    _, _, id, status, created_at, entity_name, *documents = row
    memory = Memory(id, "", agent_id, "semantic", "", created_at=created_at, entity_name=entity_name, status=status)
    memory.supersedes, memory.aliases, memory.metadata = (
        json.loads(text) if text else kind() for text, kind in zip(documents, (list, list, dict), strict=True)
    )
    return memory
