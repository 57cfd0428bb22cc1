"""Times: expressions of a question as periods, seen from a Wednesday in March."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall import times

NOW = int(datetime(2026, 3, 18, 15, 30, tzinfo=UTC).timestamp() * 1000)  # a Wednesday


def day(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what happened on 2026-03-14?", "2026-03-14", "2026-03-15"),
        ("the report of 2025-11", "2025-11-01", "2025-12-01"),
        ("what did we decide in March?", "2026-03-01", "2026-04-01"),
        ("what did we decide in May?", "2025-05-01", "2025-06-01"),
        ("the trip in December 2024", "2024-12-01", "2025-01-01"),
        ("dinner on 7 February", "2026-02-07", "2026-02-08"),
        ("dinner on February 7th, 2025", "2025-02-07", "2025-02-08"),
        ("what did Bob say yesterday?", "2026-03-17", "2026-03-18"),
        ("what did Bob say last week?", "2026-03-09", "2026-03-16"),
        ("and last weekend?", "2026-03-14", "2026-03-16"),
        ("costs this month", "2026-03-01", "2026-04-01"),
        ("costs last month", "2026-02-01", "2026-03-01"),
        ("sales last year", "2025-01-01", "2026-01-01"),
        ("sales in 2024", "2024-01-01", "2025-01-01"),
        ("the heat last summer", "2025-06-01", "2025-09-01"),
        ("the frost in winter 2024", "2024-12-01", "2025-03-01"),
        ("we met on Monday", "2026-03-16", "2026-03-17"),
        ("im Februar", "2026-02-01", "2026-03-01"),
    ],
)
def test_times_are_resolved_against_now(question: str, start: str, end: str) -> None:
    (period,) = times.periods(question, NOW)
    assert (period.start, period.end) == (day(start), day(end)), period


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("two days ago", "2026-03-16", "2026-03-17"),
        ("a week ago", "2026-03-08", "2026-03-15"),
        ("three weeks ago", "2026-02-22", "2026-03-01"),
        ("a few days ago", "2026-03-15", "2026-03-16"),
        ("in the last 3 days", "2026-03-15", "2026-03-19"),
        ("over the past 2 weeks", "2026-03-04", "2026-03-19"),
        ("this week", "2026-03-16", "2026-03-23"),
        ("this weekend", "2026-03-21", "2026-03-23"),
        ("this year", "2026-01-01", "2027-01-01"),
        ("today", "2026-03-18", "2026-03-19"),
        ("tonight", "2026-03-18", "2026-03-19"),
        ("this morning", "2026-03-18", "2026-03-19"),
        ("last night", "2026-03-17", "2026-03-18"),
        ("last Wednesday", "2026-03-11", "2026-03-12"),
        ("on Sonntag", "2026-03-15", "2026-03-16"),
        ("the 3rd of April", "2025-04-03", "2025-04-04"),
        ("April 3, 2024", "2024-04-03", "2024-04-04"),
        ("in the spring", "2026-03-01", "2026-06-01"),
        ("last autumn", "2025-09-01", "2025-12-01"),
        ("summer of 2024", "2024-06-01", "2024-09-01"),
        ("since December", "2025-12-01", "2026-01-01"),
        ("en février", "2026-02-01", "2026-03-01"),
        ("on 29 February 2024", "2024-02-29", "2024-03-01"),
    ],
)
def test_times_that_depend_on_the_day(question: str, start: str, end: str) -> None:
    (period,) = times.periods(question, NOW)
    assert (period.start, period.end) == (day(start), day(end)), period
    assert period.said in question


def test_every_expression_of_a_question_is_a_period_of_its_own() -> None:
    found = times.periods("between 2026-01-05 and last week, or yesterday?", NOW)
    assert [period.said for period in found] == ["2026-01-05", "last week", "yesterday"]


@pytest.mark.parametrize("now", [10**18, -(10**18), 253_402_300_800_000])
def test_a_clock_beyond_the_calendar_knows_no_periods(now: int) -> None:
    assert times.periods("what happened yesterday?", now) == ()


@pytest.mark.parametrize(
    "question", ["may I go?", "march on, march on", "the 31st of June", "who will spring the trap", "a fall from grace"]
)
def test_what_is_no_time_is_none(question: str) -> None:
    assert times.periods(question, NOW) == ()


def test_agreement_is_whole_inside_and_falls_with_distance() -> None:
    march = times.periods("in March", NOW)
    assert times.agreement(march, day("2026-03-10")) == times.agreement(march, day("2026-04-03")) == 1.0
    near, far = times.agreement(march, day("2026-02-20")), times.agreement(march, day("2025-05-20"))
    assert 1.0 > near > far > 0.0


def test_agreement_with_several_periods_is_with_the_nearest() -> None:
    both = times.periods("in 2020 or in March", NOW)
    assert len(both) == 2
    assert times.agreement(both, day("2020-06-01")) == times.agreement(both, day("2026-03-10")) == 1.0
    assert times.agreement(both, day("2026-01-01")) == times.agreement(both[1:], day("2026-01-01"))
    assert times.agreement((), NOW) == 0.0


expressions = st.lists(
    st.sampled_from(
        ["last", "this", "past", "3", "31", "0", "9999999999", "days", "week", "weekend", "month", "years", "ago", "of",
         "February", "may", "Monday", "winter", "2024", "2024-02", "2024-02-30", "yesterday", "in", "on", "a", "few"]
    ),
    max_size=8,
).map(" ".join)  # fmt: skip


@given(expressions, st.integers(0, 253_402_300_799_999), st.integers(0, 253_402_300_799_999))
def test_periods_of_anything_begin_before_they_end(question: str, now: int, moment: int) -> None:
    found = times.periods(question, now)
    assert all(period.start < period.end for period in found)
    assert 0.0 <= times.agreement(found, moment) <= 1.0
