"""Fields of the record that memorywire, and so every reader of metadata, has among a memory's metadata. Pure.

The one definition of both ways: what of metadata becomes a field, and what of a record's fields metadata shows.
"""

from __future__ import annotations

from typing import Any

from commonplace.wire.errors import ValidationError
from commonplace.wire.plain import MAX_INTEGER
from commonplace.wire.record import METADATA_FIELDS, TEXT_FIELDS, Memory
from commonplace.wire.times import milliseconds

LISTS = ("tags", "supersedes")
BLANK: dict[str, Any] = {name: [] if name in LISTS else None for name in METADATA_FIELDS}


def fields_from_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata keys that are fields of the record; a value of another type stays plain metadata."""
    fields: dict[str, Any] = {}
    for name in TEXT_FIELDS:
        value = metadata.get(name)
        if isinstance(value, str) and value:
            fields[name] = value
    for name in LISTS:
        value = metadata.get(name)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            fields[name] = list(value)
    importance = metadata.get("importance")
    if isinstance(importance, (int, float)) and not isinstance(importance, bool) and 0 <= importance <= 1:
        fields["importance"] = float(importance)
    when = _instant(metadata.get("event_time"))
    if when is not None:
        fields["event_time"] = when
    return fields


def _instant(value: Any) -> int | None:
    """A time given as epoch milliseconds or as an ISO date, which without a zone means UTC."""
    if _is_number(value):
        return int(value) if abs(value) <= MAX_INTEGER else None
    try:
        return milliseconds(value, "event_time")
    except ValidationError:
        return None


def check_event_time(value: Any) -> None:
    """Refuse a number that is no time: as plain metadata it would be kept and yet found by no question about times."""
    if _is_number(value) and not abs(value) <= MAX_INTEGER:
        raise ValidationError(
            f"event_time must be milliseconds since 1970, from -{MAX_INTEGER} to {MAX_INTEGER}, or an ISO time, not "
            f"{value!r:.40}",
            field="event_time",
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def metadata_with_fields(memory: Memory) -> dict[str, Any]:
    """Metadata as written, plus what another protocol kept in fields that are shown here."""
    metadata = dict(memory.metadata)
    for name, blank in BLANK.items():
        if (value := getattr(memory, name)) != blank and name not in metadata:
            metadata[name] = value
    return metadata
