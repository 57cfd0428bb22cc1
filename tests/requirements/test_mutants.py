"""What `mutants.py` calls killed: a test that passes without the mutant and fails with it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import mutants
import pytest
from mutants import Mutant, Verdict

CODE = "def double(n):\n    return n * 2\n"
TESTS = """
from doubling import double

def test_of_three():
    assert double(3) == 6

def test_of_nought():
    assert double(0) == 0

def test_that_always_fails():
    assert double(1) == 3
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name, text in (("src/doubling.py", CODE), ("tests/test_doubling.py", TESTS)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def mutant(find: str, replace: str, *tests: str) -> Mutant:
    return Mutant("ID", "some", "src/doubling.py", find, replace, tuple(f"tests/test_doubling.py::{t}" for t in tests))


@pytest.mark.process
@pytest.mark.parametrize(
    ("find", "replace", "test", "outcome", "detail"),
    [
        ("n * 2", "n * 3", "test_of_three", "killed", "test_of_three"),
        ("n * 2", "n * 3", "test_of_nought", "survived", "passed"),
        ("n * 2", "n *", "test_of_three", "invalid", "did not run"),
        ("n * 2", "n * 3", "test_of_four", "invalid", "did not run"),
        ("n * 4", "n * 3", "test_of_three", "invalid", "stands 0 times"),
    ],
)
def test_the_verdict_on_a_mutant(copy: Path, find: str, replace: str, test: str, outcome: str, detail: str) -> None:
    verdict = mutants.try_mutant(mutant(find, replace, test), copy)
    assert verdict.outcome == outcome
    assert detail in verdict.detail
    assert (copy / "src/doubling.py").read_text("utf-8") == CODE, "taken back"


@pytest.mark.process
def test_what_fails_without_a_mutant_is_known(copy: Path) -> None:
    wanted = [mutant("", "", "test_of_three"), mutant("", "", "test_of_nought", "test_that_always_fails")]
    assert mutants.fail_unchanged(wanted, copy, 1) == {"tests/test_doubling.py::test_that_always_fails"}


def test_the_summary_counts_by_manifest_and_names_what_took_longest() -> None:
    verdicts = [Verdict(f"A{n}", "amp", "killed", "", n) for n in range(6)]
    verdicts.append(Verdict("M", "mcp", "survived", "", 9.0))
    assert mutants.summary(verdicts, ["B"]).splitlines() == [
        "amp             6 of 6 killed      15 s",
        "mcp             0 of 1 killed       9 s",
        "slowest: M 9 s, A5 5 s, A4 4 s, A3 3 s, A2 2 s",
        "6 of 7 mutants killed; 1 requirements have none",
    ]
