"""Memories, palaces and facts as trusty-memory shows them. Pure."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from commonplace.dialects.trusty import rooms
from commonplace.engine import Draft, PalaceRecall, effective_importance
from commonplace.wire.record import Memory

Document = dict[str, Any]

DIALECT, KIND = "trusty", "drawer"
NIL = str(uuid.UUID(int=0))
_ROOMS = uuid.uuid5(uuid.NAMESPACE_URL, "urn:commonplace:rooms")
_PLACES = 4  # behind the point, so that what was just stored still reads as it was given


def to_draft(palace: str, text: str, room: str | None, tags: list[str], importance: float | None = None) -> Draft:
    """A drawer as the engine takes it; what its author left out is left out."""
    metadata: Document = {rooms.FIELD: rooms.named(room)} if room else {}
    return Draft(
        palace, "semantic", text, kind=KIND, tags=tags, metadata=metadata, importance=importance,
        provenance={"dialect": DIALECT},
    )  # fmt: skip


def moment(ms: int) -> str:
    """RFC 3339 in UTC; milliseconds only where there are some."""
    seconds, rest = divmod(ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:03d}Z" if rest else f"{text}Z"


def listed(memory: Memory, now: int) -> Document:
    return {
        "drawer_id": memory.id, "content": memory.content, "importance": _figure(effective_importance(memory, now)),
        "tags": memory.tags, "created_at": moment(memory.created_at),
    }  # fmt: skip


def recalled(layers: PalaceRecall, now: int) -> list[Document]:
    found: list[Document] = []
    if layers.identity:
        found.append({
            "drawer_id": NIL, "content": layers.identity, "score": 1.0, "layer": 0, "tags": [], "importance": 1.0,
        })  # fmt: skip
    for place in layers.hits:
        memory = place.memory
        found.append({
            "drawer_id": memory.id, "content": memory.content, "score": _figure(place.score), "layer": place.layer,
            "tags": memory.tags, "importance": _figure(effective_importance(memory, now)),
        })  # fmt: skip
    return found


def whole(memory: Memory, now: int) -> Document:
    """A drawer with everything the companion server shows of it."""
    return {
        "id": memory.id, "room_id": room_id(memory), "content": memory.content,
        "importance": _figure(effective_importance(memory, now)), "source_file": memory.source,
        "created_at": moment(memory.created_at), "tags": memory.tags,
        "last_accessed_at": None if memory.last_recalled_at is None else moment(memory.last_recalled_at),
        "access_count": memory.recalls,
    }  # fmt: skip


def identity(text: str, now: int) -> Document:
    """The palace's own words, shown as a drawer."""
    return {
        "id": NIL, "room_id": NIL, "content": text, "importance": 1.0, "source_file": None, "created_at": moment(now),
        "tags": [], "last_accessed_at": None, "access_count": 0,
    }  # fmt: skip


def room_id(memory: Memory) -> str:
    """A room has no id of its own: its name stands for one."""
    room = memory.metadata.get(rooms.FIELD)
    return str(uuid.uuid5(_ROOMS, rooms.named(room) if isinstance(room, str) and room else rooms.GENERAL))


def triple(fact: Any) -> Document:
    return {
        "subject": fact.subject, "predicate": fact.predicate, "object": fact.object,
        "valid_from": moment(fact.valid_from), "valid_to": None if fact.valid_to is None else moment(fact.valid_to),
        "confidence": fact.confidence, "provenance": fact.provenance,
    }  # fmt: skip


def _figure(value: float) -> float:
    return round(value, _PLACES)
