"""Time expressions of a question as periods, seen from now."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from commonplace.engine.recall.languages import language
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


def _table(rows: dict[int, str]) -> dict[str, int]:
    return {word.replace("_", " "): value for value, words in rows.items() for word in words.split()}


# English, German, French, Spanish, Italian; words joined by _ are phrases.
_NUMBERS = _table({
    1: "a an one ein eine einem einen einer un une una uno",
    2: "two zwei deux dos due",
    3: "three drei trois tres tre",
    4: "four vier quatre cuatro quattro",
    5: "five fünf cinq cinco cinque",
    6: "six sechs seis sei",
    7: "seven sieben sept siete sette",
    8: "eight acht huit ocho otto",
    9: "nine neun neuf nueve nove",
    10: "ten zehn dix diez dieci",
    11: "eleven elf onze once undici",
    12: "twelve zwölf douze doce dodici",
})  # fmt: skip
#: Numbers that are only about: the period is a whole unit to either side, not half of one.
_ABOUT = _table({
    2: "a_couple_of couple_of a_couple couple un_paio_di un_par_de",
    3: "a_few few ein_paar einigen quelques unos unas algunos algunas pocos pocas alcuni alcune qualche",
    4: "several mehreren plusieurs varios varias diversi diverse",
})  # fmt: skip
_DAY_UNIT, _WEEK, _WEEKEND, _MONTH_UNIT, _YEAR_UNIT = 1, 7, 2, 30, 365
_UNITS = _table({
    _DAY_UNIT: "day days tag tage tagen jour jours día días dia dias giorno giorni",
    _WEEK: "week weeks woche wochen semaine semaines semana semanas settimana settimane",
    _WEEKEND: "weekend weekends wochenende wochenenden week-end",
    _MONTH_UNIT: "month months monat monate monaten mois mes meses mese mesi",
    _YEAR_UNIT: "year years jahr jahre jahren an ans année années año años anno anni",
})  # fmt: skip
#: Which one is meant, counted from the present one.
_WHICH = _table({
    -1: "last past letzte letzten letzter letztes vergangene vergangenen vergangenes vorige voriges vorigen "
        "scorso scorsa pasado pasada",
    0: "this diese dieser diesen dieses diesem cette ce cet esta este questa questo quest'",
    1: "next nächste nächsten nächster nächstes kommende kommenden kommendes prossima prossimo próxima próximo "
       "prochain prochaine",
})  # fmt: skip
_WHICH_AFTER = _table({
    -1: "dernière dernier passée passé pasada pasado scorsa scorso",
    1: "prochaine prochain próxima próximo que_viene prossima prossimo",
})  # fmt: skip
_WORDS = _table({
    -2: "the_day_before_yesterday day_before_yesterday vorgestern avant-hier anteayer l'altro_ieri",
    -1: "yesterday last_night gestern letzte_nacht ayer anoche ieri",
    0: "today tonight this_morning this_evening heute_morgen heute aujourd'hui ce_soir hoy esta_noche oggi stasera",
    1: "tomorrow domani demain morgen",
})  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = "|".join(_DAYS)
_SEASON = "|".join(_SEASONS)
_YEAR = r"(?:19|20)\d\d"
# A month that is also a word counts when something before it says that it is a month.
_CUE = r"in|since|during|of|until|till|by|last|this|next|early|late|mid|im|seit|en|desde"
# "Morgen" is tomorrow, and the morning; "hier" is yesterday in French, and here in German.
_MORNING = r"(?<!am\ )(?<!guten\ )(?<!jeden\ )(?<!der\ )(?<!den\ )(?<!diesem\ )"


def _any(words: Iterable[str]) -> str:
    """The longest first, with either apostrophe and any space."""
    return "|".join(
        re.escape(word).replace("'", "['’]").replace(r"\ ", r"\s+") for word in sorted(words, key=len, reverse=True)
    )


@functools.cache
def _expression() -> re.Pattern[str]:
    """Compiled at the first question that may have a time: it takes some milliseconds."""
    number, unit = rf"\d+|{_any([*_ABOUT, *_NUMBERS])}", _any(_UNITS)
    which = _any(word for word in _WHICH if not word.endswith("'"))
    return re.compile(
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
    | (?:vor|hace|il\s+y\s+a)\s+(?P<number_after>{number})\s+(?P<unit_after>{unit})\b
    | (?P<number_ago>{number})\s+(?P<unit_ago>{unit})\s+(?:ago|fa)\b
    | (?:the\s+)?(?P<which>(?:{which})(?=\s)|quest(?=['’]))['’\s]+(?:(?P<many>{number})\s+)?(?!an\b)(?P<unit>{unit})\b
    | (?P<unit_before>{unit})\s+(?P<which_after>{_any(_WHICH_AFTER)})\b
    | (?:(?:last|this|on|letzten|diesen|am)\s+)(?P<weekday>{_DAY})\b
    | (?P<word>{_any(word for word in _WORDS if word != "morgen")}|{_MORNING}morgen)\b
    | (?P<french>hier)\b
    | (?P<year>{_YEAR})
    )""",
        re.IGNORECASE | re.VERBOSE,
    )


@functools.cache
def _hint() -> re.Pattern[str]:
    """What every expression has a part of: most questions have none, and are done with."""
    words = {*_SEASONS, *_MONTHS, *_DAYS, *_WHICH, *_WHICH_AFTER, *_WORDS, "ago", "fa", "vor", "hace", "il y a", "hier"}
    return re.compile(rf"\d|\b(?:{_any(words)})", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class Period:
    """[start, end) in milliseconds, and the words that said so."""

    start: int
    end: int
    said: str
    over: bool = False  # ended before the day of the question


def periods(question: str, now: int) -> tuple[Period, ...]:
    if not _hint().search(question):
        return ()
    try:
        today = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    except (OverflowError, OSError, ValueError):
        return ()
    found = []
    for match in _expression().finditer(question):
        if match["french"] and language(question) != "fr":
            continue
        try:
            span = _resolve(match, today)
        except (OverflowError, ValueError):  # the 31st of June
            continue
        if span:
            found.append(Period(_ms(span[0]), _ms(span[1]), match.group(), over=span[1] <= today))
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


def written_within(found: tuple[Period, ...], moment: int) -> bool:
    """Whether something without a time of its own was written inside one of the periods, as far as that tells.

    Most is written about now, whenever it happened: nothing follows for a period that is not over, nor from nearness.
    """
    return any(period.over and period.start <= moment < period.end for period in found)


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
    if number := said["number_ago"] or said["number_after"]:
        count, about = _number(number)
        unit = _UNITS[_key(said["unit_ago"] or said["unit_after"])]
        middle, half = today - timedelta(days=count * unit), timedelta(days=unit if about else unit // 2)
        return middle - half, middle + half + timedelta(days=1)
    if said["unit"]:
        many = _number(said["many"])[0] if said["many"] else 1
        return _relative(_WHICH.get(_key(said["which"]), 0), many, _UNITS[_key(said["unit"])], today)
    if said["unit_before"]:
        return _relative(_WHICH_AFTER[_key(said["which_after"])], 1, _UNITS[_key(said["unit_before"])], today)
    if said["weekday"]:
        back = (today.weekday() - _DAYS[said["weekday"].casefold()]) % 7 or 7
        return _days(today - timedelta(days=back), 1)
    if said["word"] or said["french"]:
        return _days(today + timedelta(days=_WORDS[_key(said["word"])] if said["word"] else -1), 1)
    return datetime(int(said["year"]), 1, 1, tzinfo=UTC), datetime(int(said["year"]) + 1, 1, 1, tzinfo=UTC)


def _key(said: str) -> str:
    return " ".join(said.casefold().replace("’", "'").split())


def _number(said: str) -> tuple[int, bool]:
    """How many, and whether that is only about."""
    if said.isdigit():
        return int(said), False
    key = _key(said)
    return (_ABOUT[key], True) if key in _ABOUT else (_NUMBERS[key], False)


def _relative(which: int, many: int, unit: int, today: datetime) -> _Span:
    """The last, this or the next one; of several, those that end or begin today."""
    if which and many > 1:
        days = timedelta(days=many * (_WEEK if unit == _WEEKEND else unit))
        return (today - days if which < 0 else today), (today if which < 0 else today + days) + timedelta(days=1)
    monday = today - timedelta(days=today.weekday()) + timedelta(days=7 * which)
    if unit == _DAY_UNIT:
        return _days(today + timedelta(days=which), 1)
    if unit == _WEEK:
        return _days(monday, 7)
    if unit == _WEEKEND:
        return _days(monday + timedelta(days=5), 2)
    if unit == _MONTH_UNIT:
        months = today.year * 12 + today.month - 1 + which
        return _month(months // 12, months % 12 + 1)
    return datetime(today.year + which, 1, 1, tzinfo=UTC), datetime(today.year + which + 1, 1, 1, tzinfo=UTC)


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
