"""`commonplace undo`: everything short of erasing is taken back, by ids of whichever agent."""

from __future__ import annotations

from typing import Any

import pytest

Remember = Any


def statuses(cli: Any) -> set[str]:
    return {memory["status"] for memory in cli("list", "--json").json["memories"]}


def test_it_brings_back_what_was_forgotten_archived_demoted_or_merged(cli: Any, remember: Remember) -> None:
    one, other = remember("Alice plays the violin"), remember("Alice plays violin", "--confidence", "0.2")
    faint = ("expire", "--confidence-below", "0.5", "--yes", "--action")
    for done in (("merge", one, other), ("forget", other), (*faint, "archive"), (*faint, "demote")):
        cli(*done)
        assert cli("undo", other, "--reason", "a slip").out == "brought back 1 memory\n"
        assert {m["id"] for m in cli("list", "--json").json["memories"]} == {one, other}
        assert statuses(cli) == {"live"}
    assert cli("undo", other, "--json").json == {"restored_ids": [], "unchanged_ids": [other]}
    assert "a slip" in cli("audit", "list", "--json").out


def test_an_id_says_whose_it_is_and_an_agent_keeps_it_to_one(cli: Any, remember: Remember) -> None:
    id = remember("tea", "--agent", "other")
    cli("forget", id, "--agent", "other")
    refused = cli("undo", id, "--agent", "default")
    assert (refused.code, "can be brought back" in refused.err) == (1, True)
    assert cli("undo", id).code == 0


def test_each_its_own_outcome(cli: Any, remember: Remember) -> None:
    gone, erased = remember("tea"), remember("coffee")
    cli("forget", gone)
    cli("forget", erased, "--hard", "--yes")
    done = cli("undo", gone, erased)
    assert (done.code, done.out) == (1, "brought back 1 memory\n")
    assert f"no memory {erased} can be brought back" in done.err
    assert cli("undo", erased, "--json").json["error"]["code"] == "not_found"


@pytest.mark.parametrize("given", [(), ("x", "--run", "y")])
def test_it_takes_ids_or_a_run(cli: Any, remember: Remember, given: tuple[str, ...]) -> None:
    remember("tea")
    refused = cli("undo", *given)
    assert (refused.code, "say what to take back" in refused.err) == (1, True)


def test_an_expiry_is_taken_away(cli: Any, remember: Remember) -> None:
    id = remember("tea", "--expires", "1d")
    assert "expires_at" in cli("get", id, "--json").json
    assert cli("update", id, "--no-expires").code == 0
    assert "expires_at" not in cli("get", id, "--json").json
    refused = cli("update", id, "--no-expires", "--expires", "1d")
    assert (refused.code, "not both" in refused.err) == (1, True)
