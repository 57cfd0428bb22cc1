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


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh data directory, and no setting of whoever runs the tests."""
    folder = tmp_path / "data"
    for name in ("AGENT", "STORE", "DEBUG", "INDEX_MB"):
        monkeypatch.delenv(f"COMMONPLACE_{name}", raising=False)
    monkeypatch.setenv("COMMONPLACE_DATA", str(folder))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "none")
    return folder


@pytest.fixture
def cli(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*args: str, stdin: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = main(args)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def kept(cli: Cli) -> Callable[..., str]:
    """Remember something and give its id."""

    def remember(*args: str) -> str:
        ran = cli("remember", *args, "--json")
        assert ran.code == 0, ran
        return str(ran.json["id"])

    return remember
