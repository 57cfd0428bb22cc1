"""Completion as people have it: bash, zsh and fish themselves, with the script that `commonplace completion` prints."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from system_packages import NotInstalled, require_program

from commonplace.cli.support.agent_names import agent_names

SHELLS = ("bash", "zsh", "fish")
#: What is typed, and what a shell makes of it or offers for it.
LINES = {
    "commonplace rem": ["remember"],
    "commonplace list --age": ["--agent"],
    "commonplace remember --type ep": ["episodic"],
    "commonplace list --agent as": ["assistant"],
    "commonplace kg query Alice --agent co": ["coder"],
}


def shell_of(name: str) -> str:
    try:
        return str(require_program(name))
    except NotInstalled as why:
        pytest.skip(f"COMPLETION NOT TRIED IN {name.upper()}: {why}")


@pytest.fixture
def program_on_path(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`commonplace` as a shell finds it, and a folder that is nobody's home."""
    command = tmp_path / "bin" / "commonplace"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m commonplace "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def complete_in_bash(shell: str, script: Path, line: str) -> list[str]:
    words = line.split(" ")
    asked = (
        f"COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}; _commonplace_completion commonplace; echo ${{COMPREPLY[@]}}"
    )
    return _output([shell, "--norc", "-c", f". {script}; {asked}"]).split()


def complete_in_fish(shell: str, script: Path, line: str) -> list[str]:
    said = _output([shell, "--no-config", "-c", f"source {script}; complete -C '{line}'"])
    return [offered.split("\t")[0] for offered in said.splitlines()]


def complete_in_zsh(shell: str, script: Path, line: str) -> list[str]:
    """At a terminal, since zsh completes nowhere else: what is typed and a tab become a whole word."""
    leader, follower = pty.openpty()
    settings = {**os.environ, "TERM": "dumb", "PS1": "", "ZDOTDIR": str(script.parent)}
    process = subprocess.Popen([shell, "-f", "-i"], stdin=follower, stdout=follower, stderr=follower, env=settings)
    os.close(follower)
    try:
        os.write(leader, f"unsetopt zle; . {script}; print loaded-$((6*7)); setopt zle\n".encode())
        _read_until(leader, "loaded-42")
        os.write(leader, f"{line}\t; print -r ended-$((6*7))\n".encode())
        return [_read_until(leader, "ended-42")]
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def _read_until(terminal: int, text: str) -> str:
    seen = ""
    while text not in seen:
        seen += os.read(terminal, 4096).decode("utf-8", "replace")
    return seen


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


COMPLETE: dict[str, Callable[[str, Path, str], list[str]]] = {
    "bash": complete_in_bash, "fish": complete_in_fish, "zsh": complete_in_zsh,
}  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_by_it(cli: Any, remember: Callable[..., str], program_on_path: Path, shell: str) -> None:
    found = shell_of(shell)
    for agent in ("assistant", "coder"):
        remember("Alice drinks tea", "--agent", agent)
    script = program_on_path / f"completion.{shell}"
    script.write_text(cli("completion", shell).out)
    for line, offered in LINES.items():
        said = COMPLETE[shell](found, script, line)
        if shell == "zsh":  # which writes it into the line
            whole = f"{line.rpartition(' ')[0]} {offered[0]}"
            assert whole in said[0], said
        else:
            assert said == offered, line


# the agents that a shell offers


#: Each means something to some shell.
ODD_NAMES = (
    "al\\$(touch x)", "al$(touch${IFS}x)", "al`touch x`", "al;x", "al x", "al'x", 'al"x', "al|x", "-al", "al:x", "al*"
)  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_agent_is_offered_whose_name_a_shell_would_run(remember: Callable[..., str], name: str) -> None:
    remember("Alice drinks tea", f"--agent={name}")
    remember("Alice drinks tea", "--agent", "zoë.b+c@d-e_1")
    assert agent_names(None) == ["zoë.b+c@d-e_1"]


def test_agents_are_those_of_the_store_that_the_line_names(
    cli: Any, remember: Callable[..., str], tmp_path: Path
) -> None:
    remember("Alice drinks tea", "--agent", "assistant")
    remember("Bob drinks tea", "--agent", "gardener", "--data", str(tmp_path / "other"))
    assert agent_names(None) == ["assistant"]
    assert agent_names(tmp_path / "other") == ["gardener"]


def test_where_there_is_no_store_there_is_nothing_and_none_is_begun(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert agent_names(None) == []
    assert not data.exists()
    data.mkdir()
    (data / "commonplace.db").write_text("no database at all")
    assert agent_names(None) == []
    (data / "commonplace.toml").write_text("this is = = no setting")
    assert agent_names(None) == []
    (data / "commonplace.toml").unlink()
    for url in ("memory://", "postgresql://127.0.0.1:1/nobody", f"sqlite://{tmp_path}/nothing.db"):
        monkeypatch.setenv("COMMONPLACE_STORE", url)
        assert agent_names(None) == []
    assert not (tmp_path / "nothing.db").exists()
    assert capfd.readouterr() == ("", "")


def test_a_name_that_holds_a_secret_is_not_offered(data: Path, remember: Callable[..., str]) -> None:
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    data.mkdir()
    settings = data / "commonplace.toml"
    settings.write_text('[redaction]\nmode = "off"\n')
    remember("Alice drinks tea", "--agent", secret)
    assert agent_names(None) == [secret]
    settings.unlink()
    assert agent_names(None) == []


@pytest.mark.process
def test_a_store_that_somebody_writes_to_is_read_beside_them(cli: Any, remember: Callable[..., str]) -> None:
    import apsw

    remember("Alice drinks tea", "--agent", "assistant")
    found = cli("status", "--json").json["database"]
    db = apsw.Connection(str(found))
    db.execute("BEGIN IMMEDIATE")
    try:
        assert agent_names(None) == ["assistant"]
    finally:
        db.execute("ROLLBACK")
        db.close()
