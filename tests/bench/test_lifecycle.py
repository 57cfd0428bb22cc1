"""Half a year of conversation in small: what is true stays, what is not needed goes, and a crash changes neither."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

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


def _world(folder: Path, name: str, count: int = DAYS, **how: Any) -> World:
    made = live_through(
        lambda clock: SqliteStore(folder / f"{name}.db", clock=clock), HashingEmbedder(), name=name, count=count,
        seed=3, look_every=4, **how,
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


@pytest.mark.slow
@pytest.mark.parametrize("crash", [False, True])
def test_what_is_live_grows_to_its_bound_and_no_further(tmp_path: Path, crash: bool) -> None:
    """Room for 40 memories with each of two people, of whom 16 facts each are known in the end."""
    world = _world(tmp_path, "bounded", 48, capacity=40, crash=crash)
    assert (world.lost, world.worse) == ([], [])
    long_term = {day: counts["all"] - counts["short-term"] for day, counts in world.live_on_day.items()}
    full = [count for day, count in long_term.items() if day > 28]
    assert long_term[12] < 0.6 * min(full)
    # Beside what has its bound there is what authors asked to be kept, which is little.
    assert max(full) <= 2 * 40 + 12
    assert max(full) - min(full) <= 5
    notes = [counts["short-term"] for day, counts in world.live_on_day.items() if day > 8]
    assert max(notes) < 8 * 16, "of a week"
