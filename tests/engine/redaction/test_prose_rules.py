"""Prose rules: words in quotes that are the password or describe it, and phrases of seed words."""

from __future__ import annotations

from random import Random

import pytest
from redaction_corpus.credentials import words

from commonplace.engine.redaction import Redactor

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
