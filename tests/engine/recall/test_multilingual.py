"""What the second embedder adds to ranking and relevance, and that it changes nothing where it is absent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from commonplace.embedders.minilm import NAME
from commonplace.engine.recall import multilingual
from commonplace.engine.recall.features import FeatureExtractor
from commonplace.engine.recall.ranking import Shortlist, fitted_blend
from commonplace.engine.recall.relevance import Assessment, assess, gather_signals
from commonplace.engine.recall.understanding import ALL, analyse
from commonplace.engine.types import Query
from commonplace.stores.base import Candidate
from commonplace.wire.record import Memory

_QUESTION = "Where does Alice keep the bicycle?"
_ENGLISH, _GERMAN = "The bicycle is in the cellar of the house.", "Das Fahrrad steht im Keller und ist nicht repariert."


_ABROAD = {"multilingual", "multilingual_foreign", "dense_foreign", "foreign"}


@dataclass
class Found:
    memory: Memory
    score: float
    dense: float | None
    late: float | None = None
    features: dict[str, float] = field(default_factory=dict)


def memory(content: str, id: str = "1") -> Memory:
    return Memory(id, "local", "a", "semantic", content)


def features(content: str, second: float | None, question: str = _QUESTION) -> dict[str, float]:
    candidate = Candidate(memory(content), dense=0.2, second=second)
    return FeatureExtractor(analyse(question), [candidate], {}, ALL).own_features(candidate)


def test_every_fit_has_a_weight_for_each_feature_and_trusts_a_higher_cosine() -> None:
    for fit in multilingual._fits().values():
        assert set(fit.weights) == set(multilingual.FEATURES)
        assert fit.weights["multilingual"] > 0
        assert fit.weights["multilingual"] + fit.weights["multilingual_foreign"] > 0
        assert fit.cosine + fit.margin > 0


@pytest.mark.parametrize("name", [NAME, "another", None])
def test_weights_are_added_and_none_is_changed(name: str | None) -> None:
    base = fitted_blend().weights
    more = multilingual.extended(base, name)
    assert {n: w for n, w in more.items() if n not in multilingual.FEATURES} == dict(base)
    assert set(more) - set(base) == set(multilingual.FEATURES)


@pytest.mark.parametrize(
    ("content", "second", "question", "told"),
    [
        (_ENGLISH, None, _QUESTION, set()),
        (_ENGLISH, 0.4, _QUESTION, {"multilingual"}),
        (_GERMAN, None, _QUESTION, set()),
        (_GERMAN, 0.4, _QUESTION, _ABROAD),
        (_GERMAN, 0.4, "Wo steht das Fahrrad und ist es repariert?", {"multilingual"}),
        (
            "自転車は地下室にあります。",
            0.4,
            _QUESTION,
            {"multilingual", "multilingual_foreign", "dense_foreign", "foreign"},
        ),
        ("MX-4711", 0.4, _QUESTION, {"multilingual"}),
        (_GERMAN, 0.4, "4711", {"multilingual"}),
    ],
)
def test_features_are_there_with_the_second_cosine_only(
    content: str, second: float | None, question: str, told: set[str]
) -> None:
    wanted = {*multilingual.FEATURES, "foreign"}
    assert wanted & set(features(content, second, question)) == told


def test_the_second_cosine_orders_what_is_in_another_language() -> None:
    found = [
        Candidate(memory("Der Zahnarzt hat am Montag nicht geöffnet.", "1"), dense=0.21, second=0.02),
        Candidate(memory(_GERMAN, "2"), dense=0.20, second=0.6),
        Candidate(memory("The dentist is closed on the Monday.", "3"), dense=0.22, second=0.05),
    ]
    blend = fitted_blend(NAME)
    blend = blend._replace(weights=multilingual.extended(blend.weights, NAME))
    assert Shortlist(found, analyse(_QUESTION), blend=blend).ranked()[0].memory.id == "2"


def assessed(*rows: tuple[float, dict[str, float]], judge: Any = None, mode: Any = "auto") -> Assessment[Found]:
    ranked = [Found(memory(f"text {n}", str(n)), 0.5, dense, features=own) for n, (dense, own) in enumerate(rows)]
    query = Query(("a",), _QUESTION, judge=mode)
    return assess(asyncio.run(gather_signals(judge, analyse(_QUESTION), ranked, query, NAME)), ranked, query)


_FAR = (0.05, {"multilingual": 0.02})
_NEAR_ABROAD = (0.05, {"multilingual": 0.75, "multilingual_foreign": 0.75})
_FAR_ABROAD = (0.05, {"multilingual": 0.05, "multilingual_foreign": 0.05})


def test_an_answer_in_another_language_is_not_cut_off() -> None:
    assert assessed(*[_FAR] * 8).hits == []
    assert assessed(_FAR_ABROAD, *[_FAR] * 8).hits == []
    kept = assessed(_NEAR_ABROAD, *[_FAR] * 8)
    best = kept.hits[0]
    assert best.relevance is not None
    assert best.relevance > 0.5
    assert all((hit.relevance or 0.0) < best.relevance for hit in kept.hits[1:])


def test_no_judge_is_asked_what_it_cannot_read() -> None:
    class Judge:
        name, note = "counting", None
        asked = 0

        def judge(self, question: str, texts: list[str]) -> list[float]:
            Judge.asked += 1
            return [-6.0] * len(texts)

    near = (0.05, {"multilingual": 0.95, "multilingual_foreign": 0.95})
    assert assessed(near, *[_FAR] * 8, judge=Judge()).hits
    assert Judge.asked == 0


def test_a_judge_reads_only_what_is_in_a_language_it_knows() -> None:
    class Judge:
        name, note, reads_pairs = "reading", None, False

        def __init__(self) -> None:
            self.read: list[str] = []

        def judge(self, question: str, texts: list[str]) -> list[float]:
            self.read += texts
            return [3.0] * len(texts)

    judge = Judge()
    near = (0.6, {"multilingual": 0.3})
    assessed(near, _FAR_ABROAD, near, *[_FAR] * 8, judge=judge, mode="always")
    assert "text 0" in judge.read
    assert "text 1" not in judge.read
    judge = Judge()
    assessed(_FAR_ABROAD, near, near, *[_FAR] * 8, judge=judge)  # what stands first, it could not read
    assert judge.read == []


def test_relevance_grows_with_the_cosine() -> None:
    def of(cosine: float) -> float:
        own = {"multilingual": cosine, "multilingual_foreign": cosine}
        rows = [Found(memory("x"), 0.5, 0.1, features=own)]
        rows += [Found(memory("y", "2"), 0.5, 0.1, features={"multilingual": 0.1})] * 8
        return multilingual.relevance(rows, 1, NAME)["1"]

    values = [of(c / 10) for c in range(-2, 11)]
    assert values == sorted(values)
    assert values[0] < 0.1 < 0.5 < values[-1]
