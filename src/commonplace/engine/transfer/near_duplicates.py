"""Whether something was said before in the same words, but for how they were typed. Pure; knows English.

What is taken for a duplicate is never shown to anyone, so in doubt two texts are two: another word, number or symbol,
or the same words in another order, may be the opposite.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Generic, TypeVar

from commonplace.engine.types import Draft
from commonplace.wire.record import Memory

_PUNCTUATION = ",.!;:…"
_ARTICLES = frozenset({"a", "an", "the"})
_NEGATIONS = frozenset({"no", "not", "never", "none", "nor", "without"})
# None that says how many, how much or how long ("just", "very", "still"): "I eat just fish" is not "I eat fish".
_FILLERS = frozenset({"actually", "also", "basically", "definitely", "honestly", "literally", "please", "really"})
_INTERJECTIONS = frozenset({"hey", "oh", "ok", "okay", "yeah", "yep", "yes"})
_CONTRACTIONS = tuple(
    (re.compile(rf"\b{pattern}\b"), said)
    for pattern, said in (
        ("(?:cannot|can't)", "can not"),
        ("won't", "will not"),
        ("shan't", "shall not"),
        (r"(\w+)n't", r"\1 not"),
        ("let's", "let us"),
        (r"(it|that|there|here|he|she|what|who|where)'s", r"\1 is"),  # anyone else's is a possessive
        ("i'm", "i am"),
        (r"(\w+)'re", r"\1 are"),
        (r"(\w+)'ve", r"\1 have"),
        (r"(\w+)'ll", r"\1 will"),
    )
)

T = TypeVar("T")


class NearDuplicates(Generic[T]):
    """What was said, each with what it is to be known by. Found by key: a conversation of a year has thousands of
    sentences, each of which is compared with all before it."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, ...], list[tuple[Draft | Memory, T]]] = {}

    def add(self, said: Draft | Memory, known_by: T) -> None:
        self._said.setdefault(folded_words(said.content), []).append((said, known_by))

    def of(self, draft: Draft | Memory) -> Iterator[T]:
        """Of all that say the same as this."""
        words = folded_words(draft.content)
        for said, known_by in self._said.get(words, ()) if words else ():
            if _may_be_of_the_same(draft, said):
                yield known_by


def is_near_duplicate(one: Draft | Memory, other: Draft | Memory) -> bool:
    """Whether two texts have the same words in the same order, but for case, punctuation, articles, fillers and
    contractions. Of two people, or of two projects, the same words say two things; what names none may be of any."""
    words = folded_words(one.content)
    return bool(words) and words == folded_words(other.content) and _may_be_of_the_same(one, other)


def folded_words(content: str) -> tuple[str, ...]:
    """Its words in their order, as they are compared. Symbols stay: C++ is not C#, and -5 not 5."""
    # Not NFKC, which makes 52 of 5².
    text = unicodedata.normalize("NFC", content).replace("’", "'").rstrip(_PUNCTUATION + " \t\r\n")
    # A capital A within a sentence is a name ("team A"), which folding the case would turn into an article.
    text = re.sub(r"(?<=\w\s)A\b", "\0a", text).casefold()
    for pattern, said in _CONTRACTIONS if "'" in text or "cannot" in text else ():
        text = pattern.sub(said, text)
    words = text.split()
    kept: list[str] = []
    for at, word in enumerate(words):
        bare = word.rstrip(_PUNCTUATION)
        if bare in _NEGATIONS:
            # What is denied depends on the comma: "No, deploys happen on Friday", "No deploys happen on Friday".
            kept.append(bare if bare == word else f"{bare},")
        elif bare and not _is_filler(bare, kept, last=at == len(words) - 1):
            kept.append(bare)
    return tuple(kept)


def _is_filler(word: str, before: list[str], *, last: bool) -> bool:
    if last:  # "our magic word is please"
        return False
    if word in _FILLERS:  # "not really" is not "not"
        return not before or before[-1].rstrip(",") not in _NEGATIONS
    return word in _ARTICLES or (word in _INTERJECTIONS and not before)


def _may_be_of_the_same(one: Draft | Memory, other: Draft | Memory) -> bool:
    return all(len({getattr(one, whose), getattr(other, whose)} - {None}) < 2 for whose in ("user_id", "project"))
