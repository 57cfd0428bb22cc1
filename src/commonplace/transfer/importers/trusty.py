"""trusty-memory: the lines of its share export, or what its HTTP server answers for drawers or facts of a palace.

Its own files (redb) are read by no other program; its server and its export give the same drawers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from commonplace.dialects.trusty.records import to_draft
from commonplace.transfer.importers.json_files import documents_by_line
from commonplace.transfer.importers.json_stream import elements
from commonplace.transfer.importers.source import (
    Broken,
    Item,
    LeftOut,
    Source,
    SourceMemory,
    SourceStatement,
    has_value,
    milliseconds,
    mistyped_fields,
    noted_times,
    odd_texts,
    text_of,
    texts_of,
    with_unknown,
)

NAME, TITLE = "trusty", "trusty-memory (its export, or drawers and facts of its server)"
_VERSION = 1
_MARKS = (b'"drawer_type"', b'"room_id"', b'"drawer_id"')
_IDS = ("id", "drawer_id", "content_hash")  # the first that is there is the drawer's
_TIMES = ("created_at", "updated_at", "expires_at")
_USAGE = ("last_accessed_at", "access_count")  # change with every look at a drawer, and would make it a new one
#: What is read of each. Other fields of a drawer are metadata; those of a fact are named.
_DRAWER = (
    "content", "tags", "importance", "room", "drawer_type", "source_file", "fact_key", "palace", "format_version",
    "hash_version", "content_hash", *_TIMES, *_USAGE,
)  # fmt: skip
_FACT = ("subject", "predicate", "object", "valid_from", "valid_to", "confidence", "provenance", "palace")


def matches(source: Source) -> bool:
    if len(source.members) != 1:
        return False
    head = source.head(source.members[0]).lstrip()
    facts = b'"subject"' in head and b'"predicate"' in head and head.startswith(b"[")
    return head[:1] in (b"{", b"[") and (facts or any(mark in head for mark in _MARKS))


def read(source: Source) -> Iterator[Item]:
    member = source.single()
    is_list = source.head(member).lstrip().startswith(b"[")
    if is_list:
        with source.open(member) as file:
            for number, element in elements(file):
                yield from _items(source, element, f"line {number}")
        return
    for found in documents_by_line(source, member):
        if isinstance(found, Broken):
            yield found
        else:
            where, document = found
            yield from _items(source, document, where)


def _items(source: Source, element: Any, where: str) -> Iterator[Item]:
    if not isinstance(element, dict):
        yield Broken(where, "is not an object")
        return
    if has_value(version := element.get("format_version")) and (type(version) is not int or version < 1):
        yield Broken(where, "its format_version is no version of the export")
        return
    if type(version) is int and version > _VERSION:
        yield Broken(
            where,
            f"is of version {version} of the export, and {_VERSION} is known here: upgrade Commonplace, "
            "or save what trusty-memory's server answers and import that",
        )
        return
    yield from _fact(source, element, where) if "predicate" in element else _drawer(source, element, where)


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _odd_share(element: dict[str, Any], name: str, where: str) -> Iterator[LeftOut]:
    if has_value(element.get(name)) and not _is_share(element[name]):
        yield LeftOut(where, f"its {name} is no number from 0 to 1; the rest is read")


def _palace(element: dict[str, Any], where: str) -> Iterator[LeftOut]:
    if has_value(element.get("palace")):
        yield LeftOut(where, "its palace is not kept; --agent says whose it becomes")


def _drawer(source: Source, element: dict[str, Any], where: str) -> Iterator[Item]:
    text = text_of(element.get("content"))
    if not text.strip():
        yield LeftOut(where, "it has no text")
        return
    if has_value(element.get("fact_key")):
        yield LeftOut(where, "it is a current fact, which holds only where it was written")
        return
    named = next((name for name in _IDS if text_of(element.get(name))), None)
    id = element[named] if named else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    yield from _odd_drawer(source, element, where)
    importance = float(element["importance"]) if _is_share(element.get("importance")) else None
    at = milliseconds(element.get("created_at"))
    draft = to_draft("", text, text_of(element.get("room")) or None, texts_of(element.get("tags")), importance)
    kind = text_of(element.get("drawer_type"))
    metadata = {**draft.metadata, "drawer_type": kind} if kind else dict(draft.metadata)
    known = (*_DRAWER, "id", *([named] if named else []))
    metadata, clashes = with_unknown(metadata, element, known, where)
    yield from clashes
    draft = replace(
        draft,
        metadata=metadata,
        source=text_of(element.get("source_file")) or "trusty-memory",
        event_time=at,
        expires_at=milliseconds(element.get("expires_at")),
    )
    yield SourceMemory(id, draft, at, _noted(element, named))


def _odd_drawer(source: Source, element: dict[str, Any], where: str) -> Iterator[LeftOut]:
    source.note_unread_fields("drawers", {name: element.get(name) for name in _USAGE}, ())
    texts = ("id", "room", "drawer_type", "source_file", "content_hash")
    yield from mistyped_fields(element, where, texts=texts, times=_TIMES)
    yield from odd_texts(element.get("tags"), where, "one of its tags")
    yield from _odd_share(element, "importance", where)
    yield from _palace(element, where)
    if has_value(element.get("hash_version")) and type(element["hash_version"]) is not int:
        yield LeftOut(where, "its hash_version is no whole number; the rest is read")


def _noted(element: dict[str, Any], named: str | None) -> dict[str, Any]:
    """When it was changed, and how trusty-memory knows its words, where it does not go by that."""
    noted: dict[str, Any] = noted_times(updated_at=element.get("updated_at"))
    if named != "content_hash" and text_of(element.get("content_hash")):
        noted["content_hash"] = element["content_hash"]
    if type(element.get("hash_version")) is int:
        noted["hash_version"] = element["hash_version"]
    return noted


def _fact(source: Source, element: dict[str, Any], where: str) -> Iterator[Item]:
    subject, predicate, object = (text_of(element.get(name)) for name in ("subject", "predicate", "object"))
    if not (subject and predicate and object):
        yield Broken(where, "a fact needs a subject, a predicate and an object")
        return
    source.note_unread_fields("facts", element, _FACT)
    yield from mistyped_fields(element, where, texts=("provenance",), times=("valid_from", "valid_to"))
    yield from _odd_share(element, "confidence", where)
    yield from _palace(element, where)
    yield SourceStatement(
        subject,
        predicate,
        object,
        valid_from=milliseconds(element.get("valid_from")),
        valid_to=milliseconds(element.get("valid_to")),
        confidence=float(element["confidence"]) if _is_share(element.get("confidence")) else 1.0,
        provenance=text_of(element.get("provenance")) or None,
    )
