"""Queries that several parts of the store make, and rows to memories and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any

from commonplace.stores.base import EmbedderInfo, Reach
from commonplace.stores.optional import SecondEmbedderInfo
from commonplace.stores.postgres.connections import Session
from commonplace.stores.postgres.sql_where import reach_sql
from commonplace.stores.postgres.text_cells import encode_json
from commonplace.stores.row_format import JSON_FIELDS, MEMORY_FIELDS, STORED_FIELDS, stored_cells, to_memory
from commonplace.wire.record import Memory

#: What follows the FROM of `select`, for one memory.
BY_IDS = "WHERE m.id = ANY(%s::text[]) AND t.name = %s"
BY_ALIAS = "JOIN aliases a ON a.mid = m.mid WHERE a.scope_id = ANY(%s) AND md5(a.alias) = md5(%s) AND a.alias = %s"
RECORDS = "SELECT kind, key, value, about FROM records WHERE tenant_id = %s AND kind = %s"
OF_KEY = "AND md5(key) = md5(%s) AND key = %s"

_ELSEWHERE = {
    "tenant": "t.name",
    "agent_id": "s.agent_id",
    "recalls": "coalesce(r.recalls, 0)",
    "last_recalled_at": "r.last_recalled_at",
}
_COLUMNS = ", ".join(_ELSEWHERE.get(name, f"m.{name}") for name in MEMORY_FIELDS)
_ENCODED = [i for i, name in enumerate(STORED_FIELDS) if name in JSON_FIELDS]


def select(table: str, extra: str = "") -> str:
    """SELECT … FROM for whole memories out of `memories` or `versions`; `extra` columns come last."""
    return (
        f"SELECT {_COLUMNS}{', ' if extra else ''}{extra} "
        f"FROM {table} m JOIN scopes s ON s.id = m.scope_id JOIN tenants t ON t.id = s.tenant_id "
        "LEFT JOIN recalls r ON r.mid = m.mid "
    )


def to_row(memory: Memory, terms: bytes, vid: int, scope_id: int) -> tuple[Any, ...]:
    """In the order of VERSION_COLUMNS."""
    cells = stored_cells(memory)
    for i in _ENCODED:
        if cells[i] is not None:
            cells[i] = encode_json(cells[i])
    return (vid, scope_id, *cells, terms)


def fetch_memories(db: Session, rest: str, values: Sequence[Any], table: str = "memories") -> list[Memory]:
    """`rest` is what follows FROM: further joins, conditions, order."""
    return [to_memory(row) for row in db.rows(select(table) + rest, values)]


def marks(values: Sized) -> str:
    return ", ".join(["%s"] * len(values))


def tenant_id(db: Session, tenant: str) -> int:
    row = db.row("SELECT id FROM tenants WHERE name = %s", (tenant,))
    return int(row[0]) if row else -1


def scope_ids(db: Session, tenant: str, agents: Iterable[str]) -> list[int]:
    """In the order of the agents."""
    return list(scopes_by_agent(db, tenant, agents).values())


def scopes_by_agent(db: Session, tenant: str, agents: Iterable[str]) -> dict[str, int]:
    sql = (
        "SELECT w.agent, s.id FROM unnest(%s::text[]) WITH ORDINALITY w(agent, i) "
        "JOIN scopes s ON md5(s.agent_id) = md5(w.agent) AND s.agent_id = w.agent "
        "JOIN tenants t ON t.id = s.tenant_id WHERE t.name = %s ORDER BY w.i"
    )
    return dict(db.rows(sql, (list(agents), tenant)))


def read_meta(db: Session) -> dict[str, Any]:
    return {
        key: number if name is None else name for key, number, name in db.rows("SELECT key, number, name FROM meta")
    }


def write_meta(db: Session, **values: int | str) -> None:
    for key, value in values.items():
        pair = (None, value) if isinstance(value, str) else (value, None)
        db.execute(
            "INSERT INTO meta(key, number, name) VALUES(%s, %s, %s) "
            "ON CONFLICT(key) DO UPDATE SET number = excluded.number, name = excluded.name",
            (key, *pair),
        )


def drop_meta(db: Session, *keys: str) -> None:
    db.execute("DELETE FROM meta WHERE key = ANY(%s::text[])", (list(keys),))


def embedder_of(meta: dict[str, Any]) -> EmbedderInfo | None:
    if "embedder" not in meta:
        return None
    return EmbedderInfo(meta["embedder"], meta["dimension"], meta["generation"])


def second_embedder_of(meta: dict[str, Any]) -> SecondEmbedderInfo | None:
    if "second_embedder" not in meta:
        return None
    generation, ready = meta["second_generation"], bool(meta["second_ready"])
    return SecondEmbedderInfo(meta["second_embedder"], meta["second_dimension"], generation, ready)


def versions_in_reach(db: Session, reach: Reach) -> list[tuple[str, str, list[Any]]]:
    """(table, condition, values) whose rows are the versions that a reach sees."""
    scopes = scope_ids(db, reach.tenant, reach.agents)
    sql, values = reach_sql(reach)
    inside = "m.scope_id = ANY(%s)"
    if reach.as_of is None:
        return [("memories", f"{inside} AND {sql}", [scopes, *values])]
    # What was current at that sequence is a row not changed since, or a version that ended after it: unless the
    # memory has expired since.
    since, ended = "", []
    if reach.now is not None:
        since = " AND NOT EXISTS (SELECT 1 FROM memories c WHERE c.mid = m.mid AND c.expires_at <= %s)"
        ended = [reach.now]
    return [
        ("memories", f"{inside} AND m.seq <= %s AND {sql}", [scopes, reach.as_of, *values]),
        (
            "versions",
            f"{inside} AND m.seq <= %s AND m.ended_seq > %s AND {sql}{since}",
            [scopes, reach.as_of, reach.as_of, *values, *ended],
        ),
    ]
