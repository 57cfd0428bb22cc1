"""Every backend's contract and the paper's scenarios on every store, in one run; the matrix is printed and written to
docs/conformance.md.

A cell is a test of test_conformance.py that ran on the real product, and how each product keeps a field is what
test_fidelity.py found there; nothing is carried over from an earlier run. The page is written only where every cell was
run and everything passed. Where a product was missing, the run has failed; so it has where the page said something else
before, or nobody would notice that what is published is no longer so.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
TEMPLATE = Path(__file__).with_name("conformance_page.md")
#: What else there is about PostgreSQL is a part of `make test`, whose environment has it.
MODULES = ("cognee", "conformance", "fidelity", "health", "letta", "mem0", "postgres", "several_stores", "table_2")
#: What takes longest first, so that no worker is left with it.
TESTS = [*(f"backends/test_{module}.py" for module in MODULES), "contract"]
_SIGNS = {"passed": "pass", "failed": "**fail**", "error": "**fail**", "skipped": "not here"}
_CELL = re.compile(r"test_conformance\.py::test_scenario\[(?P<store>.+)-(?P<scenario>[a-z_]+)\]")
_KEPT = re.compile(r"test_fidelity\.py::\w+\[(?P<store>[^\]]+)\]")


class Outcomes:
    """What became of each cell, and of each contract."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.contracts: dict[str, Counter[str]] = {}
        self.missing: dict[str, str] = {}
        self.kept: dict[str, dict[str, str]] = {}  # by store: native, encoded or lossy, by field

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """All of a product goes to one worker, which starts it once. The groups of pytest-xdist do nothing with
        pytest 9.2, and it must not be imported before pytest has begun."""
        from xdist.scheduler import LoadScopeScheduling

        class ProductScheduling(LoadScopeScheduling):  # type: ignore[misc]
            def _split_scope(self, nodeid: str) -> str:
                return product_of(nodeid)

        return ProductScheduling(config, log)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        if cell := _CELL.search(report.nodeid):
            store, scenario = cell["store"], cell["scenario"]
            self.cells[store, scenario] = report.outcome
            if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
                self.missing[store] = report.longrepr[2].removeprefix("Skipped: ")
        elif kept := _KEPT.search(report.nodeid):
            self.kept[kept["store"]] = dict(report.user_properties).get("fidelity", {})  # type: ignore[assignment]
        elif "::Test" in report.nodeid:
            kind = report.nodeid.split("::")[1].removeprefix("Test")
            self.contracts.setdefault(kind, Counter())[report.outcome] += 1

    @property
    def is_whole(self) -> bool:
        """Not some of the tests only, as an option may have asked."""
        cells = [(store, scenario) for store in self.names() for scenario in self.scenario_names()]
        return all(self.cells.get(cell) == "passed" for cell in cells) and all(map(self.kept.get, self.names()))

    def matrix(self) -> str:
        stores = self.names()
        rows = {
            name.replace("_", " "): [_SIGNS.get(self.cells.get((store, name), ""), "–") for store in stores]
            for name in self.scenario_names()
        }
        return _table("scenario", stores, rows)

    def fidelity(self) -> str:
        stores = self.names()
        fields = next(iter(self.kept.values()), {})
        rows = {field: [self.kept.get(store, {}).get(field, "–") for store in stores] for field in fields}
        return _table("field", stores, rows)

    def contract_table(self) -> str:
        rows = ["| contract | tests that pass |", "|---|---|"]
        for kind, counted in sorted(self.contracts.items()):
            rows.append(f"| {kind} | {counted['passed']} of {counted.total() - counted['skipped']} |")
        return "\n".join(rows) + "\n"

    def page(self) -> str:
        return TEMPLATE.read_text("utf-8").format(matrix=self.matrix(), fidelity=self.fidelity())

    @staticmethod
    @functools.cache
    def names() -> list[str]:
        sys.path += [str(ROOT / "tests" / folder) for folder in ("serve", "backends", "")]  # as pytest has them
        from products import PRODUCTS

        return [product.name for product in PRODUCTS]

    @staticmethod
    def scenario_names() -> list[str]:
        from commonplace.conformance import SCENARIOS

        return [scenario.name for scenario in SCENARIOS]


def product_of(nodeid: str) -> str:
    """What a test needs started; its file, where that is nothing. Cognee's contract takes as long as everything else
    of it: another worker may have that."""
    named = re.search("cognee|letta|mem0", nodeid)
    return nodeid.partition("::")[0] if named is None or "test_cognee.py" in nodeid else named[0]


def _table(corner: str, columns: list[str], rows: dict[str, list[str]]) -> str:
    lines = [f"| {corner} | {' | '.join(f'`{column}`' for column in columns)} |", f"|---|{'---|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    outcomes = Outcomes()
    tests = [str(ROOT / "tests" / place) for place in TESTS]
    # Two workers: beside more of them Letta breaks off.
    options = ["--no-header", "-n", os.environ.get("WORKERS", "2"), "--dist", "loadscope"]
    options += ["--no-loadscope-reorder"]  # by the number of tests, of which the slowest have fewest
    failed = pytest.main([*options, *sys.argv[1:], *tests], plugins=[outcomes])
    print(outcomes.matrix())
    print(outcomes.fidelity())
    print(outcomes.contract_table())
    for store, why in outcomes.missing.items():
        print(f"NOT TESTED, so this run has failed: {store}: {why}")
    if failed or outcomes.missing:
        return int(failed) or 1
    if outcomes.is_whole and publish(outcomes.page(), PAGE):
        print(f"{PAGE.relative_to(ROOT)} said something else and is written anew: commit it and run this again")
        return 1
    return 0


def publish(page: str, path: Path) -> bool:
    """Write it; whether anything else was there."""
    if path.exists() and path.read_text("utf-8") == page:
        return False
    path.write_text(page, "utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main())
