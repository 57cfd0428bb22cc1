"""`commonplace palace`: made, named, listed; and what it says when something is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


def test_a_palace_is_made_described_and_listed(cli) -> None:
    made = cli("palace", "create", "my-project", "--description", "What we know", "--json")
    assert made.code == 0
    assert made.json | {"created_at": 0} == {
        "name": "my-project", "description": "What we know", "identity": None, "drawer_count": 0, "created_at": 0,
    }  # fmt: skip
    assert cli("palace", "create", "my-project", "--description", "Another").code == 0
    assert cli("palace", "list", "--json").json == {"palaces": [made.json]}
    assert cli("palace", "list").out.split("\t")[:3] == ["my-project", "0", "What we know"]
    shown = cli("palace", "info", "my-project").out
    assert "drawers: 0" in shown
    assert re.search(r"^made: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", shown, re.MULTILINE), "whole when piped"


def test_every_agent_with_a_memory_is_one(cli, remember) -> None:
    remember("something", "--agent", "assistant")
    assert [p["name"] for p in cli("palace", "list", "--json").json["palaces"]] == ["assistant"]
    assert cli("palace", "info", "assistant", "--json").json["drawer_count"] == 1


def test_an_identity_is_read_from_a_file_shown_and_taken_back(cli, tmp_path: Path) -> None:
    (tmp_path / "identity.txt").write_text("I am the project.\nAsk me.\n", "utf-8")
    assert (
        cli("palace", "identity", "p", "--file", str(tmp_path / "identity.txt")).out == "I am the project.\nAsk me.\n"
    )
    assert cli("palace", "identity", "p").out == "I am the project.\nAsk me.\n"
    assert cli("palace", "info", "p", "--json").json["identity"] == "I am the project.\nAsk me."
    assert cli("palace", "identity", "p", "--file", "-", stdin="Another.").out == "Another.\n"
    cleared = cli("palace", "identity", "p", "--clear")
    assert (cleared.code, cleared.out) == (0, "")
    assert "p has no identity" in cleared.err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("create", "../up"), "a palace's name has"),
        (("create", "x" * 129), "a palace's name has"),
        (("info", "nowhere"), "there is no palace 'nowhere'"),
        (("identity", "nowhere"), "there is no palace 'nowhere'"),
        (("identity", "p", "--file", "/no/such/file"), "cannot read /no/such/file"),
        (("identity", "p", "--file", "-"), "holds nothing"),
        (("identity", "p", "--file", "-", "--clear"), "not both"),
    ],
)
def test_mistakes_are_said_in_a_sentence(cli, args: tuple[str, ...], sentence: str) -> None:
    cli("palace", "create", "p")
    ran = cli("palace", *args)
    assert ran.code == 1
    assert sentence in ran.err
    assert cli("palace", *args, "--json").json["error"]["message"]


def test_an_empty_list_says_how_to_begin(cli, remember) -> None:
    remember("x", "--agent", "a/b")
    assert "palace create NAME" in cli("palace", "list").err
