"""AMP's record and ours, each from the other. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from commonplace.engine import Draft
from commonplace.wire.record import MEMORY_TYPES, SHARED_AGENT, TEXT_FIELDS, Memory, MemoryType

NAME = "amp"
TYPES = ("lesson", "checkpoint", "snippet")
STATE_LISTS = ("decisions", "blockers", "artifacts", "flags")  # of a checkpoint
#: Fields of the envelope that the server answers for; a record may be stored as it was read.
_SERVERS = frozenset({"id", "type", "content", "agent", "created_at", "updated_at"})
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9.~-]+")


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _name(value: Any) -> bool:
    return _text(value) and len(value) <= 256


def _unit(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _whole(value: Any) -> bool:
    """5.0 is an integer to JSON Schema, so it is one here."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) < 2**53 and value == int(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


#: AMP fields that are fields of our record; a value of another kind stays a plain extra field.
_LIFTED: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys((*TEXT_FIELDS, "source"), _text),
    **dict.fromkeys(("tags", "supersedes"), _texts),
    **dict.fromkeys(("confidence", "importance"), _unit),
    **dict.fromkeys(("event_time", "expires_at"), _whole),
    "user_id": _name,
}
#: Values that a record without the field has, too.
_BLANK: dict[str, Any] = {"tags": [], "confidence": 1.0, "supersedes": []}


def to_draft(record: dict[str, Any]) -> Draft:
    """A record that follows the schema of `store`, as the engine takes it."""
    metadata: dict[str, Any] = {}
    lifted: dict[str, Any] = {}
    for name, value in record.items():
        if name in _SERVERS:
            continue
        if name in _LIFTED and _LIFTED[name](value):
            lifted[name] = int(value) if _LIFTED[name] is _whole else value
            # Written but indistinguishable from absent, or from what is derived: remember that it was written.
            if value == _BLANK.get(name) or (name == "source" and value == record.get("file_path")):
                metadata[name] = value
        else:
            metadata[name] = value
    if "source" not in record and _text(record.get("file_path")):
        lifted["source"] = record["file_path"]
    kind = record["type"]
    provenance: dict[str, Any] = {"dialect": NAME}
    if "agent" not in record:
        provenance["agent_named"] = False
    content = record.get("content") or checkpoint_content(record)
    fields = {"kind": kind, "metadata": metadata, "provenance": provenance, **lifted}
    return Draft(record.get("agent", SHARED_AGENT), _type(kind), content, **fields)


def _type(kind: str) -> MemoryType:
    otherwise: MemoryType = "episodic" if kind == "checkpoint" else "semantic"
    return next((type for type in MEMORY_TYPES if type == kind), otherwise)


def checkpoint_content(record: dict[str, Any]) -> str:
    """What a checkpoint says in words, so that it is found by them."""
    lines = [record["working_on"]]
    state = record.get("state") or {}
    for name in STATE_LISTS:
        if state.get(name):
            lines.append(f"{name.capitalize()}: {'; '.join(state[name])}")
    return "\n".join(lines)


def id_of(memory: Memory) -> str:
    """The id its author chose, else one that says what it is. What was received goes by another's id elsewhere, which
    here may be that of another memory."""
    if memory.provenance.get("source") != "received":
        merged = memory.provenance.get("merged", ())  # names of others that became part of it
        for alias in memory.aliases:
            if alias not in merged:
                return alias
    return minted_id(memory.kind, memory.id)


def minted_id(kind: str, id: str) -> str:
    # Ids travel in URLs, so what a type may hold and a path may not is left out of them.
    return f"{_NOT_IN_IDS.sub('-', kind) or 'record'}_{id}"


def to_record(memory: Memory) -> dict[str, Any]:
    """Everything the record was stored with, whichever protocol stored it; nothing empty that was not written."""
    record: dict[str, Any] = {"id": id_of(memory), "type": memory.kind or memory.type}
    record |= {"content": memory.content, "created_at": memory.created_at}
    if memory.version > 1:
        record["updated_at"] = memory.updated_at
    if memory.agent_id != SHARED_AGENT or memory.provenance.get("agent_named", True):
        record["agent"] = memory.agent_id
    for name in _LIFTED:
        value = getattr(memory, name)
        if value not in (None, [], _BLANK.get(name)) and not (name == "source" and _derived(memory)):
            record[name] = value
    clashing: dict[str, Any] = {}
    for name, value in memory.metadata.items():
        if name in _SERVERS:
            clashing[name] = value
        elif name not in record:
            # As written, unless the record's own field has been changed back to blank since.
            record[name] = getattr(memory, name) if name in _BLANK and _LIFTED[name](value) else value
    if clashing:  # metadata of another protocol under names that mean something else here
        metadata = record.get("metadata")
        record["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), **clashing}
    return record


def _derived(memory: Memory) -> bool:
    return memory.provenance.get("dialect") == NAME and memory.source == memory.metadata.get("file_path")
