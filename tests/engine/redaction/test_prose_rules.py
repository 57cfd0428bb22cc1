"""Prose rules: words in quotes that are the password or describe it, and phrases of seed words."""

from __future__ import annotations

import re
from random import Random

import pytest
from redaction_corpus.credentials import words

from commonplace.engine.redaction import Redactor
from commonplace.engine.redaction.prose_rules import SEED_WORDS, is_said_password, is_seed_phrase

ON = Redactor()


def test_words_in_quotes_are_the_password_unless_they_say_what_it_is_like() -> None:
    for said in (
        "the password is '{}'",
        'The password for the router was "{}"',
        "Das Passwort ist „{}“",
        "set the password to '{}'",
    ):
        for secret in ("swordfish", "Swordfish", "monkey", "hunter two", "correct horse battery", "open-sesame"):
            clean, labels = ON.text(said.format(secret))
            assert (clean, labels) == (said.format("<REDACTED:password>"), ["password"])
        for state in ("required", "too short", "not set", "case sensitive", "encrypted", "at least 8 characters long"):
            assert ON.text(said.format(state)) == (said.format(state), [])


@pytest.mark.parametrize("count", [12, 15, 18, 21, 24])
def test_a_seed_phrase_goes_with_all_its_words(count: int) -> None:
    phrase = words(count)(Random(count))
    hidden = "The seed phrase is <REDACTED:seed_phrase> and the paper is in the safe."
    assert ON.text(f"The seed phrase is {phrase} and the paper is in the safe.") == (hidden, ["seed_phrase"])
    assert ON.document({"mnemonic": phrase}) == ({"mnemonic": "<REDACTED:seed_phrase>"}, ["seed_phrase"])
    assert ON.text(f"They played with {phrase}.")[1] == []


@pytest.mark.parametrize("value", [
    "swordfish", "Swordfish", "hunter2", "open-sesame", "correct horse battery", "hunter two!", "blue7",
])  # fmt: skip
def test_what_is_said_as_the_password(value: str) -> None:
    assert is_said_password(value)


@pytest.mark.parametrize("value", [
    "", " swordfish", "required", "Required.", "too short", "not set", "must be changed", "at least 12 characters long",
    "your password", "encrypted", "secure", "falsch", "zu kurz", "trop court", "incorrecta", "SHA-256", "/run/pw",
    "https://host", "${PASSWORD}", "changeme", "abc", "+ word +", "f(x) = y", "a - b", "hashed and salted",
    " ".join(["word"] * 25), "config.db.password",
])  # fmt: skip
def test_what_is_said_about_the_password(value: str) -> None:
    assert not is_said_password(value)


@pytest.mark.parametrize(("value", "seed"), [
    ("orbit winter velvet tiger", True), ("one one one one", False), ("a b c d e f a b", True), ("a b c a b c", False),
])  # fmt: skip
def test_words_drawn_by_lot_hardly_come_twice(value: str, seed: bool) -> None:
    assert is_seed_phrase(value) is seed


@pytest.mark.parametrize(("count", "matched"), [(11, 0), (12, 12), (13, 12), (14, 12), (15, 15), (24, 24), (30, 24)])
def test_a_phrase_has_a_dozen_words_or_threes_more(count: int, matched: int) -> None:
    phrase = words(count)(Random(1))
    found = re.match(SEED_WORDS, phrase)
    assert (0 if found is None else len(found[0].split())) == matched


@pytest.mark.parametrize("phrase", [
    "the orbit winter velvet tiger sunset rocket puzzle ocean maple ladder kettle island",
    "orbit winter velvet tiger sunset rocket puzzle ocean and ladder kettle island maple",
    "Orbit Winter Velvet Tiger Sunset Rocket Puzzle Ocean Maple Ladder Kettle Island",
])  # fmt: skip
def test_a_sentence_of_a_dozen_words_is_no_seed_phrase(phrase: str) -> None:
    assert re.match(SEED_WORDS + r"\Z", phrase) is None


@pytest.mark.parametrize("joint", [" ", ", ", "\n", "  ", ",", " \n  "])
def test_words_may_be_joined_in_several_ways_and_numbered(joint: str) -> None:
    drawn = words(12)(Random(2)).split()
    numbered = joint.join(f"{i}. {word}" for i, word in enumerate(drawn, start=1))
    for text in (joint.join(drawn), numbered):
        clean, labels = ON.text(f"seed phrase: {text}")
        assert labels == ["seed_phrase"], text
        assert not any(word in clean for word in drawn)
