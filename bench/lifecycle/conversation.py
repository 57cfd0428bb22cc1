"""Half a year of two people's conversations with an assistant, made from a seed: facts that change, and chatter.

A fact is noted when it comes up, sometimes again later, and anew when it changes; the last that was said is true. How
sure the assistant was that something matters is its confidence: of facts it is mostly high, of chatter mostly low, and
the two overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

PEOPLE = ("Alice", "Bob")
_CITIES = ("Lisbon", "Porto", "Oslo", "Turin", "Ghent", "Cork", "Graz", "Malmö")
#: What is said, what is asked, and what it may be.
_FACTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("{who} lives in {x}", "Where does {who} live?", _CITIES),
    ("{who} works for {x}", "Who is {who}'s employer?", ("Acme", "Initech", "Globex", "Umbrella", "Hooli")),
    ("{who} is allergic to {x}", "What is {who} allergic to?", ("peanuts", "shellfish", "kiwi", "penicillin")),
    ("{who}'s favourite dish is {x}", "What does {who} like to eat most?", ("ramen", "risotto", "goulash", "dal")),
    ("{who} is learning {x}", "Which language is {who} learning?", ("Italian", "Finnish", "Korean", "Welsh")),
    ("{who}'s dog is called {x}", "What is the name of {who}'s dog?", ("Pixel", "Biscuit", "Moss", "Juno")),
    ("{who} plays the {x}", "Which instrument does {who} play?", ("violin", "oboe", "banjo", "harp")),
    ("{who} drives a {x}", "Which car does {who} have?", ("Volvo", "Fiat", "Skoda", "Tesla")),
    ("{who}'s project is named {x}", "What is {who}'s project called?", ("Atlas", "Borealis", "Cobalt", "Delta")),
    ("{who} deploys with {x}", "How does {who} deploy?", ("Ansible", "Helm", "Nomad", "Capistrano")),
    ("{who}'s database is {x}", "Which database does {who} use?", ("PostgreSQL", "MariaDB", "Cassandra", "DuckDB")),
    ("{who} takes the train at {x}", "When does {who}'s train leave?", ("7:12", "7:42", "8:05", "8:35")),
    ("{who}'s dentist is on {x}", "When does {who} see the dentist?", ("May 3", "June 14", "July 9", "August 21")),
    ("{who}'s budget is {x} euros", "How much may {who} spend?", ("1200", "1500", "2400", "3100")),
    ("{who} wants meetings before {x}", "Until when does {who} take meetings?", ("9 am", "10 am", "11 am", "noon")),
    ("{who}'s sister lives in {x}", "Where is the home of {who}'s sister?", _CITIES),
)  # fmt: skip
_CHATTER = (
    "{who} waited {n} minutes for the {thing}", "{who} says the {thing} was {how} today", "the {thing} is {how} again",
    "{who} saw {n} people near the {thing}", "{who} laughed about the {how} {thing}",
    "talked {n} minutes about a {thing}",
)  # fmt: skip
_THINGS = (
    "bus", "coffee", "printer", "window", "weather", "lift", "soup", "keyboard", "plant", "neighbour", "film", "rain",
    "meeting", "slide", "bread", "battery", "song", "queue", "umbrella", "email", "desk", "shoe", "cup", "train",
)  # fmt: skip
_HOW = ("slow", "loud", "cold", "odd", "late", "fine", "broken", "grey", "funny", "bright")


@dataclass(slots=True)
class Fact:
    who: str
    said: str
    question: str
    values: tuple[str, ...]
    value: str = ""  # none yet
    changed: int = 0  # days

    @property
    def statement(self) -> str:
        return self.said.format(who=self.who, x=self.value)


@dataclass(slots=True, frozen=True)
class Note:
    user_id: str
    text: str
    confidence: float
    keep: bool = False


@dataclass(slots=True, frozen=True)
class Day:
    number: int
    notes: tuple[Note, ...]
    questions: tuple[tuple[str, str], ...]  # (user, question): asked in passing, which counts as recalls
    truth: tuple[Fact, ...]  # what is true in the evening


def days(count: int, seed: int) -> Iterator[Day]:
    random = Random(seed)
    facts = [Fact(who, said, question.format(who=who), values) for who in PEOPLE for said, question, values in _FACTS]
    appears = {id(fact): random.randrange(max(count * 2 // 3, 1)) for fact in facts}
    for number in range(count):
        notes: list[Note] = []
        for fact in facts:
            if number < appears[id(fact)]:
                continue
            fresh = not fact.value or random.random() < 1 / 60
            if fresh:
                fact.value = random.choice([value for value in fact.values if value != fact.value])
                fact.changed = number
            if fresh or random.random() < 1 / 40:
                notes.append(_fact_note(random, fact))
        notes += [_chatter(random, random.choice(PEOPLE)) for _ in range(12)]
        random.shuffle(notes)
        known = [fact for fact in facts if fact.value]
        asked = tuple((fact.who.lower(), fact.question) for fact in random.sample(known, min(3, len(known))))
        yield Day(number, tuple(notes), asked, tuple(known))


def _fact_note(random: Random, fact: Fact) -> Note:
    text = fact.statement if random.random() < 0.7 else f"{fact.statement.lower()}"
    return Note(fact.who.lower(), text, round(random.uniform(0.75, 1.0), 2), random.random() < 0.1)


def _chatter(random: Random, who: str) -> Note:
    words = {"who": who, "n": random.randrange(2, 60), "thing": random.choice(_THINGS), "how": random.choice(_HOW)}
    return Note(who.lower(), random.choice(_CHATTER).format(**words), round(random.betavariate(2, 3) * 0.9, 2))
