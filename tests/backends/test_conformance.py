"""The paper's sixteen scenarios on every store there is, each on the real product: the cells of docs/conformance.md.

`commonplace conformance` runs the same. A product that is not here is skipped, and says what would bring it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from products import PARAMETERS, Product

from commonplace.conformance import SCENARIOS, ConformanceRun, Scenario, open_run
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import StoreSettings

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

Opened = tuple[ConformanceRun, Callable[[Any], Any]]


@pytest.fixture(scope="module", params=PARAMETERS)
def tried(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    product: Product = request.param
    if (why := product.missing()) is not None:
        pytest.skip(why)
    folder: Path = tmp_path_factory.mktemp("store")
    embedder = HashingEmbedder()
    with asyncio.Runner() as runner:
        settings = StoreSettings(folder=folder, embed=embedder.embed)
        opened = runner.run(open_run(product.url(folder), settings, embedder))
        yield opened, runner.run
        runner.run(opened.close())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_scenario(tried: Opened, scenario: Scenario) -> None:
    opened, run = tried
    outcome = run(opened.run(scenario))
    assert (outcome.result, outcome.why) == ("pass", "")
