"""Turns what a JSON Schema validator found into one sentence that names the field and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from commonplace.wire.plain import MAX_INTEGER

Path = Sequence[str | int]

_TYPES = {
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
}

#: The typing mistake first: it usually explains the field that seems to be missing.
_ORDER = {"additionalProperties": 0, "required": 1, "anyOf": 3}


def explain(errors: Iterable[Any], schema: dict[str, Any], label: str) -> tuple[str, str]:
    """The sentence for the most telling of jsonschema-rs's errors, and the field it is about."""
    error = min(errors, key=lambda e: _ORDER.get(e.kind.name, 2))
    kind, path = error.kind, error.instance_path
    rules = _rules_at(schema, error.schema_path[:-1])
    field = field_path(path) or label
    match kind.name:
        case "additionalProperties":
            unexpected = sorted(kind.unexpected)[0]
            return _unknown(unexpected, list(rules["properties"]), field), field_path([*path, unexpected])
        case "required":
            missing = field_path([*path, kind.property])
            return f"{missing} is required", missing
        case "anyOf" if "properties" in rules:  # the object itself is fine, but says too little
            choices = [branch["required"][0] for branch in rules["anyOf"]]
            return f"{field} needs a non-empty {' or '.join(choices)}", field_path([*path, choices[0]])
        case "anyOf":
            closest = _closest_branch(kind.context, path)
            if closest:
                return explain(closest, schema, label)
        case "minProperties":
            return f"{field} needs at least one of {', '.join(rules['properties'])}", field
        case "uniqueItems":
            return f"{field} must not repeat an entry", field
    sentence = f"{field} must be {allowed(rules, error.instance)}, not {shown(error.instance, kind.name)}"
    if error.instance is None and _optional(schema, error.schema_path):
        sentence += "; leave it out instead"
    return sentence, field


def field_path(path: Path) -> str:
    """["results", 0, "score"] as results[0].score."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def allowed(rules: dict[str, Any], value: Any = None) -> str:
    if "enum" in rules:
        return f"one of {', '.join(rules['enum'])}"
    if "const" in rules:
        return repr(rules["const"])
    if "anyOf" in rules and "type" not in rules:
        return " or ".join(allowed(branch, value) for branch in rules["anyOf"])
    types = rules["type"]
    if isinstance(types, list):
        return " or ".join(allowed({**rules, "type": one}, value) for one in types)
    match types:
        case "integer" | "number":
            return _TYPES[types] + _range(rules, value)
        case "string" if "pattern" in rules:
            return f"text matching {rules['pattern']}"
        case "string" if "maxLength" in rules:
            return f"text of {rules['minLength']} to {rules['maxLength']} characters"
        case "string" if "minLength" in rules:
            return "non-empty text"
        case "array" if "maxItems" in rules:
            return f"a list of {rules['minItems']} to {rules['maxItems']:,}"
        case "array" if "minItems" in rules:
            return "a non-empty list"
    return _TYPES[types]


def shown(value: Any, kind: str = "") -> str:
    """The offending value in few words: never a long text, which may be private."""
    if isinstance(value, str):
        if kind == "maxLength":
            return f"{len(value)} characters"
        return repr(value) if len(value) <= 40 else f"{value[:37]!r}…"
    if kind == "maxItems":
        return f"of {len(value):,}"
    if isinstance(value, (list, dict)):
        word = "list" if isinstance(value, list) else "object"
        return f"a{'' if value else 'n empty'} {word}" if word == "list" or not value else f"an {word}"
    return json.dumps(value)


def _range(rules: dict[str, Any], value: Any) -> str:
    low, high = rules.get("minimum"), rules.get("maximum")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if low is None or high is None or (abs(low) > 1e38 and not number):
        return ""
    if high >= MAX_INTEGER and low >= 0 and not (number and value > high):
        return f" of at least {low}"
    return f" from {low} to {high}"


def _unknown(unexpected: str, known: list[str], where: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(unexpected, known, 1)
    hint = f"did you mean '{close[0]}'?" if close else f"allowed are {', '.join(known)}"
    return f"unknown field '{unexpected[:80]}' in {where}; {hint}"


def _closest_branch(branches: list[list[Any]], path: Path) -> list[Any]:
    """The branch whose type fits, so that its own complaint says more than "neither of these"."""
    for errors in branches:
        if not any(e.kind.name == "type" and list(e.instance_path) == list(path) for e in errors):
            return errors
    return []


def _optional(schema: dict[str, Any], schema_path: Path) -> bool:
    *parent, properties, name, _ = ["", "", "", *schema_path]
    return properties == "properties" and name not in _rules_at(schema, parent[3:]).get("required", ())


def _rules_at(schema: Any, path: Path) -> Any:
    for step in path:
        schema = schema[step]
    return schema
