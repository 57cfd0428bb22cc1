"""Statements and links as rows: how they are read and traversed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from commonplace.stores.base import Reach
from commonplace.stores.graph import ABOUT, REFERS, Instant, Triple, entity_key, name_key
from commonplace.stores.postgres.connections import Session, StorePart, read
from commonplace.stores.postgres.queries import fetch_memories, scopes_by_agent, versions_in_reach
from commonplace.stores.postgres.sql_where import reach_sql
from commonplace.stores.traversal import FANOUT, PATH_FANOUT, Entity, InMemoryGraph, linked_memories, shortest_path

#: Rows of one target looked at before what cannot be seen is left out, so that no hub is ever read whole.
_LOOKED_AT = 8 * FANOUT

#: Of triples `t`, whose rows make a Triple.
SELECT_TRIPLES = (
    f"SELECT {', '.join('s.agent_id' if f.name == 'agent_id' else f't.{f.name}' for f in fields(Triple))} "
    "FROM triples t JOIN scopes s ON s.id = t.scope_id"
)
#: Its values are a scope, the key of the subject twice, and the subject.
ABOUT_SUBJECT = (
    f"{SELECT_TRIPLES} WHERE t.scope_id = %s AND md5(t.subject_key) = md5(%s) AND t.subject_key = %s AND t.subject = %s"
)
IN_ORDER = "ORDER BY t.valid_from, t.tid"
_HOLDS = "t.valid_from <= %s AND (t.valid_to IS NULL OR t.valid_to > %s)"


class PostgresGraphReads(StorePart):
    @read
    def triples(
        self,
        db: Session,
        tenant: str,
        agent_id: str,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        at: Instant | None = None,
        limit: int | None = None,
    ) -> list[Triple]:
        scope = _scope_id(db, tenant, agent_id)
        sql = f"{SELECT_TRIPLES} WHERE t.scope_id = %s"
        values: list[Any] = [scope]
        if subject is not None:
            key = name_key(subject)
            sql, values = ABOUT_SUBJECT, [scope, key, key, subject]
        if predicate is not None:
            sql, values = f"{sql} AND t.predicate = %s", [*values, predicate]
        if at is not None:
            sql, values = f"{sql} AND {_HOLDS}", [*values, *[_resolve(db, tenant, at)] * 2]
        return [Triple(*row) for row in db.rows(f"{sql} {IN_ORDER} LIMIT %s", (*values, limit))]

    @read
    def triples_about(
        self, db: Session, tenant: str, agent_id: str, subject: str, mentions: bool = False
    ) -> list[Triple]:
        scope, key = _scope_id(db, tenant, agent_id), name_key(subject)
        found = db.rows(f"{ABOUT_SUBJECT} {IN_ORDER}", (scope, key, key, subject))
        if mentions:
            named = (
                "WHERE t.scope_id = %s AND md5(t.object_key) = md5(%s) AND t.object_key = %s AND t.object = %s "
                "AND t.subject <> %s"
            )
            found += db.rows(f"{SELECT_TRIPLES} {named} {IN_ORDER}", (scope, key, key, subject, subject))
        return [Triple(*row) for row in found]

    @read
    def triple_counts(self, db: Session, tenant: str, agent_id: str, at: Instant) -> tuple[int, int, int]:
        when = _resolve(db, tenant, at)
        sql = (
            f"SELECT count(*), count(*) FILTER (WHERE {_HOLDS}), count(DISTINCT t.subject) FILTER (WHERE {_HOLDS}) "
            "FROM triples t WHERE t.scope_id = %s"
        )
        total, active, subjects = db.one(sql, (when, when, when, when, _scope_id(db, tenant, agent_id)))
        return total, active, subjects

    @read
    def path(
        self, db: Session, tenant: str, agent_id: str, start: str, end: str, max_hops: int, at: Instant
    ) -> list[Triple]:
        statements = _Statements(db, _scope_id(db, tenant, agent_id), _resolve(db, tenant, at))
        return shortest_path(statements, start, end, max_hops)

    @read
    def linked(
        self, db: Session, reach: Reach, ids: Sequence[str], hops: int, at: Instant, most: int
    ) -> dict[str, dict[str, int]]:
        scopes = list(scopes_by_agent(db, reach.tenant, reach.agents).values())
        when = _resolve(db, reach.tenant, at)
        if reach.as_of is None:
            return linked_memories(_IndexedLinks(db, reach, scopes, when, ids), ids, hops, most)
        # The past has no index: as when it is searched, what was there then is read.
        found = versions_in_reach(db, reach)
        memories = [m for table, where, values in found for m in fetch_memories(db, f"WHERE {where}", values, table)]
        memories.sort(key=lambda m: (m.created_at, m.id))
        holding = f"{SELECT_TRIPLES} WHERE t.scope_id = ANY(%s) AND {_HOLDS} {IN_ORDER}"
        triples = [Triple(*row) for row in db.rows(holding, (scopes, when, when))]
        return linked_memories(InMemoryGraph(memories, triples), ids, hops, most)


def _resolve(db: Session, tenant: str, at: Instant) -> int:
    last = None if at.given else db.row("SELECT at FROM tenants WHERE name = %s", (tenant,))
    return at.resolve(int(last[0]) if last else 0)


def _scope_id(db: Session, tenant: str, agent_id: str) -> int:
    return scopes_by_agent(db, tenant, [agent_id]).get(agent_id, -1)


class _Statements:
    def __init__(self, db: Session, scope: int, when: int) -> None:
        self._db, self._scope, self._when = db, scope, when

    def touching(self, name: str) -> list[Triple]:
        found: dict[str, Triple] = {}
        for key in ("subject_key", "object_key"):
            where = (
                f"WHERE t.scope_id = %s AND md5(t.{key}) = md5(%s) AND t.{key} = %s AND {_HOLDS} "
                "ORDER BY t.valid_from DESC LIMIT %s"
            )
            values = (self._scope, name, name, self._when, self._when, PATH_FANOUT)
            found |= {row[0]: Triple(*row) for row in self._db.rows(f"{SELECT_TRIPLES} {where}", values)}
        return sorted(found.values(), key=lambda t: -t.valid_from)[:PATH_FANOUT]


class _IndexedLinks:
    """Links of the present. What the traversal starts from is looked up all at once, the rest node by node."""

    def __init__(self, db: Session, reach: Reach, scopes: Sequence[int], when: int, sources: Sequence[str]) -> None:
        self._db, self._scopes, self._when = db, list(scopes), when
        seen, self._values = reach_sql(reach)
        recalls = "LEFT JOIN recalls r ON r.mid = m.mid"
        self._out = (
            # What was merged goes by the aliases of what it has become part of.
            "SELECT w.mid, o.id FROM unnest(%s::bigint[]) w(mid) CROSS JOIN LATERAL (SELECT m.id FROM links l "
            "JOIN memories m ON m.mid = coalesce("
            "(SELECT x.mid FROM memories x WHERE x.id = l.target AND x.scope_id = l.scope_id "
            "AND x.merged_into IS NULL), "
            "(SELECT a.mid FROM aliases a WHERE a.scope_id = l.scope_id AND md5(a.alias) = md5(l.target) "
            "AND a.alias = l.target)) "
            f"{recalls} WHERE l.mid = w.mid AND l.kind = {REFERS} AND {seen} ORDER BY m.mid DESC LIMIT {FANOUT}) o"
        )
        self._in = (
            "SELECT w.i, o.id FROM unnest(%s::int[], %s::text[]) WITH ORDINALITY w(scope_id, target, i) "
            "CROSS JOIN LATERAL (SELECT m.id FROM (SELECT mid FROM links WHERE scope_id = w.scope_id AND kind = %s "
            "AND md5(target) = md5(w.target) AND target = w.target "
            f"ORDER BY mid DESC LIMIT {_LOOKED_AT}) l JOIN memories m ON m.mid = l.mid {recalls} "
            f"WHERE {seen} ORDER BY m.mid DESC LIMIT {FANOUT}) o"
        )
        self._known = self._look_up(sources)

    def of(self, id: str) -> tuple[list[str], Entity | None]:
        if id not in self._known:
            self._known |= self._look_up([id])
        return self._known[id]

    def about(self, entity: Entity) -> list[str]:
        return self._pointing_at(ABOUT, [(entity[0], entity[1])])[0]

    def related(self, entity: Entity) -> list[Entity]:
        sql = (
            f"SELECT DISTINCT {{0}} FROM (SELECT * FROM triples t WHERE t.scope_id = %s AND md5(t.{{1}}) = md5(%s) "
            f"AND t.{{1}} = %s AND {_HOLDS} ORDER BY t.valid_from DESC LIMIT {FANOUT}) x"
        )
        values = (entity[0], entity[1], entity[1], self._when, self._when)
        found = [
            row[0]
            for ends in (("object_key", "subject_key"), ("subject_key", "object_key"))
            for row in self._db.rows(sql.format(*ends), values)
        ]
        return [(entity[0], name) for name in dict.fromkeys(found)][:FANOUT]

    def _look_up(self, ids: Sequence[str]) -> dict[str, tuple[list[str], Entity | None]]:
        sql = (
            "SELECT id, mid, scope_id, entity_name, aliases FROM memories "
            "WHERE id = ANY(%s::text[]) AND scope_id = ANY(%s)"
        )
        rows = self._db.rows(sql, (list(ids), self._scopes))
        outward: dict[int, list[str]] = {}
        for mid, other in self._db.rows(self._out, ([row[1] for row in rows], *self._values)):
            outward.setdefault(mid, []).append(other)
        names = [(row[0], row[2], [row[0], *(json.loads(row[4]) if row[4] else ())]) for row in rows]
        asked = [(scope, name) for _, scope, held in names for name in held]
        inward = iter(self._pointing_at(REFERS, asked))
        found: dict[str, tuple[list[str], Entity | None]] = {id: ([], None) for id in ids}
        for (id, mid, scope, entity_name, _), (_, _, held) in zip(rows, names, strict=True):
            linked = [*outward.get(mid, ()), *(other for _ in held for other in next(inward))]
            key = entity_key(entity_name)
            found[id] = [o for o in dict.fromkeys(linked) if o != id], (scope, key) if key else None
        return found

    def _pointing_at(self, kind: int, targets: Sequence[tuple[Any, str]]) -> list[list[str]]:
        """The memories whose links have each of these targets."""
        found: list[list[str]] = [[] for _ in targets]
        if targets:
            scopes, names = [scope for scope, _ in targets], [name for _, name in targets]
            for i, id in self._db.rows(self._in, (scopes, names, kind, *self._values)):
                found[i - 1].append(id)
        return found
