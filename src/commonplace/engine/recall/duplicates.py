"""Memories that say the same: what differs only in case, spacing, punctuation or an article."""

from __future__ import annotations

import re

from commonplace.wire.record import Memory

_WORD = re.compile(r"\w+")
_ARTICLES = frozenset(("a", "an", "the"))
_LONGEST = 4_000  # longer texts are compared whole

Key = tuple[object, ...]


def text_key(memory: Memory) -> Key:
    """Equal keys, equal sayings. A number, a date, a name, a negation or another speaker makes them differ."""
    text = memory.content
    asks = text.rstrip().endswith(("?", "？"))
    if len(text) <= _LONGEST:
        words = [w for w in _WORD.findall(text.casefold()) if w not in _ARTICLES]
        # Without words (an emoji, a sum) the text itself is what it says.
        text = " ".join(words) if words and _signs(text) == "" else text
    return (text, asks, memory.agent_id, memory.user_id, memory.speaker, memory.title, memory.event_time, memory.type)


_PLAIN = re.compile(r"[\w\s.,;:!?'\"’“”„()\-–—…]*")


def _signs(text: str) -> str:
    """What is neither a word nor plain punctuation; -5 and 5, or 1.5 and 15, are told apart as well."""
    if not _PLAIN.fullmatch(text):
        return text
    return text if re.search(r"\d[.,:\-–]\d|[-–]\d", text) else ""
