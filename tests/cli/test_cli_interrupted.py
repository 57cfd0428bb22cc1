"""Ctrl-C in what takes long: one sentence that says what is done so far and how to go on, and nothing lost."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.cli.support.progress import ProgressBar
from commonplace.engine import Engine
from commonplace.engine.transfer import migration
from commonplace.transfer import import_file, import_source

Cli = Callable[..., Any]
COUNT = 9


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Whoever runs tests in the background has turned it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def filled(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f'"memory {n}"\n' for n in range(COUNT))
    assert cli("remember", "--batch", "-", stdin=lines).code == 0
    monkeypatch.setattr(import_file, "_BATCH", 2)
    monkeypatch.setattr(migration, "_BATCH", 2)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Callable[..., Any]:
    """Runs a command in which Ctrl-C is pressed once so much progress is made, and says how it ended."""

    def run(*args: str, at: int = 2) -> Any:
        calls = [0]
        real = ProgressBar.__call__

        def pressed(self: ProgressBar, done: int, total: int) -> None:
            real(self, done, total)
            calls[0] += 1
            if calls[0] == at:
                signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(ProgressBar, "__call__", pressed)
            ended = cli(*args)
        assert calls[0] >= at
        assert (ended.code, "Traceback" in ended.err) == (130, False)
        return ended

    return run


def _one_sentence(text: str) -> str:
    (sentence,) = text.strip().splitlines()
    assert sentence.startswith("stopped")
    return sentence


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_an_import_keeps_what_it_has_and_goes_on(
    cli: Cli, interrupt: Callable[..., Any], filled: None, tmp_path: Path, json_too: list[str]
) -> None:
    file, there = tmp_path / "all.jsonl", str(tmp_path / "there")
    cli("export", "-o", str(file))
    stopped = interrupt("import", str(file), "--data", there, *json_too)
    assert stopped.out == ""
    said = _one_sentence(stopped.err)
    assert f"% of {file}: what was imported is kept" in said
    assert "run the same command again" in said
    kept = len(cli("list", "--data", there, "--json").json["memories"])
    assert 0 < kept < COUNT
    done = cli("import", str(file), "--data", there, "--json").json["files"][0]
    assert (done["written"], done["known"]) == ({"memory": COUNT - kept}, {"memory": kept})


@pytest.mark.parametrize("document", [dict, list])
def test_of_one_document_it_is_said_how_much_of_it_is_here(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: type
) -> None:
    """Reading it is done at once, and most of the time goes by afterwards."""
    file, there, real = tmp_path / "some.json", str(tmp_path / "there"), Engine.remember_many
    listed = [{"id": str(n), "memory": f"Alice knows {n} songs"} for n in range(COUNT)]
    file.write_text(json.dumps({"results": listed} if document is dict else listed))
    monkeypatch.setattr(import_source, "_BATCH", 3)
    calls = [0]

    async def pressed(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            signal.raise_signal(signal.SIGINT)
        return await real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "remember_many", pressed)
        stopped = cli("import", str(file), "--data", there)
    assert f"at about 33 % of {file}" in _one_sentence(stopped.err)
    assert len(cli("list", "--data", there, "--json").json["memories"]) == 3


def test_of_several_files_those_before_the_stopped_one_are_named(
    cli: Cli, interrupt: Callable[..., Any], filled: None, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.jsonl"
    first.write_text(json.dumps([{"id": "1", "memory": "Alice drinks tea"}]))
    cli("export", "-o", str(second))
    stopped = interrupt("import", str(first), str(second), "--data", str(tmp_path / "there"), at=3)
    assert f"{first} had been imported before it" in _one_sentence(stopped.err)


def test_a_stopped_dry_run_of_an_import_has_changed_nothing(
    cli: Cli, interrupt: Callable[..., Any], filled: None, tmp_path: Path
) -> None:
    file = tmp_path / "all.jsonl"
    cli("export", "-o", str(file))
    stopped = interrupt("import", str(file), "--data", str(tmp_path / "there"), "--dry-run")
    assert "nothing was changed" in _one_sentence(stopped.err)


def test_an_export_leaves_neither_half_a_file_nor_another_one(
    interrupt: Callable[..., Any], filled: None, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "all.jsonl"
    said = _one_sentence(interrupt("export", "-o", str(file)).err)
    assert f"{file} was not written" in said
    assert "run the same command again" in said
    assert list(folder.iterdir()) == []
    file.write_text("precious")
    assert f"{file} is as it was" in _one_sentence(interrupt("export", "-o", str(file), "--force").err)
    assert [(each.name, each.read_text()) for each in folder.iterdir()] == [("all.jsonl", "precious")]


def test_of_an_export_to_stdout_it_is_said_that_it_is_not_whole(
    interrupt: Callable[..., Any], filled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = interrupt("export")
    said = _one_sentence(stopped.err)
    assert "is not whole" in said
    assert "run the same command again" in said
    assert '"record":"manifest"' not in stopped.out


@pytest.mark.parametrize("at", [1, 3, 8])
def test_a_migration_goes_on_where_it_was(
    cli: Cli, interrupt: Callable[..., Any], filled: None, data: Path, tmp_path: Path, at: int
) -> None:
    ends = ("--from", str(data), "--to", str(tmp_path / "there"), "--yes")
    stopped = interrupt("migrate", *ends, at=at)
    said = _one_sentence(stopped.err)
    assert "what was copied is kept, and the source is as it was" in said
    assert "run the same command again" in said
    done = cli("migrate", *ends)
    assert done.code == 0
    assert "went on where it had stopped" in done.out


def test_whoever_is_asked_may_stop_a_migration(
    cli: Cli,
    filled: None,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first Ctrl-C is heard: while it asks nothing else listens for it."""

    class Pressed(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, size: int = -1) -> str:  # type: ignore[override]
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("it was not heard")

    from commonplace.cli import main

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", Pressed())
    assert main(("migrate", "--from", str(data), "--to", str(tmp_path / "there"))) == 130
    asked, said = capsys.readouterr().err.splitlines()
    assert asked.startswith(f"copy {COUNT} memories, ")
    assert asked.endswith("? [y/N] ")
    assert said == "stopped: nothing was copied, and the source is as it was"
    assert not (tmp_path / "there").exists()


def test_whoever_waits_for_stdin_may_stop_an_import(
    filled: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Pressed(io.StringIO):
        class buffer:
            @staticmethod
            def read(size: int = -1) -> bytes:
                signal.raise_signal(signal.SIGINT)
                raise AssertionError("it was not heard")

    from commonplace.cli import main

    monkeypatch.setattr("sys.stdin", Pressed())
    assert main(("import", "-")) == 130
    assert "run the same command again" in _one_sentence(capsys.readouterr().err)


def test_a_resync_goes_on(
    cli: Cli, interrupt: Callable[..., Any], filled: None, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = data.parent / "copy.db"
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db sqlite://{copy}?name=spare")
    said = _one_sentence(interrupt("stores", "resync", "spare", at=1).err)
    assert "what spare was sent stays there, and nothing is lost" in said
    assert "run the same command again" in said
    done = cli("stores", "resync", "spare", "--json").json
    assert (done["equal"], done["memories"]) == (True, COUNT)


def test_a_stopped_dry_run_of_a_resync_has_changed_nothing(
    cli: Cli, interrupt: Callable[..., Any], filled: None, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = data.parent / "copy.db"
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db sqlite://{copy}?name=spare")
    said = _one_sentence(interrupt("stores", "resync", "spare", "--dry-run", at=1).err)
    assert said == "stopped: nothing was changed"


def test_a_conformance_run_takes_away_what_it_wrote(
    cli: Cli, interrupt: Callable[..., Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from commonplace.conformance.subject import Subject

    real, calls = Subject.remember, [0]

    async def remember(self: Any, *args: Any, **fields: Any) -> str:
        id = await real(self, *args, **fields)
        calls[0] += 1
        if calls[0] == 5:
            signal.raise_signal(signal.SIGINT)
        return id

    monkeypatch.setattr(Subject, "remember", remember)
    stopped = cli("conformance", "--store", f"sqlite://{tmp_path}/m.db")
    assert (stopped.code, calls[0]) == (130, 5)
    said = _one_sentence(stopped.err)
    assert "of 16 scenarios" in said
    assert "what they wrote is deleted again" in said
    assert "run the same command again" in said
    import sqlite3

    with sqlite3.connect(tmp_path / "m.db") as rows:
        assert rows.execute("SELECT count(*) FROM memories").fetchone() == (0,)


def test_a_real_process_that_is_interrupted_ends_with_the_sentence(filled: None, data: Path, tmp_path: Path) -> None:
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from commonplace.cli import main\n"
        "from commonplace.cli.support.progress import ProgressBar\n"
        "ProgressBar.__call__ = lambda self, done, total: signal.raise_signal(signal.SIGINT)\n"
        "sys.exit(main())\n"
    )
    arguments = ["migrate", "--from", str(data), "--to", str(tmp_path / "there"), "--yes"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "run the same command again" in _one_sentence(done.stderr)


@pytest.mark.parametrize(("before", "at"), [("__init__", 1), ("run", 1), ("run", 2)])
@pytest.mark.parametrize("command", [["export"], ["import", "FILE"], ["recall", "tea"], ["list"], ["status"]])
def test_work_that_was_not_begun_says_nothing_of_itself(
    cli: Cli, filled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], before: str, at: int
) -> None:
    file = tmp_path / "some.json"
    file.write_text(json.dumps([{"id": "1", "memory": "Alice drinks tea"}]))
    real, calls = getattr(asyncio.Runner, before), [0]

    def press(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == at:
            signal.raise_signal(signal.SIGINT)
        return real(*args, **kwargs)

    with warnings.catch_warnings(record=True) as said, monkeypatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(asyncio.Runner, before, press)
        ended = cli(*[str(file) if word == "FILE" else word for word in command])
    assert ended.code == 130
    assert [str(each.message) for each in said] == []
