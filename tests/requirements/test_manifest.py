"""Every normative sentence has a test, and every test it names exists."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import mutants
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MANIFESTS = sorted(HERE.glob("*.toml"))
LEVELS = {"MUST", "SHOULD", "MAY"}
STATUSES = {"done", "planned", "declined"}


def rows(manifest: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(manifest.read_text("utf-8"))["requirement"]
    return found


@pytest.fixture(scope="session")
def every_test(collected_tests: dict[str, bool]) -> frozenset[str]:
    """Every test there is, parameters left out, inherited ones included."""
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    return frozenset(collected_tests) if files <= {name.split("::")[0] for name in collected_tests} else collect()


def collect() -> frozenset[str]:
    """By another process, where this one was told to run some of the tests only."""
    options = "-o addopts=--import-mode=importlib --collect-only -q -p no:cacheprovider"
    listing = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), "tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = {line.split("[")[0] for line in listing.stdout.splitlines() if "::" in line}
    assert names, listing.stdout + listing.stderr
    return frozenset(names)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_rows_are_well_formed(manifest: Path) -> None:
    ids = [row["id"] for row in rows(manifest)]
    assert len(ids) == len(set(ids))
    for row in rows(manifest):
        assert row["level"] in LEVELS, row["id"]
        assert row["status"] in STATUSES, row["id"]
        assert row["text"].strip(), row["id"]
        assert row["section"].strip(), row["id"]
        if row["status"] != "done":
            assert row.get("why", "").strip(), f"{row['id']} is {row['status']}: say why"


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_every_must_and_should_that_is_done_has_a_test(manifest: Path) -> None:
    untested = [
        row["id"]
        for row in rows(manifest)
        if row["status"] == "done" and row["level"] in ("MUST", "SHOULD") and not row.get("tests")
    ]
    assert untested == []


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_every_named_test_exists(manifest: Path, every_test: frozenset[str]) -> None:
    missing = [name for row in rows(manifest) for name in row.get("tests", ()) if name not in every_test]
    assert missing == []


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_every_must_that_is_done_has_a_mutant(manifest: Path) -> None:
    """A change to the product that breaks the sentence, so that its tests can be shown to notice."""
    without = [row["id"] for row in rows(manifest) if mutants.needs_mutant(row) and "mutant" not in row]
    assert without == []


def test_every_mutant_can_be_applied() -> None:
    """`make mutants` runs them; here only that none has been left behind by the code it changes."""
    problems = {mutant.id: problem for mutant in mutants.mutants(MANIFESTS) if (problem := mutant.problem())}
    assert problems == {}
