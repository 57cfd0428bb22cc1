"""Judging: who is read, in which rounds, and when time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from commonplace.engine.recall import judging
from commonplace.wire.errors import Unavailable

TEXTS = [f"memory {n}" for n in range(10)]


class TimedJudge:
    """Reads a pair in a fixed time of its own clock."""

    name = "timed"
    note: str | None = None
    reads_pairs = True

    def __init__(self, seconds: float = 0.0) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.asked: list[list[str]] = []

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked.append(list(texts))
        self.now += self.seconds * len(texts)
        return [float(text.split()[-1]) for text in texts]


def read(judge: TimedJudge, texts: Sequence[str] = TEXTS, seconds: float | None = 1.0) -> list[float]:
    logits, note = asyncio.run(judging.read_best(judge, "which?", texts, seconds=seconds, timer=lambda: judge.now))
    assert note is None
    return logits


@pytest.mark.parametrize(
    ("each", "rounds"), [(0.0, [4, 3, 3]), (0.09, [4, 3, 3]), (0.11, [4, 3]), (0.14, [4, 3]), (0.15, [4]), (5.0, [4])]
)
def test_no_round_is_begun_that_would_end_too_late(each: float, rounds: list[int]) -> None:
    judge = TimedJudge(each)
    logits = read(judge)
    assert [len(texts) for texts in judge.asked] == rounds
    assert logits == [float(n) for n in range(sum(rounds))], "in the order they were ranked"


def test_without_a_limit_all_are_read_at_once() -> None:
    judge = TimedJudge(5.0)
    assert len(read(judge, seconds=None)) == 10
    assert len(judge.asked) == 1


def test_one_that_reads_all_texts_in_one_go_is_asked_once() -> None:
    judge = TimedJudge(5.0)
    judge.reads_pairs = False
    assert len(read(judge)) == 10
    assert len(judge.asked) == 1


@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_fewer_than_could_be_read(count: int) -> None:
    judge = TimedJudge()
    assert len(read(judge, TEXTS[:count])) == count
    assert all(judge.asked)


def test_a_judge_that_fails_is_a_note() -> None:
    class BrokenJudge(TimedJudge):
        def judge(self, question: str, texts: Sequence[str]) -> list[float]:
            raise Unavailable("the judge is broken")

    found = asyncio.run(judging.read_best(BrokenJudge(), "which?", TEXTS))
    assert found == ([], "the judge is broken; relevance is without a judge")
