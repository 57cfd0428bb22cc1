"""Ranking: a weighted sum whose order depends on nothing but what was found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall.ranking import rank
from commonplace.engine.recall.understanding import Parts, analyse
from commonplace.stores.base import AgentContext, Candidate
from commonplace.wire.record import Memory


def memory(id: str, content: str = "x", **fields: Any) -> Memory:
    return Memory(id=id, tenant="t", agent_id="a", type="semantic", content=content, **fields)


def order(ranked: list[Any]) -> list[str]:
    return [r.memory.id for r in ranked]


def test_both_legs_count_and_features_are_carried() -> None:
    asked = analyse("blue harbour", AgentContext(), 0)
    ranked = rank(
        [
            Candidate(memory("neither", "n"), 0.1, 0.0, 0),
            Candidate(memory("meaning", "m"), 0.7, 0.0, 0),
            Candidate(memory("both", "b"), 0.7, 3.0, 3),
        ],
        asked,
    )
    assert order(ranked) == ["both", "meaning", "neither"]
    assert ranked[0].features["dense"] == 0.7
    assert ranked[0].features["keyword"] == ranked[0].features["coverage"] == 1.0
    assert all(0.0 < r.score < 1.0 for r in ranked)


def test_equal_ones_are_newer_first_then_by_id() -> None:
    twins = [Candidate(memory(id, id, created_at=at), 0.5, 1.0, 0) for id, at in (("b", 1), ("a", 1), ("c", 2))]
    parts = Parts(recency=False)
    assert order(rank(twins, parts=parts)) == order(rank(twins[::-1], parts=parts)) == ["c", "a", "b"]


@given(st.permutations(range(8)))
def test_the_order_does_not_depend_on_how_they_were_found(places: list[int]) -> None:
    candidates = [
        Candidate(memory(f"m{i}", f"text {i}", created_at=i % 3), 0.1 * (i % 4), float(i % 2)) for i in range(8)
    ]
    assert order(rank([candidates[i] for i in places])) == order(rank(candidates))


def test_what_was_replaced_stands_behind_what_replaced_it_unless_the_past_is_asked_for() -> None:
    old = Candidate(memory("old", "we live at Mill Lane", aliases=["home"]), 0.8, 2.0, 1)
    new = Candidate(memory("new", "our address is Lamp Row", supersedes=["home"], created_at=5), 0.3, 0.0, 0)
    other = Candidate(memory("other", "the cat is grey"), 0.1, 0.0, 0)
    found, replaced = [old, new, other], {"home": "new"}
    now = analyse("where do we live", AgentContext(), 0)
    then = analyse("where did we live before the move", AgentContext(), 0)
    assert order(rank(found, now, replaced=replaced)) == ["new", "old", "other"]
    assert order(rank(found, then, replaced=replaced))[0] == "old"
    assert order(rank(found, now, replaced=replaced, parts=Parts(validity=False)))[0] == "old"


def test_replacements_in_a_circle_end() -> None:
    pair = [Candidate(memory("a", "one"), 0.5, 0.0), Candidate(memory("b", "two"), 0.4, 0.0)]
    assert len(rank(pair, replaced={"a": "b", "b": "a"})) == 2


@pytest.mark.parametrize(
    ("text", "again", "folded"),
    [
        ("Alice likes green tea.", "alice likes  green tea", True),
        ("The gate code is 4417", "Gate code is 4417!", True),
        ("The gate code is 4417", "The gate code is 4418", False),
        ("Alice likes green tea", "Bob likes green tea", False),
        ("Alice is allergic to nuts", "Alice is not allergic to nuts", False),
        ("The value is -5", "The value is 5", False),
        ("Shall we go?", "Shall we go.", False),
        ("🎉", "🎂", False),
        ("due on 2026-03-14", "due on 2026-03-15", False),
    ],
)
def test_only_what_says_the_same_is_folded(text: str, again: str, folded: bool) -> None:
    found = [
        Candidate(memory("a", text), 0.9, 0.0),
        Candidate(memory("b", again), 0.8, 0.0),
        Candidate(memory("c", "something else"), 0.1, 0.0),
    ]
    ranked = rank(found)
    assert order(ranked) == (["a", "c", "b"] if folded else ["a", "b", "c"])
    assert ranked[-1].same_as == ("a" if folded else None)
    assert [r.score for r in ranked] == sorted((r.score for r in ranked), reverse=True)
    assert order(rank(found, parts=Parts(duplicates=False))) == ["a", "b", "c"]


def test_the_same_words_of_another_speaker_or_day_are_not_folded() -> None:
    said = [memory("a", "Yes", speaker="Alice"), memory("b", "Yes", speaker="Bob"), memory("c", "Yes", event_time=1)]
    assert all(r.same_as is None for r in rank([Candidate(m, 0.5, 0.0) for m in said]))


def test_who_spoke_counts_when_someone_is_named() -> None:
    asked = analyse("What did Alice paint?", AgentContext(frozenset({"Alice", "Bob"})), 0)
    found = [
        Candidate(memory("bob", "I painted a barn", speaker="Bob"), 0.5, 1.0, 1),
        Candidate(memory("alice", "I painted a lake", speaker="Alice"), 0.5, 1.0, 1),
    ]
    assert order(rank(found, asked)) == ["alice", "bob"]


def test_without_a_leg_the_other_ranks() -> None:
    asked = analyse("green tea", AgentContext(), 0)
    words = [Candidate(memory("few", "f"), None, 1.0, 1), Candidate(memory("many", "m"), None, 2.0, 3)]
    meaning = [Candidate(memory("far", "f"), 0.2, None), Candidate(memory("near", "n"), 0.6, None)]
    assert order(rank(words, asked)) == ["many", "few"]
    assert order(rank(meaning, asked)) == ["near", "far"]
    assert rank([]) == []
