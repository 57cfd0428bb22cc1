"""The command run in this process, on a data directory of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from commonplace.cli import main


class TypedInput(io.StringIO):
    """What someone types at a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Result]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh data directory, and no setting of whoever runs the tests."""
    folder = tmp_path / "data"
    for name in ("AGENT", "STORE", "STORES", "DEBUG", "INDEX_MB"):
        monkeypatch.delenv(f"COMMONPLACE_{name}", raising=False)
    monkeypatch.setenv("COMMONPLACE_DATA", str(folder))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "none")
    return folder


@pytest.fixture
def program(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Callable[[tuple[str, ...]], int]], Cli]:
    """A program's `main`, to be called with its arguments and what is on stdin."""

    def of(main: Callable[[tuple[str, ...]], int]) -> Cli:
        def run(*args: str, stdin: str = "", typed: str | None = None) -> Result:
            capsys.readouterr()
            with monkeypatch.context() as patch:
                patch.setattr("sys.stdin", io.StringIO(stdin) if typed is None else TypedInput(typed))
                if typed is not None:
                    patch.setattr("sys.stderr.isatty", lambda: True, raising=False)
                code = main(args)
            out, err = capsys.readouterr()
            return Result(code, out, err)

        return run

    return of


@pytest.fixture
def cli(program: Callable[..., Cli]) -> Cli:
    return program(main)


@pytest.fixture
def remember(cli: Cli) -> Callable[..., str]:
    """Remembers something and gives its id."""

    def run(*args: str) -> str:
        result = cli("remember", *args, "--json")
        assert result.code == 0, result
        return str(result.json["id"])

    return run


@pytest.fixture
def on_a_terminal(data: Path) -> Callable[..., tuple[int, str]]:
    """A command in a process of its own on a terminal of 80 columns: its exit code, and what the screen was sent."""
    pty = pytest.importorskip("pty")
    program = "import sys; from commonplace.cli import main; sys.exit(main())"
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    settings = {"COMMONPLACE_DATA": str(data), "COMMONPLACE_EMBEDDER": "none", "COLUMNS": "80", "TERM": "xterm"}

    def run(args: list[str], typed: bytes = b"", **env: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        running = subprocess.Popen(
            [sys.executable, "-c", program, *args], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**inherited, **settings, **env},
        )  # fmt: skip
        os.close(theirs)
        os.write(ours, typed)
        said = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not chunk:
                break
            said += chunk
        os.close(ours)
        return running.wait(60), said.decode()

    return run
