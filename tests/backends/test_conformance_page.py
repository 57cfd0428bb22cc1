"""docs/conformance.md is what the last run found: of every product, scenario and field that there is by now."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance import PAGE, Outcomes, publish
from products import FIDELITY_FIELDS

from commonplace.conformance import SCENARIOS


def of_the_page() -> Outcomes:
    """A run in which everything passed and every product keeps its fields as the page says."""
    outcomes = Outcomes()
    stores = outcomes.names()
    outcomes.cells = {(store, scenario.name): "passed" for store in stores for scenario in SCENARIOS}
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    places = {name: cells for name, *cells in rows if name in FIDELITY_FIELDS}
    assert [*places] == [*FIDELITY_FIELDS]
    for field, cells in places.items():
        for store, place in zip(stores, cells, strict=True):
            outcomes.kept.setdefault(store, {})[field] = place
    return outcomes


def test_the_page_is_of_every_product_scenario_and_field() -> None:
    outcomes = of_the_page()
    assert outcomes.is_whole
    assert {place for kept in outcomes.kept.values() for place in kept.values()} <= {"native", "encoded", "lossy"}
    assert PAGE.read_text("utf-8") == outcomes.page()


def test_a_page_that_says_something_else_is_noticed_and_written_anew(tmp_path: Path) -> None:
    outcomes, path = of_the_page(), tmp_path / "page.md"
    assert publish(outcomes.page(), path)
    assert not publish(outcomes.page(), path)
    outcomes.kept["letta"]["metadata"] = "lossy"
    assert publish(outcomes.page(), path)
    assert path.read_text("utf-8") == outcomes.page() != PAGE.read_text("utf-8")


@pytest.mark.parametrize("outcome", ["failed", "skipped", "error", None])
def test_a_run_of_which_a_cell_did_not_pass_is_not_whole(outcome: str | None) -> None:
    outcomes = of_the_page()
    cell = ("cognee", "expire_by_age")
    if outcome is None:
        del outcomes.cells[cell]
    else:
        outcomes.cells[cell] = outcome
    assert not outcomes.is_whole
    without_fields = of_the_page()
    del without_fields.kept["mem0 on qdrant"]
    assert not without_fields.is_whole
