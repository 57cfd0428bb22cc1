"""Facts invented by the thousand from `relations`, for a first round of training before the hand-written spaces.

Each item is a question with memories to choose from: one that answers it (or none), and such as are easily taken for
one: another fact about the same thing, the same fact about a thing of a similar name, the same at another time, and
notes that repeat the question without answering it.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.judge.relations import INVENTED, Relation, relations

_WORDS: dict[str, Any] = tomllib.loads((INVENTED / "words.toml").read_text("utf-8"))
_VALUES: dict[str, dict[str, list[str]]] = _WORDS["values"]


def _word(chance: random.Random, kind: str) -> str:
    word: str = chance.choice(_WORDS[kind])
    return word


def _name(chance: random.Random) -> str:
    return _word(chance, "starts") + _word(chance, "middles") + _word(chance, "ends")


def _person(chance: random.Random) -> str:
    return _name(chance) if chance.random() < 0.6 else f"{_name(chance)} {_name(chance)}"


def _service(chance: random.Random) -> str:
    part, kind = _word(chance, "parts"), _word(chance, "kinds_of_service")
    return f"{part}-{kind}" if chance.random() < 0.6 else f"the {part} {kind}"


_SUBJECTS: dict[str, Callable[[random.Random], str]] = {
    "person": _person,
    "service": _service,
    "project": lambda c: f"the {_name(c)} {_word(c, 'projects')}",
    "thing": lambda c: _word(c, "things"),
    "event": lambda c: _word(c, "events"),
    "firm": lambda c: f"{_name(c)} {_word(c, 'trades')}",
    "sample": lambda c: f"{_word(c, 'samples')} {c.choice('ABCDEFGHKM')}{c.randint(1, 60)}",
}

_FILES = ("app.log", "settings.toml", "main.yaml", "out.txt")
_COMMANDS = ("systemctl restart", "make", "kubectl rollout restart", "./run")
_MADE: dict[str, Callable[[random.Random, str], str]] = {
    "port": lambda c, _: str(c.choice([8080, 5432, 9200]) + c.randint(0, 400)),
    "person": lambda c, _: _person(c),
    "number": lambda c, _: str(c.randint(2, 240)),
    "percent": lambda c, _: f"{c.randint(3, 97)} %",
    "version": lambda c, _: f"{c.randint(0, 9)}.{c.randint(0, 30)}.{c.randint(0, 12)}",
    "money": lambda c, _: f"{c.choice('€$£')}{c.randint(12, 9800):,}",
    "size": lambda c, _: str(c.randint(35, 47)),
    "weight": lambda c, _: f"{c.randint(1, 90)}.{c.randint(0, 9)} kg",
    "temperature": lambda c, _: f"{c.choice([-80, -20, 4, 8, 22, 37])} °C",
    "code": lambda c, _: f"{c.choice('ABCXYZ')}{c.randint(10, 99)}-{c.randint(1000, 9999)}",
    "path": lambda c, _: f"/{c.choice(['var', 'etc', 'srv', 'opt'])}/{_name(c).lower()}/{c.choice(_FILES)}",
    "command": lambda c, _: f"{c.choice(_COMMANDS)} {_name(c).lower()}",
    "time": lambda c, _: f"{c.randint(6, 21)}:{c.choice(['00', '15', '30', '45'])}",
    "duration": lambda c, language: f"{c.randint(2, 60)} {c.choice(_WORDS['units'][language])}",
    "date": lambda c, language: f"{c.randint(1, 28)} {c.choice(_WORDS['months'][language])}",
}


def _value(kind: str, language: str, chance: random.Random) -> str:
    if kind in _MADE:
        return _MADE[kind](chance, language)
    lists = _VALUES[kind]
    return chance.choice(lists.get(language, lists["en"]))


@dataclass(slots=True)
class Item:
    question: str
    texts: list[str]
    gold: int  # so many of the first texts answer it


class Inventor:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.of: dict[str, list[Relation]] = {}
        for relation in relations():
            self.of.setdefault(relation.of, []).append(relation)

    def items(self, count: int) -> Iterator[Item]:
        return (self.item() for _ in range(count))

    def item(self) -> Item:
        chance = self.chance
        kind = chance.choice(list(self.of))
        relation = chance.choice(self.of[kind])
        subject = _SUBJECTS[kind](chance)
        language = self._language(relation)
        question = chance.choice(relation.asks[language]).format(s=subject)
        when = self._qualifier(kind, language)
        asked = self._qualified(question, when[0]) if when else question
        gold = self._memory(relation, subject, None if when is None else when[0], exclude=None)
        wrong = [self._memory(other, subject, None, exclude=relation) for other in self._others(relation, 3)]
        wrong += [self._memory(relation, self._similar(kind, subject), None, exclude=None) for _ in range(3)]
        if when:
            wrong.append(self._memory(relation, subject, when[1], exclude=relation))
        if chance.random() < 0.5:
            wrong.append(self._dressed(_word(chance, "unanswered").format(q=question, s=_capital(subject))))
        stranger = chance.choice(list(self.of))
        other = chance.choice(self.of[stranger])
        wrong.append(self._memory(other, _SUBJECTS[stranger](chance), None, exclude=None))
        if chance.random() < 0.3:
            asked = asked.lower().rstrip("? ")
        return Item(asked, [gold, *wrong], 1) if chance.random() < 0.6 else Item(asked, wrong, 0)

    def _language(self, relation: Relation) -> str:
        return "en" if self.chance.random() < 0.6 else self.chance.choice(list(relation.asks))

    def _qualifier(self, kind: str, language: str) -> list[str] | None:
        if language != "en" or self.chance.random() > 0.15:
            return None
        return self.chance.sample(_WORDS["environments" if kind == "service" else "times"], 2)

    def _qualified(self, question: str, when: str) -> str:
        when = when[0].lower() + when[1:]
        return f"{question[:-1]} {when}?" if question.endswith("?") else f"{question} {when}"

    def _others(self, relation: Relation, count: int) -> list[Relation]:
        # Two relations may have the same kind of value, and then say nearly the same: those are hardest.
        others = [r for r in self.of[relation.of] if r is not relation]
        return self.chance.sample(others, min(count, len(others)))

    def _similar(self, kind: str, subject: str) -> str:
        chance = self.chance
        fresh = _SUBJECTS[kind](chance)
        if kind == "person" and " " in subject and chance.random() < 0.6:
            first, last = subject.split(" ")
            fresh = f"{first} {_name(chance)}" if chance.random() < 0.5 else f"{_name(chance)} {last}"
        while fresh == subject:
            fresh = _SUBJECTS[kind](chance)
        return fresh

    def _memory(self, relation: Relation, subject: str, when: str | None, exclude: Relation | None) -> str:
        chance = self.chance
        language = self._language(relation) if when is None else "en"
        language = language if language in relation.says else "en"
        text = self._fact(relation, subject, language)
        if when:
            text = f"{when}: {text}" if chance.random() < 0.3 else f"{when}, {text[0].lower() + text[1:]}"
        if chance.random() < 0.3:
            # A second fact about it in the same memory, unless that would answer what this one must not.
            second = [r for r in self._others(relation, 2) if r is not exclude]
            if second:
                more = self._fact(second[0], subject, language if language in second[0].says else "en")
                text = f"{text} {more}" if chance.random() < 0.5 else f"{more} {text}"
        return self._dressed(text)

    def _fact(self, relation: Relation, subject: str, language: str) -> str:
        pattern = self.chance.choice(relation.says[language])
        text = pattern.format(s=subject, v=_value(relation.value, language, self.chance))
        return _capital(text)

    def _dressed(self, text: str) -> str:
        chance = self.chance
        if chance.random() < 0.3:
            filler = _word(chance, "fillers")
            text = f"{text} {filler}" if chance.random() < 0.5 else f"{filler} {text}"
        if chance.random() < 0.25:
            day = f" (2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02})" if chance.random() < 0.7 else ""
            text = f"{_name(chance)}{day}: {text}"
        return text


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
