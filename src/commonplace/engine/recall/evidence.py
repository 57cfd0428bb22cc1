"""What speaks for a memory as an answer before anyone reads it closely: a few cheap numbers. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from commonplace.engine.memory.passages import indexed_text, split
from commonplace.stores import text as analysis
from commonplace.wire.record import Memory

# The cosines of the candidates after the best few: what this agent's memories score on anything at all.
_BEST = 3
_BACKGROUND = 20


class Found(Protocol):
    """A candidate as ranking gives it."""

    @property
    def memory(self) -> Memory: ...
    @property
    def dense(self) -> float | None: ...


@dataclass(slots=True, frozen=True)
class Evidence:
    """Of one candidate; the names are those of the weights fitted for them."""

    cosine: float
    coverage: float  # share of the question's telling words that the memory has
    margin: float  # cosine above the background
    names_missing: float  # share of the names and numbers asked about that the memory lacks
    answer_type: float  # 1 when it has the kind of thing that is asked for, -1 when not, 0 when nothing is
    place: float = 0.0  # logarithm of its place in the ranking, 0 for the best: ranking has seen more than is here


@dataclass(slots=True, frozen=True)
class Asked:
    """A question, analysed once for all its candidates."""

    terms: tuple[int, ...]
    names: tuple[tuple[int, ...], ...]
    wanted: re.Pattern[str] | None


_WORD = re.compile(r"\w[\w'’.:/-]*\w|\w")
_SENTENCE_STARTS = frozenset(".!?¿¡:\"'“„«(")

_PERIOD = (
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|august"
    r"|september|october|november|december|spring|summer|autumn|winter|today|tonight|tomorrow|yesterday|noon"
    r"|midnight|mornings?|evenings?|nights?|weeks?|weekly|months?|monthly|years?|yearly|days?|daily|hours?|hourly"
    r"|minutes?|seconds?|always|never|montags?|dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonntags?"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember|woche|monat|jahr|lundi|mardi|mercredi|jeudi|vendredi"
    r"|samedi|dimanche|janvier|février|juin|juillet|août|décembre|semaine|mois|lunes|martes|miércoles|jueves"
    r"|viernes|sábado|domingo|enero|febrero|marzo|abril|mayo|junio|julio|agosto|diciembre|semana|mes|año)\b|[年月日時点周週]"
)
_NUMBER = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|fifty|hundred"
    r"|thousand|million|once|twice|half|double|every|none|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|hundert"
    r"|deux|trois|quatre|cinq|sept|huit|neuf|dix|cent|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|cien)\b"
    r"|[一二三四五六七八九十百千万]"
)
_SOMEONE = r"\b[A-ZÀ-Þ][a-zß-ÿ]+|\b(?:I|he|she|they|we|my|our|ich|er|sie|wir|je|il|elle|nous|yo|él|ella)\b|[一-龯ァ-ヺ]"
_SOMEWHERE = (
    r"\b(?:[Ii]n|[Aa]t|[Oo]n|[Uu]nder|[Nn]ear|[Bb]ehind|[Bb]y|[Ff]rom|[Tt]o|im|am|bei|à|chez|dans|en)\b"
    r"|[/\\]|[一-龯ァ-ヺ]"
)

# What a question asks for, and what a memory that can answer it has. The first that matches counts.
_KINDS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(asks, re.IGNORECASE), re.compile(has, flags))
    for asks, has, flags in (
        (
            r"\b(?:when|what time|what date|(?:which|what) (?:day|date|month|year|week)s?|how (?:long|soon)|wann"
            r"|wie lange|um wie ?viel uhr|quand|à quelle heure|cu[aá]ndo|a qu[eé] hora)\b",
            _PERIOD,
            re.IGNORECASE,
        ),
        (
            r"\b(?:how (?:many|much|often|big|large|high|old|far|tall|heavy|fast)|(?:what|which) (?:number|port|price"
            r"|percentage|version|temperature|amount|size)|wie ?viele?|wie oft|combien|cu[aá]nt[oa]s?)\b",
            _NUMBER,
            re.IGNORECASE,
        ),
        (r"\b(?:who|whose|whom|wer|wessen|wem|wen|qui|qui[eé]n(?:es)?)\b", _SOMEONE, 0),
        (r"\b(?:where|wo|wohin|o[uù]|d[oó]nde)\b", _SOMEWHERE, 0),
    )
)


def asked(question: str) -> Asked:
    names = tuple(tuple(analysis.query_terms(name)) for name in _names(question))
    wanted = next((has for asks, has in _KINDS if asks.search(question)), None)
    return Asked(tuple(analysis.query_terms(question)), tuple(n for n in names if n), wanted)


def gather(question: Asked, found: Sequence[Found], count: int) -> list[Evidence | None]:
    """For the first `count` of `found`; None for a memory that has no vector."""
    background = _background([f.dense for f in found if f.dense is not None])
    return [
        None if f.dense is None else _evidence(question, f.memory, f.dense, background, place)
        for place, f in enumerate(found[:count])
    ]


def readable(question: Asked, memory: Memory) -> str:
    """What a judge reads of it: the best passage of a long one, with who said it and when, or its title."""
    passages = split(memory.content)
    passage = max(passages, key=lambda p: _share(question.terms, _terms(p))) if len(passages) > 1 else passages[0]
    if memory.speaker:
        day = "" if memory.event_time is None else f" ({_day(memory.event_time)})"
        return f"{memory.speaker}{day}: {passage}"
    return f"{memory.title}\n{passage}" if memory.title else passage


def _evidence(question: Asked, memory: Memory, cosine: float, background: float, place: int) -> Evidence:
    terms = _terms(f"{indexed_text(memory)}\n{memory.speaker or ''}")
    missing = [name for name in question.names if not terms.issuperset(name)]
    fits = 0.0
    if question.wanted is not None:
        fits = 1.0 if question.wanted.search(memory.content) else -1.0
    return Evidence(
        cosine=cosine,
        coverage=_share(question.terms, terms),
        margin=cosine - background,
        names_missing=len(missing) / len(question.names) if question.names else 0.0,
        answer_type=fits,
        place=math.log1p(place),
    )


def _background(cosines: list[float]) -> float:
    """The mean of those after the best few; of all of them where there are hardly more."""
    ordered = sorted(cosines, reverse=True)
    rest = ordered[_BEST:_BACKGROUND] if len(ordered) > 2 * _BEST else ordered
    return sum(rest) / len(rest) if rest else 0.0


def _names(question: str) -> list[str]:
    """Words that name one thing: capitalised inside a sentence, or with a digit or a joint."""
    names = []
    for match in _WORD.finditer(question):
        word = match.group()
        before = question[: match.start()].rstrip()
        starts = not before or before[-1] in _SENTENCE_STARTS
        if any(c.isdigit() or c in "_/" for c in word) or (word[0].isupper() and not starts and word != "I"):
            names.append(word)
    return names


def _terms(text: str) -> frozenset[int]:
    return frozenset(analysis.decode(analysis.terms(text))[0].tolist())


def _share(wanted: Sequence[int], present: frozenset[int]) -> float:
    return sum(term in present for term in wanted) / len(wanted) if wanted else 0.0


def _day(instant: int) -> str:
    try:
        return datetime.fromtimestamp(instant / 1000, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return str(instant)
