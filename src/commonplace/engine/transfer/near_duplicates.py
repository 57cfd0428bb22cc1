"""Whether something was said before in nearly the same words. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from commonplace.engine.governance import nearest
from commonplace.engine.types import Draft
from commonplace.wire.record import Memory

_SAME_WORDS = 0.8  # of all words of two texts

T = TypeVar("T")


class NearDuplicates(Generic[T]):
    """What was said, each with what it is to be known by. The words of each are counted once: a conversation of a year
    has thousands of sentences, each of which is compared with all before it."""

    def __init__(self) -> None:
        self._said: list[tuple[Draft | Memory, frozenset[int], T]] = []

    def add(self, said: Draft | Memory, known_by: T) -> None:
        self._said.append((said, nearest.words(said.content), known_by))

    def of(self, draft: Draft | Memory) -> Iterator[T]:
        """Of all that say the same as this."""
        words = nearest.words(draft.content)
        for said, others, known_by in self._said:
            if nearest.share(words, others) >= _SAME_WORDS and _agree(draft, said):
                yield known_by


def is_near_duplicate(one: Draft | Memory, other: Draft | Memory) -> bool:
    """Whether two texts share nearly all their words, and differ neither in a number nor in a negation. Of two people,
    or of two projects, the same words say two things; what names none may be of any."""
    return nearest.overlap(one.content, other.content) >= _SAME_WORDS and _agree(one, other)


def _agree(one: Draft | Memory, other: Draft | Memory) -> bool:
    for whose in ("user_id", "project"):
        if len({getattr(one, whose), getattr(other, whose)} - {None}) > 1:
            return False
    memories = [Memory("", "", "", "semantic", each.content) for each in (one, other)]
    return nearest.relation(*memories) != "contradicts"
