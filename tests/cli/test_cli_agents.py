"""What --agent means to each command, and what is said of one that nobody wrote under."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_tree import LEAVES

ID = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"
#: Every command that looks among one agent's memories, as somebody mistypes whose.
MISTYPED = [
    ("list",), ("recall", "tea"), ("get", ID), ("history", ID), ("forget", "--where", "type=semantic"), ("forget", ID),
    ("forget", "--where", "type=semantic", "--dry-run"), ("update", ID, "--content", "x"), ("merge", ID, ID[:-1] + "0"),
    ("expire", "--type", "semantic"), ("undo", ID), ("lifecycle", "undo", ID),
    ("kg", "query", "Alice"), ("kg", "history", "Alice"), ("kg", "path", "Alice", "tea"),
    ("kg", "neighbors", ID), ("kg", "retract", "Alice", "drinks"), ("kg", "erase", "Alice", "--yes"),
    ("procedure", "show", ID), ("procedure", "fire", ID, "go"), ("procedure", "reset", ID), ("procedure", "draw", ID),
    ("review", "list"), ("export", "-o", "nothing.jsonl"), ("audit", "list"),
    ("recover", "--source", "mail", "--dry-run"),
]  # fmt: skip
#: Those that name somebody else, or begin a memory, for which a new name is no mistake.
OTHERS = {
    "remember", "import", "capture", "kg assert", "ask", "mrp comment", "mrp watch", "mrp vouch", "token create",
    "serve", "mcp", "install", "demo",
}  # fmt: skip


def agent_helps() -> dict[str, str]:
    """What each command says of --agent."""
    return {
        path: next(each.help for each in found.params if "--agent" in each.opts) or "" for path, found in LEAVES.items()
    }


def test_every_command_says_what_an_agent_is_to_it_and_every_mistake_is_tried() -> None:
    used = {path for path, help in agent_helps().items() if not help.startswith("Not used: ")}
    tried = {next(path for path in LEAVES if line[: path.count(" ") + 1] == tuple(path.split())) for line in MISTYPED}
    assert used == tried | OTHERS


OF_THE_STORE = [
    "status", "doctor", "backup", "restore", "compact", "reindex", "stores", "audit verify", "audit head", "model list",
    "token list", "trust list", "identity rotate", "completion",
]  # fmt: skip


@pytest.mark.parametrize("path", OF_THE_STORE)
def test_what_is_for_every_agent_does_not_ask_whose_memory(path: str) -> None:
    assert agent_helps()[path].startswith("Not used: ")


@pytest.mark.parametrize("line", MISTYPED, ids=" ".join)
def test_a_mistyped_agent_is_told_which_there_are(
    cli: Any, remember: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    remember("Alice drinks tea", "--agent", "assistant")
    remember("Bob drinks tea", "--agent", "coder")
    ran = cli(*line, "--agent", "asistant")
    assert "agent asistant has no memories; did you mean assistant? those that have: assistant, coder" in ran.err
    assert "those that have" not in cli(*line, "--agent", "assistant").err


def test_programs_are_not_told_in_the_middle_of_an_answer(cli: Any, remember: Callable[..., str]) -> None:
    remember("Alice drinks tea", "--agent", "assistant")
    ran = cli("list", "--agent", "asistant", "--json")
    assert (ran.json, ran.err) == ({"memories": [], "next_cursor": None}, "")


OF_NO_AGENT = [
    "recover --undo nope", "stores resync nope", "lifecycle run nope", "lifecycle show nope", "undo nope",
    "undo --run nope", "review show nope", "review approve nope", "policy revoke nope", "palace info nope",
]  # fmt: skip


@pytest.mark.parametrize("line", OF_NO_AGENT)
def test_what_looks_at_no_agent_does_not_blame_the_default_one(
    cli: Any, remember: Callable[..., str], line: str
) -> None:
    remember("Alice drinks tea", "--agent", "assistant")
    refused = cli(*line.split())
    assert (refused.code, "has no memories" in refused.err) == (1, False)


def test_the_default_agent_is_named_where_it_was_looked_at(cli: Any, remember: Callable[..., str]) -> None:
    remember("Alice drinks tea", "--agent", "assistant")
    assert "agent default has no memories; those that have: assistant" in cli("get", "nope").err


def test_an_empty_store_has_nobody_to_name(cli: Any, remember: Callable[..., str]) -> None:
    cli("forget", remember("gone"), "--hard", "--yes")
    assert "those that have" not in cli("list", "--agent", "asistant").err


def test_an_agent_whose_memories_were_forgotten_is_not_asked_whether_it_means_itself(
    cli: Any, remember: Callable[..., str]
) -> None:
    cli("forget", remember("Alice drinks tea", "--agent", "assistant"), "--agent", "assistant", "--yes")
    assert cli("list", "--agent", "assistant").err == "nothing here for agent assistant\n"
    assert "did you mean assistant?" in cli("list", "--agent", "asistant").err


def test_writing_under_a_new_name_is_no_mistake(cli: Any, remember: Callable[..., str]) -> None:
    remember("Alice drinks tea", "--agent", "assistant")
    assert cli("remember", "Bob drinks tea", "--agent", "asistant").err == ""
