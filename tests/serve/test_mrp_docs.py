"""Every block of docs/mrp.md is run, parsed or compared: what the page says to type works, and says what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from server_process import SECONDS, environment, run_server

from commonplace import config
from commonplace.dialects.mrp import comments, signatures, verification
from commonplace.wire.keys import new_private, public_of
from commonplace.wire.times import iso

PAGE = Path(__file__).parents[2] / "docs" / "mrp.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
DATA = "memory"  # where the commands that name no folder keep theirs


def block(start: str) -> str:
    (found,) = [text for _, text in BLOCKS if text.startswith(start)]
    return found


SESSIONS = [
    "$ commonplace remember \"Pruning as identity", "$ commonplace remember \"Prune by salience",
    "commonplace trust add Babel", "mkdir exchange", "commonplace ask http",
]  # fmt: skip
OTHERS = [
    "@AgentA memory_request", "$ commonplace mrp comment", "[mrp]\norigins", "[mrp]\nname", "weight",
    "from commonplace.dialects.mrp import signatures", "from commonplace.dialects.mrp import comments",
]  # fmt: skip


def test_there_is_a_test_for_every_block() -> None:
    assert len(BLOCKS) == len([block(start) for start in (*SESSIONS, *OTHERS)])


# the shell


def commands(text: str) -> list[str]:
    """Each command, its continued lines joined; comments are the shell's to skip."""
    found: list[str] = []
    for line in text.splitlines():
        line = line.removeprefix("$ ")
        if found and unfinished(found[-1]):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def unfinished(command: str) -> bool:
    return subprocess.run(["bash", "-nc", command], capture_output=True, check=False).returncode != 0


class Shell:
    """A folder in which what the page says is typed; servers listen on other ports than those it names."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._urls: dict[str, str] = {}
        program = folder / "bin" / "commonplace"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m commonplace.cli "$@"\n')
        program.chmod(0o755)

    def type(self, command: str) -> str:
        for stated, url in self._urls.items():
            command = command.replace(stated, url)
        if command.startswith("commonplace serve"):
            return self._serve(shlex.split(command, comments=True)[2:])
        if command.startswith("commonplace mrp watch"):
            command += " --once"
        named = re.search(r"--data (\S+)", command)
        done = subprocess.run(
            ["bash", "-c", command], cwd=self._folder, env=self._environment(named[1] if named else DATA),
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def _environment(self, data: str) -> dict[str, str]:
        (self._folder / data).mkdir(exist_ok=True)  # whose store may be elsewhere, and whose settings are there
        known = environment(self._folder / data, COMMONPLACE_JUDGE="none")
        return {**known, "PATH": f"{self._folder / 'bin'}:{known['PATH']}"}

    def _serve(self, args: list[str]) -> str:
        options = dict(zip(args[::2], args[1::2], strict=True))
        server = self._stack.enter_context(run_server(self._folder / options.get("--data", DATA)))
        self._urls[f"http://127.0.0.1:{options.get('--port', '8420')}"] = server.url
        return server.url


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with ExitStack() as stack:
        yield Shell(tmp_path, stack)


def test_the_first_session(shell: Shell) -> None:
    said = [shell.type(command) for command in commands(block(SESSIONS[0]))]
    assert "Pruning as identity: what you forget defines you" in said[2]
    assert '"code": "success"' in said[3].replace('":"', '": "')
    asked = shell.type(block(SESSIONS[4]).strip())
    assert "responder: " in asked
    assert "kept as " in asked


def test_what_bob_is_told_and_what_not(shell: Shell) -> None:
    said = [shell.type(command) for command in commands(block(SESSIONS[1]))]
    assert "Prune by salience, not by age" in said[-1]
    assert "diary" not in said[-1]
    assert "at trust level 1" in said[-1]
    assert "trust add alice --level 1 --key" in said[-1]
    stranger = shell.type(
        "commonplace ask http://127.0.0.1:8421 --keyword prune --keyword diary --data eve --agent eve"
    )
    assert "no_match" in stranger
    impostor = shell.type("commonplace ask http://127.0.0.1:8421 --keyword prune --data eve --agent bob")
    assert "no_match" in impostor


def test_trust_is_given_shown_and_taken(shell: Shell) -> None:
    for command in commands(block(SESSIONS[2])):
        assert shell.type(command)


def test_a_folder_is_watched(shell: Shell) -> None:
    shell.type("commonplace remember x")
    for command in commands(block(SESSIONS[3])):
        shell.type(command)


# everything else


def test_the_request_of_a_comment_asks_what_it_says() -> None:
    (asked,) = comments.find_requests(block(OTHERS[0]))
    assert (asked.agent, asked.structured, asked.preferences) == (
        "AgentA", {"domain": "memory-systems"}, {"max_results": 3},
    )  # fmt: skip


def result(score: float, content: str, source: str) -> dict[str, Any]:
    claim = {"type": "fact", "content": content, "references": [source]}
    return {"relevance_score": score, "attestation": {"agent": content[0], "claim": claim}}


def reply() -> dict[str, Any]:
    results = [
        result(0.9, "Pruning as identity — what you forget defines you", "research/pruning-as-identity-2026-02-07.md"),
        result(0.7, "Salience-based retention strategies", "architecture/salience-schema-v1.md"),
    ]
    return {
        "status": {"code": "success", "message": "found 2 memories"},
        "results": results,
        "meta": {"total_matches": 2},
    }


def test_the_reply_to_a_comment_reads_like_this() -> None:
    typed, _, shown = block(OTHERS[1]).partition("\n")
    assert typed == "$ commonplace mrp comment --from Babel < comment.txt"
    rendered = comments.render_reply(
        reply(), "Babel", lambda attestation: ["djclawd"] if attestation["agent"] == "P" else []
    )
    assert rendered == shown.rstrip()


def test_the_settings_are_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "commonplace.toml").write_text(block(OTHERS[3]))
    shown = tomllib.loads(block(OTHERS[3]))["mrp"]
    assert {name: tuple(v) if isinstance(v, list) else v for name, v in shown.items()} == asdict(config.MrpConfig())
    assert config.load(data=tmp_path).mrp == config.MrpConfig()
    (tmp_path / "commonplace.toml").write_text(block(OTHERS[2]))
    assert config.load(data=tmp_path).mrp.origins == ("https://memory.example.org",)


def test_the_formula_has_the_weights_and_limits_that_are_used() -> None:
    shown = block(OTHERS[4])
    weights = {name: float(weight) for name, weight in re.findall(r"(\w+) (0\.\d+) ?(?:·|$)", shown.splitlines()[0])}
    assert weights == verification.WEIGHTS
    assert f"score < {verification.REJECT}" in shown
    assert f"score ≥ {verification.ACCEPT}" in shown


def test_the_python_runs() -> None:
    private_key = new_private()
    known_key = public_of(private_key)
    made = {
        "id": str(uuid.uuid4()), "agent": "alice", "created_at": iso(0), "provenance": {"source": "inference"},
        "claim": {"type": "fact", "content": "x"}, "salience": {"category": "operational", "confidence": 1},
    }  # fmt: skip
    response = {
        **reply(), "header": {"timestamp": iso(0)}, "responder": {"agent_id": "alice"},
        "results": [{"attestation": signatures.sign_attestation(made, private_key)}],
    }  # fmt: skip
    known = {
        "response": signatures.sign_response(response, private_key), "known_key": known_key, "private_key": private_key,
        "request": {"requester": {"agent_id": "bob"}},
    }  # fmt: skip
    lines = [line for line in block(OTHERS[5]).splitlines() if line.startswith("signatures.")]
    assert [eval(line, {"signatures": signatures}, known) for line in lines[:3]] == [True, True, "whole"]
    exec(block(OTHERS[5]), dict(known))
    names: dict[str, Any] = {"response": reply()}
    exec(block(OTHERS[6]), names)
    assert names["asked"].structured == {"domain": "memory-systems"}
