"""The MCP project's own programs against our server: the inspector, and the conformance suite."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from node import CONFORMANCE, INSPECTOR, run
from server_process import command, environment, run_server

pytestmark = pytest.mark.slow

EXPECTED = Path(__file__).parent / "mcp-expected-failures.yml"
#: How many scenarios may fail; it is lowered whenever one is taken out of the list.
MAX_EXPECTED = 44
SETS = ["commonplace", "amp", "trusty", "all"]
_PATHS = {"commonplace": "/mcp", "amp": "/mcp/amp", "trusty": "/mcp/trusty", "all": "/mcp/all"}


def _inspect(target: list[str], *args: str, data: Path | None = None) -> Any:
    settings = (
        [f"{name}={value}" for name, value in environment(data).items() if name.startswith("COMMONPLACE_")]
        if data
        else []
    )
    given = [word for setting in settings for word in ("-e", setting)]
    done = run(INSPECTOR, "--cli", *given, *args, "--", *target)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("name", SETS)
def test_the_inspector_finds_no_fault_with_our_schemas(tmp_path: Path, name: str) -> None:
    """--strict ends with 6 when a tool's schema is one that some client refuses."""
    listed, _ = _inspect(command("mcp", "--tools", name), "--method", "tools/list", "--strict", data=tmp_path)
    assert listed["tools"]


def test_the_inspector_over_stdio(tmp_path: Path) -> None:
    target = command("mcp")
    kept, _ = _inspect(target, "--method", "tools/call", "--tool-name", "remember", "--tool-arg",
                       "content=Alice is allergic to peanuts", data=tmp_path)  # fmt: skip
    id = kept["structuredContent"]["id"]
    read, _ = _inspect(target, "--method", "resources/read", "--uri", f"memory://default/{id}", data=tmp_path)
    assert "peanuts" in read["contents"][0]["text"]
    prompt, _ = _inspect(target, "--method", "prompts/get", "--prompt-name", "recall_about", "--prompt-args",
                         "topic=peanuts", data=tmp_path)  # fmt: skip
    assert "peanuts" in prompt["messages"][0]["content"]["text"]


def test_the_inspector_over_http(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        for name in SETS:
            listed, _ = _inspect([f"{server.url}{_PATHS[name]}"], "--transport", "http", "--method", "tools/list")
            assert listed["tools"]
        kept, _ = _inspect([f"{server.url}/mcp"], "--transport", "http", "--method", "tools/call", "--tool-name",
                           "remember", "--tool-arg", "content=Bob moved to Porto")  # fmt: skip
        assert kept["structuredContent"]["pending_approval"] is False


@pytest.mark.parametrize(
    "which", [("--spec-version", "2025-11-25"), ("--requirements", "2026-07-28")], ids=lambda w: w[1]
)
def test_the_conformance_suite(tmp_path: Path, which: tuple[str, str]) -> None:
    """Only what is listed may fail; what is listed and passes must be taken out."""
    with run_server(tmp_path / "data") as server:
        done = run(CONFORMANCE, "server", "--url", f"{server.url}/mcp", *which, "-o", str(tmp_path / "out"))
    outcome = {
        found[2]: found[1] == "✓"
        for line in done.stdout.splitlines()
        if (found := re.match(r"\s*([✓✗]) ([a-z0-9-]+): \d+ passed, \d+ failed", line))
    }
    assert len(outcome) > 15, done.stdout[-2000:] + done.stderr[-2000:]
    listed = _listed(which[1])
    failed = {name for name, passed in outcome.items() if not passed}
    assert failed - listed == set(), done.stdout[-4000:]
    assert listed - failed == set(), "these pass now: take them out of the list"


def _listed(revision: str) -> set[str]:
    part = EXPECTED.read_text("utf-8").partition(f'"{revision}":')[2].split('\n"', 1)[0]
    return set(re.findall(r"^  - ([a-z0-9-]+)", part, re.MULTILINE))


def test_the_list_of_expected_failures_only_shrinks() -> None:
    listed = _listed("2025-11-25") | _listed("2026-07-28")
    assert 0 < len(listed) <= MAX_EXPECTED
