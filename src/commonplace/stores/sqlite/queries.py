"""Queries that several parts of the store make, and rows to memories and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import fields
from operator import attrgetter
from typing import Any

from apsw import Connection

from commonplace.stores.base import EmbedderInfo, Reach, Record, SecondEmbedderInfo
from commonplace.stores.sqlite.cells import DamagedCell, RowTypes
from commonplace.stores.sqlite.schema import VERSION_COLUMNS
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.wire.record import Memory

to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

#: What follows the FROM of `select`, for one memory.
BY_ID = "WHERE m.id = ? AND s.tenant_id = ?"
BY_ALIAS = "JOIN aliases a ON a.mid = m.mid WHERE a.scope_id = ? AND a.alias = ?"
RECORDS = "SELECT kind, key, value, about FROM records WHERE tenant_id = ? AND kind = ?"

_FEW = 400  # rows fetched per statement
_JSON = {"tags": list, "metadata": dict, "provenance": dict, "privacy": dict, "supersedes": list, "aliases": list}
_ELSEWHERE = {
    "tenant": "t.name",
    "agent_id": "s.agent_id",
    "recalls": "coalesce(r.recalls, 0)",
    "last_recalled_at": "r.last_recalled_at",
}
_FIELDS = [f.name for f in fields(Memory)]
_WIDTH = len(_FIELDS)
_decode_json = json.JSONDecoder().raw_decode
# What is encoded is text, or nothing when it is empty; literals are texts, too.
_ENCODED_TEXT = dict.fromkeys(_JSON, "str | None") | dict.fromkeys(("type", "status"), "str")
_TYPES = RowTypes("memory", {f.name: _ENCODED_TEXT.get(f.name, str(f.type)) for f in fields(Memory)})
_COLUMNS = ", ".join(_ELSEWHERE.get(name, f"m.{name}") for name in _FIELDS)
_DECODED = [(i, _JSON[name]) for i, name in enumerate(_FIELDS) if name in _JSON]
_STORED = VERSION_COLUMNS[2:-1]  # between what the store adds in front and the terms at the end
_ENCODED = [i for i, name in enumerate(_STORED) if name in _JSON]
_stored = attrgetter(*_STORED)


def select(table: str, extra: str = "") -> str:
    """SELECT … FROM for whole memories out of `memories` or `versions`; `extra` columns come last."""
    return (
        f"SELECT {_COLUMNS}{', ' if extra else ''}{extra} "
        f"FROM {table} m JOIN scopes s ON s.id = m.scope_id JOIN tenants t ON t.id = s.tenant_id "
        "LEFT JOIN recalls r ON r.mid = m.mid "
    )


def to_memory(row: Sequence[Any]) -> Memory:
    values = list(row[:_WIDTH])
    _TYPES.check(values)
    for i, kind in _DECODED:
        if values[i]:
            values[i] = _from_json(values[i])
            if type(values[i]) is not kind:
                raise DamagedCell(f"{_FIELDS[i]} of a memory is no {kind.__name__}")
        else:
            values[i] = kind()
    return Memory(*values)


def _from_json(text: str) -> Any:
    """As `json.loads`, which looks for blanks around it: `to_json` writes none, and a recall reads dozens of rows."""
    value, end = _decode_json(text)
    return value if end == len(text) else json.loads(text)  # which says what is wrong


def to_row(memory: Memory, terms: bytes, vid: int, scope_id: int) -> tuple[Any, ...]:
    """In the order of VERSION_COLUMNS."""
    values = list(_stored(memory))
    for i in _ENCODED:
        values[i] = to_json(values[i]) if values[i] else None
    return (vid, scope_id, *values, terms)


def to_record(row: Sequence[Any]) -> Record:
    kind, key, value, about = row
    held = json.loads(value)
    if type(held) is not dict:
        raise DamagedCell(f"a {kind} is no document")
    return Record(kind, key, held, tuple(json.loads(about)) if about else ())


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
