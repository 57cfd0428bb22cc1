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
    label,
    milliseconds,
    text_of,
    texts_of,
)
from commonplace.transfer.report import BrokenFile
from commonplace.wire.strict_json import InvalidJson, decode

NAME, TITLE = "mem0", "mem0"
_MAX_BYTES = 256 << 20
_OWN = {
    "id",
    "memory",
    "metadata",
    "created_at",
    "updated_at",
    "user_id",
    "agent_id",
    "run_id",
    "actor_id",
    "role",
    "categories",
    "hash",
    "score",
    "expiration_date",
}


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
                yield from _memory(element, f"line {line}")
        return
    if source.size > _MAX_BYTES:
        raise BrokenFile(file, "is one object of more than 256 MB; save its `results` as a list")
    with source.open(file) as lines:
        try:
            document = decode(lines.read())
        except InvalidJson as error:
            raise BrokenFile(f"line {error.line or 1}", f"is {error}") from None
    listed = document.get("results", document.get("memories")) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise BrokenFile("line 1", "has neither `results` nor `memories`")
    for number, element in enumerate(listed, start=1):
        yield from _memory(element, f"result {number}")
    relations = document.get("relations")
    for relation in relations if isinstance(relations, list) else [relations] if relations else []:
        yield from _relation(relation)


def _memory(element: Any, where: str) -> Iterator[Item]:
    if not isinstance(element, dict) or not text_of(element.get("id")):
        yield Broken(where, "is not a memory with an id")
        return
    text = text_of(element.get("memory")).strip()
    if not text:
        yield LeftOut(element["id"], "it has no text")
        return
    yield from _odd_fields(element)
    metadata = dict(element["metadata"]) if isinstance(element.get("metadata"), dict) else {}
    metadata |= {name: value for name, value in element.items() if name not in _OWN and value is not None}
    at, ends = milliseconds(element.get("created_at")), element.get("expiration_date")
    expires_at = milliseconds(ends)
    metadata |= {"expiration_date": ends} if ends is not None and expires_at is None else {}
    draft = Draft(
        text_of(element.get("agent_id")), "semantic", text, kind="memory",
        user_id=text_of(element.get("user_id")) or None,
        session_id=text_of(element.get("run_id")) or None, tags=texts_of(element.get("categories")), metadata=metadata,
        speaker=text_of(element.get("actor_id")) or text_of(element.get("role")) or None, source="mem0", event_time=at,
        expires_at=expires_at,
    )  # fmt: skip
    changed = milliseconds(element.get("updated_at"))
    yield SourceMemory(element["id"], draft, at, {} if changed is None else {"updated_at": changed})


def _odd_fields(element: dict[str, Any]) -> Iterator[LeftOut]:
    """Fields of a memory that are of another kind than mem0 gives them, and so are not kept with it."""
    for name in ("user_id", "agent_id", "run_id", "actor_id", "role"):
        if element.get(name) is not None and not isinstance(element[name], str):
            yield LeftOut(element["id"], f"its {name} is no text; the memory itself is read")
    if element.get("metadata") is not None and not isinstance(element["metadata"], dict):
        yield LeftOut(element["id"], "its metadata is no object; the memory itself is read")
    for name in ("created_at", "updated_at"):
        if element.get(name) is not None and milliseconds(element[name]) is None:
            yield LeftOut(element["id"], f"its {name} is no time; the memory itself is read")
    named = element.get("categories")
    for each in named if isinstance(named, list) else [named]:
        if each is not None and not isinstance(each, str):
            yield LeftOut(element["id"], "a category of it is no text; the memory itself is read")


def _relation(relation: Any) -> Iterator[Item]:
    said = relation if isinstance(relation, dict) else {}
    subject, predicate = text_of(said.get("source")), text_of(said.get("relationship") or said.get("relation"))
    other = text_of(said.get("target") or said.get("destination"))
    if subject and predicate and other:
        yield SourceStatement(subject, predicate, other)
    else:
        yield LeftOut(label(str(relation)), "a relation without both its ends")
