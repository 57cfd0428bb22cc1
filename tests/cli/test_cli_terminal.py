"""What a person sees at a terminal: colour and tables there and nowhere else, ids that can be copied, bars, hints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.cli.app import COMMANDS, _suggestion
from commonplace.cli.support.explanation import bar
from commonplace.cli.support.tables import column_widths

OnTerminal = Callable[..., tuple[int, str]]

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _lines(screen: str) -> list[str]:
    return _ESCAPES.sub("", screen).replace("\r", "").splitlines()


def _ids(document: Any) -> set[str]:
    return set(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(document)))


@pytest.fixture
def filled(cli: Any, remember: Callable[..., str], data: Path) -> str:
    """Something in every table."""
    data.mkdir()
    (data / "commonplace.toml").write_text('[lifecycle]\nexpire = ["confidence_below=0.5"]\n', "utf-8")
    remember("Bob thinks the printer is haunted", "--confidence", "0.3")
    first = remember("Alice is allergic to peanuts " + "and to more than one would think " * 4, "--tag", "food")
    second = remember("Peanuts make Alice ill", "--user", "alice", "--agent", "default")
    cli("remember", "Alice may approve payments", "--approval")
    cli("kg", "assert", "Alice", "works_at", "Acme", "--provenance", first)
    cli("merge", first, second)
    cli("lifecycle", "run", "expire")
    return first


TABLES = {
    "list": ("list",), "recall": ("recall", "peanuts"), "explain": ("recall", "peanuts", "--explain"),
    "reviews": ("review", "list"), "audit": ("audit", "list"), "runs": ("lifecycle", "history"),
    "statements": ("kg", "query", "Alice"), "preview": ("forget", "--where", "type=semantic", "--dry-run"),
}  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("name", TABLES)
def test_no_id_is_broken_at_eighty_columns(filled: str, cli: Any, on_a_terminal: OnTerminal, name: str) -> None:
    code, screen = on_a_terminal([*TABLES[name]])
    assert code == 0, screen
    lines = _lines(screen)
    assert all(len(line) <= 80 for line in lines if _ids(line))
    shown = {id for line in lines for id in _ids(line)}
    # What is broken over two lines is whole again once the lines are joined.
    joined = _ids("".join(line.strip() for line in lines))
    assert shown, screen
    assert joined <= shown
    assert "\x1b[" in screen


@pytest.mark.process
@pytest.mark.parametrize("name", TABLES)
def test_whoever_wants_no_colour_gets_none(filled: str, on_a_terminal: OnTerminal, name: str) -> None:
    _, screen = on_a_terminal([*TABLES[name]], NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", screen)


@pytest.mark.parametrize("name", TABLES)
def test_a_pipe_gets_neither_colour_nor_boxes(filled: str, cli: Any, name: str) -> None:
    ran = cli(*TABLES[name])
    assert not set(ran.out + ran.err) & set("─│┃━┏┡█\x1b")


@pytest.mark.process
def test_rows_with_more_ids_than_fit_become_names_and_values(filled: str, on_a_terminal: OnTerminal, cli: Any) -> None:
    code, screen = on_a_terminal(["list"], COLUMNS="40")
    assert code == 0
    shown = {id for line in _lines(screen) for id in _ids(line)}
    assert shown == {memory["id"] for memory in cli("list", "--json").json["memories"]}
    assert "─" not in screen


@pytest.mark.process
def test_an_explanation_is_a_table_with_bars(filled: str, on_a_terminal: OnTerminal) -> None:
    _, screen = on_a_terminal(["recall", "peanuts", "--explain"])
    text = "\n".join(_lines(screen))
    assert "because of" in text
    assert "share" in text
    assert re.search(r"^\s*\S.*\d\.\d{4}\s+\d\.\d{4}\s+█+", text, re.MULTILINE)
    assert re.search(r"^took\s+\d+ ms$", text, re.MULTILINE)
    assert not re.search(r"\b(True|False|None)\b", text), "which are words of a language that readers need not know"
    assert re.search(r"^bm25\s+\d\.\d{4}$", text, re.MULTILINE)
    assert not re.search(r"^keyword\s+\d\.\d{4}$", text, re.MULTILINE)  # that is one of the shares, in the table


@pytest.mark.process
@pytest.mark.parametrize("columns", [40, 50, 80])
def test_a_bar_is_on_one_line_however_narrow(filled: str, on_a_terminal: OnTerminal, columns: int) -> None:
    _, screen = on_a_terminal(["recall", "peanuts", "--explain"], COLUMNS=str(columns))
    bars = [line for line in _lines(screen) if "█" in line]
    assert bars
    assert [line for line in bars if not re.search(r"\d\.\d{4} +\d\.\d{4}  █", line) or len(line) > columns] == []
    longest = max(line.count("█") for line in bars)
    assert longest == min(24, columns - 30), "as much as there is room for"


def test_a_piped_explanation_is_names_with_json(filled: str, cli: Any) -> None:
    explained = cli("recall", "peanuts", "--explain").out.split("\n\n", 1)[1].splitlines()
    parts = [dict(part.split("=", 1) for part in line.split("  ")[1:]) for line in explained]
    read = [{name: json.loads(value) for name, value in each.items()} for each in parts]
    assert read[0]["features"].keys() == read[0]["shares"].keys() >= {"keyword"}
    assert ("bm25" in read[0], "keyword" in read[0]) == (True, False)
    assert read[-1]["candidates"] >= 1


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [(1.0, 1.0, "████"), (0.5, 1.0, "██"), (0.53125, 1.0, "██▏"), (2.0, 1.0, "████"), (0.0, 1.0, ""), (-0.5, 1.0, "··"),
     (-0.01, 1.0, ""), (1.0, 0.0, "")],
)  # fmt: skip
def test_a_bar_is_as_long_as_its_share(value: float, scale: float, expected: str) -> None:
    assert bar(value, scale, 4) == expected


@pytest.mark.parametrize(
    ("least", "wanted", "room", "expected"),
    [
        ([36, 6], [40, 10], 80, [40, 10]), ([36, 6], [80, 16], 60, [44, 16]), ([36, 6], [36, 30], 44, [36, 8]),
        ([36, 6], [50, 2], 38, [36, 2]), ([36, 36, 6], [36, 36, 6], 77, None), ([6], [3], 2, None),
    ],
)  # fmt: skip
def test_room_is_shared_out_and_never_taken_from_an_id(
    least: list[int], wanted: list[int], room: int, expected: list[int] | None
) -> None:
    assert column_widths(least, wanted, room) == expected


@pytest.mark.process
def test_mistakes_and_notes_are_coloured_for_people_alone(on_a_terminal: OnTerminal, cli: Any) -> None:
    _, screen = on_a_terminal(["list", "--limit", "0"])
    assert screen.startswith("\x1b[1;31mcommonplace:\x1b[0m")
    _, plain = on_a_terminal(["list", "--limit", "0"], NO_COLOR="1")
    assert plain.startswith("commonplace: ")
    assert cli("list", "--limit", "0").err.startswith("commonplace: ")


# suggestions and completion


@pytest.mark.parametrize("typed", ["exp", "expo", "expor", "exprt", "exprot", "exportt", "exports", "xport"])
def test_who_means_export_is_not_sent_to_expire(cli: Any, typed: str) -> None:
    refused = cli(typed)
    assert refused.code == 1
    assert "'export'" in refused.err
    assert "expire" not in refused.err


@pytest.mark.parametrize(("typed", "meant"), [("expir", "expire"), ("expires", "expire"), ("forgt", "forget")])
def test_who_means_to_forget_is_understood(typed: str, meant: str) -> None:
    assert _suggestion(typed, COMMANDS).startswith(f". Did you mean '{meant}'")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(cli: Any, data: Path, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = cli("completion", shell)
    assert ran.code == 0
    assert "_COMMONPLACE_COMPLETE" in ran.out
    assert cli("completion", shell, "--json").json == {"shell": shell, "script": ran.out.rstrip("\n")}
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert cli("completion").out == ran.out
    assert not data.exists(), "it begins no store"


def test_a_shell_we_do_not_know_is_refused(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "bash, zsh, fish, not 'tcsh'" in cli("completion", "tcsh").err
    monkeypatch.delenv("SHELL", raising=False)
    assert "SHELL does not say which" in cli("completion").err
