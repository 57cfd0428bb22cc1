"""Conditions as SQL, meaning exactly what `wire.filters.matches` means."""

from __future__ import annotations

import json
from typing import Any

from commonplace.stores.base import Reach
from commonplace.wire.filters import DOCUMENTS, LIST_COLUMNS, Condition

Sql = tuple[str, list[Any]]

_TEXTS = frozenset({"id", "type", "kind", "user_id", "project", "entity_name", "session_id", "speaker", "merged_into"})
_TIMES = frozenset({"created_at", "updated_at"})  # never null
#: Columns that are not in the row itself.
_ELSEWHERE = {
    "recalls": "coalesce(r.recalls, 0)",
    "last_recalled_at": "r.last_recalled_at",
    "agent_id": "(SELECT agent_id FROM scopes WHERE id = m.scope_id)",
}
_CONSTANTS = {None: "'null'", True: "'true'", False: "'false'"}
_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def reach_sql(reach: Reach) -> Sql:
    """Everything of a reach but its scopes and its instant, over rows `m` (and `r`, their recalls)."""
    parts = [f"m.status IN ({', '.join('?' * len(reach.statuses))})"]
    values: list[Any] = list(reach.statuses)
    if reach.now is not None:
        parts.append("(m.expires_at IS NULL OR m.expires_at > ?)")
        values.append(reach.now)
    for condition in reach.where:
        sql, more = _condition(condition)
        parts.append(sql)
        values += more
    return " AND ".join(parts), values


def _condition(c: Condition) -> Sql:
    """Columns and metadata are first reduced to (t, v), a JSON type and a value: one set of rules serves both."""
    if c.op == "any":
        found = [_condition(one) for one in c.value]
        return f"({' OR '.join(sql for sql, _ in found) or '0'})", [value for _, values in found for value in values]
    name = c.path[0]
    # Those that an index can answer, said so that it does; they mean the same.
    if name in _TEXTS and c.op == "eq" and isinstance(c.value, str):
        return f"m.{name} = ?", [c.value]
    if name in _TEXTS and c.op == "in" and c.value and all(isinstance(value, str) for value in c.value):
        return f"m.{name} IN (SELECT value FROM json_each(?))", [json.dumps(c.value, ensure_ascii=False)]
    if name in _TIMES and c.op in _COMPARE and type(c.value) in (int, float):
        return f"m.{name} {_COMPARE[c.op]} ?", [c.value]
    args: list[Any] = []
    if name in DOCUMENTS:
        path = "$" + "".join(f'."{key}"' for key in c.path[1:])
        pair, args = f"json_type(m.{name}, ?) AS t, json_extract(m.{name}, ?) AS v", [path, path]
        elements, element_args = f"json_each(m.{name}, ?)", [path]
    elif name in LIST_COLUMNS and c.op == "exists":
        return f"m.{name} IS {'NOT ' if c.value else ''}NULL", []
    elif name in LIST_COLUMNS:
        pair = "'array' AS t, NULL AS v"
        elements, element_args = f"json_each(coalesce(m.{name}, '[]'))", []
    else:
        column = _ELSEWHERE.get(name, f"m.{name}")
        kind = f"CASE typeof({column}) WHEN 'null' THEN NULL WHEN 'text' THEN 'text' ELSE 'real' END"
        pair = f"{kind} AS t, {column} AS v"
        elements, element_args = "json_each('[]')", []

    test, test_args = _test(c, elements, element_args)
    # Said so that the index of those few that are shared answers it.
    said = "m.privacy IS NOT NULL AND " if name == "privacy" and c.op == "in" and None not in c.value else ""
    return f"{said}EXISTS (SELECT 1 FROM (SELECT {pair}) x WHERE {test})", [*args, *test_args]


def _test(c: Condition, elements: str, element_args: list[Any]) -> Sql:
    match c.op:
        case "eq" | "in":
            return _any_of([c.value] if c.op == "eq" else c.value, elements, element_args)
        case "ne" | "nin":
            sql, args = _any_of([c.value] if c.op == "ne" else c.value, elements, element_args)
            return f"NOT ({sql})", args
        case "exists":
            return ("" if c.value else "NOT ") + "(coalesce(x.t, 'null') <> 'null')", []
        case "contains":
            sql, args = _one_of([c.value], "e")
            found = f"(x.t = 'array' AND EXISTS (SELECT 1 FROM {elements} e WHERE {sql}))"
            if not isinstance(c.value, str):
                return f"coalesce({found}, 0)", [*element_args, *args]
            return f"coalesce({found} OR (x.t = 'text' AND instr(x.v, ?) > 0), 0)", [*element_args, *args, c.value]
        case _:
            if isinstance(c.value, bool) or not isinstance(c.value, (int, float, str)):
                return "0", []
            kinds = "('text')" if isinstance(c.value, str) else "('integer', 'real')"
            return f"coalesce(x.t IN {kinds} AND x.v {_COMPARE[c.op]} ?, 0)", [c.value]


def _any_of(operands: list[Any], elements: str, element_args: list[Any]) -> Sql:
    """A list equals an operand when one of its elements does."""
    if not operands:
        return "0", []
    whole, whole_args = _one_of(operands, "x", "t", "v")
    part, part_args = _one_of(operands, "e")
    return (
        f"CASE WHEN x.t = 'array' THEN EXISTS (SELECT 1 FROM {elements} e WHERE {part}) ELSE ({whole}) END",
        [*element_args, *part_args, *whole_args],
    )


def _one_of(operands: list[Any], row: str, kind: str = "type", value: str = "value") -> Sql:
    """Many operands travel as one JSON array: SQLite bounds both its parameters and the depth of an OR."""
    kind, value = f"coalesce({row}.{kind}, 'null')", f"{row}.{value}"
    parts, args = [], []
    constants = sorted({_CONSTANTS[o] for o in operands if o is None or isinstance(o, bool)})
    if constants:
        parts.append(f"{kind} IN ({', '.join(constants)})")
    texts = [o for o in operands if isinstance(o, str)]
    numbers = [o for o in operands if isinstance(o, (int, float)) and not isinstance(o, bool)]
    for kinds, chosen in (("'text'", texts), ("'integer', 'real'", numbers)):
        if len(chosen) == 1:
            parts.append(f"({kind} IN ({kinds}) AND {value} = ?)")
            args.append(chosen[0])
        elif chosen:
            parts.append(f"({kind} IN ({kinds}) AND {value} IN (SELECT value FROM json_each(?)))")
            args.append(json.dumps(chosen, ensure_ascii=False))
    return f"({' OR '.join(parts)})", args
