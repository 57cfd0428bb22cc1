"""What of a window of short-term memory is worth keeping, by which score, and what has gone cold. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Protocol

from commonplace.engine.lifecycle.statements import GRAMMAR, statement
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS

KEEP = "keep"  # in the metadata of what its author wants kept
SETTLED_MS = 600_000  # younger than this a memory belongs to a conversation that may still go on
COLD_MS = 7 * DAY_MS
PROMOTED_FROM = 0.6  # at once
#: When it has gone cold it is decided: from here on it is long-term memory all the same, below it is archived. A sure
#: statement that nobody has asked for yet is above it: what is true must not be lost because nobody asked.
KEPT_FROM = 0.22
#: What must agree between notes that say the same, for one long-term memory to be made of them.
ALIKE = ("project", "privacy", "expires_at", "speaker", "title", "tags", "confidence", "event_time", "source")
_HALF_LIFE = DAY_MS
_ENOUGH = 3  # mentions and recalls that count in full
_SHARED = 0.75  # of its words, from which on another item mentions it


@dataclass(slots=True, frozen=True)
class Score:
    """Each from 0 to 1; `flag` is 1 where the author asked for it to be kept."""

    recency: float
    salience: float
    confidence: float
    flag: float

    @property
    def total(self) -> float:
        return 0.3 * self.recency + 0.25 * self.salience + 0.3 * self.confidence + 0.15 * self.flag

    def parts(self) -> dict[str, float]:
        """As people are shown it."""
        parts = {name: round(value, 4) for name, value in asdict(self).items()}
        return {**parts, "total": round(self.total, 4)}


@dataclass(slots=True)
class Plan:
    promoted: list[tuple[list[Memory], Score]] = field(default_factory=list)  # sources that say the same
    cold: list[tuple[Memory, Score]] = field(default_factory=list)


class Consolidator(Protocol):
    def plan(self, window: Sequence[Memory], now: int) -> Plan:
        """What of a window, oldest first, becomes long-term memory and what is archived; the rest stays. Pure."""


class ScoreConsolidator:
    """By recency, salience, confidence and the author's own word."""

    def plan(self, window: Sequence[Memory], now: int) -> Plan:
        statements = {memory.id: statement(memory.content) for memory in window}
        mentions = count_mentions(statements)
        plan, groups = Plan(), dict[str, tuple[list[Memory], Score]]()
        for memory in window:
            if now - memory.created_at < SETTLED_MS:
                continue
            scored = score(memory, mentions[memory.id], now - memory.created_at)
            cold = now - memory.created_at >= COLD_MS
            if scored.flag or scored.total >= (KEPT_FROM if cold else PROMOTED_FROM):
                key = repr([statements[memory.id], *(getattr(memory, name) for name in ALIKE)])
                groups.setdefault(key, ([], scored))[0].append(memory)
            elif cold:
                plan.cold.append((memory, scored))
        plan.promoted = list(groups.values())
        return plan


def score(memory: Memory, mentions: int, age: int, half_life: int = _HALF_LIFE) -> Score:
    """`age` is for how long nobody has needed it, in milliseconds."""
    return Score(
        recency=2 ** (-max(age, 0) / half_life),
        salience=min((mentions + memory.recalls) / _ENOUGH, 1.0),
        confidence=memory.confidence,
        flag=1.0 if memory.metadata.get(KEEP) is True else 0.0,
    )


def count_mentions(statements: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many others of the window have most of the words of each, but those of grammar; by id. Whoever shares three
    quarters of its words shares one of its rarest quarter, so only those that do are compared: comparing each with each
    takes seconds where there are thousands."""
    words = {id: frozenset(said) - GRAMMAR for id, said in statements.items()}
    having: dict[str, list[str]] = {}
    for id, own in words.items():
        for word in own:
            having.setdefault(word, []).append(id)
    numbers = {id: frozenset(word for word in own if word[0].isdecimal()) for id, own in words.items()}
    found: dict[str, int] = {}
    for id, own in words.items():
        enough = ceil(_SHARED * len(own))
        rarest = sorted(own, key=lambda word: len(having[word]))[: len(own) - enough + 1]
        others = {other for word in rarest for other in having[word]} - {id}
        # Another number is another event.
        found[id] = sum(numbers[other] == numbers[id] and len(own & words[other]) >= enough for other in others)
    return found
