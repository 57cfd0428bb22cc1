"""What counts as a JSON document: finite numbers, real text, string keys, and an end to its depth.

Apart from `validate`, because the engine checks texts without any schema.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from commonplace.wire.errors import ValidationError

#: Integers stay exact in every JSON implementation up to here (RFC 8259 §6).
MAX_INTEGER = 2**53 - 1
#: Deeper documents are refused; no JSON Schema keyword can say it.
MAX_DEPTH = 100


def check_json(value: Any, depth: int = MAX_DEPTH) -> None:
    """Raises ValueError with what is wrong, worded to follow the field's name."""
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError("holds half of a surrogate pair, which is not text") from None
    elif isinstance(value, dict):
        if not depth:
            raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ValueError("has a key that is not a string")
            check_json(key, depth)
            check_json(inner, depth - 1)
    elif isinstance(value, list):
        if not depth:
            raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
        for inner in value:
            check_json(inner, depth - 1)
    elif isinstance(value, float):
        if not isfinite(value):
            raise ValueError("holds a number that is not finite")
    elif value is not None and not isinstance(value, (bool, int)):
        raise ValueError(f"holds a value of type {type(value).__name__}, which is not JSON")


def check_field(value: Any, field: str, label: str | None = None) -> None:
    """`check_json` as a fault for the caller, whose sentence calls the field `label` where that is not its name."""
    try:
        check_json(value)
    except ValueError as why:
        raise ValidationError(f"{label or field} {why}", field=field) from None


def check_not_blank(text: str, field: str) -> None:
    if not text.strip():
        raise ValidationError(f"{field} must not be blank", field=field)
