"""Queries that several parts of the store make, and rows to memories and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

from apsw import Connection

from commonplace.stores.base import EmbedderInfo, Reach
from commonplace.stores.optional import SecondEmbedderInfo
from commonplace.stores.row_format import MEMORY_FIELDS, stored_cells, to_memory
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.wire.record import Memory

#: What follows the FROM of `select`, for one memory.
BY_ID = "WHERE m.id = ? AND s.tenant_id = ?"
BY_ALIAS = "JOIN aliases a ON a.mid = m.mid WHERE a.scope_id = ? AND a.alias = ?"
RECORDS = "SELECT kind, key, value, about FROM records WHERE tenant_id = ? AND kind = ?"

_FEW = 400  # rows fetched per statement
_ELSEWHERE = {
    "tenant": "t.name",
    "agent_id": "s.agent_id",
    "recalls": "coalesce(r.recalls, 0)",
    "last_recalled_at": "r.last_recalled_at",
}
_COLUMNS = ", ".join(_ELSEWHERE.get(name, f"m.{name}") for name in MEMORY_FIELDS)


def select(table: str, extra: str = "") -> str:
    """SELECT … FROM for whole memories out of `memories` or `versions`; `extra` columns come last."""
    return (
        f"SELECT {_COLUMNS}{', ' if extra else ''}{extra} "
        f"FROM {table} m JOIN scopes s ON s.id = m.scope_id JOIN tenants t ON t.id = s.tenant_id "
        "LEFT JOIN recalls r ON r.mid = m.mid "
    )


def to_row(memory: Memory, terms: bytes, vid: int, scope_id: int) -> tuple[Any, ...]:
    """In the order of VERSION_COLUMNS."""
    return (vid, scope_id, *stored_cells(memory), terms)


def fetch_one(db: Connection, sql: str, values: Any = ()) -> Any:
    """The row of a statement that always has one."""
    row = db.execute(sql, values).fetchone()
    assert row is not None
    return row


def fetch_memories(db: Connection, rest: str, values: Any, table: str = "memories") -> list[Memory]:
    """`rest` is what follows FROM: further joins, conditions, order."""
    return [to_memory(row) for row in db.execute(select(table) + rest, values)]


def marks(values: Sized) -> str:
    return ", ".join("?" * len(values))


def tenant_id(db: Connection, tenant: str) -> int:
    for (id,) in db.execute("SELECT id FROM tenants WHERE name = ?", (tenant,)):
        return int(id)
    return -1


def scope_ids(db: Connection, tenant: str, agents: Iterable[str]) -> list[int]:
    owner = tenant_id(db, tenant)
    sql = "SELECT id FROM scopes WHERE tenant_id = ? AND agent_id = ?"
    return [row[0] for agent in agents for row in db.execute(sql, (owner, agent))]


def embedder_of(db: Connection) -> EmbedderInfo | None:
    meta = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('embedder', 'dimension', 'generation')"))
    if "embedder" not in meta:
        return None
    return EmbedderInfo(meta["embedder"], meta["dimension"], meta["generation"])


def second_embedder_of(db: Connection) -> SecondEmbedderInfo | None:
    meta = dict(db.execute("SELECT key, value FROM meta WHERE key >= 'second_' AND key < 'second`'"))
    if "second_embedder" not in meta:
        return None
    generation, ready = meta["second_generation"], bool(meta["second_ready"])
    return SecondEmbedderInfo(meta["second_embedder"], meta["second_dimension"], generation, ready)


def mids_in_reach(db: Connection, reach: Reach, scope: int) -> Iterator[int]:
    """Ascending."""
    sql, values = reach_sql(reach)
    query = f"SELECT m.mid FROM memories m LEFT JOIN recalls r ON r.mid = m.mid WHERE m.scope_id = ? AND {sql}"
    return (mid for (mid,) in db.execute(f"{query} ORDER BY m.mid", (scope, *values)))


def rows_in_reach(
    db: Connection, reach: Reach, scopes: Sequence[int], mids: Sequence[int], extra: str = ""
) -> Iterator[tuple[Any, ...]]:
    """Those of `mids` that the reach admits: whatever an index says, nothing else gets out."""
    sql, values = reach_sql(reach)
    for start in range(0, len(mids), _FEW):
        some = mids[start : start + _FEW]
        # The plus keeps the planner from the index by scope: the numbers are fewer.
        where = f"WHERE m.mid IN ({marks(some)}) AND +m.scope_id IN ({marks(scopes)}) AND {sql}"
        yield from db.execute(select("memories", extra) + where, (*some, *scopes, *values))


def versions_in_reach(db: Connection, reach: Reach) -> list[tuple[str, str, list[Any]]]:
    """(table, condition, values) whose rows are the versions that a reach sees."""
    scopes = scope_ids(db, reach.tenant, reach.agents)
    sql, values = reach_sql(reach)
    inside = f"m.scope_id IN ({marks(scopes)})"
    if reach.as_of is None:
        return [("memories", f"{inside} AND {sql}", [*scopes, *values])]
    # What was current at that sequence is a row not changed since, or a version that ended after it: unless the
    # memory has expired since.
    since, ended = "", []
    if reach.now is not None:
        since = " AND NOT EXISTS (SELECT 1 FROM memories c WHERE c.mid = m.mid AND c.expires_at <= ?)"
        ended = [reach.now]
    # The plus keeps the planner from the index by sequence: nearly all rows pass, and a list is in order of time.
    return [
        ("memories", f"{inside} AND +m.seq <= ? AND {sql}", [*scopes, reach.as_of, *values]),
        (
            "versions",
            f"{inside} AND m.seq <= ? AND m.ended_seq > ? AND {sql}{since}",
            [*scopes, reach.as_of, reach.as_of, *values, *ended],
        ),
    ]
