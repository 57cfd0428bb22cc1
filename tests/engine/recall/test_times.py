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
        ("a few days ago", "2026-03-14", "2026-03-17"),
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


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        # English: number words, and numbers that are only about
        ("eight days ago", "2026-03-10", "2026-03-11"),
        ("twelve months ago", "2025-03-08", "2025-04-08"),
        ("a couple of days ago", "2026-03-15", "2026-03-18"),
        ("a couple of weeks ago", "2026-02-25", "2026-03-12"),
        ("a couple weeks ago", "2026-02-25", "2026-03-12"),
        ("a few weeks ago", "2026-02-18", "2026-03-05"),
        ("several days ago", "2026-03-13", "2026-03-16"),
        ("in the past few days", "2026-03-15", "2026-03-19"),
        ("over the last two weeks", "2026-03-04", "2026-03-19"),
        ("the day before yesterday", "2026-03-16", "2026-03-17"),
        ("next week", "2026-03-23", "2026-03-30"),
        ("next month", "2026-04-01", "2026-05-01"),
        ("next year", "2027-01-01", "2028-01-01"),
        ("tomorrow", "2026-03-19", "2026-03-20"),
        # German
        ("letzte Woche", "2026-03-09", "2026-03-16"),
        ("in der vergangenen Woche", "2026-03-09", "2026-03-16"),
        ("letzten Monat", "2026-02-01", "2026-03-01"),
        ("letztes Jahr", "2025-01-01", "2026-01-01"),
        ("am letzten Wochenende", "2026-03-14", "2026-03-16"),
        ("diese Woche", "2026-03-16", "2026-03-23"),
        ("diesen Monat", "2026-03-01", "2026-04-01"),
        ("nächste Woche", "2026-03-23", "2026-03-30"),
        ("nächsten Monat", "2026-04-01", "2026-05-01"),
        ("vor drei Tagen", "2026-03-15", "2026-03-16"),
        ("vor einer Woche", "2026-03-08", "2026-03-15"),
        ("vor ein paar Wochen", "2026-02-18", "2026-03-05"),
        ("vor zwölf Monaten", "2025-03-08", "2025-04-08"),
        ("gestern", "2026-03-17", "2026-03-18"),
        ("vorgestern", "2026-03-16", "2026-03-17"),
        ("heute Morgen", "2026-03-18", "2026-03-19"),
        ("morgen", "2026-03-19", "2026-03-20"),
        ("letzten Montag", "2026-03-16", "2026-03-17"),
        # French
        ("la semaine dernière", "2026-03-09", "2026-03-16"),
        ("le mois dernier", "2026-02-01", "2026-03-01"),
        ("l'année dernière", "2025-01-01", "2026-01-01"),
        ("l’an dernier", "2025-01-01", "2026-01-01"),
        ("cette semaine", "2026-03-16", "2026-03-23"),
        ("ce mois-ci", "2026-03-01", "2026-04-01"),
        ("la semaine prochaine", "2026-03-23", "2026-03-30"),
        ("il y a trois jours", "2026-03-15", "2026-03-16"),
        ("il y a quelques semaines", "2026-02-18", "2026-03-05"),
        ("il y a deux ans", "2023-09-18", "2024-09-17"),
        ("aujourd'hui", "2026-03-18", "2026-03-19"),
        ("avant-hier", "2026-03-16", "2026-03-17"),
        ("qu'est-ce qu'il a dit hier ?", "2026-03-17", "2026-03-18"),
        # Spanish
        ("la semana pasada", "2026-03-09", "2026-03-16"),
        ("el mes pasado", "2026-02-01", "2026-03-01"),
        ("el año pasado", "2025-01-01", "2026-01-01"),
        ("esta semana", "2026-03-16", "2026-03-23"),
        ("este año", "2026-01-01", "2027-01-01"),
        ("la próxima semana", "2026-03-23", "2026-03-30"),
        ("la semana que viene", "2026-03-23", "2026-03-30"),
        ("hace ocho días", "2026-03-10", "2026-03-11"),
        ("hace unas semanas", "2026-02-18", "2026-03-05"),
        ("ayer", "2026-03-17", "2026-03-18"),
        ("anoche", "2026-03-17", "2026-03-18"),
        # Italian
        ("la settimana scorsa", "2026-03-09", "2026-03-16"),
        ("lo scorso mese", "2026-02-01", "2026-03-01"),
        ("l'anno scorso", "2025-01-01", "2026-01-01"),
        ("questa settimana", "2026-03-16", "2026-03-23"),
        ("quest'anno", "2026-01-01", "2027-01-01"),
        ("il mese prossimo", "2026-04-01", "2026-05-01"),
        ("tre giorni fa", "2026-03-15", "2026-03-16"),
        ("un paio di settimane fa", "2026-02-25", "2026-03-12"),
        ("ieri", "2026-03-17", "2026-03-18"),
    ],
)
def test_times_in_words_and_in_other_languages(question: str, start: str, end: str) -> None:
    (period,) = times.periods(question, NOW)
    assert (period.start, period.end) == (day(start), day(end)), period
    assert period.said in question


@pytest.mark.parametrize(
    ("word", "number"),
    [
        (word, number)
        for number, words in enumerate(
            (
                "one un",
                "two deux dos due zwei",
                "three drei trois tres tre",
                "four vier quatre cuatro quattro",
                "five fünf cinq cinco cinque",
                "six sechs seis sei",
                "seven sieben sept siete sette",
                "eight acht huit ocho otto",
                "nine neun neuf nueve nove",
                "ten zehn dix diez dieci",
                "eleven elf onze once undici",
                "twelve zwölf douze doce dodici",
            ),
            start=1,
        )
        for word in words.split()
    ],
)
def test_numbers_are_words_up_to_twelve(word: str, number: int) -> None:
    (said,) = times.periods(f"{word} days ago", NOW)
    (written,) = times.periods(f"{number} days ago", NOW)
    assert (said.start, said.end) == (written.start, written.end)


@pytest.mark.parametrize(
    "question",
    ["was liegt hier herum?", "guten Morgen", "am Morgen trinkt sie Tee", "por la mañana", "it happened once",
     "in a week", "the last of them", "this is past caring", "das ist letztens so gewesen"],
)  # fmt: skip
def test_words_that_another_language_uses_otherwise_are_no_times(question: str) -> None:
    assert times.periods(question, NOW) == ()


@pytest.mark.parametrize(
    ("question", "over"),
    [("yesterday", True), ("last week", True), ("in 2024", True), ("today", False), ("tonight", False),
     ("this week", False), ("in March", False), ("next week", False), ("in the last 3 days", False)],
)  # fmt: skip
def test_a_period_is_over_when_it_ended_before_today(question: str, over: bool) -> None:
    (period,) = times.periods(question, NOW)
    assert period.over is over


def test_when_something_was_written_tells_only_inside_what_is_over() -> None:
    """Notes without a time of their own are nearly all written about now: that says nothing of "today"."""
    last_week, this_week = times.periods("last week", NOW), times.periods("this week", NOW)
    assert times.written_within(last_week, day("2026-03-10"))
    assert not times.written_within(last_week, day("2026-03-17"))
    assert not times.written_within(this_week, day("2026-03-17"))
    assert not times.written_within((), NOW)


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
         "February", "may", "Monday", "winter", "2024", "2024-02", "2024-02-30", "yesterday", "in", "on", "a", "few",
         "couple", "next", "vor", "hace", "il y a", "fa", "Woche", "mois", "dernier", "letzte", "zwölf", "que viene"]
    ),
    max_size=8,
).map(" ".join)  # fmt: skip


@given(expressions, st.integers(0, 253_402_300_799_999), st.integers(0, 253_402_300_799_999))
def test_periods_of_anything_begin_before_they_end(question: str, now: int, moment: int) -> None:
    found = times.periods(question, now)
    assert all(period.start < period.end for period in found)
    assert 0.0 <= times.agreement(found, moment) <= 1.0
