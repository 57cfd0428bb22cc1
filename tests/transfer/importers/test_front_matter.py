"""What stands above a note."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.transfer.importers.front_matter import split


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("no fields", {}, "no fields"),
        ("---\na: 1\n---\nbody", {"a": 1}, "body"),
        ("\ufeff---\na: x\n...\nbody", {"a": "x"}, "body"),
        ("---\nnever closed", {}, "---\nnever closed"),
        ("---\ntags: [a, 'b c', 3]\n---\n", {"tags": ["a", "b c", 3]}, ""),
        ('---\ntags:\n- a\n- "b"\nx: y # why\n---\n', {"tags": ["a", "b"], "x": "y"}, ""),
        ("---\ntags:\n  - a\n---\n", {"tags": ["a"]}, ""),
        ("---\nurl: https://example.com/a:b\n---\n", {"url": "https://example.com/a:b"}, ""),
        ("---\na: true\nb: null\nc: -1.5\nd: '007'\n---\n", {"a": True, "b": None, "c": -1.5, "d": "007"}, ""),
        ("---\nnested:\n  a: 1\n  b: 2\n---\n", {"nested": "  a: 1\n  b: 2"}, ""),
        ("---\n# a comment\n\ntitle: T: U\n---\n", {"title": "T: U"}, ""),
        ("---\ntitle: a plan\n  for tea\n---\n", {"title": "a plan for tea"}, ""),
        ("---\ntitle:\n  a plan\n\n  for tea\nn:\n  4\n---\n", {"title": "a plan\nfor tea", "n": 4}, ""),
        ("---\ntitle: 茶\n作者: Alice\n---\n", {"title": "茶", "作者": "Alice"}, ""),
        ("---\na: 1\n2024: x\n\"my key\": y\n'it''s': z\n---\n", {"a": 1, "2024": "x", "my key": "y", "it's": "z"}, ""),
        ("---\na: 'Alice''s plan: tea'\n---\n", {"a": "Alice's plan: tea"}, ""),
        ('---\na: "say \\"hi\\" \\u00e9 \\ud83c\\udf75"\n---\n', {"a": 'say "hi" é 🍵'}, ""),
        ('---\na: "say \\q"\n---\n', {"a": '"say \\q"'}, ""),
        ('---\na: "x" # why\nb: [y] # why\n---\n', {"a": "x", "b": ["y"]}, ""),
        ('---\na: "x" and "y"\n---\n', {"a": '"x" and "y"'}, ""),
        ("---\na: [\"a, b\", c, 'd''s']\n---\n", {"a": ["a, b", "c", "d's"]}, ""),
        (
            "---\na: [x,\n  y]\nb: [[Tea]]\nc: [x, {y: z}]\n---\n",
            {"a": ["x", "y"], "b": "[[Tea]]", "c": "[x, {y: z}]"},
            "",
        ),
        ("---\na: |\n  # one\n    two\n\n  three\nb: 1\n---\n", {"a": "# one\n  two\n\nthree\n", "b": 1}, ""),
        ("---\na: >-\n  one\n  two\n\n  three\n---\n", {"a": "one two\nthree"}, ""),
        ("---\na: |+\n  one\n\n---\n", {"a": "one\n\n"}, ""),
        ("---\na: 'one\n  # two'\n---\n", {"a": "one # two"}, ""),
        ("---\nnested:\n  # why\n  a: |\n    # b\n---\n", {"nested": "  # why\n  a: |\n    # b"}, ""),
        ("---\na:\n  - b\n  -  c: |\n       d\n---\n", {"a": "  - b\n  -  c: |\n       d"}, ""),
        ("---\na:\n  - b\n  - c\n    - d\n---\n", {"a": "  - b\n  - c\n    - d"}, ""),
        ('---\na: {b: "c #d"}\ne: !x "y #z"\n---\n', {"a": '{b: "c #d"}', "e": '!x "y #z"'}, ""),
        ("---\na: 1\nnot a key\nb: 2\n---\n", {"a": "1\nnot a key", "b": 2}, ""),
        ("---\na: 1\na: 2\n---\n", {"a": "1\n2"}, ""),
        ("---\nA line between two rules.\n---\nbody", {}, "---\nA line between two rules.\n---\nbody"),
        ("---\na: 007\nb: 1.10\nc: 2.5\n---\n", {"a": "007", "b": "1.10", "c": 2.5}, ""),
        ("---\n---\nbody", {}, "body"),
        (
            "---\nx: y # why: z\na: # why\nb: #tag\nc:\n# why\nd: 1\n---\n",
            {"x": "y", "a": None, "b": "#tag", "c": None, "d": 1},
            "",
        ),
    ],
)
def test_fields_and_body(text: str, fields: dict[str, Any], body: str) -> None:
    assert split(text) == (fields, body)


def test_a_long_run_of_spaces_is_read_in_one_go() -> None:
    """From each of them anew it would take an hour."""
    spaces = " " * 2_000_000
    assert split(f"---\na: b{spaces}c\n---\n") == ({"a": f"b{spaces}c"}, "")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LINE = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=40)
WORDS = st.lists(st.from_regex(r"[A-Za-zÀ-ÿ一-龥][\w.'#-]{0,12}", fullmatch=True), min_size=1, max_size=8)


def _in_double_quotes(text: str) -> str:
    return json.dumps(text)


def _in_single_quotes(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@given(st.dictionaries(TEXT, TEXT, min_size=1))
def test_what_is_written_in_double_quotes_is_read_again(fields: dict[str, str]) -> None:
    lines = [f"{_in_double_quotes(key)}: {_in_double_quotes(value)}" for key, value in fields.items()]
    assert split("---\n" + "\n".join(lines) + "\n---\nbody") == (fields, "body")


@given(st.dictionaries(LINE, LINE, min_size=1))
def test_what_is_written_in_single_quotes_is_read_again(fields: dict[str, str]) -> None:
    lines = [f"{_in_single_quotes(key)}: {_in_single_quotes(value)}" for key, value in fields.items()]
    assert split("---\n" + "\n".join(lines) + "\n---\nbody") == (fields, "body")


@given(st.lists(LINE), st.sampled_from([_in_double_quotes, _in_single_quotes]))
def test_a_list_is_read_again_however_it_is_written(items: list[str], quote: Any) -> None:
    quoted = [quote(item) for item in items]
    assert split(f"---\na: [{', '.join(quoted)}]\nb: 1\n---\n") == ({"a": items, "b": 1}, "")
    below = "".join(f"  - {item}\n" for item in quoted)
    assert split(f"---\na:\n{below}b: 1\n---\n") == ({"a": items or None, "b": 1}, "")


@given(st.lists(LINE.filter(lambda line: line.strip(" ")), min_size=1))
def test_lines_of_a_block_are_read_again(lines: list[str]) -> None:
    block = "".join(f"  {line}\n" for line in lines)
    assert split(f"---\na: |2\n{block}b: 1\n---\n") == ({"a": "\n".join(lines) + "\n", "b": 1}, "")


@given(WORDS, st.integers(0, 7))
def test_a_text_may_go_on_in_the_next_line(words: list[str], at: int) -> None:
    first, rest = words[: at + 1], words[at + 1 :]
    written = " ".join(["x", *first]) + (f"\n  {' '.join(rest)}" if rest else "")
    assert split(f"---\na: {written}\nb: 1\n---\n") == ({"a": " ".join(["x", *words]), "b": 1}, "")


PIECES = [
    "a",
    "1",
    ": ",
    "b: ",
    "  ",
    "\t",
    "- ",
    "? ",
    "#",
    " # ",
    "'",
    '"',
    "[",
    "]",
    "{",
    "}",
    ", ",
    "|",
    "> ",
    "\\",
    "茶: ",
]
ODD = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)


@given(st.lists(st.tuples(ODD, ODD), max_size=6))
def test_no_word_is_lost_but_those_of_comments(around: list[tuple[str, str]]) -> None:
    lines = [f"{before}w{number}{after}" for number, (before, after) in enumerate(around)]
    fields, body = split("---\nz:\n" + "\n".join(lines) + "\n---\nbody")
    assert body == "body"
    kept = str(fields)
    for number, line in enumerate(lines):
        assert "#" in line or f"w{number}" in kept
