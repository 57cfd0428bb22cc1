"""`commonplace procedure`: show, fire, reset, draw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DOOR = {
    "name": "door",
    "states": ["shut", "open"],
    "transitions": [
        {"trigger": "push", "source": "shut", "dest": "open", "conditions": "oiled", "unless": "locked"},
        {"trigger": "pull", "source": "open", "dest": "shut"},
    ],
}


@pytest.fixture
def door(remember: Any) -> str:
    id: str = remember(json.dumps(DOOR), "--type", "procedural")
    return id


def test_a_procedure_is_shown_fired_reset_and_drawn(cli: Any, door: str, tmp_path: Path) -> None:
    assert "push → open [oiled, not locked]" in cli("procedure", "show", door[-8:]).out
    facts = ("--fact", "oiled", "--fact", "locked=false")
    assert cli("procedure", "fire", door, "push", *facts).out == "door is open (version 2)\n"
    assert cli("procedure", "show", door, "--json").json["state"] == "open"
    assert cli("procedure", "draw", door).out.startswith("<svg ")
    assert cli("procedure", "draw", door, "--format", "mermaid").out.startswith("stateDiagram-v2\n")
    drawn = tmp_path / "door.svg"
    assert cli("procedure", "draw", door, "-o", str(drawn)).out == f"drew {door} into {drawn}\n"
    assert drawn.read_text("utf-8").endswith("</svg>\n")
    assert cli("procedure", "reset", door, "--expected-version", "2").out == "door is shut (version 3)\n"
    staged = cli("procedure", "fire", door, "push", *facts, "--approval", "--reasoning", "a guest")
    assert "waits for approval" in staged.out
    assert cli("procedure", "show", door, "--json").json["state"] == "shut"


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["fire", "$", "kick"], "conflict", "possible are push"),
        (["fire", "$", "push"], "validation_error", "facts.oiled is required"),
        (["fire", "$", "push", "--fact", "oiled=maybe"], "validation_error", "--fact is NAME"),
        (["fire", "$", "push", "--fact", "oiled", "--fact", "locked"], "conflict", "is held back by locked"),
        (["fire", "$", "pull", "--expected-version", "7"], "conflict", "is at version 1, not 7"),
        (["reset", "$", "--expected-version", "7"], "conflict", "is at version 1, not 7"),
        (["draw", "$", "--format", "png"], "validation_error", "svg, mermaid"),
        (["draw", "$", "-o", "/nowhere/at/all.svg"], "validation_error", "cannot be written"),
        (["show", "nothing"], "not_found", "nothing"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    cli: Any, door: str, args: list[str], code: str, sentence: str
) -> None:
    refused = cli("procedure", *(door if arg == "$" else arg for arg in args), "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, code)
    assert sentence in refused.json["error"]["message"]
    assert cli("procedure", "show", door, "--json").json["version"] == 1
