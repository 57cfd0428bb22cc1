"""`commonplace forget` of a person: every agent, a preview first, and an answer that says what it covered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.stores.sqlite import writer

Remember = Callable[..., str]
HARD = ("forget", "--user", "alice", "--hard")


@pytest.fixture
def kept(cli: Any, remember: Remember) -> dict[str, str]:
    """By agent; what waits for approval is of an agent that has nothing else."""
    found = {agent: remember("MARK likes tea", "--user", "alice", "--agent", agent) for agent in ("default", "work")}
    found["waits"] = remember("MARK waits", "--user", "alice", "--agent", "quiet", "--approval")
    found["bob"] = remember("Bob likes tea", "--user", "bob", "--agent", "work")
    return found


def test_a_dry_run_shows_every_agent_and_changes_nothing(cli: Any, kept: dict[str, str]) -> None:
    dry = cli(*HARD, "--dry-run", "--json").json
    shown = {memory["id"]: memory["content"] for memory in dry["memories"]}
    assert shown == {kept["default"]: "MARK likes tea", kept["work"]: "MARK likes tea", kept["waits"]: "(pending)"}
    assert "of 3 agents: default (1), quiet (1), work (1)" in cli(*HARD, "--dry-run").err
    assert cli("get", kept["work"], "--agent", "work").code == 0


def test_without_a_person_to_ask_it_wants_a_yes(cli: Any, kept: dict[str, str]) -> None:
    refused = cli(*HARD)
    assert refused.code == 1
    assert "--yes" in refused.err
    assert cli("get", kept["default"]).code == 0


def test_it_erases_everywhere_says_so_and_keeps_the_reason(cli: Any, kept: dict[str, str], data: Path) -> None:
    done = cli(*HARD, "--reason", "she asked", "--yes")
    assert done.out == "erased 3 memories of 3 agents: default (1), quiet (1), work (1)\n"
    assert cli("get", kept["bob"], "--agent", "work").code == 0
    entries = cli("audit", "list", "--operation", "forget", "--json").json["entries"]
    assert {entry["agent_id"] for entry in entries} == {"default", "work", "quiet"}
    assert "she asked" in json.dumps(entries)
    assert [path.name for path in data.rglob("*") if path.is_file() and b"MARK" in path.read_bytes()] == []


def test_an_agent_may_be_named(cli: Any, kept: dict[str, str]) -> None:
    assert cli(*HARD, "--agent", "work", "--yes").out == "erased 1 memory\n"
    assert cli("get", kept["default"]).code == 0


def test_softly_it_hides(cli: Any, kept: dict[str, str]) -> None:
    answer = cli("forget", "--user", "alice", "--json").json
    assert {each["agent_id"]: each["count"] for each in answer["agents"]} == {"default": 1, "quiet": 0, "work": 1}
    assert cli("get", kept["work"], "--agent", "work").code == 1


def test_what_a_failure_left_is_said_and_exits_with_two(
    cli: Any, remember: Remember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.engine.memory.forget.CHUNK", 1)
    for text in ("one", "two", "three"):
        remember(text, "--user", "alice")
    plain, calls = writer.Writer._finish, []

    def full(self: Any, group: Any) -> None:
        calls.append(group)
        if len(calls) == 2:
            raise writer.apsw.FullError("on purpose")
        plain(self, group)

    monkeypatch.setattr(writer.Writer, "_finish", full)
    done = cli(*HARD, "--yes")
    assert (done.code, done.out) == (
        2, "erased 1 memory of 1 agent: default (1); 2 memories of what was meant could not be\n",
    )  # fmt: skip
    assert "is full" in done.err
    assert "nothing was written" not in done.err
    assert len(cli("list").out.splitlines()) == 2


def test_an_id_that_is_not_there_is_said_and_exits_with_one(cli: Any, remember: Remember) -> None:
    done = cli("forget", remember("a fact"), "nope12")
    assert (done.code, done.out) == (1, "forgot 1 memory\n")
    assert "not found: nope12" in done.err
