"""Memories and records as the cells of a row and back, entries of the ledger and statements as cells, for every store
that keeps rows: it knows no database.

Lists and documents travel as JSON text, and as nothing when they are empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, ClassVar

from commonplace.stores.base import Record
from commonplace.stores.graph import Triple
from commonplace.wire.record import Memory

to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

#: The fields of a memory that a row of it has, in this order; the others are kept elsewhere.
STORED_FIELDS = (
    "id", "seq", "version", "status", "type", "kind", "content", "user_id", "project", "title", "entity_name", "tags",
    "metadata", "confidence", "importance", "source", "provenance", "privacy", "created_at", "updated_at",
    "expires_at", "event_time", "demotion", "session_id", "speaker", "supersedes", "merged_into", "aliases",
    "content_hash", "salt",
)  # fmt: skip

AUDIT_COLUMNS = ("n", "at", "seq", "operation", "agent_id", "principal", "payload_hash", "previous", "hash")
audit_cells = attrgetter(*AUDIT_COLUMNS)
TRIPLE_COLUMNS = [f.name for f in fields(Triple) if f.name != "agent_id"]  # which is in its scope
triple_cells = attrgetter(*TRIPLE_COLUMNS)

JSON_FIELDS = {"tags": list, "metadata": dict, "provenance": dict, "privacy": dict, "supersedes": list, "aliases": list}
MEMORY_FIELDS = [f.name for f in fields(Memory)]

_WIDTH = len(MEMORY_FIELDS)
_decode_json = json.JSONDecoder().raw_decode
_DECODED = [(i, JSON_FIELDS[name]) for i, name in enumerate(MEMORY_FIELDS) if name in JSON_FIELDS]
_ENCODED = [i for i, name in enumerate(STORED_FIELDS) if name in JSON_FIELDS]
_stored = attrgetter(*STORED_FIELDS)


class DamagedCell(ValueError):
    """A value that nothing of ours writes; whoever reads for others names the file."""


class RowTypes:
    """The types that the cells of a row may have: asked of every row, so most rows cost one look into a set.

    Columns are annotated as in a dataclass: `{"id": "str", "title": "str | None"}`; other annotations allow anything.
    """

    _KINDS: ClassVar[dict[str, type]] = {"str": str, "int": int, "float": float, "bytes": bytes}

    def __init__(self, what: str, columns: Mapping[str, str]) -> None:
        self._what = what
        split = [(name, *text.partition(" | ")) for name, text in columns.items()]
        self._columns = [(name, self._KINDS.get(kind), bool(null)) for name, kind, null, _ in split]
        self._seen: set[tuple[type, ...]] = set()

    def check(self, row: Sequence[Any]) -> None:
        kinds = tuple(map(type, row))
        if kinds in self._seen:
            return
        for kind, (name, wanted, nullable) in zip(kinds, self._columns, strict=True):
            if wanted is not None and kind is not wanted and not (nullable and kind is type(None)):
                raise DamagedCell(f"{name} of a {self._what} is {kind.__name__}, not {wanted.__name__}")
        self._seen.add(kinds)

    def checked(self, row: Sequence[Any]) -> Sequence[Any]:
        self.check(row)
        return row


# What is encoded is text, or nothing when it is empty; literals are texts, too.
_ENCODED_TEXT = dict.fromkeys(JSON_FIELDS, "str | None") | dict.fromkeys(("type", "status"), "str")
_TYPES = RowTypes("memory", {f.name: _ENCODED_TEXT.get(f.name, str(f.type)) for f in fields(Memory)})


def to_memory(row: Sequence[Any]) -> Memory:
    """From cells in the order of MEMORY_FIELDS; what follows them is not looked at."""
    values = list(row[:_WIDTH])
    _TYPES.check(values)
    for i, kind in _DECODED:
        if values[i]:
            values[i] = _from_json(values[i])
            if type(values[i]) is not kind:
                raise DamagedCell(f"{MEMORY_FIELDS[i]} of a memory is no {kind.__name__}")
        else:
            values[i] = kind()
    return Memory(*values)


def _from_json(text: str) -> Any:
    """As `json.loads`, which looks for blanks around it: `to_json` writes none, and a recall reads dozens of rows."""
    value, end = _decode_json(text)
    return value if end == len(text) else json.loads(text)  # which says what is wrong


def stored_cells(memory: Memory) -> list[Any]:
    """In the order of STORED_FIELDS."""
    values = list(_stored(memory))
    for i in _ENCODED:
        values[i] = to_json(values[i]) if values[i] else None
    return values


def to_record(row: Sequence[Any]) -> Record:
    kind, key, value, about = row
    held = json.loads(value)
    if type(held) is not dict:
        raise DamagedCell(f"a {kind} is no document")
    return Record(kind, key, held, tuple(json.loads(about)) if about else ())
