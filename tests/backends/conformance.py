"""The paper's scenarios on every store, as a matrix: printed, and written to docs/conformance.md.

A column is a contract class of tests/contract or tests/backends. Every cell is a test that ran on the real product;
nothing is carried over from an earlier run.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
_SIGNS = {"passed": "pass", "failed": "**fail**", "skipped": "skip"}
_INTRODUCTION = """# Conformance

Written by `make test-backends`, which runs the contract on the real products; do not edit.

The sixteen scenarios of the memorywire paper, driven through the engine as every user does:

"""
_KEEPING = """
## How each keeps what a memory has

| | embedded (`sqlite://`) | `postgresql://` |
|---|---|---|
| id | native: ours | native: ours |
| tenant, agent, user, session, time, status | native: columns | native: columns |
| tags, metadata, provenance | encoded: JSON text, as it came | encoded: `json`, as it came |
| text | native | native; the character 0 is escaped, which PostgreSQL has not |
| vectors | encoded: 16 bits a dimension | encoded: 16 bits; searched at half precision, scored at 16 bits |
| tokens of late interaction | encoded: 4 bits a dimension | encoded: 4 bits a dimension |
| versions, audit, reviews, graph, runs | native: rows | native: rows |
| expiry, pending writes, redaction | the engine's, in every store alike | the engine's, in every store alike |

Nothing is lost in either: both pass the same contract, which compares every field with what went in.
"""


@functools.cache
def scenarios() -> list[str]:
    from commonplace.testing.paper import PaperScenarios  # which pytest has to be there for first

    return [name for name in vars(PaperScenarios) if name.startswith("test_")]


class Outcomes:
    """What became of each scenario of each contract class, and of the rest of its contract."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.whole: dict[str, Counter[str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if getattr(item, "cls", None) is not None]  # contracts are the only classes

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        _, kind, name = [*report.nodeid.split("::"), "", ""][:3]
        if not name or (report.when != "call" and report.outcome == "passed"):
            return
        store = kind.removeprefix("Test")
        self.whole.setdefault(store, Counter())[report.outcome] += 1
        if name in scenarios():
            self.cells[store, name] = report.outcome

    @property
    def stores(self) -> list[str]:
        return sorted({store for store, _ in self.cells})

    def table(self) -> str:
        stores = self.stores
        rows = [f"| scenario | {' | '.join(stores)} |", f"|---|{'---|' * len(stores)}"]
        for name in scenarios():
            cells = [_SIGNS.get(self.cells.get((store, name), ""), "–") for store in stores]
            rows.append(f"| {name.removeprefix('test_').replace('_', ' ')} | {' | '.join(cells)} |")
        counts = [f"{c['passed']} of {c.total()}" for c in (self.whole[store] for store in stores)]
        rows.append(f"| **the whole contract** | {' | '.join(counts)} |")
        return "\n".join(rows) + "\n"


def main() -> int:
    outcomes = Outcomes()
    contracts = [ROOT / "tests" / "contract", *sorted((ROOT / "tests" / "backends").glob("test_*.py"))]
    failed = pytest.main(["-q", "--no-header", *map(str, contracts)], plugins=[outcomes])
    table = outcomes.table()
    print(table)
    if not failed:
        PAGE.write_text(_INTRODUCTION + table + _KEEPING, "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
