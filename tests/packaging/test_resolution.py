"""The resolver finds versions of our dependencies beside those of the frameworks that agents are written in."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from install_check import CannotBuild, uv

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEPENDENCIES, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
#: The extras that `make test-integrations` installs into one environment.
TOGETHER = re.findall(r"^ADAPTERS\w* := (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
#: Each at least as new as in November 2026: an old one that happens to fit would prove nothing.
FRAMEWORKS = [
    "crewai>=1.15", "strands-agents>=1.60", "langchain-mcp-adapters>=0.3", "openai-agents>=0.24", "llama-index>=0.14",
    "letta-client>=1.12", "langgraph>=1.2", "langchain>=1.4", "pydantic-ai>=2.60", "anthropic>=2.8",
]  # fmt: skip
SECONDS = 250


def resolve(requirements: list[str], folder: Path, python: str = "3.11") -> str:
    """The versions, or what stands in their way; skips where there is no index to ask."""
    wanted = folder / "requirements.in"
    wanted.write_text("\n".join(requirements) + "\n")
    try:
        program = uv()
    except CannotBuild as missing:
        pytest.skip(str(missing))
    command = [program, "pip", "compile", "--no-header", "--no-annotate", "--python-version", python, str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode and "No solution found" not in done.stderr:
        pytest.skip(f"no package index could be asked: {done.stderr.strip().splitlines()[-1][:200]}")
    return done.stdout if done.returncode == 0 else f"conflict: {done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_it_can_be_installed_beside(framework: str, tmp_path: Path) -> None:
    found = resolve([*DEPENDENCIES, framework], tmp_path)
    name = re.split("[>=]", framework, maxsplit=1)[0]
    assert f"\n{name}==" in f"\n{found}", found


@pytest.mark.slow
@pytest.mark.parametrize("extras", TOGETHER)
def test_the_adapters_of_one_environment_can_be_installed_together(extras: str, tmp_path: Path) -> None:
    wanted = [requirement for extra in extras.split(",") for requirement in EXTRAS[extra]]
    found = resolve([*DEPENDENCIES, *wanted], tmp_path)
    for requirement in wanted:
        assert f"\n{re.split('[>=]', requirement, maxsplit=1)[0]}==" in f"\n{found}", found


@pytest.mark.slow
def test_no_environment_has_all_of_them(tmp_path: Path) -> None:
    wanted = [requirement for extras in TOGETHER for extra in extras.split(",") for requirement in EXTRAS[extra]]
    assert resolve([*DEPENDENCIES, *wanted], tmp_path).startswith("conflict: "), "which is why there are two"


@pytest.mark.slow
def test_a_conflict_is_noticed(tmp_path: Path) -> None:
    found = resolve([*DEPENDENCIES, "mcp>=2.3,<3", "crewai>=1.15"], tmp_path)
    assert found.startswith("conflict: "), "which is why the mcp package is no dependency"


def test_no_dependency_has_an_upper_bound_without_a_reason() -> None:
    """Each bound is one more way not to fit beside others. What transitions calls is held by its signatures."""
    bounded = {re.split(r"[<>=]", each, maxsplit=1)[0] for each in DEPENDENCIES if "<" in each or "==" in each}
    assert bounded == {"transitions"}
