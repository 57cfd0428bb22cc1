"""Times as protocols write them (ISO-8601) and as we keep them (milliseconds since 1970): the one place for both."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from commonplace.wire.errors import ValidationError

DAY_MS = 86_400_000
LAST_INSTANT = 253_402_300_799_999  # the last that can be written with a year of four digits
_BARE_DAY = 10  # characters


def iso(ms: int) -> str:
    """UTC, to the millisecond."""
    try:
        then = datetime.fromtimestamp(ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        then = datetime.max.replace(tzinfo=UTC) if ms > 0 else datetime.min.replace(tzinfo=UTC)
    return then.strftime(f"{then.year:04d}-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def milliseconds(text: Any, field: str, *, end_of_day: bool = False) -> int:
    """What an ISO-8601 time means, in UTC when it names no zone; a bare day may mean its end."""
    try:
        then = datetime.fromisoformat(text)
        if then.tzinfo is None:
            then = then.replace(tzinfo=UTC)
        since = then - datetime(1970, 1, 1, tzinfo=UTC)
        ms = since.days * DAY_MS + since.seconds * 1000 + since.microseconds // 1000
    except (TypeError, ValueError, OverflowError):
        raise ValidationError(
            f"{field} must be an ISO-8601 time such as 2026-02-10T12:00:00Z, not {str(text)!r:.80}", field=field
        ) from None
    return ms + DAY_MS - 1 if end_of_day and len(text) == _BARE_DAY else ms
