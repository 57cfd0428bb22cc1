"""English words without their endings: Snowball's English algorithm (Porter2, as of Snowball 3.1), for words of lower
case ASCII letters. Pure.

Written out for Python, where it takes a tenth of the time that the code Snowball generates does: most of what a write
costs besides its transaction was that. Stored terms are made of these stems, so another answer for any word is another
`text.ANALYSER`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_Endings = dict[str, tuple[tuple[str, str], ...]]

_WHOLE = {
    "skis": "ski", "skies": "sky", "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli",
    "singly": "singl", "sky": "sky", "news": "news", "howe": "howe", "atlas": "atlas", "cosmos": "cosmos",
    "bias": "bias", "andes": "andes",
}  # fmt: skip
_VOWEL = re.compile(r"[aeiouy]")
_CONSONANT_Y = re.compile(r"([aeiouy])y")  # such a y is written Y until the end
_TO_REGION = re.compile(r"[^aeiouy]*[aeiouy]+[^aeiouy]")
_LONG_START = re.compile(r"arsen|commun|emerg|gener|inter|later|organ|past|univers")
_SHORT_END = re.compile(r".*[^aeiouy][aeiouy][^aeiouywxY]\Z|[aeiouy][^aeiouy]\Z|.*past\Z")
_DOUBLES = frozenset({"bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"})
_KEPT_BEFORE_ING = frozenset({"even", "cann", "inn", "earr", "herr", "out"})
_KEPT_BEFORE_EED = frozenset({"succ", "proc", "exc"})


def _by_last_two(endings: Iterable[tuple[str, str]]) -> _Endings:
    """Longest first: only the longest ending that a word has is ever considered."""
    found: dict[str, list[tuple[str, str]]] = {}
    for ending in sorted(endings, key=lambda each: -len(each[0])):
        found.setdefault(ending[0][-2:], []).append(ending)
    return {last: tuple(held) for last, held in found.items()}


_STEP_1B = _by_last_two((ending, "") for ending in ("eed", "eedly", "ed", "edly", "ing", "ingly"))
_STEP_2 = _by_last_two((
    ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("abli", "able"), ("entli", "ent"), ("izer", "ize"),
    ("ization", "ize"), ("ational", "ate"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("aliti", "al"),
    ("alli", "al"), ("fulness", "ful"), ("fulli", "ful"), ("ousli", "ous"), ("ousness", "ous"), ("iveness", "ive"),
    ("iviti", "ive"), ("biliti", "ble"), ("bli", "ble"), ("ogist", "og"), ("ogi", "og"), ("lessli", "less"), ("li", ""),
))  # fmt: skip
_STEP_3 = _by_last_two((
    ("tional", "tion"), ("ational", "ate"), ("alize", "al"), ("icate", "ic"), ("iciti", "ic"), ("ical", "ic"),
    ("ful", ""), ("ness", ""), ("ative", ""),
))  # fmt: skip
_STEP_4 = _by_last_two((ending, "") for ending in (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous", "ive",
    "ize", "ion",
))  # fmt: skip
_BEFORE_LI = frozenset("cdeghkmnrt")


def stem(word: str) -> str:
    if len(word) < 3:
        return word
    if word in _WHOLE:
        return _WHOLE[word]
    has_y = "y" in word
    if has_y:
        word = _CONSONANT_Y.sub(r"\1Y", "Y" + word[1:] if word[0] == "y" else word)
    first, second = _regions(word)
    word = _without_plural(word)
    word = _without_participle(word, first)
    if word[-1] in "yY" and len(word) > 2 and word[-2] not in "aeiouy":
        word = word[:-1] + "i"
    for ending, new in _STEP_2.get(word[-2:], ()):
        if word.endswith(ending):
            start = len(word) - len(ending)
            if start >= first and (
                (ending != "ogi" or word[start - 1] == "l") and (ending != "li" or word[start - 1] in _BEFORE_LI)
            ):
                word = word[:start] + new
            break
    for ending, new in _STEP_3.get(word[-2:], ()):
        if word.endswith(ending):
            start = len(word) - len(ending)
            if start >= (second if ending == "ative" else first):
                word = word[:start] + new
            break
    for ending, _ in _STEP_4.get(word[-2:], ()):
        if word.endswith(ending):
            start = len(word) - len(ending)
            if start >= second and (ending != "ion" or word[start - 1] in "st"):
                word = word[:start]
            break
    last = len(word) - 1
    if word.endswith("e"):
        if last >= second or (last >= first and not _SHORT_END.match(word[:-1])):
            word = word[:-1]
    elif word.endswith("ll") and last >= second:
        word = word[:-1]
    return word.replace("Y", "y") if has_y else word


def _regions(word: str) -> tuple[int, int]:
    """Where R1 and R2 begin: what follows the first consonant after a vowel, and the same again."""
    if not (found := _LONG_START.match(word) or _TO_REGION.match(word)):
        return len(word), len(word)
    first = found.end()
    again = _TO_REGION.match(word, first)
    return first, again.end() if again else len(word)


def _without_plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ies", "ied")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word[-1] == "s" and word[-2] not in "us" and _VOWEL.search(word, 0, len(word) - 2):
        return word[:-1]
    return word


def _without_participle(word: str, first: int) -> str:
    """Step 1b."""
    for ending, _ in _STEP_1B.get(word[-2:], ()):
        if word.endswith(ending):
            break
    else:
        return word
    rest = word[: -len(ending)]
    if ending.startswith("eed"):
        return rest + "ee" if len(rest) >= first and rest not in _KEPT_BEFORE_EED else word
    if ending == "ing":
        if rest in _KEPT_BEFORE_ING:
            return word
        if len(rest) == 2 and rest[1] == "y" and rest[0] not in "aeiouy":
            return rest[0] + "ie"
    if not _VOWEL.search(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest[-2:] in _DOUBLES:
        return rest if len(rest) == 3 and rest[0] in "aeo" else rest[:-1]
    return rest + "e" if len(rest) == first and _SHORT_END.match(rest) else rest
