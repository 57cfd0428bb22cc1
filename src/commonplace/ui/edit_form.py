"""What a reviewer types in the place of a request: fields of a form to values of the engine's, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from commonplace.ui.page import PageRequest
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import MEMORY_TYPES

STRATEGIES = ("keep_canonical", "merge_content", "keep_highest_confidence")
#: Fields of each operation's form: what they are called there, and how they are spelled.
FORMS: dict[str, tuple[tuple[str, str], ...]] = {
    "remember": (
        ("content", "text"), ("type", "type"), ("title", "line"), ("tags", "list"), ("confidence", "number"),
        ("source", "line"), ("metadata", "json"),
    ),
    "update": (("content", "text"), ("tags", "list"), ("confidence", "number"), ("metadata", "json")),
    "forget": (("ids", "ids"), ("reason", "line"), ("hard_delete", "flag")),
    "merge": (("duplicates", "ids"), ("strategy", "strategy")),
    "statement": (("subject", "line"), ("predicate", "line"), ("object", "line"), ("confidence", "number")),
}  # fmt: skip
CHOICES = {"type": MEMORY_TYPES, "strategy": STRATEGIES}
#: Of a memory that is asked for, these lie among its metadata in the request.
_LIFTED = ("title", "tags", "project", "session_id", "speaker", "entity_name", "importance", "event_time", "supersedes")


def given(review: Mapping[str, Any]) -> dict[str, str]:
    """What the form shows at first: what was asked for."""
    request, shown = review.get("request") or {}, dict[str, str]()
    metadata = dict(request.get("metadata") or {})
    lifted = metadata if review["operation"] == "remember" else {}
    own = {name: value for name, value in metadata.items() if name not in (*_LIFTED, "kind") or not lifted}
    for name, kind in FORMS.get(review["operation"], ()):
        value = own if kind == "json" else request.get(name, lifted.get(name))
        if name == "ids" and not value:
            value = [each["id"] for each in (review.get("diff") or {}).get("removed", ())]
        shown[name] = _spelled(kind, value)
    return shown


def _spelled(kind: str, value: Any) -> str:
    if value is None or value is False or value == {}:
        return ""
    match kind:
        case "list" | "ids":
            return ("\n" if kind == "ids" else ", ").join(map(str, value))
        case "json":
            return json.dumps(value, ensure_ascii=False, indent=1)
        case "flag":
            return "yes"
        case _:
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def typed(review: Mapping[str, Any], call: PageRequest) -> dict[str, str]:
    """What the form holds now, of the fields that it has."""
    form = [(name, kind) for name, kind in FORMS.get(review["operation"], ()) if name in call.form]
    return {name: call.text(name) if kind in ("text", "json", "ids") else call.value(name) for name, kind in form}


def changes(review: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, Any]:
    """The fields that differ from what was asked for, as the engine takes them."""
    before = given(review)
    form = dict(FORMS.get(review["operation"], ()))
    return {name: _value(name, form[name], text) for name, text in now.items() if text != before[name]}


def _value(name: str, kind: str, text: str) -> Any:
    match kind:
        case "list":
            return [each for part in text.split(",") if (each := part.strip())]
        case "ids":
            return text.split()
        case "flag":
            return text == "yes"
        case "number":
            try:
                return float(text or "1")
            except ValueError:
                raise ValidationError(f"{name} must be a number from 0 to 1, not {text!r:.80}", field=name) from None
        case "json":
            return _document(name, text)
        case "type" | "strategy":
            if text not in CHOICES[kind]:
                raise ValidationError(f"{name} must be one of {', '.join(CHOICES[kind])}", field=name)
            return text
        case "line":
            return text or None
        case _:
            return text


def _document(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise ValidationError(f'{name} must be JSON, such as {{"room": 3}}', field=name) from None
    if not isinstance(found, dict):
        raise ValidationError(f'{name} must be a JSON object, such as {{"room": 3}}', field=name)
    return found
