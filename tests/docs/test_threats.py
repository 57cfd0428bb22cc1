"""docs/threats.md: every threat says what stands against it, what remains and its CWE, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_, *SECTIONS = re.split(r"^## ", (ROOT / "docs" / "threats.md").read_text("utf-8"), flags=re.MULTILINE)
TITLES = [section.splitlines()[0] for section in SECTIONS]
#: Of the paper (§6.1 to §6.6), and those every reader of OWASP's lists will look for.
WANTED = ["injection", "exfiltration", "poisoned store", "ledger", "cross-tenant", "approval bypass", "secrets",
          "laundering", "memory poisoning", "recalled text", "tool poisoning", "confused deputy"]  # fmt: skip


def test_every_adversary_is_there() -> None:
    assert [wanted for wanted in WANTED if not any(wanted in title.lower() for title in TITLES)] == []


@pytest.mark.parametrize("section", SECTIONS, ids=TITLES)
def test_each_says_what_is_done_what_remains_and_its_cwe(section: str) -> None:
    title = section.splitlines()[0]
    assert re.search(r"CWE-\d+", title), title
    parts = re.findall(r"^\*\*(Against it|Shown by|What remains)\.?\*\*", section, flags=re.MULTILINE)
    assert parts == ["Against it", "Shown by", "What remains"]


@pytest.mark.parametrize("section", SECTIONS, ids=TITLES)
def test_each_names_tests_that_exist(section: str) -> None:
    named = re.findall(r"^- `(tests/[\w/]+\.py)::(test_\w+)`$", section, flags=re.MULTILINE)
    listed = section.split("**Shown by**")[1].split("**What remains.**")[0].count("\n- ")
    assert len(named) == listed >= 2, "each line of the list is one test"
    for file, test in named:
        text = (ROOT / file).read_text("utf-8") if (ROOT / file).is_file() else ""
        assert re.search(rf"^\s*(async )?def {test}\(", text, flags=re.MULTILINE), f"{file}::{test}"
