"""The load bench, small: no errors, and every acknowledged write is there after a kill."""

from __future__ import annotations

import pytest

from bench.http_boundary import TARGET_US, measure
from bench.http_load import measure as load


@pytest.mark.slow
def test_a_crowd_loses_nothing() -> None:
    found = load(clients=20, seconds=3, embedder="hashing", agents=3)
    assert (found["errors"], found["lost"]) == (0, 0), found
    assert found["acknowledged"] > 20


def test_the_json_boundary_stays_cheap() -> None:
    for row in measure(rounds=2000):
        assert row["total"] < 2 * TARGET_US, row  # twice the target: a shared machine is not a bench
