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
