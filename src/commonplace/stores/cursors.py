"""Where a page ended, as text: a position and not a row, so that paging goes on when that row is gone."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.record import Memory

_MOST_EMPTY_PAGES = 1000  # one after the other: a rule over there may withhold all that is on a page
_MOST_REMEMBERED = 100_000  # ids, and cursors


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


class PageProgress:
    """Ends a listing of a product that does not end itself: each page has its timeout anew, so that it would be read
    for ever. What it remembers of it is bounded, and so may be how many there are at all."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._count = 0
        self._empty = 0  # one after the other
        self._cursors = set[int]()
        self._ids = set[int]()

    def check(self, ids: Sequence[str], cursor: object) -> None:
        """After each page that is said not to be the last."""
        place = hash(cursor) if isinstance(cursor, str) else None
        shown = {hash(id) for id in ids}
        self._count += len(ids)
        self._empty = 0 if ids else self._empty + 1
        if self._most is not None and self._count > self._most:
            raise Unavailable(f"its listing has more than {self._most:,} memories of one agent")
        is_old = bool(shown) and shown <= self._ids
        if place is None or place in self._cursors or is_old or self._empty > _MOST_EMPTY_PAGES:
            raise Unavailable("the pages of its listing do not end")
        if len(self._cursors) < _MOST_REMEMBERED:
            self._cursors.add(place)
        if len(self._ids) < _MOST_REMEMBERED:
            self._ids |= shown
