from __future__ import annotations

from commonplace.engine.outbox.breaker import FAILURES, FIRST_PAUSE_MS, LONGEST_PAUSE_MS, CircuitBreaker
from commonplace.testing.subject import FakeClock


def test_it_opens_after_failures_in_a_row_alone() -> None:
    breaker = CircuitBreaker(FakeClock())
    for _ in range(10):
        for _ in range(FAILURES - 1):
            assert breaker.try_call()
            breaker.failed("no")
        breaker.succeeded()
    assert breaker.try_call()
    for _ in range(FAILURES):
        breaker.failed("gone")
    assert (breaker.is_open, breaker.try_call(), breaker.error) == (True, False, "gone")


def test_after_a_pause_one_call_tries_and_decides() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    for _ in range(FAILURES):
        breaker.failed("gone")
    clock.advance(FIRST_PAUSE_MS - 1)
    assert not breaker.try_call()
    clock.advance(1)
    assert breaker.try_call()
    assert not breaker.try_call()  # the others wait for what becomes of it
    breaker.succeeded()
    assert breaker.try_call()
    assert (breaker.failures, breaker.error, breaker.is_open) == (0, None, False)


def test_pauses_grow_up_to_a_limit() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    pauses = []
    for _ in range(20):
        breaker.failed("gone")
        if breaker.retry_at is not None:
            pauses.append(breaker.retry_at - clock())
            clock.advance(pauses[-1])
            assert breaker.try_call()
    assert pauses[:3] == [FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 4 * FIRST_PAUSE_MS]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_MS


def test_calls_that_were_made_before_it_opened_do_not_prolong_the_pause() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    assert all(breaker.try_call() for _ in range(20))
    for _ in range(20):
        breaker.failed("gone")
    assert (breaker.failures, breaker.retry_at) == (20, clock() + FIRST_PAUSE_MS)
    clock.advance(FIRST_PAUSE_MS)
    assert breaker.try_call()
    for _ in range(3):  # the one that tried, and two from before
        breaker.failed("gone")
    assert breaker.retry_at == clock() + 2 * FIRST_PAUSE_MS


def test_one_that_refuses_when_a_pause_is_over_answers_and_others_may_ask() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    for _ in range(FAILURES):
        breaker.failed("gone")
    clock.advance(FIRST_PAUSE_MS)
    assert breaker.try_call()
    breaker.refused("too long")
    assert (breaker.try_call(), breaker.is_open, breaker.error) == (True, False, "too long")


def test_a_pause_from_before_the_clock_was_set_back_is_over() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    for _ in range(FAILURES):
        breaker.failed("gone")
    clock.advance(-24 * 3_600_000)
    assert not breaker.is_open
    assert breaker.try_call()
    assert (breaker.is_open, breaker.try_call()) == (True, False)  # a pause of now, while that one tries
