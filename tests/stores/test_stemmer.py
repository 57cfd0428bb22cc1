"""The stemmer against Snowball's own, which stored terms were made with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer

from commonplace.stores.stemmer import stem

_STARTS = ("arsen", "commun", "emerg", "gener", "inter", "later", "organ", "past", "univers", "succ", "proc", "exc",
           "even", "cann", "inn", "earr", "herr", "out")  # fmt: skip
_ENDINGS = (
    "sses", "ies", "ied", "us", "ss", "s", "eed", "eedly", "ed", "edly", "ing", "ingly", "y", "tional", "enci", "anci",
    "abli", "entli", "izer", "ization", "ational", "ation", "ator", "alism", "aliti", "alli", "fulness", "ousli",
    "ousness", "iveness", "iviti", "biliti", "bli", "ogi", "ogist", "fulli", "lessli", "li", "ative", "icate", "iciti",
    "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism",
    "ate", "iti", "ous", "ive", "ize", "ion", "e", "l", "ll", "ee",
)  # fmt: skip
_letters = st.text("aeiouybdlnrstwxpc", max_size=6)
_words = st.builds(
    lambda start, middle, endings: start + middle + "".join(endings),
    st.sampled_from(("", "", "", *_STARTS)),
    _letters,
    st.lists(st.sampled_from(_ENDINGS), max_size=3),
)


def _theirs(word: str) -> str:
    return str(EnglishStemmer().stemWord(word))


@settings(max_examples=2000)
@given(_words | st.text("abcdefghijklmnopqrstuvwxyz", max_size=12))
def test_stems_are_those_of_snowball(word: str) -> None:
    assert stem(word) == _theirs(word)


def test_stems_of_the_words_of_our_own_sources_are_those_of_snowball() -> None:
    """Words as people write them; among them nearly every rule has one."""
    root = Path(__file__).resolve().parents[2]
    texts = [
        file.read_text("utf-8") for folder in ("docs", "src") for file in sorted((root / folder).rglob("*.[mp][dy]"))
    ]
    words = {word for text in texts for word in re.findall("[a-z]+", text.lower())}
    assert len(words) > 5000
    assert {word: stem(word) for word in words} == {word: _theirs(word) for word in words}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("skies", "sky"), ("news", "news"), ("only", "onli"), ("dying", "die"), ("dies", "die"), ("cries", "cri"),
        ("gas", "gas"), ("gaps", "gap"), ("hopping", "hop"), ("hoping", "hope"), ("adding", "add"),
        ("luxuriated", "luxuri"), ("exceed", "exceed"), ("agreed", "agre"), ("evening", "evening"),
        ("generously", "generous"), ("biologist", "biolog"), ("happily", "happili"), ("saying", "say"),
        ("controlling", "control"),
    ],
)  # fmt: skip
def test_stems_of_words_that_each_need_a_rule_of_their_own(word: str, expected: str) -> None:
    assert stem(word) == expected == _theirs(word)
