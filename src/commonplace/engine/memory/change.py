"""What an update, or a record that replaces all of it, makes of a memory. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from commonplace.engine.memory.retention import inherit_retention
from commonplace.engine.types import Update
from commonplace.wire.errors import ValidationError
from commonplace.wire.metadata_fields import BLANK, fields_from_metadata
from commonplace.wire.record import Memory, replace_fields

_AS_GIVEN = ("content", "confidence", "expires_at")
_ORIGIN = ("source", "from", "witnesses", "chain", "merged")  # of provenance
_CHANGES = (*_AS_GIVEN, "metadata", "tags", "privacy_intent")


def check_update(update: Update) -> None:
    if not update.remove_expiry and all(getattr(update, name) is None for name in _CHANGES):
        raise ValidationError(
            "nothing to change: give content, metadata, tags, confidence, expires_at or privacy_intent"
        )


def changed(memory: Memory, update: Update) -> Memory:
    """Metadata replaces all of the old, with the fields that it is shown with; tags stand in both places alike."""
    given = {name: getattr(update, name) for name in _AS_GIVEN}
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if update.remove_expiry:
        if "retain" in memory.privacy:
            raise ValidationError(
                "its time is a promise (privacy_intent.retain), which only becomes shorter; set an earlier expires_at",
                field="expires_at",
            )
        fields["expires_at"] = None
    if update.metadata is not None:
        metadata = dict(update.metadata)
        fields["metadata"] = _without_kind(metadata, memory)
        fields |= {**BLANK, **fields_from_metadata(metadata)}
    if update.tags is not None:
        fields["tags"] = list(update.tags)
        metadata = fields.get("metadata", memory.metadata)
        if "tags" in metadata:
            fields["metadata"] = {**metadata, "tags": list(update.tags)}
    if update.privacy_intent is not None:
        promised = {name: value for name, value in memory.privacy.items() if name != "share_with"}
        names = update.privacy_intent["share_with"]
        fields["privacy"] = {**promised, "share_with": names} if names else promised
    return replace_fields(memory, **fields)


def _without_kind(metadata: dict[str, Any], memory: Memory) -> dict[str, Any]:
    """Metadata that was read, changed and sent back, less the kind that only reading added to it."""
    added = metadata.get("kind") == memory.kind != memory.metadata.get("kind")
    if not added or memory.provenance.get("dialect", "memorywire") == "memorywire":
        return metadata
    return {name: value for name, value in metadata.items() if name != "kind"}


def inherit(fresh: Memory, replaced: Memory) -> Memory:
    """What a record keeps when all of it is replaced: its identity, from whom it came, and promises to the person it is
    about."""
    origin = {name: replaced.provenance[name] for name in _ORIGIN if name in replaced.provenance}
    provenance = {**origin, **fresh.provenance}
    kept = replace(fresh, created_at=replaced.created_at, aliases=replaced.aliases, provenance=provenance)
    return inherit_retention(kept, [replaced])
