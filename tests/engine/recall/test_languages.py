"""Languages: a guess that knows when it cannot tell."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall.languages import language, likely_language, says_english


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is the key?", "en"),
        ("Der Schlüssel liegt unter der Matte", "de"),
        ("Was ist das für ein Schlüssel", "de"),
        ("La clé est sous le paillasson, avec les autres", "fr"),
        ("¿Qué cepa necesita gentamicina? Es para el lunes", "es"),
        ("鍵はマットの下", "ja"),
        ("钥匙在垫子下面", "zh"),
        ("열쇠는 매트 아래", "ko"),
        ("BF-E417", None),
        ("🔑", None),
    ],
)
def test_language(text: str, expected: str | None) -> None:
    assert language(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Πού είναι το κλειδί", "el"),
        ("Где ключ", "ru"),
        ("איפה המפתח", "he"),
        ("أين المفتاح", "ar"),
        ("चाबी कहाँ है", "hi"),
        ("กุญแจอยู่ที่ไหน", "th"),
        ("A chave não está em casa, ou foi com os outros", "pt"),
        ("La chiave non è nel cassetto della cucina", "it"),
        ("Het ligt niet op tafel, wij zijn het kwijt", "nl"),
        ("Schlüssel", None),
        ("", None),
        ("x" * 300 + " ключ", None),
        ("is ключ", "ru"),
    ],
)
def test_languages_by_their_letters_and_telling_words(text: str, expected: str | None) -> None:
    assert language(text) == expected


def test_words_at_hand_need_not_be_found_again() -> None:
    assert language("ANYTHING", ["der", "schlüssel"]) == "de"
    assert language("ANYTHING", frozenset({"the", "der"})) == "en"
    assert language("ANYTHING", []) is None


@given(st.text(max_size=60))
def test_a_guess_is_two_letters_or_none(text: str) -> None:
    guess = language(text)
    assert guess is None or (len(guess) == 2 and guess.isascii())
    assert language(text) == guess


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice trinkt jeden Morgen grünen Tee.", "de"),
        ("Mañana llega Bob", "es"),
        ("Łódź", "pl"),
        ("Schlüssel", "de"),
        ("Zoë is at the café", "en"),  # words tell before letters do
        ("Fahrrad kaputt", None),
        ("🔑", None),
        ("", None),
    ],
)
def test_where_no_word_tells_letters_do(text: str, expected: str | None) -> None:
    assert likely_language(text) == expected


_WORDS = ["the", "der", "is", "isle", "other", "the_", "2the", "THE", "le", "what's", "Über", "-", "_", "ключ", "\n"]


@given(st.lists(st.one_of(st.sampled_from(_WORDS), st.text(max_size=5))), st.sampled_from(["", " ", ", "]))
def test_english_is_seen_in_a_text_as_it_is_in_its_words(parts: list[str], joint: str) -> None:
    folded = joint.join(parts).casefold()
    words = re.findall(r"[^\W_]+", folded)
    assert says_english(folded) == (language("plain", words) == "en")
