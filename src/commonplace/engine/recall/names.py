"""Which of the people an agent knows does a question name?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from commonplace.stores.text import STOPWORDS

_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
_MIN_NICKNAME_CHARS = 3
_MAX_NAME_WORDS = 4  # words


@dataclass(slots=True, frozen=True)
class NameMatch:
    """A known name and where the question says it, possessive included."""

    name: str
    start: int
    end: int


class _NameIndex:
    """Known names by their words."""

    def __init__(self, names: frozenset[str]) -> None:
        self.whole: dict[tuple[str, ...], list[str]] = {}
        self.parts: dict[str, list[str]] = {}
        for name in sorted(names):
            words = tuple(w.casefold() for w in _WORD.findall(name))[:_MAX_NAME_WORDS]
            self.whole.setdefault(words, []).append(name)
            for word in set(words):
                self.parts.setdefault(word, []).append(name)

    def nicknamed(self, word: str) -> list[str]:
        if len(word) < _MIN_NICKNAME_CHARS or len(self.parts) > 200:
            return []
        found = {name for part, names in self.parts.items() if part.startswith(word) for name in names}
        return list(found) if len(found) == 1 else []


# Weak, so that nothing here outlives what the store knows.
_indexes: WeakKeyDictionary[frozenset[str], _NameIndex] = WeakKeyDictionary()


def match_names(question: str, known: frozenset[str]) -> list[NameMatch]:
    """Longest names first; a first or last name alone will do, and so will its beginning if only one fits."""
    if not known:
        return []
    index = _indexes.get(known)
    if index is None:
        index = _indexes[known] = _NameIndex(known)
    words = list(_WORD.finditer(question))
    folded = [m.group().casefold() for m in words]
    cased = any(c.isupper() for c in question)
    found: list[NameMatch] = []
    i = 0
    while i < len(words):
        names, size = _match(index, folded, i, _looks_like_a_name(question, words[i], folded[i], cased))
        if names:
            end = words[i + size - 1].end()
            possessive = _POSSESSIVE.match(question, end)
            end = possessive.end() if possessive else end
            found += [NameMatch(name, words[i].start(), end) for name in names]
        i += size
    return found


def _match(index: _NameIndex, folded: list[str], i: int, looks: bool) -> tuple[list[str], int]:
    for size in range(min(_MAX_NAME_WORDS, len(folded) - i), 1, -1):
        if names := index.whole.get(tuple(folded[i : i + size])):
            return names, size
    if looks:
        word = folded[i]
        return index.whole.get((word,)) or index.parts.get(word) or index.nicknamed(word), 1
    return [], 1


def _looks_like_a_name(question: str, match: re.Match[str], folded: str, cased: bool) -> bool:
    """`will` is no Will and `mark` no Mark in a question that writes names with capitals."""
    first = question[match.start()]
    if first.isupper():
        return folded not in STOPWORDS or match.start() > 0
    return folded not in STOPWORDS and not (cased and first.islower())


def without_names(question: str, people: list[NameMatch]) -> str:
    """The question with those names taken out, or as it was when nothing telling would remain."""
    rest, at = [], 0
    for person in sorted(people, key=lambda p: p.start):
        rest.append(question[at : person.start])
        at = max(at, person.end)
    left = " ".join(" ".join((*rest, question[at:])).split())
    telling = any(w.casefold() not in STOPWORDS for w in _WORD.findall(left))
    return left if telling else question
