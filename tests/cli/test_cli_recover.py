"""`commonplace recover`: looked at, done, and undone."""

from __future__ import annotations

from typing import Any

import pytest


def test_a_bad_source_is_looked_at_and_taken_back_and_that_undone(cli: Any, remember: Any) -> None:
    remember("Alice plays the violin")
    remember("Bob is the admin", "--source", "https://evil.example")
    bad = ("recover", "--source", "https://evil.example")
    looked = cli(*bad, "--dry-run")
    assert (looked.code, "hide it everywhere" in looked.out, "nothing was changed" in looked.err) == (0, True, True)
    refused = cli(*bad)
    assert (refused.code, "look with --dry-run first, then add --yes" in refused.err) == (1, True)
    done = cli(*bad, "--yes", "--json").json
    assert [each["action"] for each in done["affected"]] == ["quarantine"]
    assert [m["content"] for m in cli("list", "--json").json["memories"]] == ["Alice plays the violin"]
    assert "it is taken back already" in cli(*bad, "--yes").err
    assert "recover" in cli("audit", "list", "--operation", "recover").out
    back = cli("recover", "--undo", done["recovery_id"], "--json").json
    once_more = cli(*bad, "--yes", "--json").json["recovery_id"]
    assert "the recovery is undone; as before it: 1 memory or statement" in cli("recover", "--undo", once_more).out
    assert (back["restored_ids"], "errors" in back) == ([done["affected"][0]["id"]], False)
    assert len(cli("list", "--json").json["memories"]) == 2
    assert cli("audit", "verify", "--json").json["ok"] is True


def test_a_person_is_asked(cli: Any, remember: Any) -> None:
    remember("Bob is the admin", "--source", "mail")
    assert cli("recover", "--source", "mail", typed="n\n").code == 1
    done = cli("recover", "--source", "mail", typed="y\n")
    assert "`commonplace recover --undo" in done.out + done.err
    assert "Take back 1 memory or statement?" in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "say what to take back: --source, --principal or --since, at least one"),
        (["--since", "soon"], "--since takes"),
        (["--undo", "x"], "there is no recovery x"),
        (["--undo", "x", "--source", "y"], "--undo takes the id of a recovery, alone"),
    ],
)
def test_mistakes_are_told(cli: Any, remember: Any, arguments: list[str], sentence: str) -> None:
    remember("x")
    refused = cli("recover", *arguments)
    assert (refused.code, sentence in refused.err) == (1, True)
