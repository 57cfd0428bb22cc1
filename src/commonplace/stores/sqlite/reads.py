"""The reads of a primary: each is one method, in one read transaction, and never waits for whoever writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from apsw import SQLITE_OPEN_READONLY, Connection

from commonplace.stores.base import AuditEntry, AuditPart, EmbedderInfo, Page, Reach, Record
from commonplace.stores.commit_groups import sequence_at
from commonplace.stores.cursors import decode_cursor, encode_cursor
from commonplace.stores.health_checks import require_file
from commonplace.stores.row_format import RowTypes, to_record
from commonplace.stores.sqlite import queries
from commonplace.stores.sqlite.connections import StorePart, read, scan_read
from commonplace.stores.sqlite.schema import RECORD_STATUS
from commonplace.wire.record import Memory

_LAST = 2**63 - 1
_SCANNED_APART = 50  # agents; of more, a page each would be more rows than sorting is worth
_AGENTS = (
    "SELECT s.agent_id{} FROM scopes s WHERE s.tenant_id = ? "
    "AND EXISTS (SELECT 1 FROM memories m WHERE m.scope_id = s.id) ORDER BY s.agent_id"
)
_LIVE_OF_AGENT = ", (SELECT count(*) FROM memories m WHERE m.scope_id = s.id AND m.status = 'live')"

_ENTRY = RowTypes("entry of the ledger", {f.name: str(f.type) for f in fields(AuditEntry) if f.name != "parts"})
_PART = RowTypes("part of an entry of the ledger", {f.name: str(f.type) for f in fields(AuditPart)})
_AUDIT_FILTERS = {"agent_id": "agent_id = ?", "operation": "operation = ?", "since": "at >= ?", "until": "at <= ?"}
_TENANT = RowTypes("tenant", {"name": "str", "seq": "int", "audit_n": "int", "audit_hash": "str"})


def peek_agent_names(database: Path, tenant: str) -> list[str]:
    """Those of a store that nobody opens for it: it is not checked, not brought up to date and not written to."""
    with closing(Connection(str(database), flags=SQLITE_OPEN_READONLY)) as db:
        return _agent_names(db, tenant)


def _agent_names(db: Connection, tenant: str) -> list[str]:
    return [str(name) for (name,) in db.execute(_AGENTS.format(""), (queries.tenant_id(db, tenant),))]


class SqliteReads(StorePart):
    @read
    def get(self, db: Connection, tenant: str, ids: Sequence[str]) -> list[Memory]:
        owner = queries.tenant_id(db, tenant)
        return [m for id in ids for m in queries.fetch_memories(db, queries.BY_ID, (id, owner))]

    @read
    def history(self, db: Connection, tenant: str, id: str) -> list[Memory]:
        current = queries.fetch_memories(db, queries.BY_ID, (id, queries.tenant_id(db, tenant)))
        earlier = "WHERE m.mid = (SELECT mid FROM memories WHERE id = ?) ORDER BY m.version"
        return [*queries.fetch_memories(db, earlier, (id,), "versions"), *current] if current else []

    @read
    def find_alias(self, db: Connection, tenant: str, agents: Sequence[str], alias: str) -> list[Memory]:
        scopes = queries.scope_ids(db, tenant, agents)
        return [m for scope in scopes for m in queries.fetch_memories(db, queries.BY_ALIAS, (scope, alias))]

    @scan_read
    def scan(
        self, db: Connection, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        direction, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        found: list[Memory] = []
        # The index by time is in order within one scope alone: over several at once all of their rows would be sorted.
        apart = 1 < len(reach.agents) <= _SCANNED_APART
        reaches = [replace(reach, agents=(agent,)) for agent in dict.fromkeys(reach.agents)] if apart else [reach]
        for table, condition, values in (part for one in reaches for part in queries.versions_in_reach(db, one)):
            if cursor is not None:
                condition += f" AND (m.created_at, m.id) {beyond} (?, ?)"
                values = [*values, *decode_cursor(cursor)]
            rest = f"WHERE {condition} ORDER BY m.created_at {direction}, m.id {direction} LIMIT ?"
            found += queries.fetch_memories(db, rest, (*values, limit + 1), table)
        found.sort(key=lambda m: (m.created_at, m.id), reverse=newest_first)
        page = found[:limit]
        return Page(page, encode_cursor(page[-1]) if page and len(found) > limit else None)

    @scan_read
    def count(self, db: Connection, reach: Reach) -> int:
        total = 0
        for table, condition, values in queries.versions_in_reach(db, reach):
            sql = f"SELECT count(*) FROM {table} m LEFT JOIN recalls r ON r.mid = m.mid WHERE {condition}"
            total += queries.fetch_one(db, sql, values)[0]
        return total

    @read
    def tenants(self, db: Connection) -> list[str]:
        found = db.execute("SELECT name, seq, audit_n, audit_hash FROM tenants ORDER BY name")
        return [name for row in found if (name := _TENANT.checked(row)[0])]

    @read
    def agents(self, db: Connection, tenant: str) -> dict[str, int]:
        return dict(db.execute(_AGENTS.format(_LIVE_OF_AGENT), (queries.tenant_id(db, tenant),)))

    @read
    def agent_names(self, db: Connection, tenant: str) -> list[str]:
        return _agent_names(db, tenant)

    @read
    def sequence(self, db: Connection, tenant: str, at: int | None = None) -> int:
        owner = queries.tenant_id(db, tenant)
        row = db.execute("SELECT seq, audit_n FROM tenants WHERE id = ?", (owner,)).fetchone()
        if row is None:
            return 0
        seq, last = row
        if at is None:
            return int(seq)
        leaps = db.execute("SELECT value FROM meta WHERE key > ? AND key < ?", (f"leap/{owner}/", f"leap/{owner}0"))
        sql = "SELECT at, seq FROM audit WHERE tenant_id = ? AND n = ?"

        def entry(n: int) -> tuple[int, int]:
            when, number = queries.fetch_one(db, sql, (owner, n))
            return when, number

        # Every change has its audit entry.
        return sequence_at(entry, last, (n for (n,) in leaps), at)

    @read
    def audit(
        self,
        db: Connection,
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
        return _audit(db, tenant, "n > ? {} ORDER BY n LIMIT ?", after, limit, which)

    @read
    def audit_before(
        self, db: Connection, /, tenant: str, *, before: int | None = None, limit: int = 100, **which: Any
    ) -> list[AuditEntry]:
        end = _LAST if before is None else before
        return _audit(db, tenant, "n < ? {} ORDER BY n DESC LIMIT ?", end, limit, which)

    @read
    def audit_head(self, db: Connection, tenant: str) -> tuple[int, str]:
        found = db.execute("SELECT name, seq, audit_n, audit_hash FROM tenants WHERE name = ?", (tenant,)).fetchone()
        if found is None:
            return 0, ""
        _, _, number, hash = _TENANT.checked(found)
        return number, hash

    @read
    def audit_hashes(self, db: Connection, tenant: str, *, after: int = 0, limit: int = 1000) -> list[str]:
        sql = "SELECT hash FROM audit WHERE tenant_id = ? AND n > ? ORDER BY n LIMIT ?"
        return [str(hash) for (hash,) in db.execute(sql, (queries.tenant_id(db, tenant), after, limit))]

    @read
    def record(self, db: Connection, tenant: str, kind: str, key: str) -> Record | None:
        row = db.execute(f"{queries.RECORDS} AND key = ?", (queries.tenant_id(db, tenant), kind, key)).fetchone()
        return None if row is None else to_record(row)

    @read
    def record_kinds(self, db: Connection, tenant: str) -> list[str]:
        owner = queries.tenant_id(db, tenant)
        return [kind for (kind,) in db.execute("SELECT DISTINCT kind FROM records WHERE tenant_id = ?", (owner,))]

    @read
    def records(self, db: Connection, tenant: str, kind: str) -> list[Record]:
        return [
            to_record(row)
            for row in db.execute(f"{queries.RECORDS} ORDER BY key", (queries.tenant_id(db, tenant), kind))
        ]

    @read
    def records_page(
        self,
        db: Connection,
        tenant: str,
        kind: str,
        where: Mapping[str, str],
        *,
        after: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Record]:
        direction, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        conditions, values = [], list[Any]()
        for name, value in where.items():
            # The status as its index spells it.
            conditions.append(f" AND {RECORD_STATUS} = ?" if name == "status" else " AND json_extract(value, ?) = ?")
            values += [value] if name == "status" else [f'$."{name}"', value]
        if after is not None:
            conditions.append(f" AND key {beyond} ?")
            values.append(after)
        # Left to itself the planner walks all records of a kind in the order of their keys.
        start = queries.RECORDS
        if "status" in where:
            start = start.replace("FROM records", "FROM records INDEXED BY records_by_status")
        sql = f"{start}{''.join(conditions)} ORDER BY key {direction} LIMIT ?"
        found = db.execute(sql, (queries.tenant_id(db, tenant), kind, *values, limit))
        return [to_record(row) for row in found]

    @read
    def embedder(self, db: Connection) -> EmbedderInfo | None:
        return queries.embedder_of(db)

    @read
    def health(self, db: Connection) -> dict[str, Any]:
        require_file(self.files.database)
        self._writer.require_in_place()
        (count,) = queries.fetch_one(db, "SELECT count(*) FROM memories WHERE status = 'live'")
        return {"status": "ok", "memories": count, "database": str(self.files.database)}


def _audit(
    db: Connection, tenant: str, rest: str, start: int, limit: int, which: Mapping[str, Any]
) -> list[AuditEntry]:
    """Entries with their parts; `rest` says from where and in which order, and leaves a place for more conditions."""
    owner = queries.tenant_id(db, tenant)
    given = {sql: value for name, sql in _AUDIT_FILTERS.items() if (value := which.get(name)) is not None}
    found = db.execute(
        "SELECT n, at, seq, operation, agent_id, principal, payload_hash, previous, hash FROM audit "
        f"WHERE tenant_id = ? AND {rest.format(''.join(f'AND {sql} ' for sql in given))}",
        (owner, start, *given.values(), limit),
    )
    entries = [AuditEntry(*_ENTRY.checked(row)) for row in found]
    parts = "SELECT memory_id, payload, salt, hash FROM audit_parts WHERE tenant_id = ? AND n = ? ORDER BY i"
    for entry in entries:
        entry.parts = [AuditPart(*_PART.checked(row)) for row in db.execute(parts, (owner, entry.n))]
    return entries
