"""What is known of a candidate, as numbers that mean the same for every question."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from commonplace.engine.recall import literals, times
from commonplace.engine.recall.languages import language, likely_language, says_english
from commonplace.engine.recall.understanding import Question, RecallParts, has_kind
from commonplace.stores.base import Candidate
from commonplace.wire.record import Memory

Features = dict[str, float]

_LOOKED_AT = 1_000  # characters of a memory whose words are looked at
_WORD = re.compile(r"[^\W_]+")
_QUESTIONS = ("?", "？")
_LONG = 400  # characters; beyond it words are met by chance


class FeatureExtractor:
    """Turns candidates into features for one question."""

    def __init__(
        self, asked: Question, candidates: Sequence[Candidate], replaced: Mapping[str, str], parts: RecallParts
    ):
        self._asked = asked
        self._parts = parts
        self._replaced = replaced
        self._best = max((c.keyword or 0.0 for c in candidates), default=0.0) or 1.0
        self._people = frozenset(asked.people)
        self._first_names = frozenset(_WORD.findall(person.casefold())[0] for person in asked.people)
        # One whose vector is not made yet is taken to be as near as the others: its words can still bring it up.
        known = [c.dense for c in candidates if c.dense is not None]
        self._mean_dense = sum(known) / len(known) if known else 0.0
        # One that was given its vector has no tokens: it is taken to be as much above its cosine as the others are.
        above = [c.late - c.dense for c in candidates if c.late is not None and c.dense is not None]
        self._late_above = sum(above) / len(above) if above else None
        self._asked_in = asked.language  # of which a second embedder needs the best guess there is
        if parts.languages and asked.language is None and any(c.second is not None for c in candidates):
            self._asked_in = likely_language(asked.text)
        moments = [event_moment(c.memory) for c in candidates] if parts.recency else []
        self._oldest = min(moments, default=0)
        self._age = max(moments, default=0) - self._oldest

    @property
    def any_replaced(self) -> bool:
        return bool(self._replaced)

    def own_features(self, c: Candidate) -> Features:
        """What the candidate says for itself, as far as that costs nothing."""
        memory, asked, parts = c.memory, self._asked, self._parts
        size = len(memory.content)
        covered = (c.matched or 0).bit_count() / asked.sought_terms if asked.sought_terms else 0.0
        dense = self._mean_dense if c.dense is None else c.dense
        features = {"dense": dense, "keyword": min((c.keyword or 0.0) / self._best, 1.0), "coverage": covered}
        if (late := self._late(c)) is not None:
            features["late"] = late
        if c.second is not None:
            self._add_multilingual(features, c.second, memory)
        if size > _LONG:
            features["long"] = math.log(size / _LONG)
            features["long_coverage"] = covered * features["long"]
        if parts.kinds and memory.content.endswith(_QUESTIONS):
            features["asks"] = 1.0
        if self._people and memory.speaker:
            features["speaker" if memory.speaker in self._people else "other_speaker"] = 1.0
        if parts.names and (memory.user_id or memory.entity_name) and _is_named(memory, asked.words):
            features["subject"] = 1.0
        if asked.periods:
            if memory.event_time is not None:
                features["time"] = times.agreement(asked.periods, memory.event_time)
            elif times.written_within(asked.periods, memory.created_at):
                features["time"] = 1.0
        if parts.validity and self.replacement(memory) is not None:
            features["replaced_asked" if asked.past else "replaced"] = 1.0
        if self._age:
            recent = min(max((event_moment(memory) - self._oldest) / self._age, 0.0), 1.0)
            if not asked.past:
                features["recent"] = recent
            if asked.latest:
                features["latest"] = recent
        if memory.importance is not None:
            features["importance"] = memory.importance - 0.5
        return features

    def _add_multilingual(self, own: Features, cosine: float, memory: Memory) -> None:
        """Read for every candidate, not only for the best: what is in another language has no chance otherwise."""
        own["multilingual"] = cosine
        if self._asked_in and likely_language(memory.content) not in (self._asked_in, None):
            own["foreign"] = 1.0
            own["multilingual_foreign"] = cosine
            own["dense_foreign"] = own["dense"]
            if "late" in own:
                own["late_foreign"] = own["late"]

    def add_word_features(self, own: Features, memory: Memory) -> None:
        """Adds what only its words tell."""
        asked = self._asked
        content = memory.content
        folded = content[:_LOOKED_AT].casefold()
        if asked.wants in ("time", "number") and has_kind(asked.wants, content[:_LOOKED_AT]):
            own[f"has_{asked.wants}"] = 1.0
        if self._first_names and not self._first_names.isdisjoint(_WORD.findall(folded)):
            own["mentions"] = 1.0
        if asked.language:
            # Nearly every text is plain English, and says so in its first words: only of others all words are read.
            plain = content.isascii() and says_english(folded)
            found = "en" if plain else language(content, frozenset(_WORD.findall(folded)))
            if found not in (asked.language, None):
                own["foreign"] = 1.0
        if asked.literals:
            own["literal"] = literals.share(asked.literals, searchable_text(memory))

    def replacement(self, memory: Memory) -> str | None:
        """The id of what took its place."""
        replaced = self._replaced
        if not replaced:
            return None
        return replaced.get(memory.id) or next((replaced[a] for a in memory.aliases if a in replaced), None)

    def add_context(self, own: Features, c: Candidate, before: Sequence[Candidate], after: Sequence[Candidate]) -> None:
        """Adds what those said just before and after, nearest first, have beyond what it has itself."""
        matched, terms = c.matched or 0, self._asked.sought_terms
        near = self._near(c)
        if before:
            own["before_gain"] = max(self._near(before[0]) - near, 0.0)
            own["answers"] = float(before[0].memory.content.endswith(_QUESTIONS))
            matched |= before[0].matched or 0
            own["pair_gain"] = matched.bit_count() / terms - own["coverage"] if terms else 0.0
        if after:
            own["after_gain"] = max(self._near(after[0]) - near, 0.0)
        farther = (*before[1:], *after[1:])
        if farther:
            own["farther_gain"] = max(max(map(self._near, farther)) - near, 0.0)
        for other in (*before[1:], *after):
            matched |= other.matched or 0
        own["window_gain"] = matched.bit_count() / terms - own["coverage"] if terms else 0.0

    def _near(self, c: Candidate) -> float:
        """By late interaction where the store knows it, else by the cosine."""
        late = self._late(c)
        return (c.dense or 0.0) if late is None else late

    def _late(self, c: Candidate) -> float | None:
        if c.late is None and self._late_above is not None:
            return (self._mean_dense if c.dense is None else c.dense) + self._late_above
        return c.late


def event_moment(memory: Memory) -> int:
    return memory.event_time if memory.event_time is not None else memory.created_at


def _is_named(memory: Memory, words: frozenset[str]) -> bool:
    for name in (memory.user_id, memory.entity_name):
        if name and all(part in words for part in name.casefold().replace("_", " ").replace("-", " ").split()):
            return True
    return False


def searchable_text(memory: Memory) -> str:
    return "\n".join((memory.title or "", memory.content, *memory.tags)).casefold()
