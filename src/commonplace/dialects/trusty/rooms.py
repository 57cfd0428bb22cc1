"""Rooms: nine that everyone knows, and any other as a custom one. Pure."""

from __future__ import annotations

from commonplace.wire.filters import Condition

FIELD = "room"  # of a memory's metadata
GENERAL = "General"
KNOWN = (
    "Frontend", "Backend", "Testing", "Planning", "Documentation", "Research", "Configuration", "Meetings", GENERAL,
)  # fmt: skip


def named(room: str) -> str:
    """A room as it is stored: a known one by its name, any other as `Custom(…)`."""
    return room if room in KNOWN or _own(room) is not None else f"Custom({room})"


def within(room: str) -> Condition:
    """What lies in a room. What other protocols wrote may name a room without calling it custom, or none at all."""
    if room == GENERAL:
        return Condition(("metadata", FIELD), "in", [GENERAL, None])
    own = room if _own(room) is None else _own(room)
    return Condition(("metadata", FIELD), "in", [room] if room in KNOWN else [f"Custom({own})", own])


def _own(room: str) -> str | None:
    return room[len("Custom(") : -1] if room.startswith("Custom(") and room.endswith(")") else None
