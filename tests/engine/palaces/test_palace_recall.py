"""Recall in layers: how places are given out, and what each layer's score means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.palaces import palace_recall
from commonplace.engine.palaces.palace_recall import DECAY, PalaceRecall, compose, effective_importance, similarity
from commonplace.engine.types import Hit
from commonplace.testing.subject import START, WHO, Subject
from commonplace.wire.errors import Forbidden
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS


def memory(id: str, **fields: Any) -> Memory:
    return Memory(id, "local", "palace", "semantic", f"content of {id}", **{"created_at": START, **fields})


def hit(id: str, dense: float | None = 0.5, **fields: Any) -> Hit:
    return Hit(memory(id, **fields), 0.1, "memory", explain={"dense": dense, "blend": 0.3})


def placed(recall: PalaceRecall) -> list[tuple[str, int]]:
    return [(place.memory.id, place.layer) for place in recall.hits]


@pytest.mark.parametrize(
    ("fields", "age", "importance"),
    [
        ({"importance": 0.8}, 0, 0.8),
        ({"importance": 0.8}, 90 * DAY_MS, 0.4),
        ({}, 0, 0.5),
        ({"importance": 1.0, "recalls": 3}, 0, 1.0),  # never more than one
        ({"importance": 0.4, "recalls": 3}, 0, 0.55),
        ({"importance": 0.4, "recalls": 100}, 0, 0.7),  # recalls hold it up only so far
        ({"importance": 0.0}, 0, 0.05),  # never less than this
        ({"importance": 0.8}, 100_000 * DAY_MS, 0.05),
        ({"importance": 0.8}, -DAY_MS, 0.8),  # a clock that was set back
    ],
)
def test_importance_fades_and_recalls_hold_it_up(fields: dict[str, Any], age: int, importance: float) -> None:
    assert effective_importance(memory("m", **fields), START + age) == pytest.approx(importance)
    assert (DECAY.base, DECAY.half_life) == (0.5, 90 * DAY_MS)


@pytest.mark.parametrize(
    ("explain", "demotion", "alike"),
    [
        ({"dense": 0.8, "blend": 0.3}, 1.0, 0.8), ({"dense": None, "blend": 0.3}, 1.0, 0.3), ({"blend": 0.3}, 1.0, 0.3),
        ({}, 1.0, 0.1), (None, 1.0, 0.1), ({"dense": -0.2}, 1.0, 0.0), ({"dense": 1.2}, 1.0, 1.0),
        ({"dense": 0.8}, 0.25, 0.2),
    ],
)  # fmt: skip
def test_similarity_is_the_cosine_or_how_well_words_fit(explain: Any, demotion: float, alike: float) -> None:
    assert similarity(Hit(memory("m", demotion=demotion), 0.1, "memory", explain=explain)) == pytest.approx(alike)


def test_a_calibrated_relevance_is_the_similarity() -> None:
    calibrated = Hit(memory("m"), 0.1, "memory", relevance=0.7, explain={"dense": 0.4, "blend": 0.3})
    assert similarity(calibrated) == pytest.approx(0.7)
    calibrated.memory.demotion = 0.25
    assert similarity(calibrated) == pytest.approx(0.175)


def test_what_was_found_comes_first_and_what_matters_fills_the_places_that_are_left() -> None:
    essential = [memory(f"e{n}") for n in range(9)]
    hits = [hit(f"h{n}", 0.9 - n / 10) for n in range(3)]
    recall = compose("I am a palace", essential, hits, 6, START, layer=2)
    assert recall.identity == "I am a palace"
    assert placed(recall) == [("h0", 2), ("h1", 2), ("h2", 2), ("e0", 1), ("e1", 1)]
    assert placed(compose(None, essential, hits, 2, START, layer=3)) == [("h0", 3), ("h1", 3)]
    assert placed(compose(None, essential, [], 4, START, layer=2)) == [(f"e{n}", 1) for n in range(4)]


def test_what_was_found_and_matters_stands_where_it_was_found() -> None:
    recall = compose(None, [memory("both"), memory("e")], [hit("h", 0.9), hit("both")], 4, START, layer=2)
    assert placed(recall) == [("h", 2), ("both", 2), ("e", 1)]


def test_only_what_answers_counts_as_recalled() -> None:
    recall = compose(None, [memory("e")], [hit("h0", 0.3), hit("h1", 0.29)], 3, START, layer=2)
    assert recall.found == ["h0"]


def test_what_was_found_is_in_the_order_of_its_score() -> None:
    hits = [hit("h0", 0.2), hit("h1", 0.9), hit("h2", 0.5, demotion=0.1)]
    recall = compose(None, [], hits, 3, START, layer=2)
    assert [(place.memory.id, place.score) for place in recall.hits] == [
        ("h1", 0.9), ("h0", 0.2), ("h2", pytest.approx(0.05))]  # fmt: skip


@pytest.mark.parametrize(("k", "identity"), [(1, None), (2, "I"), (3, "I")])
def test_an_identity_takes_a_place_where_there_are_several(k: int, identity: str | None) -> None:
    recall = compose("I", [memory("e")], [hit("h0"), hit("h1"), hit("h2")], k, START, layer=2)
    assert recall.identity == identity
    assert len(recall.hits) + (identity is not None) == k


ids = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(st.none() | st.just("I"), ids, ids, st.integers(1, 12))
def test_no_more_than_k_places_and_every_memory_once(
    identity: str | None, essential: list[str], found: list[str], k: int
) -> None:
    recall = compose(identity, [memory(id) for id in essential], [hit(id) for id in found], k, START, layer=2)
    names = [place.memory.id for place in recall.hits]
    assert len(set(names)) == len(names)
    room = k - (recall.identity is not None)
    assert len(names) == min(room, len({*essential, *found}))
    assert set(recall.found) == set(names) & set(found)
    assert len(set(names) & set(found)) == min(len(found), room)


# over both stores


def recall(subject: Subject, run: Any, text: str, k: int = 6, **options: Any) -> PalaceRecall:
    found: PalaceRecall = run(palace_recall.recall(subject.engine._core, WHO, "palace", text, k, **options))
    return found


@pytest.mark.parametrize(("deep", "layer"), [(False, 2), (True, 3)])
def test_what_was_found_comes_before_what_matters_most(subject: Subject, run: Any, deep: bool, layer: int) -> None:
    for n in range(palace_recall.ESSENTIAL):
        run(subject.remember(f"plain note {n}", "palace", importance=0.3))
    run(subject.remember("the palace burned down once", "palace", importance=0.9))
    wanted = run(subject.remember("roses grow by the gate", "palace", importance=0.1))
    found = recall(subject, run, "roses by the gate", k=1, deep=deep)
    assert placed(found) == [(wanted, layer)]


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_question_that_asks_nothing_is_answered_by_the_other_layers(subject: Subject, run: Any, text: str) -> None:
    id = run(subject.remember("x", "palace"))
    found = recall(subject, run, text, identity="I")
    assert (found.identity, placed(found), found.found) == ("I", [(id, 1)], [])


@pytest.mark.parametrize("k", [0, -3])
def test_no_places_hold_nothing(subject: Subject, run: Any, k: int) -> None:
    run(subject.remember("x", "palace"))
    assert recall(subject, run, "x", k, identity="I") == PalaceRecall(None, [])


def test_there_are_never_more_than_a_thousand_places(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(palace_recall, "MAX_HITS", 3)
    for n in range(6):
        run(subject.remember(f"note {n}", "palace"))
    assert len(recall(subject, run, "note", 10**9).hits) == 3


def test_only_readers_of_the_palace_recall(subject: Subject, run: Any) -> None:
    who = Principal("eve", role="reader", agents=("other",))
    with pytest.raises(Forbidden):
        run(palace_recall.recall(subject.engine._core, who, "palace", "x", 5))
