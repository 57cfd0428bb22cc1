"""A guess at the language of a text, good enough to tell that a memory is in another one than the question."""

from __future__ import annotations

import re
from collections.abc import Collection

_LOOKED_AT = 200
_ENGLISH = frozenset(
    """
    the is are and to of with were for that you your it what when where which who why how does did have can
    should we our from by my his her their please been this
    """.split()  # noqa: SIM905
)
#: One of them in a case-folded text: found sooner than all of its words are.
_SAYS_ENGLISH = re.compile(rf"(?<![^\W_])(?:{'|'.join(sorted(_ENGLISH))})(?![^\W_])")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3041-\u30ff]")
_HANGUL = re.compile(r"[\u1100-\u11ff\uac00-\ud7af]")
_SCRIPTS = (
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
_WORD = re.compile(r"[^\W\d_]+")
# Words of each that are rare in the others.
_TELLTALES = {
    "de": "der die das und ist nicht ein eine einen mit für auf wir ich sie wird wer wie wann wo bei nach zum im",
    "fr": "le les des du est une pour dans qui pas avec sur nous vous il elle je au aux ce cette quel quelle où et",
    "es": "el los las del una para con por está es son hay qué cuál cuánto dónde su se lo al que en",
    "pt": "os um uma não com do da dos das em no na ao são foi que por ou seu sua",
    "it": "il gli una non con di della del che per sono nel alla dove quanto come ho ha",
    "nl": "het een van niet met voor op zijn wij ik dat wat waar hoe er aan de en",
}
_BY_WORD: dict[str, tuple[str, ...]] = {}
for _language, _words in _TELLTALES.items():
    for _word in _words.split():
        _BY_WORD[_word] = (*_BY_WORD.get(_word, ()), _language)


def language(text: str, words: Collection[str] | None = None) -> str | None:
    """Two letters, or None when nothing tells; `words` are its case-folded ones, for those who have them already."""
    if not text.isascii():
        start = text[:_LOOKED_AT]
        if _KANA.search(start):
            return "ja"
        if _HAN.search(start):
            return "zh"
        if _HANGUL.search(start):
            return "ko"
        for name, letters in _SCRIPTS:
            if letters.search(start):
                return name
    if words is None:
        words = _WORD.findall(text[:_LOOKED_AT].casefold())
    if not _ENGLISH.isdisjoint(words):
        return "en"
    votes: dict[str, int] = {}
    for word in words:
        for name in _BY_WORD.get(word, ()):
            votes[name] = votes.get(name, 0) + 1
    return max(sorted(votes), key=lambda name: votes[name]) if votes else None


def says_english(folded: str) -> bool:
    """Whether a case-folded text has a word by which `language` tells English."""
    return _SAYS_ENGLISH.search(folded) is not None


# Letters that English has only in names and loans; of several languages the likeliest.
_LETTERS = {"de": "äöüß", "es": "ñ¿¡", "fr": "çèêëîïôœùû", "pt": "ãõ", "it": "ìò", "pl": "ąćęłńśźż", "tr": "ğış"}
_BY_LETTER = {letter: name for name, letters in _LETTERS.items() for letter in letters}


def likely_language(text: str) -> str | None:
    """As `language`; where no word tells, what its letters say."""
    found = language(text)
    if found is not None or text.isascii():
        return found
    return next((_BY_LETTER[c] for c in text[:_LOOKED_AT].casefold() if c in _BY_LETTER), None)
