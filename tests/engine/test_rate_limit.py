"""Token buckets against a plain account of what was spent when."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commonplace.engine import rate_limit
from commonplace.engine.rate_limit import TokenBucket, per_minute, rate_limited


class ManualClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_then_the_rate() -> None:
    clock = ManualClock()
    budget = TokenBucket(2.0, 3, clock)
    assert [budget.spend("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert budget.spend("a") == pytest.approx(0.5)
    assert budget.spend("b") == 0.0
    clock.now = 0.5
    assert budget.spend("a") == 0.0
    assert budget.spend("a") == pytest.approx(0.5)


@given(st.lists(st.floats(0, 2), max_size=60), st.floats(0.1, 20), st.integers(1, 10))
def test_no_window_ever_gets_more_than_its_share(pauses: list[float], rate: float, burst: int) -> None:
    clock = ManualClock()
    budget = TokenBucket(rate, burst, clock)
    spent: list[float] = []
    for pause in pauses:
        clock.now += pause
        wait = budget.spend("k")
        if wait == 0:
            spent.append(clock.now)
        else:
            assert wait <= 1 / rate + 1e-9
    for i, start in enumerate(spent):
        for j in range(i, len(spent)):
            assert j - i + 1 <= burst + (spent[j] - start) * rate + 1e-6


def test_waiting_as_long_as_it_says_is_enough() -> None:
    clock = ManualClock()
    budget = TokenBucket(3.0, 1, clock)
    budget.spend("k")
    clock.now += budget.spend("k") + 1e-9
    assert budget.spend("k") == 0.0


def test_nothing_is_no_limit() -> None:
    assert per_minute(0) is None


def test_retry_after_is_whole_seconds_never_too_few() -> None:
    assert [rate_limited(s, "busy").details["retry_after"] for s in (0.01, 1.0, 1.2, 19.999)] == [1, 1, 2, 20]


def test_asking_how_long_costs_nothing() -> None:
    budget = TokenBucket(1.0, 1, ManualClock())
    assert [budget.wait("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert budget.spend("a") == 0.0
    assert budget.wait("a") == budget.wait("a") == pytest.approx(1.0)
    assert budget.wait("a", 3.0) == pytest.approx(3.0)


def test_a_burst_is_never_less_than_one() -> None:
    budget = TokenBucket(1.0, 0.1, ManualClock())
    assert budget.spend("a") == 0.0


def test_so_many_a_minute_may_come_at_once() -> None:
    clock = ManualClock()
    budget = per_minute(3, clock)
    assert budget is not None
    assert [budget.spend("a") for _ in range(4)] == [0.0, 0.0, 0.0, pytest.approx(20.0)]
    clock.now = 20.0
    assert budget.spend("a") == 0.0


def test_who_is_longest_unheard_of_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_REMEMBERED", 2)
    budget = TokenBucket(1.0, 1, ManualClock())
    for key in ("a", "b"):
        budget.spend(key)
    budget.wait("a")
    budget.spend("c")
    assert budget.wait("a") > 0
    assert budget.wait("c") > 0
    assert budget.wait("b") == 0.0, "b was forgotten, so its bucket is full again"


def test_a_refusal_says_what_and_when() -> None:
    assert rate_limited(2.5, "too many recalls").message == "too many recalls; try again in 3 s"
    assert per_minute(-1) is None
