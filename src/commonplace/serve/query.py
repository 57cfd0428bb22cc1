"""Query strings: what a route takes there, taken from the schema of its request, checked and converted to its types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, Literal

from commonplace.wire import strict_json
from commonplace.wire.errors import ValidationError
from commonplace.wire.plain import check_field
from commonplace.wire.validate import schema

Form = Literal["plain", "comma-separated", "json"]
_JSON_TEXT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 16_384}


class Parameter:
    """`rules` is the JSON Schema of what is written in the query string, or of the number it stands for."""

    def __init__(self, rules: Mapping[str, Any], *, required: bool = False, form: Form = "plain") -> None:
        self.rules = rules
        self.required = required
        self._form = form

    def parse(self, name: str, text: str) -> Any:
        check_field(text, name)
        is_integer = text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 17
        value: Any = int(text) if self.rules.get("type") == "integer" and is_integer else text
        if self.rules.get("type") == "boolean":
            value = {"true": True, "false": False}.get(text, text)
        if not self._validator.is_valid(value):
            from commonplace.wire.schema_errors import allowed, shown

            too_long = isinstance(value, str) and len(value) > self.rules.get("maxLength", len(value))
            told = shown(value, "maxLength" if too_long else "")
            sentence = f"{name} must be {allowed(dict(self.rules), value)}, not {told}"
            raise ValidationError(sentence, field=name)
        if self._form == "comma-separated":
            return [item for part in text.split(",") if (item := part.strip())]
        return _json_object(name, text) if self._form == "json" else value

    @cached_property
    def _validator(self) -> Any:
        from jsonschema_rs import Draft202012Validator

        return Draft202012Validator(dict(self.rules))


Parameters = Mapping[str, Parameter]


def parameters(name: str, *fields: str) -> Callable[[], Parameters]:
    """The fields of a request, by default all but the id in its path; the schema is read when first asked for."""

    @cache
    def read() -> Parameters:
        request = schema(name)
        properties, required = request["properties"], request.get("required", ())
        chosen = fields or tuple(field for field in properties if field != "id")
        return {field: _parameter(properties[field], field in required) for field in chosen}

    return read


def parse_query(operation: str, known: Parameters, given: Mapping[str, str]) -> dict[str, Any]:
    """What was given, converted; a parameter that is unknown, missing or wrong is refused."""
    for name in given:
        if name not in known:
            allowed = f"allowed are {', '.join(known)}" if known else "there are none"
            raise ValidationError(f"unknown query parameter {name[:80]!r} for {operation}; {allowed}", field=name[:80])
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        if name in given:
            values[name] = parameter.parse(name, given[name])
        elif parameter.required:
            raise ValidationError(f"{name} is required", field=name)
    return values


def _parameter(rules: Mapping[str, Any], required: bool) -> Parameter:
    match rules.get("type"):
        case "array":
            text = {"description": f"{rules['description']} Comma-separated.", "type": "string"}
            return Parameter(text, required=required, form="comma-separated")
        case "object":
            written: dict[str, Any] = {"description": f"{rules['description']} Written as a JSON object.", **_JSON_TEXT}
            return Parameter(written, required=required, form="json")
    return Parameter(rules, required=required)


def _json_object(name: str, text: str) -> dict[str, Any]:
    try:
        document = strict_json.decode(text)
    except strict_json.InvalidJson:
        document = None
    if not isinstance(document, dict):
        raise ValidationError(f'{name} must be a JSON object such as {{"project": "atlas"}}', field=name)
    return document
