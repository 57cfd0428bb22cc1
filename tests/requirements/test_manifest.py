"""Every normative sentence has a test, and every test it names exists."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MANIFESTS = sorted(HERE.glob("*.toml"))
LEVELS = {"MUST", "SHOULD", "MAY"}
STATUSES = {"done", "planned", "declined"}


def rows(manifest: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(manifest.read_text("utf-8"))["requirement"]
    return found


@cache
def collected() -> frozenset[str]:
    """Every test there is, parameters left out, inherited ones included."""
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
def test_every_named_test_exists(manifest: Path) -> None:
    missing = [name for row in rows(manifest) for name in row.get("tests", ()) if name not in collected()]
    assert missing == []


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_every_mutant_still_breaks_something(manifest: Path) -> None:
    """What a row's tests must notice: `find` is in the file once, so that replacing it breaks the product there."""
    for row in rows(manifest):
        if (mutant := row.get("mutant")) is not None:
            assert mutant.keys() == {"file", "find", "replace"}, row["id"]
            assert (ROOT / mutant["file"]).read_text("utf-8").count(mutant["find"]) == 1, row["id"]
            assert mutant["find"] != mutant["replace"], row["id"]
