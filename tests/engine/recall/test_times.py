"""Times: expressions of a question as periods, seen from a Wednesday in March."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

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
    "question", ["may I go?", "march on, march on", "the 31st of June", "who will spring the trap", "a fall from grace"]
)
def test_what_is_no_time_is_none(question: str) -> None:
    assert times.periods(question, NOW) == ()


def test_agreement_is_whole_inside_and_falls_with_distance() -> None:
    march = times.periods("in March", NOW)
    assert times.agreement(march, day("2026-03-10")) == times.agreement(march, day("2026-04-03")) == 1.0
    near, far = times.agreement(march, day("2026-02-20")), times.agreement(march, day("2025-05-20"))
    assert 1.0 > near > far > 0.0
