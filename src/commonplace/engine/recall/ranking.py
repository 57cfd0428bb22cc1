"""One store's candidates made one list: a weighted sum of readable features. Pure.

weights.json says what each feature is worth, for each embedder, whose cosines mean something else than another's;
`python -m bench.quality tune --write` writes it and docs/recall.md says what every feature means.
1 / (1 + exp(-(scale * sum + bias))) makes the sum a probability, which is the score.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from commonplace.engine.recall.features import FeatureExtractor, Features
from commonplace.engine.recall.understanding import ALL, Question, RecallParts
from commonplace.stores.base import Candidate
from commonplace.wire.record import Memory

WEIGHTS_FILE = Path(__file__).with_name("weights.json")

#: How far around a memory its session is read.
REACH = 2
#: How many of the best have their words looked at.
CLOSELY = 16
_NOTHING_ASKED = Question("", "")


class Blend(NamedTuple):
    """What each feature is worth, and what makes their sum a probability."""

    weights: Mapping[str, float]
    scale: float
    bias: float

    def probability(self, z: float) -> float:
        return logistic(self.scale * z + self.bias)


def logistic(z: float) -> float:
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, z))))


#: Whose weights are used where an embedder has none of its own, or there is none.
FOR_OTHERS = "all-MiniLM-L6-v2/int8w"
#: After the name of an embedder, what was fitted without its token vectors, for stores that keep none.
WITHOUT_TOKENS = ", without tokens"


@functools.cache
def blends() -> dict[str, Blend]:
    """Read at the first question: most commands start, and end, without one."""
    return {name: Blend(**entry) for name, entry in json.loads(WEIGHTS_FILE.read_text("utf-8")).items()}


def fitted_blend(fit_name: str | None = None) -> Blend:
    return blends().get(fit_name or FOR_OTHERS) or blends()[FOR_OTHERS]


def fit_name(embedder_name: str, candidates: Sequence[Candidate]) -> str:
    """Under which name the fits for these candidates are: late interaction counts where any of them has it."""
    without = embedder_name + WITHOUT_TOKENS
    return without if without in blends() and all(c.late is None for c in candidates) else embedder_name


@dataclass(slots=True)
class RankedCandidate:
    """A candidate at its place, with what put it there."""

    memory: Memory
    score: float  # 0 to 1
    dense: float | None
    keyword: float | None
    features: Features = field(default_factory=dict)
    same_as: str | None = None  # an earlier one that says the same
    late: float | None = None
    replaced_by: str | None = None  # the id of what took its place, where that counts


class Shortlist:
    """What a store found, read for one question. First its own words, then what was said around the best of it."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        asked: Question = _NOTHING_ASKED,
        replaced: Mapping[str, str] | None = None,
        *,
        parts: RecallParts = ALL,
        blend: Blend | None = None,
    ) -> None:
        self._asked = asked
        self._parts = parts
        self._blend = blend or fitted_blend()
        self._weights = self._blend.weights
        self._reader = FeatureExtractor(asked, candidates, replaced or {}, parts)
        self._candidates = {c.memory.id: c for c in candidates}
        self._features = {c.memory.id: self._reader.own_features(c) for c in candidates}
        self._sums = {id: total(features, self._weights) for id, features in self._features.items()}

    def promising(self, count: int) -> list[str]:
        """Those whose surroundings are worth reading."""
        if not self._parts.context:
            return []
        return [id for id in self._best_first() if self._candidates[id].memory.session_id is not None][:count]

    def add(self, runs: Sequence[Sequence[Candidate]]) -> None:
        """Stretches of sessions around the promising ones; all of their memories become candidates."""
        for run in runs:
            for i, c in enumerate(run):
                id = c.memory.id
                if id not in self._candidates:
                    self._candidates[id] = c
                    self._features[id] = self._reader.own_features(c)
                before, after = run[max(i - REACH, 0) : i][::-1], run[i + 1 : i + 1 + REACH]
                self._reader.add_context(self._features[id], c, before, after)
                self._sums[id] = total(self._features[id], self._weights)

    def ranked(self, closely: int = CLOSELY) -> list[RankedCandidate]:
        """Best first. Only the words of the best `closely` are looked at: no others have a chance."""
        for id in self._best_first()[:closely]:
            self._reader.add_word_features(self._features[id], self._candidates[id].memory)
            self._sums[id] = total(self._features[id], self._weights)
        lifts = self._parts.validity and not self._asked.past and self._reader.any_replaced
        ranked = [
            RankedCandidate(
                c.memory,
                self._blend.probability(self._sums[id]),
                c.dense,
                c.keyword,
                self._features[id],
                late=c.late,
                replaced_by=self._reader.replacement(c.memory) if lifts else None,
            )
            for id, c in self._candidates.items()
        ]
        ordered = _in_order(ranked)
        return _move_duplicates_back(ordered, closely // 2) if self._parts.duplicates else ordered

    def _best_first(self) -> list[str]:
        return sorted(self._sums, key=lambda id: (-self._sums[id], id))


def with_verdicts(
    ranked: Sequence[RankedCandidate], logits: Mapping[str, float], blend: Blend
) -> list[RankedCandidate]:
    """The same in the order they have once a judge has read some of them: what it says is one more feature."""
    worth, read = blend.weights.get("judge", 0.0), blend.weights.get("judged", 0.0)
    if not worth or not logits:
        return list(ranked)
    moved = []
    for r in ranked:
        logit = logits.get(r.memory.id)
        if logit is not None:
            # From the score, not the sum: replacements have been moved by it.
            z = math.log(r.score / (1 - r.score)) if 0.0 < r.score < 1.0 else math.copysign(40.0, r.score - 0.5)
            score = logistic(z + blend.scale * (worth * logit + read))
            r = replace(r, score=score, features={**r.features, "judge": logit, "judged": 1.0})
        moved.append(r)
    # What says the same again stays behind everything else.
    return _in_order([r for r in moved if r.same_as is None]) + [r for r in moved if r.same_as is not None]


def _in_order(ranked: list[RankedCandidate]) -> list[RankedCandidate]:
    """Best first. What replaced a memory stands before it, as high as the other would have: it is about the same."""
    if any(r.replaced_by is not None for r in ranked):
        by_id = {r.memory.id: r for r in ranked}
        for r in ranked:
            newer, chain = r.replaced_by, {r.memory.id}
            while newer is not None and newer in by_id and newer not in chain:
                chain.add(newer)
                found = by_id[newer]
                found.score = max(found.score, math.nextafter(r.score, 1.0))
                r, newer = found, found.replaced_by
    # Newer first among equals, then by id, so that the order never depends on how they were found.
    return sorted(ranked, key=lambda r: (-r.score, -r.memory.created_at, r.memory.id))


def total(features: Features, weights: Mapping[str, float]) -> float:
    z = 0.0
    for name, value in features.items():
        z += weights.get(name, 0.0) * value
    return z


def _move_duplicates_back(ranked: list[RankedCandidate], closely: int) -> list[RankedCandidate]:
    """What says the same as one before it goes behind everything else, so that k places hold k sayings."""
    first: dict[Key, str] = {}
    for r in _maybe_alike(ranked[:closely]):
        key = text_key(r.memory)
        if key in first:
            r.same_as = first[key]
        else:
            first[key] = r.memory.id
    if len(first) == 0:  # none has another like it
        return ranked
    told = [r for r in ranked if r.same_as is None]
    again = [r for r in ranked if r.same_as is not None]
    for r in again:
        r.score = min(r.score, told[-1].score)
    return told + again


def _maybe_alike(ranked: Sequence[RankedCandidate]) -> list[RankedCandidate]:
    """Those whose key another may have: seeing that takes a tenth of the time that a key does."""
    rests = [_rest(r.memory.content) for r in ranked]
    return [r for r, rest in zip(ranked, rests, strict=True) if rests.count(rest) > 1]


# what says the same

_WORD = re.compile(r"\w+")
_ARTICLES = frozenset(("a", "an", "the"))
#: What `text_key` leaves out, or may: blanks, plain punctuation, and the letters of the articles.
_INDIFFERENT = dict.fromkeys(
    map(
        ord,
        "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
        "\u2028\u2029\u202f\u205f\u3000.,;:!?'\"’“”„()-–—…athen",
    )
)
_MAX_NORMALISED_CHARS = 4_000  # longer texts are compared whole

Key = tuple[object, ...]


def text_key(memory: Memory) -> Key:
    """Equal keys, equal sayings. A number, a date, a name, a negation or another speaker makes them differ."""
    text = memory.content
    asks = text.rstrip().endswith(("?", "？"))
    if len(text) <= _MAX_NORMALISED_CHARS:
        words = [w for w in _WORD.findall(text.casefold()) if w not in _ARTICLES]
        # Without words (an emoji, a sum) the text itself is what it says.
        text = " ".join(words) if words and _signs(text) == "" else text
    return (text, asks, memory.agent_id, memory.user_id, memory.speaker, memory.title, memory.event_time, memory.type)


def _rest(text: str) -> str:
    """The same for all texts whose keys are equal."""
    return text.casefold().translate(_INDIFFERENT) if len(text) <= _MAX_NORMALISED_CHARS else text


_PLAIN = re.compile(r"[\w\s.,;:!?'\"’“”„()\-–—…]*")


def _signs(text: str) -> str:
    """What is neither a word nor plain punctuation; -5 and 5, or 1.5 and 15, are told apart as well."""
    if not _PLAIN.fullmatch(text):
        return text
    return text if re.search(r"\d[.,:\-–]\d|[-–]\d", text) else ""
