"""Every module, name and path of ours that the documentation mentions is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from code_blocks import ROOT, without_files

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGE = ROOT / "src" / "commonplace"

#: Names that look like ours and are not: files, settings and groups of entry points.
OTHERS = re.compile(
    r"commonplace\.(db|segments|lock|backups|toml|stores|embedders|engine|sqlite|record|mcp\.session|access)\b(?!\.\w)"
)
_DOTTED = re.compile(r"(?<![\w./-])commonplace(?:\.[A-Za-z_]\w*)+")
_PATH = re.compile(r"(?<![\w./-])(?:src|tests|docs)/[\w./*<>-]*\w[/*]?")
_FOLDERS = "|".join(sorted(path.name for path in PACKAGE.iterdir() if path.is_dir()))
#: As paths within the package are written in the documentation: `engine/memory/write.py`, `serve/protocols/`.
_WITHIN = re.compile(rf"`((?:{_FOLDERS})/[\w./<>-]*)`")
#: Names without the package in front: `wire.filters.matches`.
_SHORT = re.compile(rf"`((?:{_FOLDERS})(?:\.\w+)+)`")
_CLASS = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)(?:\.\w+)?`")


def exists(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as missing:
            if missing.name and not missing.name.startswith("commonplace"):
                return True  # an adapter is there, its framework is not installed
            continue
        for attribute in parts[end:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def dangling(text: str) -> list[str]:
    text = without_files(text)
    wrong = [name for name in _DOTTED.findall(text) if not OTHERS.fullmatch(name) and not exists(name)]
    wrong += [name for name in _SHORT.findall(text) if not name.endswith(".py") and not exists(f"commonplace.{name}")]
    wrong += [path for path in _PATH.findall(text) if not _there(ROOT, path)]
    return wrong + [path for path in _WITHIN.findall(text) if not _there(PACKAGE, path)]


def _there(base: Path, path: str) -> bool:
    """`<name>` stands for anything that is there."""
    return any(base.glob(re.sub(r"<\w+>", "*", path).rstrip("/")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_and_path_is_there(document: Path) -> None:
    assert dangling(document.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "text",
    ["`commonplace.knowledge`", "see commonplace.engine.Engine.graph_list", "`src/commonplace/stores/contract.py`",
     "run tests/test_nothing.py", "`stores/where.py`", "`stores.where.matches`", "`serve/dialects/<name>.py`"],
)  # fmt: skip
def test_what_is_not_there_is_noticed(text: str) -> None:
    assert len(dangling(text)) == 1


@pytest.mark.parametrize(
    "text",
    ["`commonplace.engine.Engine.recall`", "`commonplace.db`", "`src/commonplace/stores/memory.py`", "tests/engine/",
     "`serve/protocols/<name>.py`", "`engine/`", "commonplace.toml", "`commonplace.testing.PrimaryContract`"],
)  # fmt: skip
def test_what_is_there_is_accepted(text: str) -> None:
    assert dangling(text) == []


def test_every_class_that_decisions_and_guides_name_is_defined() -> None:
    sources = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    defined = set(re.findall(r"^class (\w+)", sources, re.MULTILINE)) | {"TypeError"}
    for document in (
        ROOT / "CONTRIBUTING.md",
        ROOT / "docs" / "architecture.md",
        *(ROOT / "docs" / "adr").glob("*.md"),
    ):
        named = set(_CLASS.findall(without_files(document.read_text("utf-8"))))
        assert named <= defined, document.name


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))
    for path in (ROOT / "docs" / "adr").glob("*.md"):
        text = path.read_text("utf-8")
        assert text.startswith(f"# {int(path.name[:4])}. ")
        for part in ("**Context.**", "**Decision.**", "**Consequences.**"):
            assert part in text, path.name
