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


# undoing it


def test_what_was_forgotten_comes_back(cli: Any, remember: Remember) -> None:
    one, two = remember("Alice likes tea"), remember("Bob likes tea")
    cli("forget", one, two, "--reason", "a slip")
    assert cli("list").out == ""
    done = cli("forget", "--undo", one, two, "--reason", "she asked")
    assert (done.code, done.out) == (0, "brought back 2 memories\n")
    assert {line.split("\t")[0] for line in cli("recall", "tea").out.splitlines()} == {one, two}
    assert [line.split("\t")[2:] for line in cli("history", one).out.splitlines()][1:] == [
        ["status", "live → deleted"], ["status", "deleted → live"],
    ]  # fmt: skip
    assert "she asked" in cli("audit", "list", "--operation", "undelete", "--json").out
    assert cli("audit", "verify").code == 0


def test_what_was_archived_comes_back_to_recall(cli: Any, remember: Remember) -> None:
    id = remember("Alice likes tea")
    cli("expire", "--type", "semantic", "--action", "archive", "--yes")
    assert cli("recall", "tea").out == ""
    assert cli("forget", "--undo", id, "--json").json == {"restored_ids": [id]}
    assert cli("recall", "tea").out.startswith(id)


def test_what_was_erased_is_refused_and_the_rest_comes_back(cli: Any, remember: Remember) -> None:
    kept, gone = remember("Alice likes tea"), remember("Bob likes tea")
    cli("forget", kept)
    cli("forget", gone, "--hard", "--yes")
    done = cli("forget", "--undo", gone, kept)
    assert (done.code, done.out) == (1, "brought back 1 memory\n")
    assert f"no memory {gone} of agent default can be brought back: it was erased" in done.err
    none = cli("forget", "--undo", gone)
    assert (none.code, none.out) == (1, "")
    assert "`commonplace audit list --operation forget --agent default`" in none.err
    assert cli("forget", "--undo", gone, "--json").json["error"]["code"] == "not_found"
    assert cli("forget", "--undo", kept, "--json").json["error"]["code"] == "conflict"


@pytest.mark.parametrize("more", [
    (), ("x", "--hard"), ("x", "--user", "alice"), ("x", "--where", "a=1"), ("x", "--filter", '{"a": 1}'),
    ("x", "--cascade"), ("x", "--all-agents"), ("x", "--approval"), ("x", "--dry-run"),
])  # fmt: skip
def test_undoing_takes_ids_alone(cli: Any, remember: Remember, more: tuple[str, ...]) -> None:
    remember("Alice likes tea")
    refused = cli("forget", "--undo", *more)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("commonplace: --undo takes ids, and --reason, alone")
