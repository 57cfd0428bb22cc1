"""The layout: whoever has read a module finds its tests at the same place below tests/engine."""

from __future__ import annotations

from pathlib import Path

import pytest

import commonplace.engine

TESTS = Path(__file__).parent
ENGINE = Path(commonplace.engine.__file__).parent
MODULES = sorted(path.relative_to(ENGINE) for path in ENGINE.rglob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_its_test_file(module: Path) -> None:
    tests = TESTS / module.with_name(f"test_{module.name}")
    assert tests.is_file(), f"engine/{module} needs tests/engine/{module.parent / tests.name}"
    assert "def test_" in tests.read_text("utf-8")


def test_every_test_file_is_of_a_module_or_of_the_whole_engine() -> None:
    mirrored = {TESTS / module.with_name(f"test_{module.name}") for module in MODULES}
    others = {path for path in TESTS.rglob("test_*.py") if path not in mirrored and path != Path(__file__)}
    assert [
        path.name for path in sorted(others) if path.parent != TESTS or not path.stem.startswith("test_engine")
    ] == []
