"""Arguments that are no text or no name: a sentence and exit code 1, from every command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_tree import LEAVES

HALF, LONG = "a\udc80b", "n" * 300
ODD = {
    "remember": (("{}",), ("x", "--agent", "{}"), ("x", "--user", "{}"), ("x", "--tag", "{}"), ("x", "--title", "{}"),
                 ("x", "--source", "{}"), ("x", "--metadata", "k={}"), ("x", "--metadata", "{}=1"),
                 ("x", "--idempotency-key", "{}"), ("x", "--session", "{}"), ("x", "--speaker", "{}")),
    "recall": (("{}",), ("x", "--agent", "{}"), ("x", "--user", "{}"), ("x", "--where", "k={}"),
               ("x", "--where", "{}=1"), ("x", "--filter", '{{"k": "{}"}}')),
    "list": (("--agent", "{}"), ("--tag", "{}"), ("--user", "{}"), ("--cursor", "{}"), ("--where", "{}=1")),
    "get": (("{}",), ("x", "--agent", "{}")),
    "history": (("{}",),),
    "update": (("{}", "--content", "x"), ("x", "--content", "{}")),
    "procedure": (("show", "{}"), ("fire", "{}", "go"), ("reset", "{}"), ("draw", "{}")),
    "lifecycle": (("run", "{}"), ("pause", "{}")),
    "forget": (("{}",), ("--where", "k={}"), ("x", "--reason", "{}")),
    "merge": (("{}", "x"), ("x", "{}")),
    "expire": (("--older-than-days", "1", "--agent", "{}"), ("--type", "{}")),
    "kg": (("query", "{}"), ("assert", "{}", "b", "c"), ("assert", "a", "b", "{}"), ("query", "x", "--agent", "{}")),
    "audit": (("list", "--operation", "{}"), ("list", "--agent", "{}"), ("list", "--cursor", "{}")),
    "palace": (("create", "{}"), ("identity", "{}")),
    "token": (("create", "--name", "{}"), ("create", "--agents", "{}"), ("remove", "{}")),
    "reviews": (("show", "{}"), ("approve", "{}")),
    "trust": (("add", "{}", "--level", "1"),),
    "restore": (("{}",),),
    "backup": (("{}/x/y",),),
    "status": (("--data", "{}"),),
}  # fmt: skip
CASES = [(command, *args) for command, rows in ODD.items() for args in rows]


@pytest.mark.slow
@pytest.mark.parametrize("odd", [HALF, LONG], ids=["half a pair", "300 characters"])
@pytest.mark.parametrize("args", CASES, ids=" ".join)
def test_an_odd_argument_is_no_failure_of_ours(cli, remember, args: tuple[str, ...], odd: str) -> None:
    remember("a fact")
    given = [arg.replace("{{", "{").replace("}}", "}").replace("{}", odd) if "{" in arg else arg for arg in args]
    result = cli(*given, "--json")
    assert "bug in Commonplace" not in result.out + result.err
    if odd == HALF:
        assert result.code == 1, result
    else:
        assert result.code in (0, 1) or args[0] == "backup", result


@pytest.mark.parametrize(("args", "option"), [
    (("recall", "x", "--types", "foo"), "--types"), (("expire", "--older-than-days", "-1"), "--older-than-days"),
    (("ask", "http://127.0.0.1:9", "x", "--max", "0"), "--max"),
    (("ask", "http://127.0.0.1:9", "x", "--trust=8"), "--trust"),
    (("remember", "x", "--expires", "2020-01-01"), "--expires"),
    (("remember", "x", "--event-time", "99999999999999999"), "--event-time"),
])  # fmt: skip
def test_what_is_wrong_with_an_option_is_said_by_its_name(cli, remember, args: tuple[str, ...], option: str) -> None:
    remember("a fact")
    result = cli(*args)
    assert result.code == 1
    assert result.err.startswith(f"commonplace: {option} must be")
    assert option not in cli(*args, "--json").json["error"]["message"], "programs are told the wire's field"


def test_no_folder_is_not_the_folder_one_is_in(cli, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("remember", "x", "--data", "")
    assert (result.code, list(tmp_path.iterdir())) == (1, [])
    assert "--data names no folder" in result.err


def test_no_file_is_not_the_folder_one_is_in_either(cli, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an unset variable in a script."""
    (tmp_path / "secret-diary.md").write_text("Alice likes Bob", "utf-8")
    monkeypatch.chdir(tmp_path)
    refused = cli("import", "")
    assert (refused.code, refused.out) == (1, "")
    assert "FILE is empty: name a file, a zip or a folder, such as . for this one" in refused.err
    assert cli("import", ".").out == "imported 1 memory\n"


@pytest.mark.parametrize("command", [("export",), ("import", "notes.md"), ("capture", "talk.jsonl")], ids=" ".join)
def test_a_user_without_a_name_is_neither_everyone_nor_nobody(
    cli, remember, tmp_path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    remember("Alice likes tea", "--user", "alice")
    (tmp_path / "notes.md").write_text("Alice likes Bob", "utf-8")
    turn = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "I prefer tabs."}}
    (tmp_path / "talk.jsonl").write_text(json.dumps(turn), "utf-8")
    monkeypatch.chdir(tmp_path)
    refused = cli(*command, "--user", "")
    assert (refused.code, refused.out) == (1, "")
    assert "user_id must not be empty; leave it out where nobody is meant" in refused.err


def test_a_review_that_is_not_there_says_how_to_look(cli, remember) -> None:
    remember("a fact")
    assert "`commonplace review list --status all`" in cli("reviews", "show", "nope").err


_UUID = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"
_PLACES = {"list": f"1978c3f27b1.{_UUID}", "audit": "12", "lifecycle": _UUID}
_PAGED = {"list": ("list", "--cursor"), "audit": ("audit", "list", "--cursor"),
          "lifecycle": ("lifecycle", "history", "--before")}  # fmt: skip


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("command", _PAGED)
def test_a_place_in_another_list_is_refused(cli, remember, command: str, place: str) -> None:
    remember("a fact")
    assert cli(*_PAGED[command], _PLACES[place]).code == (0 if command == place else 1)


@pytest.mark.parametrize("args", [
    ("audit", "list", "--operation"), ("review", "list", "--status"), ("lifecycle", "history", "--job"),
    ("list", "--type"), ("recall", "x", "--types"),
], ids=" ".join)  # fmt: skip
def test_a_word_that_a_list_does_not_know_is_refused(cli, remember, args: tuple[str, ...]) -> None:
    remember("a fact")
    refused = cli(*args, "bogus")
    assert (refused.code, "bogus" in refused.err) == (1, True), refused


def _means_an_agent(path: str) -> bool:
    return any("--agent" in p.opts and not p.help.startswith("Not used") for p in LEAVES[path].params)


@pytest.mark.parametrize("path", [path for path in LEAVES if _means_an_agent(path)])
def test_an_agent_without_a_name_is_refused_before_anything_is_read(cli, data: Path, path: str) -> None:
    """As of an unset variable in a script."""
    needed = [p for p in LEAVES[path].params if p.required]
    words = [word for p in needed for word in ([p.opts[0], "x"] if p.param_type_name == "option" else ["no-such-file"])]
    refused = cli(*path.split(), *words, "--agent", "")
    assert (refused.code, refused.out) == (1, "")
    assert "--agent names no agent" in refused.err
    assert not data.exists()
