"""Documents against the schemas: compiled once, resolved offline, refused in one sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.plain import check_field

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from jsonschema_rs import Draft202012Validator

    from commonplace.wire.models import Message

    M = TypeVar("M", bound=Message)

_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*(/[a-z0-9_-]+(\.[a-z0-9_-]+)*)*\Z")
_UNIONS = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "then", "else"})


def schema(name: str) -> dict[str, Any]:
    """The schema as written, e.g. `schema("memorywire/operations/remember")`; the caller's own copy."""
    document: dict[str, Any] = json.loads(_text(name))
    return document


def schema_names() -> list[str]:
    return sorted(_walk(files("commonplace.wire") / "schemas", ""))


def check(name: str, document: Any) -> None:
    """Raises ValidationError, naming the field and what is allowed, unless the document follows it."""
    if isinstance(document, dict):
        _check_plain(document)
    validator = _compiled(name)
    if validator.is_valid(document):
        return
    from commonplace.wire.schema_errors import explain

    label = name.rsplit("/", 1)[-1].replace(".", " ")
    message, field = explain(validator.iter_errors(document), _inlined(name), label)
    raise ValidationError(message, field=field)


def parse(model: type[M], data: Any) -> M:
    """The document as a message, or the refusal that `check` gives: models know types, only schemas know rules."""
    check(model.schema_name, data)
    return model.model_validate(data)


def portable_schema(name: str, *, nulls: bool = True) -> dict[str, Any]:
    """The schema for clients that reject unions: an object at the root, no $ref, and where several types are
    possible none is named. Laxer than the schema itself, never stricter; the engine checks the rest. Without
    `nulls`, for documents that leave out what would be null, such a field has its other type and is not required."""
    portable: dict[str, Any] = _without_unions(_inlined(name), nulls)
    for key in ("$schema", "$id"):
        portable.pop(key, None)
    return portable


def rewrite_schema(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Every object of a schema as `change` makes it, the innermost first; below `properties` keys are field names."""
    if isinstance(node, list):
        return [rewrite_schema(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    inner = {}
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):
            inner[key] = {field: rewrite_schema(rules, change) for field, rules in value.items()}
        else:
            inner[key] = rewrite_schema(value, change)
    return change(inner)


@cache
def _text(name: str) -> str:
    path = files("commonplace.wire") / "schemas" / f"{name}.json"
    if not _NAME.match(name) or not path.is_file():
        raise NotFound(f"there is no schema named '{name}'")
    return path.read_text("utf-8")


@cache
def _by_id() -> dict[str, str]:
    return {schema(name)["$id"]: name for name in schema_names()}


@cache
def _inlined(name: str) -> dict[str, Any]:
    root = schema(name)
    inlined: dict[str, Any] = _resolve(root, root)
    inlined.pop("$defs", None)
    return inlined


@cache
def _compiled(name: str) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(_inlined(name))


def _walk(folder: Traversable, prefix: str) -> list[str]:
    names = []
    for entry in folder.iterdir():
        if entry.is_dir():
            names += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            names.append(prefix + entry.name.removesuffix(".json"))
    return names


def _resolve(node: Any, root: dict[str, Any]) -> Any:
    """Replaces every $ref by what it names, so that an error's path leads straight to the rule it broke."""
    if isinstance(node, list):
        return [_resolve(item, root) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" not in node:
        return {key: _resolve(value, root) for key, value in node.items()}
    address, _, pointer = node["$ref"].partition("#")
    home = schema(_by_id()[address]) if address else root
    target: Any = home
    for step in pointer.split("/")[1:]:
        target = target[step]
    resolved = _resolve(target, home)
    beside = {key: value for key, value in node.items() if key != "$ref"}
    inner = {key: value for key, value in resolved.items() if key not in ("$schema", "$id", "$defs")}
    return {**inner, **beside}


def _without_unions(node: Any, nulls: bool = True) -> Any:
    if isinstance(node, list):
        return [_without_unions(item, nulls) for item in node]
    if not isinstance(node, dict):
        return node
    lax = {key: value for key, value in node.items() if key not in _UNIONS}
    if not nulls and isinstance(lax.get("type"), list) and len(said := [t for t in lax["type"] if t != "null"]) == 1:
        lax["type"] = said[0]
    if not nulls and isinstance(lax.get("required"), list):
        lax["required"] = [field for field in lax["required"] if not _may_be_null(node["properties"].get(field))]
    if isinstance(lax.get("type"), list):
        lax = {"description": lax["description"]}
    # Below `properties` keys are field names, which may be spelled like keywords.
    return {
        key: {field: _without_unions(rules, nulls) for field, rules in value.items()}
        if key == "properties"
        else _without_unions(value, nulls)
        for key, value in lax.items()
    }


def _may_be_null(rules: Any) -> bool:
    return isinstance(rules, dict) and isinstance(rules.get("type"), list) and "null" in rules["type"]


def _check_plain(document: dict[str, Any]) -> None:
    for field, value in document.items():
        name = field if isinstance(field, str) and field.isascii() else ascii(field)
        check_field(field, name, name[:80])
        check_field(value, name, name[:80])
