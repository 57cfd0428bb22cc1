"""Standard streams as others start us with: closed, or of an encoding that is not UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = [sys.executable, "-m", "commonplace"]
STREAMS = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}

Cli = Callable[..., Any]


def run(arguments: str, data: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[bytes]:
    """A shell's command line in a process of its own."""
    settings = {"COMMONPLACE_DATA": str(data), "COMMONPLACE_EMBEDDER": "none", **env}
    return subprocess.run(
        ["sh", "-c", f'exec "$0" "$1" "$2" {arguments}', *PROGRAM],
        env={**os.environ, **settings},
        input=stdin.encode(),
        capture_output=True,
        check=False,
    )


@pytest.fixture
def stop_hook(tmp_path: Path) -> str:
    """What Claude Code says when someone stated a preference last."""
    transcript = tmp_path / "s1.jsonl"
    said = {"type": "user", "message": {"role": "user", "content": "I prefer tabs over spaces."}, "uuid": "u1"}
    transcript.write_text(json.dumps({**said, "sessionId": "s1", "cwd": "/home/alice/atlas"}) + "\n")
    told = {"hook_event_name": "Stop", "session_id": "s1", "cwd": "/home/alice/atlas"}
    return json.dumps({**told, "transcript_path": str(transcript)})


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes them")
@pytest.mark.parametrize("stream", STREAMS)
def test_a_closed_stream_stops_neither_a_hook_nor_a_command(
    cli: Cli, remember: Callable[..., str], data: Path, stop_hook: str, stream: str
) -> None:
    remember("Alice drinks tea")
    hook = run(f"capture --hook {STREAMS[stream]}", data, stop_hook)
    assert (hook.returncode, hook.stdout) == (0, b"")
    assert (b"JSON object on stdin" in hook.stderr) if stream == "stdin" else (hook.stderr == b"")
    staged = [review["request"]["content"] for review in cli("review", "list", "--json").json["reviews"]]
    assert staged == ([] if stream == "stdin" else ["I prefer tabs over spaces."])

    for arguments in ("list", "list --json", "list --nonsense", "--version"):
        ran = run(f"{arguments} {STREAMS[stream]}", data)
        assert ran.returncode == (1 if "nonsense" in arguments else 0)
        said = ran.stdout + ran.stderr
        assert b"bug" not in said, ran
        assert b"Traceback" not in said, ran
        if stream != "stdout" and arguments.startswith("list") and "nonsense" not in arguments:
            assert b"Alice drinks tea" in ran.stdout


# None is UTF-8: two as someone sets them (latin-1 is close to what Windows has for pipes), and a locale without it.
ENCODINGS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_is_utf8_whatever_the_encoding_of_the_stream(
    remember: Callable[..., str], data: Path, encoding: str
) -> None:
    content = "Jürgen mag Käse, ☕ und 🧀"
    remember(content, "--metadata", "project=tée")
    env = ENCODINGS[encoding]
    listed = run("list --json", data, **env)
    assert (listed.returncode, listed.stderr) == (0, b"")
    assert json.loads(listed.stdout)["memories"][0]["content"] == content

    told = {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "/home/alice/tée"}
    for stdin in (json.dumps(told), json.dumps(told, ensure_ascii=False)):
        hook = run("capture --hook", data, stdin, **env)
        assert (hook.returncode, hook.stderr) == (0, b"")
        assert content in json.loads(hook.stdout)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_settings_are_shown_whatever_the_encoding_of_the_stream(data: Path, tmp_path: Path, encoding: str) -> None:
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"theme": "d☕rk"}', "utf-8")
    home = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": "", "COMMONPLACE_AGENT": ""}
    ran = run("install --client claude-code --hooks --yes", data, **home, **ENCODINGS[encoding])
    assert ran.returncode == 0, ran
    printed = run("install --client cursor --data d☕ta --print", data, **home, **ENCODINGS[encoding])
    assert printed.returncode == 0, printed
    assert json.loads(settings.read_text("utf-8"))["theme"] == "d☕rk"


def test_json_has_letters_as_they_are_where_the_stream_is_utf8(remember: Callable[..., str], data: Path) -> None:
    remember("Jürgen mag Käse")
    assert "Jürgen mag Käse".encode() in run("list --json", data, PYTHONIOENCODING="utf-8").stdout
