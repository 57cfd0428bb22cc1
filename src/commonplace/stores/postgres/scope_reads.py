"""What recall needs of every memory of a scope, answered by indexes instead of being kept: servers hold no state."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

from commonplace.stores.base import AgentContext, ImportanceDecay, Reach
from commonplace.stores.postgres import queries
from commonplace.stores.postgres.connections import Session, StorePart, read
from commonplace.stores.postgres.sql_where import reach_sql
from commonplace.wire.record import Memory

#: Distinct names by jumping through the index from one to the next.
_SPEAKERS = """
WITH RECURSIVE
  first AS (SELECT s.id AS scope_id, f.digest, f.speaker FROM unnest(%s::int[]) s(id) CROSS JOIN LATERAL (
    SELECT md5(speaker) AS digest, speaker FROM memories
    WHERE scope_id = s.id AND speaker IS NOT NULL AND status = 'live' ORDER BY md5(speaker) LIMIT 1) f),
  found AS (SELECT * FROM first UNION ALL SELECT d.scope_id, n.digest, n.speaker FROM found d CROSS JOIN LATERAL (
    SELECT md5(m.speaker) AS digest, m.speaker FROM memories m
    WHERE m.scope_id = d.scope_id AND m.speaker IS NOT NULL AND m.status = 'live' AND md5(m.speaker) > d.digest
    ORDER BY md5(m.speaker) LIMIT 1) n)
SELECT speaker FROM found WHERE speaker <> ''
"""
_REPLACED = (
    "SELECT id, supersedes FROM memories WHERE scope_id = ANY(%s) AND supersedes IS NOT NULL AND status = 'live' "
    "AND (expires_at IS NULL OR expires_at > %s) ORDER BY mid"
)
#: `ImportanceDecay.of`; what is many half-lives old is worth nothing, and PostgreSQL calls it an error
#: when a product is too small to be told from it.
_WORTH = (
    "(SELECT CASE WHEN x.given < 1e-20 THEN 0 ELSE x.given * power(2.0::float8, "
    "greatest(-greatest(%s - m.created_at, 0)::float8 / %s, -1000)) END "
    "FROM (SELECT coalesce(m.importance, %s) AS given) x) "
    "+ least(%s * coalesce(r.recalls, 0), %s)"
)
_MOST = 2**62  # rows that anyone can mean to ask for
_SPARE = 16  # rows beyond those wanted, whose order is then settled as everywhere


class PostgresScopeReads(StorePart):
    @read
    def context(self, db: Session, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext:
        scopes = queries.scope_ids(db, tenant, agents)
        speakers = frozenset(name for (name,) in db.rows(_SPEAKERS, (scopes,)))
        found = db.rows(_REPLACED, (scopes, now or 0))
        return AgentContext(speakers, {old: id for id, olds in found for old in json.loads(olds)})

    @read
    def most_important(self, db: Session, reach: Reach, decay: ImportanceDecay, at: int, limit: int) -> list[Memory]:
        if limit <= 0:
            return []
        if reach.as_of is not None:  # the past is nowhere ordered
            then = queries.versions_in_reach(db, reach)
            found = [queries.fetch_memories(db, f"WHERE {where}", values, table) for table, where, values in then]
            return decay.order(itertools.chain(*found), at)[:limit]
        seen, values = reach_sql(reach)
        scopes = queries.scope_ids(db, reach.tenant, reach.agents)
        rest = f"WHERE m.scope_id = ANY(%s) AND {seen} ORDER BY {_WORTH} DESC, m.created_at DESC, m.id DESC LIMIT %s"
        worth = (at, decay.half_life, decay.base, decay.each, decay.most)
        best = queries.fetch_memories(db, rest, (scopes, *values, *worth, min(limit, _MOST) + _SPARE))
        return decay.order(best, at)[:limit]
