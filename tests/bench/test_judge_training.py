"""What the judge is asked to choose among while it learns."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("torch", reason="the judge is trained with the extra `train`")

from bench.encoder.examples import Example, Tokens
from bench.judge.train import Recipe, _choice

MEMORIES = [[n] for n in range(20)]
SPACE = Tokens("one", MEMORIES, [Example([7, 1029], [3], swapped=[8, 1029])], [[5]])
OTHER = Tokens("other", [[n] for n in range(100, 120)], [], [])
NEAR = [np.array([list(range(20))]), np.zeros((0, 20), int)]


def choice(**recipe: float) -> tuple[list[int], list[int], int]:
    drawn = _choice([SPACE, OTHER], NEAR, 0, 0, Recipe(near=4, far=2, uncased=0, **recipe), random.Random(1))  # type: ignore[arg-type]
    return drawn.question, [memory[0] for memory in drawn.memories], drawn.gold


def test_what_answers_comes_first_then_the_nearest_and_nothing_that_is_beside_the_point() -> None:
    question, memories, gold = choice(swapped=0, elsewhere=0)
    assert (question, gold, memories[:5]) == ([7, 1029], 1, [3, 0, 1, 2, 4])
    assert len(memories) == 7
    assert 5 not in memories


def test_nothing_answers_what_is_asked_about_the_other_speaker() -> None:
    question, memories, gold = choice(swapped=1, elsewhere=0)
    assert (question, gold, memories[0]) == ([8, 1029], 0, 3)


def test_nothing_of_another_space_answers() -> None:
    for seed in range(8):
        drawn = _choice([SPACE, OTHER], NEAR, 0, 0, Recipe(near=4, elsewhere=1, swapped=0), random.Random(seed))
        if drawn.gold == 0:
            assert all(memory[0] >= 100 for memory in drawn.memories)
            return
    raise AssertionError("no other space was drawn")
