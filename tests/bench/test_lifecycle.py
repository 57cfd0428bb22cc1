"""Half a year of conversation in small: what is true stays, what is not needed goes, and a crash changes neither."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.lifecycle.conversation import days
from bench.lifecycle.simulation import World, live_through
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.sqlite import SqliteStore

DAYS = 24


def test_the_same_seed_makes_the_same_conversation() -> None:
    one, again, other = ([day.notes for day in days(30, seed)] for seed in (1, 1, 2))
    assert one == again != other
    assert sum(map(len, one)) > 300


def _world(folder: Path, name: str, **how: bool) -> World:
    made = live_through(
        lambda clock: SqliteStore(folder / f"{name}.db", clock=clock), HashingEmbedder(), name=name, count=DAYS, seed=3,
        look_every=4, **how,
    )  # fmt: skip
    return asyncio.run(made)


@pytest.mark.slow
def test_jobs_lose_nothing_that_is_true_and_keep_the_rest_small(tmp_path: Path) -> None:
    without = _world(tmp_path, "without", jobs=False)
    tended = _world(tmp_path, "tended")
    crashed = _world(tmp_path, "crashed", crash=True)
    assert crashed.crashes > 20, "in the middle of every job, night after night"
    for world in (tended, crashed):
        assert (world.lost, world.worse) == ([], [])
        assert world.recall_at_5 >= without.recall_at_5
        assert world.most_live < 0.75 * without.live
        assert world.done["promoted"] > 0 < world.done["archived"]
