"""What of a memory is embedded: short ones whole, long ones by parts that overlap a little. Pure.

The one definition for writing, reindexing and recall: vectors made of other parts would not be comparable.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from commonplace.wire.record import Memory

PASSAGE_CHARS = 900
OVERLAP_CHARS = 150
TITLE_CHARS = 200  # of a title or a speaker: repeated with every part, so a long one must not multiply
_BREAK = re.compile(r"\n+|(?<=[.!?。！？])\s*")


def passages(memory: Memory, *, speakers: bool = False) -> list[str]:
    """At least one, each with what it is a part of before it: for embedders that were trained on `speakers`, a turn of
    a chat with who said it and when, else the title."""
    before = heading(memory) if speakers else _title(memory)
    return [before + part for part in split(memory.content)]


def heading(memory: Memory) -> str:
    """What whoever reads a passage must know beside it."""
    if not memory.speaker:
        return _title(memory)
    day = "" if memory.event_time is None else f" ({_day(memory.event_time)})"
    return f"{memory.speaker[:TITLE_CHARS]}{day}: "


def _title(memory: Memory) -> str:
    return f"{memory.title[:TITLE_CHARS]}\n" if memory.title else ""


def _day(instant: int) -> str:
    try:
        return datetime.fromtimestamp(instant / 1000, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return str(instant)


def split(text: str) -> list[str]:
    if len(text) <= PASSAGE_CHARS + OVERLAP_CHARS:
        return [text]
    parts = []
    start = 0
    while start < len(text):
        end = start + PASSAGE_CHARS
        if end + OVERLAP_CHARS >= len(text):
            parts.append(text[start:])
            break
        # End where a sentence does, if one ends in the last third; otherwise cut where it falls.
        breaks = [m.end() for m in _BREAK.finditer(text, start + 2 * PASSAGE_CHARS // 3, end) if m.end() <= end]
        cut = breaks[-1] if breaks else end
        parts.append(text[start:cut])
        start = max(cut - OVERLAP_CHARS, start + 1)
    return parts


def indexed_text(memory: Memory) -> str:
    """What keywords are taken from."""
    return "\n".join(filter(None, (memory.title, memory.content, " ".join(memory.tags))))
