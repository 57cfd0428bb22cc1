"""The filter language of the wire, checked and turned into conditions. Pure."""

from __future__ import annotations

import math
from typing import Any

from commonplace.stores.where import COLUMNS, OPERATORS, Condition, Where
from commonplace.wire.errors import ValidationError

_OPERATORS = {f"${name}": name for name in sorted(OPERATORS - {"eq"})} | {"$eq": "eq"}
_LISTS = frozenset({"in", "nin"})
_ORDERED = frozenset({"gt", "gte", "lt", "lte"})
_MAX_CONDITIONS = 64
_MAX_LIST = 1000


def parse(document: dict[str, Any] | None) -> Where:
    """A scalar is equality, a list any-of, an object operators; everything in the filter must hold."""
    if not document:
        return ()
    conditions: list[Condition] = []
    for key, value in document.items():
        path = _path(key)
        if isinstance(value, dict):
            conditions += [_operator(key, path, name, operand) for name, operand in _operators(key, value).items()]
        elif isinstance(value, list):
            conditions.append(Condition(path, "in", _scalars(key, value)))
        else:
            conditions.append(Condition(path, "eq", _scalar(key, value)))
    if len(conditions) > _MAX_CONDITIONS:
        raise ValidationError(f"filter has {len(conditions)} conditions; at most {_MAX_CONDITIONS} are allowed")
    return tuple(conditions)


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
    if isinstance(value, (dict, list)):
        raise _wrong(key, "must be compared with strings, numbers, true, false or null")
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(key, "must be a finite number")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise _wrong(key, "must be a number of at most 64 bits")
    return value


def _wrong(key: str, problem: str) -> ValidationError:
    return ValidationError(f"filter on {key!r}: {problem}", field=f"filter.{key}")
