"""Every backend's contract and the paper's scenarios on every store, in one run; the matrix is printed and written to
docs/conformance.md.

A cell is a test of test_conformance.py that ran on the real product; nothing is carried over from an earlier run. The
page is written only where everything was there and passed.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
TEMPLATE = Path(__file__).with_name("conformance_page.md")
_SIGNS = {"passed": "pass", "failed": "**fail**", "error": "**fail**", "skipped": "not here"}
_CELL = re.compile(r"test_conformance\.py::test_scenario\[(?P<store>.+)-(?P<scenario>[a-z_]+)\]")


class Outcomes:
    """What became of each cell, and of each contract."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.contracts: dict[str, Counter[str]] = {}
        self.scenarios: dict[str, None] = {}
        self.stores: dict[str, None] = {}
        self.missing: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        if cell := _CELL.search(report.nodeid):
            store, scenario = cell["store"], cell["scenario"]
            self.stores[store] = self.scenarios[scenario] = None
            self.cells[store, scenario] = report.outcome
            if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
                self.missing[store] = report.longrepr[2].removeprefix("Skipped: ")
        elif "::Test" in report.nodeid:
            kind = report.nodeid.split("::")[1].removeprefix("Test")
            self.contracts.setdefault(kind, Counter())[report.outcome] += 1

    def table(self) -> str:
        order = {name: place for place, name in enumerate(self.names())}
        stores = sorted(self.stores, key=lambda store: order.get(store, 99))
        rows = [f"| scenario | {' | '.join(f'`{store}`' for store in stores)} |", f"|---|{'---|' * len(stores)}"]
        for name in self.scenario_names():
            cells = [_SIGNS.get(self.cells.get((store, name), ""), "–") for store in stores]
            rows.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
        return "\n".join(rows) + "\n"

    def contract_table(self) -> str:
        rows = ["| contract | tests that pass |", "|---|---|"]
        for kind, counted in sorted(self.contracts.items()):
            rows.append(f"| {kind} | {counted['passed']} of {counted.total() - counted['skipped']} |")
        return "\n".join(rows) + "\n"

    @staticmethod
    def names() -> list[str]:
        sys.path += [str(ROOT / "tests" / folder) for folder in ("serve", "backends", "")]  # as pytest has them
        from products import PRODUCTS

        return [product.name for product in PRODUCTS]

    @staticmethod
    def scenario_names() -> list[str]:
        from commonplace.conformance import SCENARIOS

        return [scenario.name for scenario in SCENARIOS]


def main() -> int:
    outcomes = Outcomes()
    tests = [str(ROOT / "tests" / folder) for folder in ("contract", "backends")]
    # A product is started once: all its tests go to one worker.
    options = ["-q", "--no-header", "-n", os.environ.get("WORKERS", "2"), "--dist", "loadgroup"]
    failed = pytest.main([*options, *sys.argv[1:], *tests], plugins=[outcomes])
    print(outcomes.table())
    print(outcomes.contract_table())
    for store, why in outcomes.missing.items():
        print(f"NOT TESTED: {store}: {why}")
    if not failed and not outcomes.missing:
        PAGE.write_text(TEMPLATE.read_text("utf-8").format(matrix=outcomes.table()), "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
