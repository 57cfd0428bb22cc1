"""Token rules: credentials told by their own form."""

from __future__ import annotations

from random import Random

import pytest
from redaction_corpus.credentials import ALNUM, BY_FORM, some

from commonplace.engine.redaction import Redactor, scanner
from commonplace.engine.redaction.rule import TOKEN_RUN, LeadIndex
from commonplace.engine.redaction.token_rules import TOKENS

ON = Redactor()
RNG = Random(5)
KEY = BY_FORM["aws_access_key"](RNG)


def test_an_aws_secret_needs_no_name_beside_its_access_key() -> None:
    secret = "wJ4" + some(RNG, ALNUM, 37)
    clean, labels = ON.text(f"{KEY} / {secret}")
    assert clean == "<REDACTED:aws_access_key> / <REDACTED:aws_secret_key>"
    assert labels == ["aws_access_key", "aws_secret_key"]


@pytest.mark.parametrize("form", BY_FORM)
def test_a_credential_is_found_alone_quoted_and_in_a_name(form: str) -> None:
    made = BY_FORM[form](Random(7))
    for text in (made, f'"{made}"', f"x={made};", f"line\\n{made}"):
        clean, labels = ON.text(text)
        assert labels
        assert made not in clean
    if "\n" not in made and "PRIVATE KEY" not in made and form != "card":
        assert scanner.in_name(f"x-{made}") or scanner.in_name(made)


def test_every_rule_matches_only_where_one_of_its_triggers_is() -> None:
    texts = [make(Random(n)) for make in BY_FORM.values() for n in range(3)]
    matched = set()
    for text in texts:
        for rule in TOKENS:
            if rule.label == "aws_secret_key":
                continue  # forty random characters, and tried only beside an access key
            if next(rule.spans(text, LeadIndex("")), None) is not None:
                matched.add(rule.label)
                assert any(trigger in text for trigger in rule.triggers), (rule.label, text)
                assert len(text) >= TOKEN_RUN
    assert len(matched) >= 60


def test_every_rule_is_in_order() -> None:
    for rule in TOKENS:
        assert rule.label.replace("_", "").isalnum()
        assert rule.label.islower()
        assert all(len(trigger) >= 2 for trigger in rule.triggers), "they are looked for by their first two characters"
        assert rule.triggers
        assert not rule.lead
        assert rule.compiled.groups == len(rule.compiled.groupindex) <= 1


@pytest.mark.parametrize("filled", ["", "x" * 44, "..." * 15, "*" * 40, "<your-key>"])
def test_a_prefix_alone_or_filled_with_a_placeholder_stays(filled: str) -> None:
    for trigger in (trigger for rule in TOKENS for trigger in rule.triggers):
        text = f"it begins with {trigger}{filled} as documented"
        assert ON.text(text) == (text, [])
