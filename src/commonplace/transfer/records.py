"""What a line of an export says, and what it becomes again. Pure.

`MEMORY_FIELDS` and `LEFT_BEHIND` together name every field of a memory: what travels, and why the rest does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from commonplace.engine import MERGED_INTO_ITSELF, Palace, Triple
from commonplace.wire.errors import ValidationError
from commonplace.wire.metadata_fields import check_event_time
from commonplace.wire.plain import MAX_DEPTH, MAX_INTEGER, check_json
from commonplace.wire.record import EVERY_STATUS, MEMORY_TYPES, Memory

Document = dict[str, Any]

FORMAT, VERSION = "commonplace-export", 1

#: Of every version. What has its default is left out of the line.
MEMORY_FIELDS = (
    "type", "content", "kind", "user_id", "project", "title", "entity_name", "tags", "metadata", "confidence",
    "importance", "source", "provenance", "privacy", "created_at", "updated_at", "expires_at", "event_time", "status",
    "session_id", "speaker", "supersedes", "merged_into", "aliases",
)  # fmt: skip
#: Of the memory as a whole, because they change without a version.
COUNTED_FIELDS = ("demotion", "recalls", "last_recalled_at")
LEFT_BEHIND = {
    "tenant": "the tenant of whoever imports",
    "seq": "each store numbers its own commits",
    "version": "the place in `versions`",
    "salt": "made anew, so that a hash in one store says nothing about another",
    "content_hash": "made anew with the salt",
}
STATEMENT_FIELDS = (
    "subject", "predicate", "object", "valid_from", "valid_to", "confidence", "provenance", "asserted_by", "memory_id",
)  # fmt: skip
_REAL = ("confidence", "importance", "demotion")  # whole numbers come back from a column of these as 1.0
_DEFAULTS = {
    field.name: field.default_factory() if field.default_factory is not MISSING else field.default
    for kind in (Memory, Triple)
    for field in fields(kind)
}
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(
        ("type", "content", "kind", "status", "subject", "predicate", "object", "asserted_by", "user_id", "project",
         "title", "entity_name", "source", "session_id", "speaker", "merged_into", "memory_id"), (str,),
    ),
    **dict.fromkeys(("tags", "supersedes", "aliases"), (list,)),
    **dict.fromkeys(("metadata", "privacy"), (dict,)),
    **dict.fromkeys(_REAL, (int, float)),
    **dict.fromkeys(
        ("created_at", "updated_at", "expires_at", "event_time", "recalls", "last_recalled_at", "valid_from",
         "valid_to"), (int,),
    ),
}  # fmt: skip
#: What the engine reads of a provenance; what else it says is nobody's business.
_PROVENANCE: dict[str, type] = {
    **dict.fromkeys(("merged", "chain", "witnesses"), list),
    **dict.fromkeys(("imported", "original", "attestation"), dict),
    **dict.fromkeys(("dialect", "principal", "source", "from", "quarantined_by"), str),
    "restored_at": int, "agent_named": bool,
}  # fmt: skip
_PRIVACY: dict[str, type] = {"retain": int, "share_with": list, "user_consent_id": str}
_AMOUNTS = {"confidence": 1, "importance": 1, "demotion": 1}
_MAX_INSTANT = 253_402_300_799_999  # the last of the year 9999


def header(agent: str | None, user: str | None) -> Document:
    """Nothing that differs from one export of the same memories to the next: no time, no machine."""
    scope = {name: value for name, value in (("agent_id", agent), ("user_id", user)) if value is not None}
    return {"record": "header", "format": FORMAT, "version": VERSION, "scope": scope}


def manifest(counts: Mapping[str, int], lines: int, digest: str) -> Document:
    return {"record": "manifest", "counts": dict(counts), "lines": lines, "sha256": digest}


def memory_document(versions: Sequence[Memory]) -> Document:
    last = versions[-1]
    counted = _without_defaults(last, COUNTED_FIELDS)
    said = [_without_defaults(version, MEMORY_FIELDS) for version in versions]
    return {"record": "memory", "id": last.id, "agent_id": last.agent_id, **counted, "versions": said}


def memory_versions(document: Document) -> list[Memory]:
    """The inverse; refuses what no export of ours says, naming the field."""
    id, agent = _text(document, "id"), _text(document, "agent_id")
    counted = _checked(document, COUNTED_FIELDS, {"record", "id", "agent_id", "versions"})
    listed = document.get("versions")
    if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
        raise ValidationError("versions must be a list of objects", field="versions")
    found = []
    for number, said in enumerate(listed, start=1):
        kept = _checked(said, MEMORY_FIELDS)
        for name in ("type", "content", "created_at", "updated_at"):
            if name not in kept:
                raise ValidationError(f"version {number} has no {name}", field=name)
        if kept["type"] not in MEMORY_TYPES or kept.get("status", "live") not in EVERY_STATUS:
            raise ValidationError(f"version {number} has an unknown type or status", field="type")
        _check_provenance(kept, dict)
        _check_privacy(kept.get("privacy", {}))
        found.append(Memory(id, "", agent, **kept, version=number, **counted))
    if any(version.merged_into == id for version in found):
        raise ValidationError(MERGED_INTO_ITSELF, field="merged_into")
    if found[-1].status not in ("live", "archived"):
        raise ValidationError(f"its last version is {found[-1].status}, which nothing exports", field="status")
    return found


def statement_document(triple: Triple) -> Document:
    said = _without_defaults(triple, STATEMENT_FIELDS)
    return {"record": "statement", "id": triple.id, "agent_id": triple.agent_id, **said}


def statement(document: Document) -> Triple:
    kept = _checked(document, STATEMENT_FIELDS, {"record", "id", "agent_id"})
    for name in ("subject", "predicate", "object", "valid_from"):
        if name not in kept:
            raise ValidationError(f"it has no {name}", field=name)
    _check_provenance(kept, str)
    return Triple(_text(document, "id"), _text(document, "agent_id"), **kept)


def palace_document(palace: Palace) -> Document:
    said = {name: value for name in ("description", "identity") if (value := getattr(palace, name)) is not None}
    return {"record": "palace", "name": palace.name, **said}


def palace(document: Document) -> Palace:
    for name in ("description", "identity"):
        if name in document:
            _text(document, name)
    return Palace(_text(document, "name"), document.get("description"), document.get("identity"))


def _without_defaults(source: Any, names: Sequence[str]) -> Document:
    kept: Document = {}
    for name in names:
        value = getattr(source, name)
        if name in _REAL and value is not None:
            value = float(value)
        if value != _DEFAULTS.get(name, MISSING):
            kept[name] = value
    return kept


def _checked(document: Document, names: Sequence[str], others: set[str] | frozenset[str] = frozenset()) -> Document:
    """The named fields of a document, each of its kind; anything else in it is refused by name."""
    if unknown := sorted(document.keys() - {*names, *others}):
        raise ValidationError(f"unknown field {unknown[0]!r}", field=unknown[0][:80])
    kept: Document = {name: document[name] for name in names if name in document}
    for name, value in kept.items():
        _check_plain(name, value)
        kinds = _KINDS.get(name)
        if kinds is None:
            continue  # provenance: a mapping of a memory, a text of a statement
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise ValidationError(f"{name} must be {' or '.join(kind.__name__ for kind in kinds)}", field=name)
        if isinstance(value, list) and not all(isinstance(each, str) for each in value):
            raise ValidationError(f"{name} must be a list of texts", field=name)
        if name == "event_time":
            check_event_time(value)
            continue
        # A memory always has these two; 0, their default, would be left out when it is exported.
        least, most = int(name in ("created_at", "updated_at")), _AMOUNTS.get(name, _MAX_INSTANT)
        if isinstance(value, (int, float)) and not least <= value <= most:
            raise ValidationError(f"{name} must be from {least} to {most}", field=name)
    return kept


def _check_plain(name: str, value: Any) -> None:
    """What JSON can say and no store can keep: found here, where it breaks a line and not the import."""
    try:
        check_json(value, MAX_DEPTH + (name == "provenance"))  # which holds what another agent signed, whole
    except ValueError as why:
        raise ValidationError(f"{name} {why}", field=name) from None


def _check_provenance(kept: Document, kind: type) -> None:
    if not isinstance(kept.get("provenance", kind()), kind):
        raise ValidationError(f"provenance must be {kind.__name__}", field="provenance")
    if kind is dict:
        _check_kinds("provenance", kept.get("provenance", {}), _PROVENANCE)
        if not all(isinstance(each, str) for each in kept.get("provenance", {}).get("merged", ())):
            raise ValidationError("provenance.merged must be a list of texts", field="provenance")


def _check_privacy(privacy: Document) -> None:
    """As `remember` takes it: whoever merges, shares or erases a memory relies on it."""
    if unknown := sorted(privacy.keys() - _PRIVACY.keys()):
        raise ValidationError(f"unknown field {f'privacy.{unknown[0]}'!r}", field="privacy")
    _check_kinds("privacy", privacy, _PRIVACY)
    if not 1 <= privacy.get("retain", 1) <= MAX_INTEGER:
        raise ValidationError(f"privacy.retain must be from 1 to {MAX_INTEGER}", field="privacy")
    if not all(isinstance(name, str) and name for name in privacy.get("share_with", ())):
        raise ValidationError("privacy.share_with must be a list of names", field="privacy")
    if not privacy.get("user_consent_id", "given"):
        raise ValidationError("privacy.user_consent_id must be a text", field="privacy")


def _check_kinds(name: str, document: Document, kinds: Mapping[str, type]) -> None:
    for key, kind in kinds.items():
        if key in document and type(document[key]) is not kind:  # true is an int to isinstance
            raise ValidationError(f"{name}.{key} must be {kind.__name__}", field=name)


def _text(document: Document, name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise ValidationError(f"{name} must be a text", field=name)
    _check_plain(name, value)
    return value
