"""What services publish of their credentials, and how much of that redaction catches."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from bench.redaction.__main__ import main
from bench.redaction.facts import Fact, base58_key, bech32, facts
from bench.redaction.report import NAMED, TOLD, leaked, measure, texts
from commonplace.engine.redaction import Redactor
from commonplace.engine.redaction.rule import is_base58_key, is_bech32

SAMPLES = 3  # of each in every surrounding
ON = Redactor()


def test_there_are_many_services_each_told_once() -> None:
    names = [fact.service for fact in facts()]
    assert len(set(names)) == len(names) >= 150
    assert TOLD.keys() == NAMED.keys() == {"prose", "env", "json", "yaml", "url", "code"}


@pytest.mark.slow
@pytest.mark.parametrize("fact", [fact for fact in facts() if fact.told], ids=lambda fact: fact.service)
def test_what_its_form_tells_is_caught_in_every_surrounding(fact: Fact) -> None:
    rng = Random(fact.service)
    for _ in range(SAMPLES):
        for where, text, secret in texts(fact, rng):
            clean, labels = ON.text(text)
            assert labels, where
            assert not leaked(secret, clean), where


def test_what_only_its_name_tells_is_caught_but_for_values_that_read_like_words() -> None:
    named = [family for family in measure(SAMPLES) if family.told_by == "name"]
    assert sum(family.missed for family in named) <= 0.02 * sum(family.caught for family in named)
    assert [family.service for family in named if family.missed > family.caught / 5] == []


def test_a_check_sum_that_is_wrong_is_no_key() -> None:
    rng = Random(3)
    for key, is_key in (
        (base58_key(b"\x80", rng.randbytes(32)), is_base58_key),
        (base58_key(b"\x80", rng.randbytes(32) + b"\x01"), is_base58_key),
        (bech32("nsec", rng.randbytes(32)), is_bech32),
    ):
        assert is_key(key)
        assert ON.text(key)[1]
        for place in (6, 20, len(key) - 2):
            other = "q" if key[place] != "q" else "p"
            changed = key[:place] + other + key[place + 1 :]
            assert not is_key(changed)
            assert ON.text(changed) == (changed, [])


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--samples", "1", "--results", str(tmp_path / "deep" / "redaction.json")]) == 0
    said = capsys.readouterr().out
    assert "told by" in said
    assert "Tailscale auth" in said
    written = json.loads((tmp_path / "deep" / "redaction.json").read_text("utf-8"))
    assert written["services"] == len(written["families"]) == len(facts())
    assert written["caught"] + written["missed"] == len(facts()) * len(TOLD)
