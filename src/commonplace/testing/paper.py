"""The sixteen scenarios of the memorywire paper, by its names, as tests; they are `commonplace.conformance`'s."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, cast

from commonplace.conformance import SCENARIOS, Scenario
from commonplace.testing.subject import Contract, Subject, scenario


class PaperScenarios(Contract):
    """Has a test for each of them."""


def _test(each: Scenario) -> Any:
    def run(self: Contract, s: Subject) -> Coroutine[Any, Any, None]:
        return cast("Coroutine[Any, Any, None]", each.run(s))

    run.__name__, run.__doc__ = f"test_{each.name}", each.run.__doc__
    return scenario(*each.needs)(run)


for _each in SCENARIOS:
    setattr(PaperScenarios, f"test_{_each.name}", _test(_each))
