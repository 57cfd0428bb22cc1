"""A version as it was where it was first written, and how an imported one remembers that. Pure.

A store gives each version that it writes its own sequence and time, and lets an alias name one memory. What an import
writes keeps the first time, and the aliases that it could not have, in its provenance, and an export says those, so
that what was exported, imported and exported again is the same to the byte.
"""

from __future__ import annotations

from operator import attrgetter

from commonplace.wire.record import Memory, replace_fields

ORIGINAL = "original"  # the key of provenance
#: What each store decides for itself, and what is counted without a version: no part of what a version says.
STORES_OWN = (
    "tenant", "seq", "version", "salt", "content_hash", "recalls", "last_recalled_at", "demotion",
)  # fmt: skip
_said = attrgetter(*(name for name in Memory.__slots__ if name not in STORES_OWN))


def as_original(memory: Memory) -> Memory:
    """The version with the time at which it was first written, and without the note of it."""
    note = memory.provenance.get(ORIGINAL)
    if note is None:
        return memory
    provenance = {name: value for name, value in memory.provenance.items() if name != ORIGINAL}
    # A later version inherits the note; it is about the one that was imported.
    own = isinstance(note, dict) and note.get("version") == memory.version
    if not own:
        return replace_fields(memory, provenance=provenance)
    aliases = note.get("aliases", memory.aliases)
    return replace_fields(memory, provenance=provenance, updated_at=note["updated_at"], aliases=aliases)


def as_imported(memory: Memory, version: int) -> Memory:
    """The version with a note of its time, as it is handed to a store that will give it another."""
    note = {"version": version, "updated_at": memory.updated_at}
    return replace_fields(memory, provenance={**memory.provenance, ORIGINAL: note})


def with_aliases(memory: Memory, aliases: list[str]) -> Memory:
    """An imported version that can have only these, as others name another memory by now, with a note of all."""
    note = {**memory.provenance[ORIGINAL], "aliases": memory.aliases}
    return replace_fields(memory, aliases=aliases, provenance={**memory.provenance, ORIGINAL: note})


def same_words(one: Memory, other: Memory) -> bool:
    """Whether two versions say the same of the same memory."""
    return bool(_said(one) == _said(other))
