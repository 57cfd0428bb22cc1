"""A fork of the program does as what `subprocess` would have started, but for the time it takes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fork_server
import pytest
from server_process import SECONDS, command, environment

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no prctl, and the program starts as ever"),
]
ASKED = [
    ["status", "--json"],
    ["remember", "tea", "--json"],
    ["list", "--agent"],
    ["recall", "-k", "many"],
    ["--version"],
]


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was forked, and not started."""
    asked: list[list[str]] = []
    fork = fork_server._fork
    monkeypatch.setattr(fork_server, "_fork", lambda *a, **more: asked.append(more["command"]) or fork(*a, **more))
    return asked


def ran(data: Path, args: list[str], **more: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        command(*args), env=environment(data), capture_output=True, text=True, timeout=SECONDS, check=False, **more
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("args", ASKED, ids=" ".join)
def test_it_says_and_ends_as_what_was_started(
    tmp_path: Path, forked: list[list[str]], monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    monkeypatch.setattr(fork_server, "_commands", set())
    answers = [ran(tmp_path / name, args) for name in ("started", "forked")]
    assert forked == [args]
    shown = [(code, _shape(out), err.replace("started", "forked")) for code, out, err in answers]
    assert shown[0] == shown[1]


def _shape(out: str) -> Any:
    return sorted(json.loads(out)) if out.startswith("{") else out


@pytest.fixture
def serving(tmp_path: Path, forked: list[list[str]]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A fork that waits for what it is asked on stdin."""
    ran(tmp_path, ["mcp", "--help"])
    begun: list[subprocess.Popen[str]] = []

    def start(**more: Any) -> subprocess.Popen[str]:
        settings = more.pop("env", environment(tmp_path))
        begun.append(
            subprocess.Popen(
                command("mcp"), env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more
            )
        )
        assert begun[-1].stdin is not None
        begun[-1].stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        begun[-1].stdin.flush()
        assert begun[-1].stdout is not None
        assert json.loads(begun[-1].stdout.readline())["id"] == 1
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def test_it_is_a_child_with_the_folder_and_the_environment_that_were_asked_for(
    serving: Callable[..., subprocess.Popen[str]], forked: list[list[str]], tmp_path: Path
) -> None:
    process = serving(cwd=tmp_path, start_new_session=True)
    assert forked[-1] == ["mcp"]
    place = Path(f"/proc/{process.pid}")
    assert f"PPid:\t{os.getpid()}\n" in (place / "status").read_text()
    assert (place / "cwd").readlink() == tmp_path
    assert os.getsid(process.pid) == process.pid
    assert fork_server._server is not None
    assert _sockets(fork_server._server.pid)
    assert not _sockets(process.pid) & _sockets(fork_server._server.pid)


def _sockets(process: int) -> set[str]:
    found = set()
    for each in Path(f"/proc/{process}/fd").iterdir():
        if each.is_symlink() and (name := os.readlink(each)).startswith("socket:"):
            found.add(name)
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_signals_end_it_and_its_parent_is_told(serving: Callable[..., subprocess.Popen[str]], number: int) -> None:
    process = serving()
    process.send_signal(number)
    assert process.wait(SECONDS) == (-number if number == signal.SIGKILL else 0)


def test_it_ends_when_its_input_does(serving: Callable[..., subprocess.Popen[str]]) -> None:
    process = serving()
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(SECONDS) == 0


@pytest.mark.parametrize(
    "more",
    [{"PYTHONUTF8": "0"}, {"LC_ALL": "C.nowhere"}, {"LD_LIBRARY_PATH": "/nowhere"}],
    ids=lambda more: next(iter(more)),
)
def test_what_an_interpreter_reads_as_it_starts_is_not_forked(
    tmp_path: Path, forked: list[list[str]], more: dict[str, str]
) -> None:
    for _ in range(2):
        subprocess.run(command("--version"), env=environment(tmp_path, **more), capture_output=True, check=True)
    assert forked == []
