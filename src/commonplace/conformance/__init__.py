"""The sixteen scenarios of the memorywire paper (§5.3), for any store: what `commonplace conformance` runs, and the
contracts of `commonplace.testing` as well. Needs nothing but the engine, so it ships with the product."""

from __future__ import annotations

from commonplace.conformance.runs import ConformanceRun, Outcome, open_run
from commonplace.conformance.scenarios import SCENARIOS, Scenario, ScenarioFailure

__all__ = ["SCENARIOS", "ConformanceRun", "Outcome", "Scenario", "ScenarioFailure", "open_run"]
