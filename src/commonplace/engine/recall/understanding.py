"""What a question is after: analysed once, for searching, ranking and relevance alike. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from commonplace.engine.recall import literals, names, times
from commonplace.engine.recall.languages import language
from commonplace.stores.base import AgentContext
from commonplace.stores.text import STOPWORDS, query_terms


@dataclass(slots=True, frozen=True)
class RecallParts:
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


ALL = RecallParts()
_NOBODY = AgentContext()


@dataclass(slots=True, frozen=True)
class Question:
    text: str
    sought: str  # what is searched for, by meaning and by words
    sought_terms: int = 0  # how many words of it count
    terms: tuple[int, ...] = ()  # of the whole text
    names: tuple[tuple[int, ...], ...] = ()  # the terms of each word that names one thing
    people: tuple[str, ...] = ()
    periods: tuple[times.Period, ...] = ()
    literals: tuple[str, ...] = ()
    past: bool = False
    latest: bool = False
    wants: str | None = None  # the kind of thing asked for, one of KINDS
    words: frozenset[str] = frozenset()
    language: str | None = None
    telling: bool = True  # False when there are only stop-words or signs: then it is looked for as written

    def explain(self) -> dict[str, Any]:
        shown = asdict(self)
        for name in ("text", "words", "sought_terms", "terms", "names", "telling"):
            del shown[name]
        shown["periods"] = [{"said": p.said, "start": p.start, "end": p.end} for p in self.periods]
        # Lists, because this is a document: a tuple is none to JSON, and to a schema that it is checked against.
        return {key: list(value) if isinstance(value, tuple) else value for key, value in shown.items() if value}


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

# What a memory that answers such a question has. Several languages, because an answer may be in another one.
_TIME_WORDS = (
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|august"
    r"|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|spring|summer|autumn|winter"
    r"|today|tonight|tomorrow|yesterday|last|next|ago|since|recently|soon|noon|midnight|mornings?|evenings?|nights?"
    r"|weeks?|weekends?|weekly|months?|monthly|years?|yearly|days?|daily|hours?|hourly|minutes?|seconds?|always|never"
    r"|heute|gestern|morgen|uhr|montags?|dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonntags?|januar"
    r"|februar|märz|mai|juni|juli|oktober|dezember|woche|monat|jahr|hier|demain|lundi|mardi|mercredi|jeudi|vendredi"
    r"|samedi|dimanche|janvier|février|juin|juillet|août|décembre|semaine|mois|ayer|hoy|lunes|martes|miércoles|jueves"
    r"|viernes|sábado|domingo|enero|febrero|marzo|abril|mayo|junio|julio|agosto|diciembre|semana|mes|año)\b|[年月日時点周週]"
)
_NUMBER_WORDS = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|fifty|hundred"
    r"|thousand|million|once|twice|half|double|both|several|couple|every|none|zwei|drei|vier|fünf|sechs|sieben|acht"
    r"|neun|zehn|hundert|deux|trois|quatre|cinq|sept|huit|neuf|dix|cent|dos|tres|cuatro|cinco|seis|siete|ocho|nueve"
    r"|diez|cien)\b|[一二三四五六七八九十百千万]"
)
_SOMEONE = r"\b[A-ZÀ-Þ][a-zß-ÿ]+|\b(?:I|he|she|they|we|my|our|ich|er|sie|wir|je|il|elle|nous|yo|él|ella)\b|[一-龯ァ-ヺ]"
_SOMEWHERE = (
    r"\b(?:[Ii]n|[Aa]t|[Oo]n|[Uu]nder|[Nn]ear|[Bb]ehind|[Bb]y|[Ff]rom|[Tt]o|im|am|bei|à|chez|dans|en)\b"
    r"|[/\\]|[一-龯ァ-ヺ]"
)

#: Kind of thing → how a question asks for it, and what a memory that can answer has. The first that matches counts.
KINDS: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    kind: (re.compile(asks, re.IGNORECASE), re.compile(has, flags))
    for kind, asks, has, flags in (
        (
            "time",
            r"\b(?:when|what time|what date|(?:which|what) (?:day|date|month|year|week)s?|how (?:long|soon)|wann"
            r"|wie lange|um wie ?viel uhr|quand|à quelle heure|cu[aá]ndo|a qu[eé] hora)\b|いつ|什么时候|何时",
            _TIME_WORDS,
            re.IGNORECASE,
        ),
        (
            "number",
            r"\b(?:how (?:many|much|often|big|large|high|old|far|tall|heavy|fast)|(?:what|which) (?:number|port|price"
            r"|percentage|version|temperature|amount|size)|wie ?viele?|wie oft|combien|cu[aá]nt[oa]s?)\b"
            r"|多少|几|いくつ|いくら",
            _NUMBER_WORDS,
            re.IGNORECASE,
        ),
        ("person", r"\b(?:who|whose|whom|wer|wessen|wem|wen|qui|qui[eé]n(?:es)?)\b", _SOMEONE, 0),
        ("place", r"\b(?:where|wo|wohin|o[uù]|d[oó]nde)\b", _SOMEWHERE, 0),
    )
}
_WORD = re.compile(r"[^\W_]+")
_TOKEN = re.compile(r"\w[\w'’.:/-]*\w|\w")
_SENTENCE_STARTS = frozenset(".!?¿¡:\"'“„«(")


def analyse(text: str, known: AgentContext = _NOBODY, now: int = 0, parts: RecallParts = ALL) -> Question:
    folded = text.casefold()
    words = frozenset(_WORD.findall(folded))
    people = names.match_names(text, known.speakers) if parts.names else []
    sought = names.without_names(text, people) if people else text
    wants = next((kind for kind, (asks, _) in KINDS.items() if asks.search(text)), None) if parts.kinds else None
    sought_terms = query_terms(sought)
    return Question(
        text=text,
        sought=sought,
        sought_terms=len(sought_terms),
        terms=tuple(sought_terms if sought == text else query_terms(text)),
        names=tuple(tuple(terms) for word in _naming_words(text) if (terms := query_terms(word))),
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


def is_telling(text: str) -> bool:
    """Whether a question has more than stop-words and signs: only then its meaning is searched for."""
    return not frozenset(_WORD.findall(text.casefold())) <= STOPWORDS


def _naming_words(question: str) -> list[str]:
    """Words that name one thing: capitalised inside a sentence, or with a digit or a joint."""
    names = []
    for match in _TOKEN.finditer(question):
        word = match.group()
        if word[0].isupper() and word != "I":
            before = question[: match.start()].rstrip()
            if before and before[-1] not in _SENTENCE_STARTS:
                names.append(word)
                continue
        if not word.isalpha() and any(c.isdigit() or c in "_/" for c in word):
            names.append(word)
    return names


def has_kind(kind: str, text: str) -> bool:
    """Whether a text has the kind of thing that is asked for."""
    return KINDS[kind][1].search(text) is not None
