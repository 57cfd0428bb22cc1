"""Time expressions of a question as periods, seen from now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from commonplace.wire.times import DAY_MS

_SLACK_MS = 7 * DAY_MS  # things are told after they happened

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero",
            "february feb februar février febrero",
            "march mar märz mars marzo",
            "april apr avril abril",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio",
            "august aug août agosto",
            "september sep sept septembre septiembre",
            "october oct oktober octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember décembre diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
_DAYS = {
    name: number
    for number, names in enumerate(
        ("monday montag", "tuesday dienstag", "wednesday mittwoch", "thursday donnerstag", "friday freitag",
         "saturday samstag", "sunday sonntag")
    )
    for name in names.split()
}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10, "few": 3}
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365}

_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = "|".join(_DAYS)
_SEASON = "|".join(_SEASONS)
_YEAR = r"(?:19|20)\d\d"
# A month that is also a word counts when something before it says that it is a month.
_CUE = r"in|since|during|of|until|till|by|last|this|next|early|late|mid|im|seit|en|desde"

_EXPRESSION = re.compile(
    rf"""\b(?:
      (?P<iso>{_YEAR}-\d\d(?:-\d\d)?)
    | (?P<dmy_day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<dmy_month>{_MONTH})\b\.?(?:,?\s+(?P<dmy_year>{_YEAR}))?
    | (?P<mdy_month>{_MONTH})\.?\s+(?P<mdy_day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<mdy_year>{_YEAR}))?
    | (?P<my_month>{_MONTH})\.?,?\s+(?:of\s+)?(?P<my_year>{_YEAR})
    | (?:{_CUE})[\s-]+(?P<month>{_MONTH})\b(?!\.?\s+\d{{1,2}}\b)(?:\.?,?\s+(?:of\s+)?(?P<month_year>{_YEAR}))?
    | (?P<plain>january|february|april|june|july|august|september|october|november|december)\b
    | (?:(?:last|this|past)\s+|(?:in|during|since|of)\s+(?:the\s+)?)(?P<season>{_SEASON})
      (?:\s+(?:of\s+)?(?P<season_year>{_YEAR}))?
    | (?P<named_season>{_SEASON})\s+(?:of\s+)?(?P<named_year>{_YEAR})
    | (?P<count>\d+|{"|".join(_NUMBERS)})\s+(?P<ago>day|week|month|year)s?\s+ago
    | (?:the\s+)?(?P<span>last|past|this)\s+(?:(?P<many>\d+)\s+)?(?P<unit>day|weekend|week|month|year)s?\b
    | (?:(?:last|this|on)\s+)(?P<weekday>{_DAY})\b
    | (?P<word>yesterday|today|tonight|last\s+night|this\s+morning)
    | (?P<year>{_YEAR})
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_HINT = re.compile(rf"\d|ago|last|this|past|today|yester|night|{'|'.join(_SEASONS)}|{_MONTH}|{_DAY}", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class Period:
    """[start, end) in milliseconds, and the words that said so."""

    start: int
    end: int
    said: str


def periods(question: str, now: int) -> tuple[Period, ...]:
    if not _HINT.search(question):
        return ()
    try:
        today = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    except (OverflowError, OSError, ValueError):
        return ()
    found = []
    for match in _EXPRESSION.finditer(question):
        try:
            span = _resolve(match, today)
        except (OverflowError, ValueError):  # the 31st of June
            continue
        if span:
            found.append(Period(_ms(span[0]), _ms(span[1]), match.group()))
    return tuple(found)


def agreement(found: tuple[Period, ...], moment: int) -> float:
    """1.0 for a moment within one of the periods or just after it, less the farther away."""
    best = 0.0
    for period in found:
        if period.start <= moment < period.end + _SLACK_MS:
            return 1.0
        far = period.start - moment if moment < period.start else moment - period.end - _SLACK_MS
        best = max(best, 0.5 / (1 + far / max(period.end - period.start, _SLACK_MS)))
    return best


_Span = tuple[datetime, datetime]


def _resolve(match: re.Match[str], today: datetime) -> _Span | None:
    said = match.groupdict()
    if said["iso"]:
        parts = [int(p) for p in said["iso"].split("-")]
        return _date(*parts) if len(parts) == 3 else _month(parts[0], parts[1])
    for form in ("dmy", "mdy"):
        if said[f"{form}_month"]:
            month, day = _MONTHS[said[f"{form}_month"].casefold()], int(said[f"{form}_day"])
            if year := said[f"{form}_year"]:
                return _date(int(year), month, day)
            span = _date(today.year, month, day)
            return span if span[0] <= today else _date(today.year - 1, month, day)
    if said["my_month"]:
        return _month(int(said["my_year"]), _MONTHS[said["my_month"].casefold()])
    if name := said["month"] or said["plain"]:
        month = _MONTHS[name.casefold()]
        if said["month_year"]:
            return _month(int(said["month_year"]), month)
        return _month(today.year if month <= today.month else today.year - 1, month)
    if name := said["season"] or said["named_season"]:
        return _season(name.casefold(), said["season_year"] or said["named_year"], today)
    if said["ago"]:
        count = int(said["count"]) if said["count"].isdigit() else _NUMBERS[said["count"].casefold()]
        unit = _UNITS[said["ago"].casefold()]
        middle, half = today - timedelta(days=count * unit), timedelta(days=unit // 2)
        return middle - half, middle + half + timedelta(days=1)
    if said["unit"]:
        return _recent(said["span"].casefold(), int(said["many"] or 1), said["unit"].casefold(), today)
    if said["weekday"]:
        back = (today.weekday() - _DAYS[said["weekday"].casefold()]) % 7 or 7
        return _days(today - timedelta(days=back), 1)
    if said["word"]:
        word = said["word"].casefold()
        return _days(today - timedelta(days=1), 1) if word in ("yesterday", "last night") else _days(today, 1)
    return datetime(int(said["year"]), 1, 1, tzinfo=UTC), datetime(int(said["year"]) + 1, 1, 1, tzinfo=UTC)


def _recent(which: str, many: int, unit: str, today: datetime) -> _Span:
    monday = today - timedelta(days=today.weekday())
    if which != "this" and many > 1:
        return today - timedelta(days=many * _UNITS.get(unit, 7)), today + timedelta(days=1)
    back = 0 if which == "this" else 1
    match unit:
        case "day":
            return _days(today - timedelta(days=back), 1)
        case "week":
            return _days(monday - timedelta(days=7 * back), 7)
        case "weekend":
            return _days(monday - timedelta(days=7 * back - 5 if back else -5), 2)
        case "month":
            last = today.replace(day=1) - timedelta(days=1)
            return _month(today.year, today.month) if not back else _month(last.year, last.month)
        case _:
            year = today.year - back
            return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _season(name: str, year: str | None, today: datetime) -> _Span:
    first = _SEASONS[name]
    start = datetime(int(year) if year else today.year, first, 1, tzinfo=UTC)
    if not year and start > today:
        start = start.replace(year=today.year - 1)
    return start, _month(start.year + (first == 12), (first + 2 - 1) % 12 + 1)[1]


def _date(year: int, month: int, day: int) -> _Span:
    return _days(datetime(year, month, day, tzinfo=UTC), 1)


def _days(start: datetime, count: int) -> _Span:
    return start, start + timedelta(days=count)


def _month(year: int, month: int) -> _Span:
    start = datetime(year, month, 1, tzinfo=UTC)
    return start, start.replace(year=year + month // 12, month=month % 12 + 1)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
