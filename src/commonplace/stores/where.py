"""Conditions on a memory, and what each operator means. Stores that filter natively must agree with `matches`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from commonplace.wire.record import Memory

#: Columns a condition may name; anything else is a path into metadata, or, for the engine's own use, into privacy.
COLUMNS = frozenset(
    {
        "id", "type", "kind", "content", "user_id", "project", "title", "entity_name", "tags", "confidence",
        "importance", "source", "created_at", "updated_at", "expires_at", "event_time", "session_id", "speaker",
        "merged_into", "version", "demotion", "recalls", "last_recalled_at",
    }
)  # fmt: skip

OPERATORS = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "exists", "contains"})
DOCUMENTS = frozenset({"metadata", "privacy"})  # columns that hold a document, which a path leads into

_MISSING = object()


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
    return _holds(_value(memory, c.path), c.op, c.value)


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
