"""Conditions as PostgreSQL's SQL, meaning exactly what `wire.filters.matches` means."""

from __future__ import annotations

from typing import Any

from commonplace.stores.base import Reach
from commonplace.stores.postgres.text_cells import encode_json, encode_text
from commonplace.stores.row_format import to_json
from commonplace.wire.filters import DOCUMENTS, LIST_COLUMNS, Condition

Sql = tuple[str, list[Any]]

_TEXTS = frozenset(
    {
        "id", "type", "kind", "content", "user_id", "project", "title", "entity_name", "source", "session_id",
        "speaker", "merged_into", "status",
    }
)  # fmt: skip
_DIGESTS = frozenset({"user_id", "session_id", "merged_into"})  # which are indexed by their digest
_TIMES = frozenset({"created_at", "updated_at"})  # never null
#: Columns that are not in the row itself.
_ELSEWHERE = {
    "recalls": "coalesce(r.recalls, 0)",
    "last_recalled_at": "r.last_recalled_at",
    "agent_id": "(SELECT agent_id FROM scopes WHERE id = m.scope_id)",
}
_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_SCALAR = "jsonb_typeof({0}) NOT IN ('array', 'object')"
_NEVER: Sql = ("false", [])


def reach_sql(reach: Reach) -> Sql:
    """Everything of a reach but its scopes and its instant, over rows `m` (and `r`, their recalls)."""
    parts, values = ["m.status = ANY(%s)"], [list(reach.statuses)]
    if reach.statuses == ("live",):  # said so that partial indexes answer it
        parts, values = ["m.status = 'live'"], []
    if reach.now is not None:
        parts.append("(m.expires_at IS NULL OR m.expires_at > %s)")
        values.append(reach.now)  # type: ignore[arg-type]
    for condition in reach.where:
        sql, more = _condition(condition)
        parts.append(sql)
        values += more
    return " AND ".join(parts), values


def _condition(c: Condition) -> Sql:
    if c.op == "any":
        found = [_condition(one) for one in c.value]
        return f"({' OR '.join(sql for sql, _ in found) or 'false'})", [v for _, values in found for v in values]
    if (quick := _by_column(c)) is not None:
        return quick
    value, args = _value(c)
    test, test_args = _test(c)
    # Said so that the index of those few that are shared answers it.
    said = "m.privacy IS NOT NULL AND " if c.path[0] == "privacy" and c.op == "in" and None not in c.value else ""
    return f"{said}(SELECT {test} FROM (SELECT {value} AS v) x)", [*test_args, *args]


def _by_column(c: Condition) -> Sql | None:
    """Those that a column answers as it is, which may have an index; they mean the same."""
    name = c.path[0]
    if name in LIST_COLUMNS and c.op == "exists":
        return f"m.{name} IS {'NOT ' if c.value else ''}NULL", []
    if name in _TIMES and c.op in _COMPARE and type(c.value) in (int, float):
        return f"m.{name} {_COMPARE[c.op]} %s::numeric", [c.value]
    if name not in _TEXTS:
        return None
    if c.op == "contains" and isinstance(c.value, str):
        return f"coalesce(strpos(m.{name}, %s) > 0, false)", [c.value]
    if c.op in ("eq", "in"):
        wanted = [c.value] if c.op == "eq" else list(c.value)
        if wanted and all(isinstance(value, str) for value in wanted):
            if name in _DIGESTS:
                digests = "SELECT md5(w) FROM unnest(%s::text[]) w"
                return f"(md5(m.{name}) = ANY(ARRAY({digests})) AND m.{name} = ANY(%s::text[]))", [wanted, wanted]
            return f"m.{name} = ANY(%s::text[])", [wanted]
    return None


def _value(c: Condition) -> Sql:
    """What a condition looks at, as jsonb: one set of rules serves columns and documents."""
    name = c.path[0]
    if name in DOCUMENTS:
        # Strict, because a path leads through documents only; silent, because one that leads nowhere is no error.
        path = "strict $" + "".join(f'."{encode_text(key)}"' for key in c.path[1:])
        return f"jsonb_path_query_first(m.{name}::jsonb, %s::text::jsonpath, '{{}}', true)", [path]
    if name in LIST_COLUMNS:
        return f"coalesce(m.{name}::jsonb, '[]')", []
    return f"to_jsonb({_ELSEWHERE.get(name, f'm.{name}')})", []


def _test(c: Condition) -> Sql:
    """Of `x.v`, which is NULL where there is nothing; never NULL itself."""
    match c.op:
        case "eq" | "in":
            return _any_of([c.value] if c.op == "eq" else c.value)
        case "ne" | "nin":
            sql, args = _any_of([c.value] if c.op == "ne" else c.value)
            return f"NOT ({sql})", args
        case "exists":
            return ("" if c.value else "NOT ") + "(coalesce(jsonb_typeof(x.v), 'null') <> 'null')", []
        case "contains":
            found, args = _element(), [_json([c.value])]
            if not isinstance(c.value, str):
                return f"CASE WHEN jsonb_typeof(x.v) = 'array' THEN {found} ELSE false END", args
            inside = "strpos(x.v #>> '{}', %s) > 0"
            whole = f"CASE jsonb_typeof(x.v) WHEN 'array' THEN {found} WHEN 'string' THEN {inside} ELSE false END"
            return whole, [*args, c.value]
        case _:
            if isinstance(c.value, bool) or not isinstance(c.value, (int, float, str)):
                return _NEVER
            if isinstance(c.value, str):
                compared = f"(x.v #>> '{{}}') COLLATE \"C\" {_COMPARE[c.op]} %s"
                return f"CASE WHEN jsonb_typeof(x.v) = 'string' THEN {compared} ELSE false END", [c.value]
            compared = f"x.v::numeric {_COMPARE[c.op]} %s::text::numeric"
            return f"CASE WHEN jsonb_typeof(x.v) = 'number' THEN {compared} ELSE false END", [repr(c.value)]


def _any_of(operands: list[Any]) -> Sql:
    """A list equals an operand when one of its elements does. What an array contains is compared as JSON compares:
    1 is 1.0, and neither is true."""
    if not operands:
        return _NEVER
    one = "%s::jsonb @> coalesce(x.v, 'null')"
    given = _json(operands)
    cases = f"WHEN 'array' THEN {_element()} WHEN 'object' THEN false ELSE {one}"
    return f"CASE jsonb_typeof(x.v) {cases} END", [given, given]


def _element() -> str:
    return f"EXISTS (SELECT 1 FROM jsonb_array_elements(x.v) e WHERE {_SCALAR.format('e')} AND %s::jsonb @> e)"


def _json(operands: list[Any]) -> str:
    return encode_json(to_json(list(operands)))
