"""What is installed is called `commonplace-memory` wherever it is named: `commonplace` on PyPI is somebody else's."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from commonplace.__about__ import DISTRIBUTION, install_command
from commonplace.cli.support.mcp_arguments import TOOL_SETS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
#: A command that takes the name of a distribution, its options, and a name that is not ours.
_INSTALLS = re.compile(
    r"(?:pip3?\s+(?:install|download)|uv\s+(?:pip\s+install|add|tool\s+(?:install|run))|uvx|pipx\s+(?:install|run)|"
    r"poetry\s+add|conda\s+install)(?:\s+-[-\w]+)*\s+[\"']?commonplace(?![-\w])"
)
_ADVICE = re.compile(r"\binstall commonplace(?![-\w])")  # as a sentence has it
_EXTRA = re.compile(r"(?<![-\w.])commonplace\\?\[[a-z{]")  # in a regular expression, too
_TEXTS = {".py", ".md", ".toml", ".json", ".yml", ".yaml", ".txt", ".html", ".js", ".ts", ".sh", ".cfg", ""}
_FOLDERS = (".ci", ".github", "bench", "docs", "packages", "src", "tests")


def texts() -> list[Path]:
    found = [path for path in ROOT.iterdir() if path.is_file()]
    found += [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    generated = {"__pycache__", "data", "results", "node_modules"}
    return [
        path for path in found if path.suffix in _TEXTS and not generated & set(path.parts) and path != Path(__file__)
    ]


def wrong_names(text: str) -> list[str]:
    return [found[0] for pattern in (_INSTALLS, _ADVICE, _EXTRA) for found in pattern.finditer(text)]


def test_no_text_names_the_distribution_of_somebody_else() -> None:
    found = {str(path.relative_to(ROOT)): wrong_names(path.read_text("utf-8", "replace")) for path in texts()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    ["pip install commonplace", "pip install -U 'commonplace'", "`uvx commonplace mcp`", "uv add commonplace",
     "uv tool install commonplace", "pipx run commonplace", "its commonplace[otel]", 'pip install "commonplace"',
     "it is damaged: install commonplace again"],
)  # fmt: skip
def test_a_wrong_name_is_noticed(text: str) -> None:
    assert wrong_names(text)


@pytest.mark.parametrize(
    "text",
    ["pip install commonplace-memory", "pip install 'commonplace-memory[otel]'", "uvx commonplace-memory mcp",
     "commonplace install --client cursor", "uv run commonplace serve", "from commonplace import Memory"],
)  # fmt: skip
def test_a_right_name_is_left_alone(text: str) -> None:
    assert wrong_names(text) == []


def test_the_project_is_called_so_and_its_commands_are_the_same_program() -> None:
    assert PROJECT["name"] == DISTRIBUTION == "commonplace-memory"
    scripts = PROJECT["scripts"]
    assert scripts["commonplace"] == scripts["commonplace-memory"]  # `uvx commonplace-memory mcp` starts the second
    assert "amp" in scripts


def test_the_registry_names_the_distribution_and_how_to_start_it() -> None:
    (package,) = json.loads((ROOT / "server.json").read_text("utf-8"))["packages"]
    assert package["registryType"] == "pypi"
    assert package["identifier"] == DISTRIBUTION
    assert package["runtimeHint"] == "uvx"
    (tools,) = (each for each in package["packageArguments"] if each.get("name") == "--tools")
    assert tuple(tools["choices"]) == TOOL_SETS


@pytest.mark.parametrize("extra", ["otel", "static", "sentence-transformers"])
def test_what_an_error_tells_to_install_is_an_extra_there_is(extra: str) -> None:
    assert extra in PROJECT["optional-dependencies"]
    assert install_command(extra) == f"pip install 'commonplace-memory[{extra}]'"


def test_every_extra_that_a_text_names_is_there() -> None:
    named = {
        name
        for path in texts()
        for names in re.findall(r"commonplace-memory\[([a-z][a-z0-9,-]*)\]", path.read_text("utf-8", "replace"))
        for name in names.split(",")
    }
    assert named <= PROJECT["optional-dependencies"].keys()
