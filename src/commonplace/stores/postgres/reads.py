"""The reads of a primary: each is one method, in one read transaction, and never waits for whoever writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.stores.base import AuditEntry, AuditPart, EmbedderInfo, Page, Reach, Record
from commonplace.stores.commit_groups import sequence_at
from commonplace.stores.cursors import decode_cursor, encode_cursor
from commonplace.stores.postgres import queries
from commonplace.stores.postgres.connections import Session, StorePart, read, scan_read
from commonplace.stores.row_format import to_record
from commonplace.wire.record import Memory

_LAST = 2**63 - 1
_AUDIT_FILTERS = {"agent_id": "agent_id = %s", "operation": "operation = %s", "since": "at >= %s", "until": "at <= %s"}
_AGENTS = (
    "SELECT s.agent_id, s.documents FROM scopes s JOIN tenants t ON t.id = s.tenant_id WHERE t.name = %s "
    "AND EXISTS (SELECT 1 FROM memories m WHERE m.scope_id = s.id) ORDER BY s.agent_id"
)


class PostgresReads(StorePart):
    @read
    def get(self, db: Session, tenant: str, ids: Sequence[str]) -> list[Memory]:
        by_id = {m.id: m for m in queries.fetch_memories(db, queries.BY_IDS, (list(ids), tenant))}
        return [by_id[id] for id in ids if id in by_id]

    @read
    def history(self, db: Session, tenant: str, id: str) -> list[Memory]:
        current = queries.fetch_memories(db, queries.BY_IDS, ([id], tenant))
        earlier = "WHERE m.mid = (SELECT mid FROM memories WHERE id = %s) ORDER BY m.version"
        return [*queries.fetch_memories(db, earlier, (id,), "versions"), *current] if current else []

    @read
    def find_alias(self, db: Session, tenant: str, agents: Sequence[str], alias: str) -> list[Memory]:
        scopes = queries.scope_ids(db, tenant, agents)
        order = "ORDER BY array_position(%s::int[], a.scope_id)"
        return queries.fetch_memories(db, f"{queries.BY_ALIAS} {order}", (scopes, alias, alias, scopes))

    @scan_read
    def scan(
        self, db: Session, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        direction, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        found: list[Memory] = []
        for table, condition, values in queries.versions_in_reach(db, reach):
            if cursor is not None:
                condition += f" AND (m.created_at, m.id) {beyond} (%s, %s)"
                values = [*values, *decode_cursor(cursor)]
            rest = f"WHERE {condition} ORDER BY m.created_at {direction}, m.id {direction} LIMIT %s"
            found += queries.fetch_memories(db, rest, (*values, min(limit, _LAST - 1) + 1), table)
        found.sort(key=lambda m: (m.created_at, m.id), reverse=newest_first)
        page = found[:limit]
        return Page(page, encode_cursor(page[-1]) if page and len(found) > limit else None)

    @scan_read
    def count(self, db: Session, reach: Reach) -> int:
        total = 0
        for table, condition, values in queries.versions_in_reach(db, reach):
            sql = f"SELECT count(*) FROM {table} m LEFT JOIN recalls r ON r.mid = m.mid WHERE {condition}"
            total += db.one(sql, values)[0]
        return total

    @read
    def tenants(self, db: Session) -> list[str]:
        return [name for (name,) in db.rows("SELECT name FROM tenants WHERE name <> '' ORDER BY name")]

    @read
    def agents(self, db: Session, tenant: str) -> dict[str, int]:
        return dict(db.rows(_AGENTS, (tenant,)))

    @read
    def agent_names(self, db: Session, tenant: str) -> list[str]:
        return [name for name, _ in db.rows(_AGENTS, (tenant,))]

    @read
    def sequence(self, db: Session, tenant: str, at: int | None = None) -> int:
        row = db.row("SELECT id, seq, audit_n FROM tenants WHERE name = %s", (tenant,))
        if row is None:
            return 0
        owner, seq, last = row
        if at is None:
            return int(seq)
        leaps = db.rows("SELECT n FROM clock_leaps WHERE tenant_id = %s", (owner,))
        sql = "SELECT at, seq FROM audit WHERE tenant_id = %s AND n = %s"

        def entry(n: int) -> tuple[int, int]:
            when, number = db.one(sql, (owner, n))
            return when, number

        # Every change has its audit entry.
        return sequence_at(entry, last, (n for (n,) in leaps), at)

    @read
    def audit(
        self,
        db: Session,
        tenant: str,
        *,
        after: int = 0,
        limit: int = 100,
        agent_id: str | None = None,
        operation: str | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> list[AuditEntry]:
        which = {"agent_id": agent_id, "operation": operation, "since": since, "until": until}
        return _audit(db, tenant, "n > %s {} ORDER BY n LIMIT %s", after, limit, which)

    @read
    def audit_before(
        self, db: Session, /, tenant: str, *, before: int | None = None, limit: int = 100, **which: Any
    ) -> list[AuditEntry]:
        start = _LAST if before is None else before
        return _audit(db, tenant, "n < %s {} ORDER BY n DESC LIMIT %s", start, limit, which)

    @read
    def audit_hashes(self, db: Session, tenant: str, *, after: int = 0, limit: int = 1000) -> list[str]:
        sql = "SELECT hash FROM audit WHERE tenant_id = %s AND n > %s ORDER BY n LIMIT %s"
        return [hash for (hash,) in db.rows(sql, (queries.tenant_id(db, tenant), after, limit))]

    @read
    def audit_head(self, db: Session, tenant: str) -> tuple[int, str]:
        row = db.row("SELECT audit_n, audit_hash FROM tenants WHERE name = %s", (tenant,))
        return (0, "") if row is None else (row[0], row[1])

    @read
    def record(self, db: Session, tenant: str, kind: str, key: str) -> Record | None:
        row = db.row(f"{queries.RECORDS} {queries.OF_KEY}", (queries.tenant_id(db, tenant), kind, key, key))
        return None if row is None else to_record(row)

    @read
    def record_kinds(self, db: Session, tenant: str) -> list[str]:
        found = db.rows("SELECT DISTINCT kind FROM records WHERE tenant_id = %s", (queries.tenant_id(db, tenant),))
        return sorted(kind for (kind,) in found)

    @read
    def records(self, db: Session, tenant: str, kind: str) -> list[Record]:
        found = db.rows(f"{queries.RECORDS} ORDER BY key", (queries.tenant_id(db, tenant), kind))
        return [to_record(row) for row in found]

    @read
    def records_page(
        self,
        db: Session,
        tenant: str,
        kind: str,
        where: Mapping[str, str],
        *,
        after: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Record]:
        sql, values = queries.RECORDS, [queries.tenant_id(db, tenant), kind]
        for name, text in where.items():
            sql, values = f"{sql} AND value ->> %s = %s", [*values, name, text]
            if name == "status":  # said so that its index answers it
                sql, values = f"{sql} AND left(value ->> 'status', 64) = left(%s, 64)", [*values, text]
        if after is not None:
            sql, values = f"{sql} AND key {'<' if newest_first else '>'} %s", [*values, after]
        sql = f"{sql} ORDER BY key {'DESC' if newest_first else 'ASC'} LIMIT %s"
        return [to_record(row) for row in db.rows(sql, (*values, limit))]

    @read
    def embedder(self, db: Session) -> EmbedderInfo | None:
        return queries.embedder_of(queries.read_meta(db))

    @read
    def health(self, db: Session) -> dict[str, Any]:
        (count,) = db.one("SELECT coalesce(sum(documents), 0)::bigint FROM scopes")
        return {"status": "ok", "memories": count, "database": str(self.address)}


def _audit(db: Session, tenant: str, rest: str, start: int, limit: int, which: Mapping[str, Any]) -> list[AuditEntry]:
    """Entries with their parts; `rest` says from where and in which order, and leaves a place for more conditions."""
    owner = queries.tenant_id(db, tenant)
    given = {sql: value for name, sql in _AUDIT_FILTERS.items() if (value := which.get(name)) is not None}
    found = db.rows(
        "SELECT n, at, seq, operation, agent_id, principal, payload_hash, previous, hash FROM audit "
        f"WHERE tenant_id = %s AND {rest.format(''.join(f'AND {sql} ' for sql in given))}",
        (owner, start, *given.values(), limit),
    )
    entries = {row[0]: AuditEntry(*row) for row in found}
    parts = "SELECT n, memory_id, payload, salt, hash FROM audit_parts WHERE tenant_id = %s AND n = ANY(%s)"
    for n, *part in db.rows(f"{parts} ORDER BY n, i", (owner, list(entries))) if entries else ():
        entries[n].parts.append(AuditPart(*part))
    return list(entries.values())
