"""What a call was given. Clients write an option they do not use as null or leave it out: both mean the same."""

from __future__ import annotations

from typing import Any

from commonplace.wire.errors import ValidationError
from commonplace.wire.plain import check_json


class Arguments:
    def __init__(self, tool: str, given: Any) -> None:
        self.tool = tool
        if given is not None and not isinstance(given, dict):
            raise ValidationError(f"{tool}: arguments must be an object")
        self._given: dict[str, Any] = given or {}

    def required(self, name: str) -> str:
        if self._given.get(name) is None:
            raise ValidationError(f"{self.tool}: missing '{name}'", field=name)
        return self._text(name, self._given[name])

    def text(self, name: str) -> str | None:
        value = self._given.get(name)
        return None if value is None else self._text(name, value)

    def texts(self, name: str) -> list[str]:
        value = self._given.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, "a list of strings", value)
        return [self._text(name, each) for each in value]

    def whole(self, name: str, default: int) -> int:
        value = self._given.get(name)
        if value is None:
            return default
        whole = value.is_integer() if isinstance(value, float) else isinstance(value, int)
        if not whole or isinstance(value, bool) or value < 0:
            raise self._wrong(name, "a whole number that is not negative", value)
        return int(value)

    def number(self, name: str, default: float) -> float:
        value = self._given.get(name)
        if value is None:
            return default
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value != value:
            raise self._wrong(name, "a number", value)
        try:
            return float(value)
        except OverflowError:  # a whole number may have more digits than any fraction
            raise self._wrong(name, "a number", value) from None

    def _text(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self._wrong(name, "text", value)
        try:
            check_json(value)
        except ValueError as why:
            raise ValidationError(f"{self.tool}: {name} {why}", field=name) from None
        return value

    def _wrong(self, name: str, wanted: str, value: Any) -> ValidationError:
        return ValidationError(f"{self.tool}: '{name}' must be {wanted}, not {str(value)[:80]!r}", field=name)
