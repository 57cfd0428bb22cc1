"""mem0: what `Memory.get_all()` answers, or an export of its platform, saved as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commonplace.engine import Draft
from commonplace.transfer.importers.json_stream import elements
from commonplace.transfer.importers.source import (
    Broken,
    Item,
    LeftOut,
    Source,
    SourceMemory,
    SourceStatement,
    has_value,
    label,
    milliseconds,
    mistyped_fields,
    noted_times,
    object_of,
    odd_texts,
    text_of,
    texts_of,
    with_unknown,
)
from commonplace.transfer.report import BrokenFile
from commonplace.wire.strict_json import InvalidJson, decode

NAME, TITLE = "mem0", "mem0"
_MAX_BYTES = 256 << 20
_NAMES = ("user_id", "agent_id", "run_id", "actor_id", "role")
_TIMES = ("created_at", "updated_at")
#: What is read of a memory; its other fields are metadata.
_MEMORY = ("id", "memory", "metadata", "categories", "hash", "score", "expiration_date", *_NAMES, *_TIMES)
_ENDS = (("source",), ("relationship", "relation"), ("target", "destination"))  # each by the one or the other name


def matches(source: Source) -> bool:
    if len(source.members) != 1:
        return False
    head = source.head(source.members[0])
    return head.lstrip()[:1] in (b"{", b"[") and b'"memory"' in head and b'"id"' in head


def read(source: Source) -> Iterator[Item]:
    file = source.single()
    if source.head(file).lstrip()[:1] == b"[":
        with source.open(file) as lines:
            for line, element in elements(lines):
                yield from _memory(source, element, f"line {line}")
        return
    if source.size > _MAX_BYTES:
        raise BrokenFile(file, "is one object of more than 256 MB; save its `results` as a list")
    with source.open(file) as lines:
        try:
            document = decode(lines.read(), unique_keys=True)
        except InvalidJson as error:
            raise BrokenFile(f"line {error.line or 1}", f"is {error}") from None
    name = "results" if isinstance(document, dict) and "results" in document else "memories"
    listed = document.get(name) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise BrokenFile("line 1", "has neither `results` nor `memories`")
    source.note_unread_fields("the answer", document, (name, "relations"))
    for number, element in enumerate(listed, start=1):
        yield from _memory(source, element, f"result {number}")
    relations = document.get("relations")
    for relation in filter(has_value, relations if isinstance(relations, list) else [relations]):
        yield from _relation(source, relation)


def _memory(source: Source, element: Any, where: str) -> Iterator[Item]:
    if not isinstance(element, dict) or not text_of(element.get("id")):
        yield Broken(where, "is not a memory with an id")
        return
    text = text_of(element.get("memory")).strip()
    if not text:
        yield LeftOut(element["id"], "it has no text")
        return
    yield from _odd_memory(source, element)
    metadata = element["metadata"] if isinstance(element.get("metadata"), dict) else {}
    metadata, clashes = with_unknown(metadata, element, _read(element), element["id"])
    yield from clashes
    at = milliseconds(element.get("created_at"))
    draft = Draft(
        text_of(element.get("agent_id")), "semantic", text, kind="memory",
        user_id=text_of(element.get("user_id")) or None,
        session_id=text_of(element.get("run_id")) or None, tags=texts_of(element.get("categories")), metadata=metadata,
        speaker=text_of(element.get("actor_id")) or text_of(element.get("role")) or None, source="mem0", event_time=at,
        expires_at=milliseconds(element.get("expiration_date")),
    )  # fmt: skip
    noted: dict[str, Any] = noted_times(updated_at=element.get("updated_at"))
    yield SourceMemory(
        element["id"], draft, at, noted | ({"hash": hash} if (hash := text_of(element.get("hash"))) else {})
    )


def _odd_memory(source: Source, element: dict[str, Any]) -> Iterator[LeftOut]:
    source.note_unread_fields("memories", {"score": element.get("score")}, ())  # of a search, and not of the memory
    texts = (*_NAMES, "hash")
    yield from mistyped_fields(element, element["id"], texts=texts, times=_TIMES, objects=("metadata",))
    yield from odd_texts(element.get("categories"), element["id"], "a category of it")


def _read(element: dict[str, Any]) -> set[str]:
    """The fields that have a place of their own: an end that is no time, or a second speaker, has none."""
    without = {"expiration_date"} if milliseconds(element.get("expiration_date")) is None else set()
    if text_of(element.get("actor_id")) and text_of(element.get("role")):
        without.add("role")
    return set(_MEMORY).difference(without)


def _relation(source: Source, relation: Any) -> Iterator[Item]:
    said = object_of(relation)
    used = [next((name for name in names if text_of(said.get(name))), "") for names in _ENDS]
    if not all(used):
        yield LeftOut(label(str(relation)), "a relation without both its ends")
        return
    source.note_unread_fields("relations", said, used)
    yield SourceStatement(*(said[name] for name in used))
