"""The memory of MCP's reference server: lines of JSON, each an entity with its observations or a relation of two.

It knows no times and no ids: an entity is known by its name, an observation by its words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from commonplace.engine import Draft
from commonplace.transfer.importers.json_files import documents_by_line
from commonplace.transfer.importers.source import (
    Broken,
    Item,
    LeftOut,
    Source,
    SourceMemory,
    SourceStatement,
    has_value,
    label,
    mistyped_fields,
    text_of,
    texts_of,
    with_unknown,
)

NAME, TITLE = "server_memory", "MCP server-memory"
#: What is read of each; the other fields are metadata.
_ENTITY = ("type", "name", "entityType", "observations")
_RELATION = ("type", "from", "to", "relationType")


def matches(source: Source) -> bool:
    if len(source.members) != 1:
        return False
    first = source.head(source.members[0]).lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and (b'"entityType"' in first or b'"relationType"' in first)


def read(source: Source) -> Iterator[Item]:
    for found in documents_by_line(source, source.single()):
        if isinstance(found, Broken):
            yield found
            continue
        where, document = found
        kind = document.get("type") if isinstance(document, dict) else None
        if kind == "entity" and text_of(document.get("name")):
            yield from _entity(document)
        elif kind == "relation" and all(text_of(document.get(each)) for each in ("from", "to", "relationType")):
            yield from _relation(document)
        else:
            yield Broken(where, "is neither an entity with a name nor a relation with both its ends")


def _entity(entity: dict[str, Any]) -> Iterator[Item]:
    name, kind = entity["name"], text_of(entity.get("entityType"))
    given = entity.get("observations")
    tags, observations = texts_of(kind), texts_of(given)
    for each in given if isinstance(given, list) else [given]:
        if has_value(each) and not isinstance(each, str):
            yield LeftOut(label(f"{name}: {each}"), "an observation that is no text")
    yield from mistyped_fields(entity, label(name), texts=("entityType",))
    metadata, _ = with_unknown({}, entity, _ENTITY, label(name))
    draft = Draft(
        "", "semantic", "", kind="observation", entity_name=name, tags=tags, metadata=metadata, source=NAME
    )  # fmt: skip
    for text in observations:
        yield SourceMemory(_id(name, text), replace(draft, content=text))
    if not observations:
        said = f"{name} ({kind})" if kind else name
        yield SourceMemory(_id(name, ""), replace(draft, content=said, kind="entity"))


def _relation(relation: dict[str, Any]) -> Iterator[Item]:
    one, said, other = relation["from"], relation["relationType"], relation["to"]
    text = f"{one} {said} {other}"
    metadata, clashes = with_unknown({"from": one, "relation": said, "to": other}, relation, _RELATION, label(text))
    yield from clashes
    # The graph holds one object of a subject and predicate at a time; as a memory each relation is kept.
    yield SourceMemory(
        _id(one, text), Draft("", "semantic", text, kind="relation", entity_name=one, metadata=metadata, source=NAME)
    )
    yield SourceStatement(one, said, other)


def _id(name: str, text: str) -> str:
    return f"{name[:200]}#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
