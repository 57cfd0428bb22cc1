"""What of a question must be found as written: quoted phrases, identifiers, paths, error codes."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTED = re.compile(
    r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|„([^“”\n]{2,200})[“”]|«([^»\n]{2,200})»|`([^`\n]{2,200})`"
)
_TOKEN = re.compile(r"[^\s\"“”„«»`()\[\]{}<>,;]+")
_IDENTIFIER = re.compile(
    r"(?=\S*\d)(?=\S*[^\W\d_])\w[\w.:/#+-]*"  # LP-2217, E1234, v2.3.1, segment.rs:288, 3f2a
    r"|\d{3,}(?:[.:/-]\d+)*|\d+(?:[.:]\d+){2,}"  # 9440, 10.0.0.1
    r"|\w*_\w+|[\w.~-]*[/\\][\w./\\~*-]+"  # snake_case, etc/hosts
    r"|[a-z]+(?:[A-Z][a-z0-9]+)+|\w+::\w[\w:]*|\w+\.\w{2,}(?:\.\w+)*"  # camelCase, std::io, foo.bar
    r"|--?[a-z][\w-]+|[\w.+-]+@[\w.-]+"  # --flag, a@example.com
)
_NO_IDENTIFIER = re.compile(r"(?:19|20)\d\d(?:-\d\d){0,2}|\d+(?:st|nd|rd|th|am|pm|h|s)", re.IGNORECASE)
_MAX_LITERALS = 8


def literals(question: str) -> tuple[str, ...]:
    """Case-folded, in the order said."""
    found: dict[str, None] = {}
    rest = question
    for match in _QUOTED.finditer(question):
        phrase = next(group for group in match.groups() if group)
        found[phrase.strip().casefold()] = None
    if found:
        rest = _QUOTED.sub(" ", question)
    for match in _TOKEN.finditer(rest):
        token = match.group().strip(".:!?'’*")
        if _IDENTIFIER.fullmatch(token) and not _NO_IDENTIFIER.fullmatch(token):
            found[token.casefold()] = None
    return tuple(word for word in found if word)[:_MAX_LITERALS]


def share(wanted: Sequence[str], text: str) -> float:
    """How many of them the case-folded text has, as whole words."""
    return sum(_has(text, literal) for literal in wanted) / len(wanted) if wanted else 0.0


def _has(text: str, literal: str) -> bool:
    at = text.find(literal)
    while at >= 0:
        end = at + len(literal)
        if not (at and text[at - 1].isalnum() and literal[0].isalnum()) and not (
            end < len(text) and text[end].isalnum() and literal[-1].isalnum()
        ):
            return True
        at = text.find(literal, at + 1)
    return False
