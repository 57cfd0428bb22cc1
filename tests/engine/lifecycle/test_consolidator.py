"""What of a window is worth keeping: the score, its parts, and what counts as a mention."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.lifecycle.consolidator import SETTLED_MS, ScoreConsolidator, count_mentions, score
from commonplace.engine.lifecycle.statements import GRAMMAR
from commonplace.testing.subject import START
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS

TEXT = "Alice is allergic to peanuts"


@pytest.mark.parametrize(
    ("age", "mentions", "recalls", "fields", "parts", "total"),
    [
        (0, 0, 0, {}, (1.0, 0.0, 1.0, 0.0), 0.6),
        (DAY_MS, 1, 2, {}, (0.5, 1.0, 1.0, 0.0), 0.7),
        (2 * DAY_MS, 9, 9, {"confidence": 0.5}, (0.25, 1.0, 0.5, 0.0), 0.475),
        (0, 0, 0, {"metadata": {"keep": True}}, (1.0, 0.0, 1.0, 1.0), 0.75),
        (0, 0, 0, {"metadata": {"keep": "yes"}}, (1.0, 0.0, 1.0, 0.0), 0.6),
    ],
)
def test_the_score_and_its_parts(
    age: int, mentions: int, recalls: int, fields: Any, parts: tuple[float, ...], total: float
) -> None:
    memory = Memory("m", "local", "agent", "episodic", TEXT, created_at=START, recalls=recalls, **fields)
    scored = score(memory, mentions, age)
    assert (scored.recency, scored.salience, scored.confidence, scored.flag) == parts
    assert scored.total == pytest.approx(total)


def test_an_item_is_mentioned_by_those_that_have_most_of_its_words() -> None:
    texts = (TEXT, "peanuts: Alice got ill, allergic", "Bob keeps bees", "Peanuts for Alice? Allergic!")
    window = [Memory(str(i), "local", "agent", "episodic", text, created_at=START) for i, text in enumerate(texts)]
    plan = ScoreConsolidator().plan(window, START + SETTLED_MS)
    assert "0" in [memory.id for group, _ in plan.promoted for memory in group]
    assert "2" not in [memory.id for group, _ in plan.promoted for memory in group]


def test_words_of_grammar_make_no_mention() -> None:
    texts = ["it was in the kitchen", "it was in the garden", "it was in the attic"]
    window = [Memory(str(i), "local", "agent", "episodic", text, created_at=START) for i, text in enumerate(texts)]
    plan = ScoreConsolidator().plan(window, START + SETTLED_MS)
    assert (plan.promoted, plan.cold) == ([], [])


_WORDS = st.sampled_from(["the", "of", "alice", "bob", "peanuts", "ill", "allergic", "train", "7", "42"])


@given(st.lists(st.lists(_WORDS, max_size=9), max_size=12))
def test_mentions_are_those_that_comparing_each_with_each_finds(said: list[list[str]]) -> None:
    words = [set(statement) - GRAMMAR for statement in said]

    def mentions(one: set[str], other: set[str]) -> bool:
        numbers = [{word for word in each if word.isdecimal()} for each in (one, other)]
        return bool(one) and numbers[0] == numbers[1] and len(one & other) >= 0.75 * len(one)

    expected = {
        str(i): sum(mentions(one, other) for j, other in enumerate(words) if j != i) for i, one in enumerate(words)
    }
    assert count_mentions({str(i): statement for i, statement in enumerate(said)}) == expected
