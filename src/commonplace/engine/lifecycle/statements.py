"""Whether two texts say the same, in other words only where that cannot change what they say. Pure.

Vectors cannot tell: a number, a name, a "not", a tense or who did it to whom makes another statement at the same
cosine. So words must be the same, in the same order; what may differ is written down here, and all else is a
difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: May be missing from one of two texts that say the same.
_FILLERS = frozenset({"a", "an", "the", "that", "also", "just", "very", "really", "please", "so"})
#: One spelling of what has several. Nothing here changes a number, a tense or who is meant.
_SPELLED = {
    "isn't": "is not", "aren't": "are not", "wasn't": "was not", "weren't": "were not", "don't": "do not",
    "doesn't": "does not", "didn't": "did not", "hasn't": "has not", "haven't": "have not", "hadn't": "had not",
    "can't": "can not", "cannot": "can not", "couldn't": "could not", "won't": "will not", "wouldn't": "would not",
    "shouldn't": "should not", "mustn't": "must not", "i'm": "i am", "you're": "you are", "we're": "we are",
    "they're": "they are", "i've": "i have", "you've": "you have", "we've": "we have", "they've": "they have",
    "i'll": "i will", "you'll": "you will", "we'll": "we will", "they'll": "they will", "&": "and", "email": "e mail",
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
    "ok": "okay", "percent": "%",
}  # fmt: skip
#: What a phrase of time or place begins with: it may stand before or after the rest.
_ADJUNCTS = frozenset({"on", "in", "at", "since", "during", "every"})
_WORD = re.compile(r"\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[-+<>=≠≤≥%$€£!?&#@*/^~|\\]")
_MARKS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-"})


#: Words of grammar: half of everything that is said shares them.
GRAMMAR = frozenset({
    "a", "an", "the", "and", "or", "but", "of", "to", "in", "on", "at", "for", "with", "by", "from", "as", "is", "are",
    "was", "were", "be", "been", "am", "has", "have", "had", "do", "does", "did", "not", "no", "it", "its", "this",
    "that", "these", "those", "he", "she", "they", "we", "you", "i", "his", "her", "their", "our", "your", "my", "me",
    "him", "them", "us", "will", "would", "can", "could", "about", "near", "again", "there", "here", "so", "also",
})  # fmt: skip


def statement(text: str) -> list[str]:
    """Its words in their order, whatever their case, with one spelling of each."""
    return [word for word, _ in _words(text)]


def same_statement(one: str, other: str) -> bool:
    first, second = list(_words(one)), list(_words(other))
    if [word for word, _ in first] == [word for word, _ in second]:
        return _same_case(first, second, one, other)
    return _moved(first, second) and one.islower() == other.islower()


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Each word as it is compared and as it is written. Signs that can change what is said are words, too."""
    plain = text.translate(_MARKS).rstrip(" .!\n\t")
    for found in _WORD.finditer(plain):
        written = found[0]
        for word in _SPELLED.get(written.casefold(), written.casefold()).split():
            if word not in _FILLERS:
                yield word, written


def _same_case(first: list[tuple[str, str]], second: list[tuple[str, str]], one: str, other: str) -> bool:
    """ "US" is not "us", and "Turkey" within a sentence no "turkey"; in a text without capitals it may be either, and
    only whole words of them tell."""
    careless = one.islower() or other.islower()
    for place, ((_, written), (_, beside)) in enumerate(zip(first, second, strict=True)):
        if written == beside:
            continue
        shouted = len(written) > 1 and written.isupper() != beside.isupper()
        if shouted or (place and not careless and written[:1].isupper() != beside[:1].isupper()):
            return False
    return True


def _moved(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> bool:
    """Whether a phrase of time or place stands at the beginning of one and at the end of the other."""
    for one, other in ((first, second), (second, first)):
        if len(one) != len(other) or len(one) < 4 or one[0][0] not in _ADJUNCTS:
            continue
        a, b = [word for word, _ in one], [word for word, _ in other]
        # At most three words: "on Monday", "in June 2024", "at 5 pm". What is longer may hold more than a time.
        if any(a[n:] + a[:n] == b and not {"and", "or", "not", "if", "when"} & set(a[:n]) for n in (2, 3)):
            return True
    return False
