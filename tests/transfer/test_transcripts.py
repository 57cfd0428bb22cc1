"""Conversations of each program, turn by turn; what is no conversation is said to be none."""

from __future__ import annotations

import json
import os
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from foreign_files import chatgpt, chatgpt_conversation

from commonplace.transfer import transcripts
from commonplace.transfer.transcripts import read_transcript
from commonplace.wire.errors import ValidationError


def lines(path: Path, *documents: Any) -> Path:
    path.write_text("".join(d if isinstance(d, str) else json.dumps(d) + "\n" for d in documents))
    return path


def claude_line(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": kind, "message": {"role": kind, "content": content}, "uuid": more.pop("uuid", "u1"), "sessionId": "s1",
        "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/home/alice/atlas", "parentUuid": None, **more,
    }  # fmt: skip


def test_claude_code(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "t.jsonl",
        {"type": "summary", "summary": "x", "leafUuid": "l"},
        claude_line("user", "I prefer tabs."),
        claude_line("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Noted."},
                                  {"type": "tool_use", "name": "Edit"}]),
        claude_line("user", [{"type": "tool_result", "content": "I prefer spaces."}]),
        claude_line("user", "I am a note of the program.", isMeta=True),
        claude_line("user", "I am a summary.", isCompactSummary=True),
        claude_line("user", "[Request interrupted by user]"),
        claude_line("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        claude_line("user", [{"type": "text", "text": "[Request interrupted by user]"},
                             {"type": "text", "text": "No."}]),
        claude_line("assistant", [{"type": "text", "text": "of a sub-agent"}], isSidechain=True),
    )  # fmt: skip
    found, turns, broken = read_transcript(path)
    assert (found, broken) == ("claude-code", [])
    assert [(turn.speaker, turn.text.strip()) for turn in turns] == [
        ("user", "I prefer tabs."),
        ("assistant", "Noted."),
        ("user", "No."),
    ]
    assert (turns[0].session, turns[0].at, turns[0].folder) == ("s1", 1772359200000, "/home/alice/atlas")


def test_codex(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "rollout.jsonl",
        {
            "timestamp": "2026-03-01T10:00:00Z",
            "type": "session_meta",
            "payload": {"id": "c1", "cwd": "/home/alice/atlas"},
        },
        _codex("user", "input_text", "<environment_context>…</environment_context>"),
        _codex("user", "input_text", "We deploy on Mondays."),
        _codex("assistant", "output_text", "Noted."),
        {"timestamp": "2026-03-01T10:00:00Z", "type": "event_msg", "payload": {"type": "agent_reasoning"}},
    )
    found, turns, _ = read_transcript(path)
    assert found == "codex"
    assert [(turn.speaker, turn.text) for turn in turns] == [("user", "We deploy on Mondays."), ("assistant", "Noted.")]
    assert (turns[0].session, turns[0].folder) == ("c1", "/home/alice/atlas")


def test_of_what_the_ide_extension_of_codex_wraps_only_the_request_is_the_persons(tmp_path: Path) -> None:
    context = "# Context from my IDE setup:\n\n## Active selection of the file:\nWe use tabs everywhere.\n\n"
    request = "## My request for Codex:\n"
    path = lines(
        tmp_path / "rollout.jsonl",
        _codex("user", "input_text", f"{context}## Open tabs:\n- a.md: a.md\n\n{request}Never push to main.\n"),
        _codex("user", "input_text", f"{context}{request}Selected.\n\n{request}We deploy on Mondays.\n"),
        _codex("user", "input_text", f"I ask: {request}and so on."),
        _codex("user", "input_text", context),
        _codex("user", "input_text", f"{context}{request}"),
        _codex("user", "input_text", f"{context.replace(chr(10), chr(13) + chr(10))}{request}Use CRLF."),
    )
    _, turns, _ = read_transcript(path)
    assert [turn.text.strip() for turn in turns] == [
        "Never push to main.",
        "We deploy on Mondays.",
        f"I ask: {request}and so on.",
        "Use CRLF.",
    ]


def _codex(role: str, kind: str, text: str) -> dict[str, Any]:
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"timestamp": "2026-03-01T10:00:01Z", "type": "response_item", "payload": payload}


def test_chatgpt(tmp_path: Path) -> None:
    found, turns, _ = read_transcript(chatgpt(tmp_path))
    assert found == "chatgpt"
    assert turns[1].text == "Anything with peanuts."


@pytest.mark.parametrize("text", ["", "hello\n", "[1, 2]", '{"a": 1}\n', "\x00\x01\n"])
def test_what_is_no_transcript_is_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(ValidationError, match=r"x.jsonl is no transcript"):
        read_transcript(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="cannot read"):
        read_transcript(tmp_path / "none.jsonl", "claude-code")


@pytest.mark.parametrize("format", ["auto", "codex", "chatgpt"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "~nobody-of-this-name/x.jsonl",
            "cannot read ~nobody-of-this-name/x.jsonl: there is no home folder of that user",
        ),
        ("a\0b", "is no name that a file can have"),
        ("a\ud800b", "is no name that a file can have"),
    ],
)
def test_a_path_that_cannot_be(name: str, says: str, format: str) -> None:
    with pytest.raises(ValidationError, match=says):
        read_transcript(Path(name), format)


def test_a_path_of_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    lines(tmp_path / "t.jsonl", claude_line("user", "I paint."))
    assert len(read_transcript(Path("~/t.jsonl"))[1]) == 1


ODD: list[Any] = [None, True, 7, 1e308, "x", "\ud800", [], [None], {}, {"a": [1]}]


def _paths(document: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [*([at] if at else []), *(path for key, value in parts for path in _paths(value, (*at, key)))]


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = document.copy()
    made[path[0]] = _with(document[path[0]], path[1:], value)
    return made


@pytest.mark.parametrize("format", ["claude-code", "codex", "chatgpt"])
def test_whatever_stands_in_the_place_of_a_field_the_rest_is_read_or_refused_with_a_sentence(
    tmp_path: Path, format: str
) -> None:
    """Every field of every line, each in turn, with every kind of value that JSON has."""
    meta = {"timestamp": "2026-03-01T10:00:00Z", "type": "session_meta", "payload": {"id": "c1", "cwd": "/home/alice"}}
    documents: dict[str, list[Any]] = {
        "claude-code": [claude_line("user", [{"type": "text", "text": "one thing"}]), claude_line("user", "I paint.")],
        "codex": [meta, _codex("user", "input_text", "one thing"), _codex("user", "input_text", "I paint.")],
        "chatgpt": [chatgpt_conversation(1), chatgpt_conversation(2)],
    }
    whole = documents[format]
    for path in _paths(whole):
        for odd in ODD:
            changed = _with(whole, path, odd)
            if format == "chatgpt":
                file = tmp_path / "conversations.json"
                file.write_text(json.dumps(changed))
            else:
                file = lines(tmp_path / "t.jsonl", *(json.dumps(each) + "\n" for each in changed))
            with suppress(ValidationError):
                _, turns, _ = read_transcript(file, format)
                assert turns


def test_a_chat_that_ends_in_the_middle_is_refused_with_a_sentence(tmp_path: Path) -> None:
    text = json.dumps([chatgpt_conversation(1), chatgpt_conversation(2)])
    path = tmp_path / "conversations.json"
    for end in range(40, len(text), 97):
        path.write_text(text[:end])
        with pytest.raises(ValidationError, match=r"conversations.json( line 1)?: |is no transcript"):
            read_transcript(path)


@pytest.mark.parametrize("format", ["claude-code", "codex"])
def test_a_line_that_ends_in_the_middle_is_named_and_the_others_are_read(tmp_path: Path, format: str) -> None:
    made = (
        claude_line("user", "We deploy on Mondays ☃.")
        if format == "claude-code"
        else _codex("user", "input_text", "x ☃")
    )
    whole = json.dumps(made, ensure_ascii=False).encode()
    path = tmp_path / "t.jsonl"
    for end in range(1, len(whole)):
        path.write_bytes(whole + b"\n" + whole[:end])
        found, turns, broken = read_transcript(path)
        assert (found, len(turns), [str(each) for each in broken]) == (format, 1, ["line 2: is not a JSON object"])


def test_a_line_without_end_is_named_and_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "_MAX_LINE", 1 << 20)
    long = "x" * (16 << 20) + "\n"
    path = lines(tmp_path / "t.jsonl", long, claude_line("user", "I prefer tabs."), long, claude_line("user", "Two."))
    tracemalloc.start()
    try:
        found, turns, broken = read_transcript(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert (found, [turn.text for turn in turns]) == ("claude-code", ["I prefer tabs.", "Two."])
    assert [str(each) for each in broken] == [f"line {n}: is not a JSON object" for n in (1, 3)]


def test_half_a_character_costs_nobody_the_rest(tmp_path: Path) -> None:
    half = json.loads('"I paint \\ud800 daily."')
    path = lines(
        tmp_path / "t.jsonl", claude_line("user", half, uuid=half, cwd=f"/{half}"), claude_line("user", "Two.")
    )
    _, turns, _ = read_transcript(path)
    assert [turn.text for turn in turns] == ["I paint ? daily.", "Two."]
    assert turns[0].id == "I paint ? daily."


@pytest.mark.parametrize("format", ["auto", "codex", "chatgpt"])
def test_what_is_no_file_is_not_read(tmp_path: Path, format: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ValidationError, match="is no file: save the transcript to one first"):
            read_transcript(path, format)


def test_lines_that_are_broken_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", claude_line("user", "one thing"), "{oops\n", claude_line("user", "another"))
    _, turns, broken = read_transcript(path)
    assert len(turns) == 2
    assert str(broken[0]) == "line 2: is not a JSON object"
