"""Conversations of each program, turn by turn; what is no conversation is said to be none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreign_files import chatgpt

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
        claude_line("assistant", [{"type": "text", "text": "of a sub-agent"}], isSidechain=True),
    )  # fmt: skip
    found, turns, broken = read_transcript(path)
    assert (found, broken) == ("claude-code", [])
    assert [(turn.speaker, turn.text) for turn in turns] == [("user", "I prefer tabs."), ("assistant", "Noted.")]
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


def test_lines_that_are_broken_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", claude_line("user", "one thing"), "{oops\n", claude_line("user", "another"))
    _, turns, broken = read_transcript(path)
    assert len(turns) == 2
    assert str(broken[0]) == "line 2: is not a JSON object"
