"""What the command line tells of secrets that were not kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

Cli = Callable[..., Any]
TOKEN = "gh" + "p_" + "".join(Random(3).choices("0123456789abcdef", k=36))


def test_remember_says_what_was_replaced(cli: Cli) -> None:
    ran = cli("remember", f"Bob's token is {TOKEN}")
    assert ran.code == 0
    assert "a secret was replaced before it was kept: github_token" in ran.err
    assert TOKEN not in ran.out + ran.err
    assert "<REDACTED:github_token>" in cli("list").out
    assert cli("remember", f"again {TOKEN}", "--json").json["redacted"] == ["github_token"]
    assert "secret" not in cli("remember", "nothing of the kind").err


def test_a_batch_says_it_for_each_line(cli: Cli, tmp_path: Path) -> None:
    lines = tmp_path / "notes.jsonl"
    lines.write_text(f'"plain"\n"{TOKEN}"\n', "utf-8")
    ran = cli("remember", "--batch", str(lines))
    assert ran.code == 0
    assert "line 2: a secret was replaced before it was kept: github_token" in ran.err
    assert TOKEN not in ran.out + ran.err


def test_refused_is_the_users_mistake_and_shows_no_secret(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_REDACTION_MODE", "reject")
    ran = cli("remember", f"Bob's token is {TOKEN}")
    assert ran.code == 1
    assert "github_token" in ran.err
    assert TOKEN not in ran.out + ran.err
    assert "Traceback" not in ran.err


def test_status_says_whether_it_is_on(cli: Cli, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("remember", "plain")
    assert "secrets are replaced" in cli("status").out
    monkeypatch.setenv("BANK", "words only the operator knows")
    monkeypatch.setenv("COMMONPLACE_REDACTION_SECRETS_ENV", "BANK")
    assert "1 registered by value" in cli("status").out
    monkeypatch.setenv("COMMONPLACE_REDACTION_MODE", "off")
    assert "off: secrets are kept" in cli("status").out
    assert json.loads(cli("status", "--json").out)["redaction"] == {"mode": "off", "registered": 1}


def test_a_file_of_secrets_that_others_may_read_stops_it_with_the_remedy(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secrets"
    path.write_text("bank=words only the operator knows\n", "utf-8")
    path.chmod(0o644)
    monkeypatch.setenv("COMMONPLACE_REDACTION_SECRETS_FILE", str(path))
    ran = cli("remember", "plain")
    assert (ran.code, "chmod 600" in ran.err) == (1, True)
    path.chmod(0o600)
    assert "bank" in cli("remember", "it is words only the operator knows").err


def test_status_counts_agents_that_it_does_not_name(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_REDACTION_MODE", "off")
    cli("remember", "plain", "--agent", TOKEN)
    cli("remember", "plain", "--agent", "ada")
    monkeypatch.delenv("COMMONPLACE_REDACTION_MODE")
    ran = cli("status")
    assert "1 agent not shown: the name holds a secret" in ran.out
    assert TOKEN not in ran.out + ran.err
    assert "ada (1)" in ran.out
