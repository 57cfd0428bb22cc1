"""The filter language: what `filter` may say on the wire, the conditions it becomes, and what each operator means.

Pure, and the one definition of both halves: `parse` refuses what is not in the language, and a store that filters
natively must agree with `matches`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Memory

#: Columns a condition may name; anything else is a path into metadata, or, for the engine's own use, into privacy.
COLUMNS = frozenset(
    {
        "id", "type", "kind", "content", "user_id", "project", "title", "entity_name", "tags", "confidence",
        "importance", "source", "created_at", "updated_at", "expires_at", "event_time", "session_id", "speaker",
        "merged_into", "version", "demotion", "recalls", "last_recalled_at", "agent_id", "supersedes", "aliases",
    }
)  # fmt: skip

#: Columns that hold an instant, in epoch milliseconds.
TIME_COLUMNS = frozenset({"created_at", "updated_at", "expires_at", "event_time", "last_recalled_at"})

#: Columns that hold a list; an empty one does not exist.
LIST_COLUMNS = frozenset({"tags", "supersedes", "aliases"})
OPERATORS = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "exists", "contains"})
DOCUMENTS = frozenset({"metadata", "privacy"})  # columns that hold a document, which a path leads into

_MISSING = object()
_OPERATORS = {f"${name}": name for name in sorted(OPERATORS - {"eq"})} | {"$eq": "eq"}
_LISTS = frozenset({"in", "nin"})
_ORDERED = frozenset({"gt", "gte", "lt", "lte"})
MAX_CONDITIONS = 64
_MAX_LIST = 1000


@dataclass(slots=True, frozen=True)
class Condition:
    """`path` is a column name, or one of DOCUMENTS followed by the keys down to the value; see also `any_of`."""

    path: tuple[str, ...]
    op: str
    value: Any


Where = tuple[Condition, ...]


def any_of(*conditions: Condition) -> Condition:
    """A condition that holds when at least one of these does."""
    return Condition((), "any", conditions)


def matches(memory: Memory, where: Iterable[Condition]) -> bool:
    return all(_met(memory, c) for c in where)


def _met(memory: Memory, c: Condition) -> bool:
    if c.op == "any":
        return any(_met(memory, one) for one in c.value)
    value = _value(memory, c.path)
    if c.op == "exists" and c.path[0] in LIST_COLUMNS:
        return bool(value) is c.value
    return _holds(value, c.op, c.value)


def _value(memory: Memory, path: tuple[str, ...]) -> Any:
    value: Any = getattr(memory, path[0])
    if path[0] not in DOCUMENTS:
        return value
    for key in path[1:]:
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _holds(value: Any, op: str, operand: Any) -> bool:
    # A missing field and a null one are the same: neither exists.
    if value is _MISSING:
        value = None
    match op:
        case "eq":
            return _equal(value, operand)
        case "ne":
            return not _equal(value, operand)
        case "in":
            return any(_equal(value, item) for item in operand)
        case "nin":
            return not any(_equal(value, item) for item in operand)
        case "exists":
            return (value is not None) is operand
        case "contains":
            if isinstance(value, list):
                return any(_same(item, operand) for item in value)
            return isinstance(value, str) and isinstance(operand, str) and operand in value
        case "gt" | "gte" | "lt" | "lte":
            return _ordered(value, op, operand)
    raise AssertionError(f"operator {op!r} was not checked")


def _equal(value: Any, operand: Any) -> bool:
    """A list equals a scalar when it holds it, so that {"tags": "x"} finds what is tagged x."""
    if isinstance(value, list):
        return any(_same(item, operand) for item in value)
    return _same(value, operand)


def _same(a: Any, b: Any) -> bool:
    """JSON equality of scalars: 1 is 1.0 but neither is true."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (dict, list)) or isinstance(b, (dict, list)):
        return False
    return bool(a == b)


def _ordered(value: Any, op: str, operand: Any) -> bool:
    numbers = _is_number(value) and _is_number(operand)
    strings = isinstance(value, str) and isinstance(operand, str)
    if not (numbers or strings):
        return False
    return bool({"gt": value > operand, "gte": value >= operand, "lt": value < operand, "lte": value <= operand}[op])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# what the wire may say


def parse(document: dict[str, Any] | None) -> Where:
    """A scalar is equality, a list any-of, an object operators; everything in the filter must hold."""
    if not document:
        return ()
    conditions: list[Condition] = []
    for key, value in document.items():
        path = _path(key)
        if isinstance(value, dict):
            given = [_operator(key, path, name, operand) for name, operand in _operators(key, value).items()]
        elif isinstance(value, list):
            given = [Condition(path, "in", _scalars(key, value))]
        else:
            given = [Condition(path, "eq", _scalar(key, value))]
        conditions += [c for one in given for c in _of_status(one)] if key == "status" else given
    if len(conditions) > MAX_CONDITIONS:
        raise ValidationError(f"filter has {len(conditions)} conditions; at most {MAX_CONDITIONS} are allowed")
    return tuple(conditions)


def _of_status(c: Condition) -> list[Condition]:
    """`status` is a field of the record and a word that people give their own metadata: either may be meant."""
    own = replace(c, path=("status",))
    if c.op in ("eq", "in"):
        return [any_of(own, c)]
    return [own, c] if c.op in ("ne", "nin") else [c]


def _path(key: str) -> tuple[str, ...]:
    if key in COLUMNS:
        return (key,)
    keys = tuple(key.split("."))
    if keys[0] == "metadata" and len(keys) > 1:
        keys = keys[1:]
    if not all(keys) or any(c in key for c in '"\\\x00') or key.startswith("$"):
        raise _wrong(key, "is not a field name; write 'field', or 'outer.inner' for a nested one")
    return ("metadata", *keys)


def _operators(key: str, value: dict[str, Any]) -> dict[str, Any]:
    if not value:
        raise _wrong(key, 'is an empty object; give a value, a list or operators such as {"$gt": 3}')
    for name in value:
        if name not in _OPERATORS:
            what = f"unknown operator {name!r}" if name.startswith("$") else f"{name!r} is not an operator"
            raise _wrong(
                key, f"{what}; use one of {', '.join(sorted(_OPERATORS))}, or 'outer.inner' to reach a nested field"
            )
    return {_OPERATORS[name]: operand for name, operand in value.items()}


def _operator(key: str, path: tuple[str, ...], op: str, operand: Any) -> Condition:
    if op in _LISTS:
        if not isinstance(operand, list):
            raise _wrong(key, f"${op} takes a list")
        return Condition(path, op, _scalars(key, operand))
    if op == "exists":
        if not isinstance(operand, bool):
            raise _wrong(key, "$exists takes true or false")
        return Condition(path, op, operand)
    if op in _ORDERED and (isinstance(operand, bool) or not isinstance(operand, (int, float, str))):
        raise _wrong(key, f"${op} takes a number or a string")
    return Condition(path, op, _scalar(key, operand))


def _scalars(key: str, values: list[Any]) -> list[Any]:
    if len(values) > _MAX_LIST:
        raise _wrong(key, f"lists {len(values)} values; at most {_MAX_LIST} are allowed")
    return [_scalar(key, value) for value in values]


def _scalar(key: str, value: Any) -> Any:
    if key in TIME_COLUMNS and isinstance(value, str):  # no instant is a string: it would find nothing, and not say so
        raise _wrong(key, f"is a time: write epoch milliseconds such as 1772323200000 (2026-03-01), not {value[:40]!r}")
    if isinstance(value, (dict, list)):
        raise _wrong(key, "must be compared with strings, numbers, true, false or null")
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(key, "must be a finite number")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise _wrong(key, "must be a number of at most 64 bits")
    return value


def _wrong(key: str, problem: str) -> ValidationError:
    return ValidationError(f"filter on {key!r}: {problem}", field=f"filter.{key}")
