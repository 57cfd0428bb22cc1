"""Where a page ended, as text: a position and not a row, so that paging goes on when that row is gone."""

from __future__ import annotations

from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Memory


def encode_cursor(last: Memory) -> str:
    return f"{last.created_at:x}.{last.id}"


def decode_cursor(cursor: str) -> tuple[int, str]:
    """(created_at, id) of the last memory of the page before."""
    head, _, tail = cursor.partition(".")
    try:
        at = int(head, 16)
        # Only what `encode_cursor` writes: `abc` is a number in base 16, too, and would be a page that is not there.
        if abs(at) < 2**63 and tail and f"{at:x}" == head:
            return at, tail
    except ValueError:
        pass
    raise ValidationError(f"invalid cursor {cursor!r:.80}; pass back next_cursor as it came", field="cursor")
