"""Memories, rooms, palaces and facts as trusty-memory shows them. Pure."""

from __future__ import annotations

import uuid
from typing import Any

from commonplace.engine import Draft, PalaceRecall, Triple, effective_importance
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory
from commonplace.wire.times import iso

Document = dict[str, Any]

DIALECT, KIND = "trusty", "drawer"
NIL = str(uuid.UUID(int=0))
ROOM = "room"  # the field of a memory's metadata
GENERAL = "General"
#: The rooms that everyone knows; any other is a custom one.
ROOMS = (
    "Frontend", "Backend", "Testing", "Planning", "Documentation", "Research", "Configuration", "Meetings", GENERAL,
)  # fmt: skip
_ROOM_IDS = uuid.uuid5(uuid.NAMESPACE_URL, "urn:commonplace:rooms")
_PLACES = 4  # behind the point, so that what was just stored still reads as it was given


def to_draft(palace: str, text: str, room: str | None, tags: list[str], importance: float | None = None) -> Draft:
    """A drawer as the engine takes it; what its author left out is left out."""
    metadata: Document = {ROOM: room_name(room)} if room else {}
    provenance = {"dialect": DIALECT}
    fields: Document = {"tags": tags, "metadata": metadata, "importance": importance, "provenance": provenance}
    return Draft(palace, "semantic", text, kind=KIND, **fields)


def timestamp(ms: int) -> str:
    """RFC 3339 in UTC; milliseconds only where there are some."""
    return iso(ms).replace(".000Z", "Z")


# rooms


def room_name(room: str) -> str:
    """A room as it is stored: a known one by its name, any other as `Custom(…)`."""
    return room if room in ROOMS or _custom_name(room) is not None else f"Custom({room})"


def in_room(room: str) -> Condition:
    """What lies in a room. What other protocols wrote may name a room without calling it custom, or none at all."""
    if room == GENERAL:
        return Condition(("metadata", ROOM), "in", [GENERAL, None])
    custom = room if _custom_name(room) is None else _custom_name(room)
    return Condition(("metadata", ROOM), "in", [room] if room in ROOMS else [f"Custom({custom})", custom])


def _custom_name(room: str) -> str | None:
    return room[len("Custom(") : -1] if room.startswith("Custom(") and room.endswith(")") else None


def _room_id(memory: Memory) -> str:
    """A room has no id of its own: its name stands for one."""
    room = memory.metadata.get(ROOM)
    return str(uuid.uuid5(_ROOM_IDS, room_name(room) if isinstance(room, str) and room else GENERAL))


# drawers


def drawer(memory: Memory, now: int) -> Document:
    """A drawer with everything the companion server shows of it."""
    return {
        "id": memory.id,
        "room_id": NIL if memory.id == NIL else _room_id(memory),
        "content": memory.content,
        "importance": _importance(memory, now),
        "source_file": memory.source,
        "created_at": timestamp(memory.created_at),
        "tags": memory.tags,
        "last_accessed_at": None if memory.last_recalled_at is None else timestamp(memory.last_recalled_at),
        "access_count": memory.recalls,
    }


def identity_drawer(text: str, now: int) -> Document:
    """The palace's own words, shown as a drawer."""
    return drawer(_identity(text, now), now)


def list_item(memory: Memory, now: int) -> Document:
    return {
        "drawer_id": memory.id,
        "content": memory.content,
        "importance": _importance(memory, now),
        "tags": memory.tags,
        "created_at": timestamp(memory.created_at),
    }


def recall_results(recall: PalaceRecall, now: int) -> list[Document]:
    layers = [(_identity(recall.identity, now), 1.0, 0)] if recall.identity else []
    layers += [(hit.memory, hit.score, hit.layer) for hit in recall.hits]
    return [
        {
            "drawer_id": memory.id,
            "content": memory.content,
            "score": round(score, _PLACES),
            "layer": layer,
            "tags": memory.tags,
            "importance": _importance(memory, now),
        }
        for memory, score, layer in layers
    ]


def _identity(text: str, now: int) -> Memory:
    return Memory(NIL, "", "", "semantic", text, importance=1.0, created_at=now)


def _importance(memory: Memory, now: int) -> float:
    return round(effective_importance(memory, now), _PLACES)


def triple_to_wire(triple: Triple) -> Document:
    return {
        "subject": triple.subject,
        "predicate": triple.predicate,
        "object": triple.object,
        "valid_from": timestamp(triple.valid_from),
        "valid_to": None if triple.valid_to is None else timestamp(triple.valid_to),
        "confidence": triple.confidence,
        "provenance": triple.provenance,
    }
