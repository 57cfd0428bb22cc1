"""trusty-memory: the lines of its share export, or what its HTTP server answers for drawers or facts of a palace.

Its own files (redb) are read by no other program; its server and its export give the same drawers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from commonplace.dialects.trusty.records import to_draft
from commonplace.transfer.importers.json_stream import elements
from commonplace.transfer.importers.source import (
    Broken,
    Item,
    LeftOut,
    Source,
    SourceMemory,
    SourceStatement,
    milliseconds,
    text_of,
    texts_of,
)
from commonplace.wire.strict_json import InvalidJson, decode

NAME, TITLE = "trusty", "trusty-memory (its export, or drawers and facts of its server)"
_VERSION = 1
_MARKS = (b'"drawer_type"', b'"room_id"', b'"drawer_id"')


def matches(source: Source) -> bool:
    if len(source.members) != 1:
        return False
    head = source.head(source.members[0]).lstrip()
    facts = b'"subject"' in head and b'"predicate"' in head and head.startswith(b"[")
    return head[:1] in (b"{", b"[") and (facts or any(mark in head for mark in _MARKS))


def read(source: Source) -> Iterator[Item]:
    member = source.single()
    is_list = source.head(member).lstrip().startswith(b"[")
    with source.open(member) as lines:
        if is_list:
            for number, element in elements(lines):
                yield from _items(element, f"line {number}")
            return
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield from _items(decode(line), f"line {number}")
                except InvalidJson as error:
                    yield Broken(f"line {number}", f"is {error}")


def _items(element: Any, where: str) -> Iterator[Item]:
    item = _item(element, where)
    if isinstance(item, SourceMemory | SourceStatement):
        yield from _odd_fields(element, where)
    yield item


def _odd_fields(element: dict[str, Any], where: str) -> Iterator[LeftOut]:
    """Fields that are not kept with what is read."""
    for name in ("importance", "confidence"):
        if element.get(name) is not None and not _is_share(element[name]):
            yield LeftOut(where, f"its {name} is no number from 0 to 1; the rest is read")
    for name in ("created_at", "updated_at", "expires_at", "valid_from", "valid_to"):
        if element.get(name) is not None and milliseconds(element[name]) is None:
            yield LeftOut(where, f"its {name} is no time; the rest is read")
    for name in ("id", "room", "drawer_type", "source_file", "provenance"):
        if element.get(name) is not None and not isinstance(element[name], str):
            yield LeftOut(where, f"its {name} is no text; the rest is read")
    tags = element.get("tags")
    for tag in tags if isinstance(tags, list) else [tags]:
        if tag is not None and not isinstance(tag, str):
            yield LeftOut(where, "one of its tags is no text; the rest is read")
    if element.get("palace") is not None:
        yield LeftOut(where, "its palace is not kept; --agent says whose it becomes")


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _item(element: Any, where: str) -> Item:
    if not isinstance(element, dict):
        return Broken(where, "is not an object")
    if "predicate" in element:
        return _fact(element, where)
    if isinstance(element.get("format_version"), int) and element["format_version"] > _VERSION:
        return Broken(where, f"is of version {element['format_version']} of the export, and {_VERSION} is known here")
    text = text_of(element.get("content"))
    if not text.strip():
        return LeftOut(where, "it has no text")
    if element.get("fact_key"):
        return LeftOut(where, "it is a current fact, which holds only where it was written")
    importance = element.get("importance")
    given = float(importance) if isinstance(importance, (int, float)) and 0 <= importance <= 1 else None
    at = milliseconds(element.get("created_at"))
    draft = to_draft("", text, text_of(element.get("room")) or None, texts_of(element.get("tags") or []), given)
    metadata = dict(draft.metadata)
    if kind := text_of(element.get("drawer_type")):
        metadata["drawer_type"] = kind
    ends = milliseconds(element.get("expires_at"))
    draft = replace(
        draft,
        metadata=metadata,
        source=text_of(element.get("source_file")) or "trusty-memory",
        event_time=at,
        expires_at=ends,
    )
    named = element.get("id") or element.get("drawer_id") or element.get("content_hash")
    id = text_of(named) or hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    changed = milliseconds(element.get("updated_at"))
    return SourceMemory(id, draft, at, {} if changed is None else {"updated_at": changed})


def _fact(element: dict[str, Any], where: str) -> Item:
    subject, predicate, object = (text_of(element.get(name)) for name in ("subject", "predicate", "object"))
    if not (subject and predicate and object):
        return Broken(where, "a fact needs a subject, a predicate and an object")
    confidence = element.get("confidence", 1.0)
    return SourceStatement(
        subject,
        predicate,
        object,
        valid_from=milliseconds(element.get("valid_from")),
        valid_to=milliseconds(element.get("valid_to")),
        confidence=float(confidence) if isinstance(confidence, (int, float)) and 0 <= confidence <= 1 else 1.0,
        provenance=text_of(element.get("provenance")) or None,
    )
