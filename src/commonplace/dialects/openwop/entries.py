"""MemoryEntry and our record, each from the other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from commonplace.engine import Draft, MemoryScope, RunNote
from commonplace.wire.errors import PayloadTooLarge
from commonplace.wire.record import Memory
from commonplace.wire.times import iso, milliseconds

NAME = "openwop"
KIND = "entry"
SOURCE = "source:"  # the tag that says where an entry came from; our record has a field for it
MAX_ENTRY_BYTES = 65_536
MAX_TAG_CHARS = 256
CHARS_PER_TOKEN = 4

Entry = dict[str, Any]


def to_draft(scope: MemoryScope, entry: Entry, run_id: str | None = None) -> Draft:
    """An entry that follows its schema, as the engine takes it."""
    tags = kept_tags(entry.get("tags", ()))
    source = next((tag.removeprefix(SOURCE) for tag in tags if tag.startswith(SOURCE) and tag != SOURCE), None)
    return Draft(
        scope.agent,
        "semantic",
        entry["content"],
        kind=KIND,
        project=scope.namespace,
        tags=tags,
        source=source,
        provenance={"dialect": NAME} | ({"run": run_id} if run_id else {}),
        expires_at=expiry_of(entry),
    )


def check_size(content: str) -> None:
    size = len(content.encode())
    if size > MAX_ENTRY_BYTES:
        sentence = f"entry.content has {size:,} bytes; at most {MAX_ENTRY_BYTES:,} are kept in one entry"
        raise PayloadTooLarge(sentence, field="entry.content", maxEntrySizeBytes=MAX_ENTRY_BYTES)


def kept_tags(tags: Iterable[str]) -> list[str]:
    """Empty ones are dropped at write."""
    return [tag for tag in tags if tag]


def to_entry(memory: Memory) -> Entry:
    return _entry(memory.id, memory.content, shown_tags(memory), memory.created_at, memory.expires_at)


def note_entry(note: RunNote) -> Entry:
    return _entry(note.id, note.content, note.tags, note.created_at, note.expires_at)


def shown_tags(memory: Memory) -> list[str]:
    """As written; what another protocol calls the source is a tag here. A tag OpenWOP has no room for is left out."""
    tags = list(memory.tags)
    if memory.source and not any(tag.startswith(SOURCE) for tag in tags):
        tags.append(SOURCE + memory.source)
    return [tag for tag in tags if len(tag) <= MAX_TAG_CHARS]


def expiry_of(entry: Entry) -> int | None:
    """When it expires, rounded down to the millisecond because nothing may last longer than was said."""
    return milliseconds(entry["expiresAt"], "entry.expiresAt") if "expiresAt" in entry else None


def within_budget(entries: Sequence[Entry], budget: int | None) -> list[Entry]:
    """The first entries that fit together. One that would not even fit alone is left out, never cut."""
    if budget is None:
        return list(entries)
    kept: list[Entry] = []
    left = budget
    for entry in entries:
        cost = tokens(entry["content"])
        if cost > budget:
            continue
        if cost > left:
            break
        kept.append(entry)
        left -= cost
    return kept


def tokens(content: str) -> int:
    """What a budget counts: one token for every four characters, rounded up."""
    return -(-len(content) // CHARS_PER_TOKEN)


def _entry(id: str, content: str, tags: Sequence[str], created_at: int, expires_at: int | None) -> Entry:
    entry: Entry = {"id": id, "content": content, "tags": list(tags), "createdAt": iso(created_at)}
    if expires_at is not None:
        entry["expiresAt"] = iso(expires_at)
    return entry
