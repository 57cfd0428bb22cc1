"""Reading: a few threads, each with its own connection, each read one consistent view of the database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import apsw

from commonplace.stores.base import AuditEntry, AuditPart, Page, Reach
from commonplace.stores.sqlite import rows
from commonplace.stores.sqlite.files import StoreFiles, connect, refusal
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.record import Memory

T = TypeVar("T")


class Readers:
    """Connections are opened per thread and only ever read."""

    def __init__(self, files: StoreFiles, threads: int = 4) -> None:
        self._files = files
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="commonplace-reader")
        self._local = threading.local()
        self._all: list[apsw.Connection] = []
        self._lock = threading.Lock()

    async def run(
        self, read: Callable[[apsw.Connection], T], before: Callable[[apsw.Connection], None] | None = None
    ) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.now, read, before)

    def now(self, read: Callable[[apsw.Connection], T], before: Callable[[apsw.Connection], None] | None = None) -> T:
        """Read on the calling thread, inside one read transaction; `before` runs ahead of it."""
        db = self._connection()
        try:
            if before is not None:
                before(db)
            with _snapshot(db):
                return read(db)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise refusal(self._files.database, str(error)) from error
        except UnicodeEncodeError:  # of a name or an id that was asked for: nothing is kept that is not text
            raise ValidationError("what was asked for holds half of a surrogate pair, which is not text") from None
        except apsw.Error as error:
            raise Unavailable(f"{self._files.database} could not be read: {error}") from error

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        for db in self._all:
            db.close()

    def _connection(self) -> apsw.Connection:
        db: apsw.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = connect(self._files.database)
            db.execute("PRAGMA query_only=ON")
            self._local.db = db
            with self._lock:
                self._all.append(db)
        return db


@contextmanager
def _snapshot(db: apsw.Connection) -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("COMMIT")


def tenant_id(db: apsw.Connection, tenant: str) -> int:
    for (id,) in db.execute("SELECT id FROM tenants WHERE name = ?", (tenant,)):
        return int(id)
    return -1


def scope_ids(db: apsw.Connection, tenant: str, agents: Sequence[str]) -> list[int]:
    owner = tenant_id(db, tenant)
    sql = "SELECT id FROM scopes WHERE tenant_id = ? AND agent_id = ?"
    return [row[0] for agent in agents for row in db.execute(sql, (owner, agent))]


def get(db: apsw.Connection, tenant: str, ids: Sequence[str]) -> list[Memory]:
    owner = tenant_id(db, tenant)
    sql = rows.select("memories") + "WHERE m.id = ? AND s.tenant_id = ?"
    return [rows.to_memory(row) for id in ids for row in db.execute(sql, (id, owner))]


def history(db: apsw.Connection, tenant: str, id: str) -> list[Memory]:
    current = get(db, tenant, [id])
    if not current:
        return []
    sql = rows.select("versions") + "WHERE m.mid = (SELECT mid FROM memories WHERE id = ?) ORDER BY m.version"
    return [rows.to_memory(row) for row in db.execute(sql, (id,))] + current


def find_alias(db: apsw.Connection, tenant: str, agents: Sequence[str], alias: str) -> list[Memory]:
    sql = rows.select("memories") + "JOIN aliases a ON a.mid = m.mid WHERE a.scope_id = ? AND a.alias = ?"
    return [rows.to_memory(row) for scope in scope_ids(db, tenant, agents) for row in db.execute(sql, (scope, alias))]


def runs(db: apsw.Connection, scope: int, ids: Sequence[str], each: int) -> list[list[int]]:
    """Numbers of live memories, in the order written: these and up to `each` around them in their sessions."""
    sql = f"SELECT mid, session_id FROM memories WHERE id IN ({', '.join('?' * len(ids))}) AND +scope_id = ?"
    asked = sorted((session, mid) for mid, session in db.execute(sql, (*ids, scope)) if session is not None)
    beside = "SELECT mid FROM memories WHERE scope_id = ? AND session_id = ? AND status = 'live' AND mid {} LIMIT ?"
    before, after = beside.format("< ? ORDER BY mid DESC"), beside.format("> ? ORDER BY mid")
    found: list[tuple[str, list[int]]] = []
    for session, mid in asked:
        if found and found[-1][0] == session and mid in found[-1][1]:
            run = found.pop()[1]  # within reach of the one before: they share a run
            run = run[: run.index(mid)]
        else:
            run = [m for (m,) in db.execute(before, (scope, session, mid, each))][::-1]
            if found and found[-1][0] == session and run and run[0] in found[-1][1]:
                earlier = found.pop()[1]
                run = earlier[: earlier.index(run[0])] + run
        run += [mid, *(m for (m,) in db.execute(after, (scope, session, mid, each)))]
        found.append((session, run))
    return [run for _, run in found]


def versions_in(reach: Reach, scopes: list[int]) -> list[tuple[str, str, list[Any]]]:
    """(table, condition, values) whose rows are the versions that a reach sees."""
    sql, values = reach_sql(reach)
    marks = ", ".join("?" * len(scopes))
    if reach.as_of is None:
        return [("memories", f"m.scope_id IN ({marks}) AND {sql}", [*scopes, *values])]
    # What was current at that sequence is a row not changed since, or a version that ended after it: unless the
    # memory has expired since.
    since, ended = "", []
    if reach.now is not None:
        since = " AND NOT EXISTS (SELECT 1 FROM memories c WHERE c.mid = m.mid AND c.expires_at <= ?)"
        ended = [reach.now]
    # The plus keeps the planner from the index by sequence: nearly all rows pass, and a list is in order of time.
    return [
        ("memories", f"m.scope_id IN ({marks}) AND +m.seq <= ? AND {sql}", [*scopes, reach.as_of, *values]),
        (
            "versions",
            f"m.scope_id IN ({marks}) AND m.seq <= ? AND m.ended_seq > ? AND {sql}{since}",
            [*scopes, reach.as_of, reach.as_of, *values, *ended],
        ),
    ]


def scan(db: apsw.Connection, reach: Reach, limit: int, cursor: str | None, newest_first: bool) -> Page:
    scopes = scope_ids(db, reach.tenant, reach.agents)
    direction, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
    found: list[Memory] = []
    for table, condition, values in versions_in(reach, scopes):
        if cursor is not None:
            condition += f" AND (m.created_at, m.id) {beyond} (?, ?)"
            values = [*values, *_cursor_decode(cursor)]
        sql = f"{rows.select(table)} WHERE {condition} ORDER BY m.created_at {direction}, m.id {direction} LIMIT ?"
        found += [rows.to_memory(row) for row in db.execute(sql, (*values, limit + 1))]
    found.sort(key=lambda m: (m.created_at, m.id), reverse=newest_first)
    page = found[:limit]
    more = len(found) > limit
    return Page(page, cursor_encode(page[-1]) if more and page else None)


def cursor_encode(memory: Memory) -> str:
    return f"{memory.created_at:x}.{memory.id}"


def _cursor_decode(cursor: str) -> tuple[int, str]:
    head, _, tail = cursor.partition(".")
    try:
        at = int(head, 16)
        if abs(at) < 2**63:
            return at, tail
    except ValueError:
        pass
    raise ValidationError(f"invalid cursor {cursor!r}; pass back next_cursor as it came", field="cursor")


def agents(db: apsw.Connection, tenant: str) -> dict[str, int]:
    sql = (
        "SELECT s.agent_id, (SELECT count(*) FROM memories m WHERE m.scope_id = s.id AND m.status = 'live') "
        "FROM scopes s WHERE s.tenant_id = ? AND EXISTS (SELECT 1 FROM memories m WHERE m.scope_id = s.id) "
        "ORDER BY s.agent_id"
    )
    return dict(db.execute(sql, (tenant_id(db, tenant),)))


def agent_names(db: apsw.Connection, tenant: str) -> list[str]:
    sql = (
        "SELECT s.agent_id FROM scopes s "
        "WHERE s.tenant_id = ? AND EXISTS (SELECT 1 FROM memories m WHERE m.scope_id = s.id) ORDER BY s.agent_id"
    )
    return [str(name) for (name,) in db.execute(sql, (tenant_id(db, tenant),))]


def count(db: apsw.Connection, reach: Reach) -> int:
    total = 0
    for table, condition, values in versions_in(reach, scope_ids(db, reach.tenant, reach.agents)):
        sql = f"SELECT count(*) FROM {table} m LEFT JOIN recalls r ON r.mid = m.mid WHERE {condition}"
        total += rows.one(db, sql, values)[0]
    return total


def sequence(db: apsw.Connection, tenant: str, at: int | None) -> int:
    owner = tenant_id(db, tenant)
    row = db.execute("SELECT seq, audit_n FROM tenants WHERE id = ?", (owner,)).fetchone()
    if row is None:
        return 0
    seq, last = row
    if at is None:
        return int(seq)
    # Every change has its audit entry, and their times never decrease: halve the chain until the instant is found.
    low, high, result = 1, last, 0
    while low <= high:
        middle = (low + high) // 2
        when, its_seq = rows.one(db, "SELECT at, seq FROM audit WHERE tenant_id = ? AND n = ?", (owner, middle))
        if when <= at:
            low, result = middle + 1, its_seq
        else:
            high = middle - 1
    return int(result)


def audit(
    db: apsw.Connection, tenant: str, after: int, limit: int, agent_id: str | None, operation: str | None,
    since: int | None, until: int | None,
) -> list[AuditEntry]:  # fmt: skip
    owner = tenant_id(db, tenant)
    sql, values = "tenant_id = ? AND n > ?", [owner, after]
    for name, value in (
        ("agent_id = ?", agent_id),
        ("operation = ?", operation),
        ("at >= ?", since),
        ("at <= ?", until),
    ):
        if value is not None:
            sql += f" AND {name}"
            values.append(value)  # type: ignore[arg-type]
    entries = [
        AuditEntry(*row)
        for row in db.execute(
            "SELECT n, at, seq, operation, agent_id, principal, payload_hash, previous, hash FROM audit "
            f"WHERE {sql} ORDER BY n LIMIT ?",
            (*values, limit),
        )
    ]
    parts = "SELECT memory_id, payload, salt, hash FROM audit_parts WHERE tenant_id = ? AND n = ? ORDER BY i"
    for entry in entries:
        entry.parts = [AuditPart(*row) for row in db.execute(parts, (owner, entry.n))]
    return entries
