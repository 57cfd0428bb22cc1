"""The command run in this process, on a data directory of its own."""

from __future__ import annotations

import io
import json
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
