"""The tools as trusty-memory lists them, and the arguments that they take.

`tools.json` has their names, order, descriptions and input schemas to the letter. The schemas under
`wire/schemas/trusty` say more about every field; clients of trusty-memory expect exactly this.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from commonplace.wire.errors import ValidationError
from commonplace.wire.plain import check_field

Document = dict[str, Any]

#: What a client of trusty-memory is told it talks to: the release whose tools these are.
NAME, VERSION = "trusty-memory", "0.1.10"

_KINDS = {
    "string": "text",
    "array": "a list of strings",
    "integer": "a whole number that is not negative",
    "number": "a number",
}


def _load() -> dict[str, tuple[str, Document, list[str] | None]]:
    tools = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return {tool["name"]: (tool["description"], tool["properties"], tool["required"]) for tool in tools}


#: Arguments of ours, taken though the list, which must be trusty-memory's own, does not show them.
_UNLISTED: dict[str, Document] = {"kg_query": {"as_of": {"type": "string"}}}

#: Name → description, properties, and what is required besides the palace (None where nothing is said of it).
TOOLS = _load()


def input_schema(name: str, *, palace: bool) -> Document:
    """A tool's input schema; with `palace`, its palace must be named because there is no default one."""
    _, properties, required = TOOLS[name]
    document: Document = {"type": "object", "properties": dict(properties)}
    if required is not None:
        named = ["palace"] if palace and "palace" in properties else []
        document["required"] = named + required
    return document


def read_arguments(tool: str, given: Any, palace: str | None) -> Document:
    """Every argument of a tool, None where there is none; `palace` is meant where none is named.

    Clients write an option they do not use as null or leave it out: both mean the same. What the tool does not know is
    ignored. The words of a refusal are those of trusty-memory's guide, which no schema of ours would give.
    """
    if given is not None and not isinstance(given, dict):
        raise ValidationError(f"{tool}: arguments must be an object")
    _, properties, required = TOOLS[tool]
    arguments: Document = {}
    for name, rules in {**properties, **_UNLISTED.get(tool, {})}.items():
        value = (given or {}).get(name)
        value = rules.get("default") if value is None else _typed(tool, name, rules["type"], value)
        if name == "palace":
            value = value or palace
        if value is None and name == "palace":
            raise ValidationError(f"{tool}: missing 'palace' (no --palace default configured)", field=name)
        if value is None and name in (required or ()):
            raise ValidationError(f"{tool}: missing '{name}'", field=name)
        arguments[name] = value
    return arguments


def _typed(tool: str, name: str, kind: str, value: Any) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "array" and isinstance(value, list):
        return [_typed(tool, name, "string", each) for each in value]
    if kind == "string" and isinstance(value, str):
        check_field(value, name, f"{tool}: {name}")
        return value
    if kind == "integer" and number and value >= 0 and (isinstance(value, int) or value.is_integer()):
        return int(value)
    if kind == "number" and number and value == value:
        with suppress(OverflowError):  # a whole number may have more digits than any fraction
            return float(value)
    raise ValidationError(f"{tool}: '{name}' must be {_KINDS[kind]}, not {str(value)[:80]!r}", field=name)
