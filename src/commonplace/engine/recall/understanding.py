"""What a question is after, before anything is searched. Pure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from commonplace.engine.recall import literals, names, times
from commonplace.engine.recall.languages import language
from commonplace.stores.base import Known
from commonplace.stores.stopwords import STOPWORDS
from commonplace.stores.text import query_terms


@dataclass(slots=True, frozen=True)
class Parts:
    """The parts of a recall that can be left out, to see what each is worth."""

    names: bool = True  # speakers are taken out of what is searched for, and must agree instead
    times: bool = True  # a period in the question must agree with when it happened
    literals: bool = True  # what is quoted, and identifiers, must be there as written
    kinds: bool = True  # a question for a time or a number wants one; a memory that only asks is no answer
    context: bool = True  # what was said just before and after counts, and is brought in
    validity: bool = True  # what was replaced stands behind what replaced it
    languages: bool = True  # a memory in another language cannot share the question's words
    recency: bool = True  # newer before older, more so when the latest is asked for
    duplicates: bool = True  # what says the same again stands behind everything else

    def left_out(self) -> list[str]:
        return [name for name, on in asdict(self).items() if not on]


ALL = Parts()


@dataclass(slots=True, frozen=True)
class Question:
    text: str
    sought: str  # what is searched for, by meaning and by words
    terms: int  # how many words of it count
    people: tuple[str, ...] = ()
    periods: tuple[times.Period, ...] = ()
    literals: tuple[str, ...] = ()
    past: bool = False
    latest: bool = False
    wants: str | None = None  # "time", "number"
    words: frozenset[str] = frozenset()
    language: str | None = None
    telling: bool = True  # False when there are only stop-words or signs: then it is looked for as written

    def explain(self) -> dict[str, Any]:
        shown = asdict(self)
        del shown["text"], shown["words"], shown["terms"], shown["telling"]
        shown["periods"] = [{"said": p.said, "start": p.start, "end": p.end} for p in self.periods]
        return {key: value for key, value in shown.items() if value}


_PAST = frozenset(
    """
    previous previously originally former formerly earlier before initially until old ehemalige ehemaligen früher vorher
    damals zuvor avant autrefois ancien ancienne antes anterior
    """.split()  # noqa: SIM905
)
_PAST_PHRASES = ("used to", "back then", "at first", "at the time", "in the past", "以前", "之前", "前は")
_LATEST = frozenset(
    """
    now nowadays current currently latest newest recent recently lately today still anymore last jetzt aktuell aktuelle
    derzeit neueste actuel actuellement maintenant actual actualmente ahora
    """.split()  # noqa: SIM905
)
_LATEST_PHRASES = ("these days", "at the moment", "any more", "現在", "今", "现在", "最新")
_TIME = re.compile(
    r"\b(?:when|what time|what date|(?:which|what) (?:day|date|month|year|week)s?|how (?:long|soon)|wann|wie lange"
    r"|quand|cu[aá]ndo)\b|いつ|什么时候|何时",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(?:how (?:many|much|often|big|large|high|old|far|tall|heavy|fast)|wie ?viele?|wie oft|combien|cu[aá]nt[oa]s?)\b"
    r"|多少|几|いくつ|いくら",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")


def analyse(text: str, known: Known, now: int, parts: Parts = ALL) -> Question:
    folded = text.casefold()
    words = frozenset(_WORD.findall(folded))
    people = names.match_names(text, known.speakers) if parts.names else []
    sought = names.without(text, people) if people else text
    wants = None
    if parts.kinds:
        wants = "time" if _TIME.search(text) else "number" if _NUMBER.search(text) else None
    return Question(
        text=text,
        sought=sought,
        terms=len(query_terms(sought)),
        people=tuple(dict.fromkeys(person.name for person in people)),
        periods=times.periods(text, now) if parts.times else (),
        literals=literals.literals(text) if parts.literals else (),
        past=not _PAST.isdisjoint(words) or any(phrase in folded for phrase in _PAST_PHRASES),
        latest=not _LATEST.isdisjoint(words) or any(phrase in folded for phrase in _LATEST_PHRASES),
        wants=wants,
        words=words,
        language=language(text) if parts.languages else None,
        telling=not words <= STOPWORDS,
    )
