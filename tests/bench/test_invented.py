"""Invented facts for the judge's first round: whole, repeatable, and never with two answers."""

from __future__ import annotations

from bench.judge.invented import Inventor
from bench.judge.relations import relations


def test_every_relation_says_and_asks_in_english() -> None:
    for relation in relations():
        assert relation.says["en"]
        assert relation.asks["en"]
        assert all("{s}" in pattern and "{v}" in pattern for each in relation.says.values() for pattern in each)
        assert all("{s}" in pattern and "{v}" not in pattern for each in relation.asks.values() for pattern in each)
        assert set(relation.says) == set(relation.asks)


def test_the_same_seed_invents_the_same() -> None:
    assert list(Inventor(3).items(50)) == list(Inventor(3).items(50))
    assert list(Inventor(3).items(50)) != list(Inventor(4).items(50))


def test_items_are_choices_with_at_most_one_answer() -> None:
    items = list(Inventor(1).items(2_000))
    assert {item.gold for item in items} == {0, 1}
    assert 0.5 < sum(item.gold for item in items) / len(items) < 0.7
    for item in items:
        assert len(item.texts) >= 4
        assert "{" not in item.question + "".join(item.texts)
        if item.gold:
            assert item.texts[0] not in item.texts[1:]
