"""Judging: who is read, in which rounds, and when time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

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


def never(logits: Sequence[float]) -> bool:
    return False


def read(
    judge: TimedJudge,
    texts: Sequence[str] = TEXTS,
    seconds: float = 1.0,
    enough: Callable[[Sequence[float]], bool] = never,
) -> list[float]:
    timed = judging.read_best(judge, "which?", texts, enough, seconds=seconds, timer=lambda: judge.now)
    logits, note = asyncio.run(timed)
    assert note is None
    return logits


@pytest.mark.parametrize(
    ("each", "read_in_time"), [(0.0, 10), (0.1, 10), (0.12, 8), (0.17, 4), (0.24, 4), (0.26, 2), (5.0, 2)]
)
def test_no_round_is_begun_that_would_end_too_late(each: float, read_in_time: int) -> None:
    judge = TimedJudge(each)
    logits = read(judge)
    assert [len(texts) for texts in judge.asked] == [2] * (read_in_time // 2)
    assert logits == [float(n) for n in range(read_in_time)], "in the order they were ranked"


@pytest.mark.parametrize(("wanted", "were_read"), [(0.0, 2), (1.0, 2), (2.0, 4), (4.0, 6), (9.0, 10), (99.0, 10)])
def test_no_further_round_once_the_verdicts_are_enough(wanted: float, were_read: int) -> None:
    logits = read(TimedJudge(), enough=lambda so_far: max(so_far) >= wanted)
    assert logits == [float(n) for n in range(were_read)]


def test_on_demand_all_are_read_at_once() -> None:
    judge = TimedJudge(5.0)
    logits, note = asyncio.run(judging.read_all(judge, "which?", TEXTS))
    assert (len(logits), note, len(judge.asked)) == (10, None, 1)


def test_one_that_reads_all_texts_in_one_go_is_asked_once() -> None:
    judge = TimedJudge(5.0)
    judge.reads_pairs = False
    assert len(read(judge)) == 10
    assert len(judge.asked) == 1


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_fewer_than_could_be_read(count: int) -> None:
    judge = TimedJudge()
    assert len(read(judge, TEXTS[:count])) == count
    assert all(judge.asked)


def test_a_judge_that_fails_is_a_note() -> None:
    class BrokenJudge(TimedJudge):
        def judge(self, question: str, texts: Sequence[str]) -> list[float]:
            raise Unavailable("the judge is broken")

    for reading in (
        judging.read_best(BrokenJudge(), "which?", TEXTS, never),
        judging.read_all(BrokenJudge(), "?", TEXTS),
    ):
        assert asyncio.run(reading) == ([], "the judge is broken; relevance is without a judge")
