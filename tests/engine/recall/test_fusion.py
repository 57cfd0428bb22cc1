"""Fusion: the formulas of the paper, and its experiment with one hostile store."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall.fusion import HOP_STEP, OVERFETCH, RRF_K, boost_hops, fuse, with_missing

LISTS = {"one": [("a", 0.9), ("b", 0.5)], "two": [("b", 0.8), ("c", 0.7)]}


def test_rrf_counts_ranks_from_nought_and_ignores_scores() -> None:
    assert RRF_K == 60
    assert dict(fuse(LISTS)) == {"b": 1 / 61 + 1 / 60, "a": 1 / 60, "c": 1 / 61}
    shouting = {"one": [("a", 1e9), ("b", -5.0)], "two": [("b", 0.0), ("c", -1.0)]}
    assert fuse(shouting) == fuse(LISTS)


def test_max_takes_the_best_score_and_weighted_the_weighted_sum() -> None:
    assert fuse(LISTS, "max") == [("a", 0.9), ("b", 0.8), ("c", 0.7)]
    assert dict(fuse(LISTS, "weighted")) == pytest.approx({"a": 0.9, "b": 1.3, "c": 0.7})
    assert dict(fuse(LISTS, "weighted", weights={"two": 2.0})) == pytest.approx({"a": 0.9, "b": 2.1, "c": 1.4})
    assert fuse({"one": [("a", -2.0)], "two": [("a", -1.0)]}, "max") == [("a", -1.0)]


def test_quorum_leaves_out_what_too_few_stores_found() -> None:
    assert [id for id, _ in fuse(LISTS, quorum=2)] == ["b"]
    assert fuse(LISTS, quorum=3) == []


def test_hops_raise_an_item_once_by_its_smallest_distance_and_add_none() -> None:
    fused = [("a", 1.0), ("b", 0.97), ("c", 0.5)]
    boosted = boost_hops(fused, {"b": 0, "c": 1, "stranger": 0})
    assert dict(boosted) == pytest.approx({"b": 0.97 * (1 + HOP_STEP), "a": 1.0, "c": 0.5 * (1 + HOP_STEP / 2)})
    assert [id for id, _ in boosted] == ["b", "a", "c"]
    assert boost_hops(fused, {}) == fused


ranked = st.lists(st.sampled_from("abcdefgh"), unique=True).map(
    lambda ids: [(id, 1.0 / (i + 1)) for i, id in enumerate(ids)]
)


@given(st.dictionaries(st.sampled_from(("x", "y", "z")), ranked), st.sampled_from(("rrf", "max", "weighted")))
def test_every_id_once_and_in_order(lists: dict[str, list[tuple[str, float]]], how: str) -> None:
    fused = fuse(lists, how)  # type: ignore[arg-type]
    assert {id for id, _ in fused} == {id for items in lists.values() for id, _ in items}
    assert len({id for id, _ in fused}) == len(fused)
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)


scored = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.floats(-5, 5, allow_nan=False)), unique_by=lambda item: item[0]
)


@given(
    st.dictionaries(st.sampled_from(("x", "y", "z")), scored),
    st.dictionaries(st.sampled_from(("x", "y", "z")), st.floats(0, 3)),
    st.integers(1, 3),
)
def test_each_fusion_is_the_formula_of_the_paper(
    lists: dict[str, list[tuple[str, float]]], weights: dict[str, float], quorum: int
) -> None:
    """By id instead of by list, and summed otherwise than the code does."""
    wanted: dict[str, dict[str, float]] = {"rrf": {}, "max": {}, "weighted": {}}
    for id in {id for listed in lists.values() for id, _ in listed}:
        places = [(store, [i for i, _ in listed].index(id), dict(listed)[id]) for store, listed in lists.items()
                  if id in dict(listed)]  # fmt: skip
        if len(places) >= quorum:
            wanted["rrf"][id] = math.fsum(1 / (60 + rank) for _, rank, _ in places)
            wanted["max"][id] = max(score for _, _, score in places)
            wanted["weighted"][id] = math.fsum(weights.get(store, 1.0) * score for store, _, score in places)
    for how, expected in wanted.items():
        found = fuse(lists, how, weights=weights, quorum=quorum)  # type: ignore[arg-type]
        assert dict(found) == pytest.approx(expected)
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


@given(ranked)
def test_one_list_keeps_its_order(items: list[tuple[str, float]]) -> None:
    for how in ("rrf", "max", "weighted"):
        assert [id for id, _ in fuse({"only": items}, how)] == [id for id, _ in items]  # type: ignore[arg-type]


# The adversarial experiment of the paper (section 5.2): two honest stores, one that puts its own ids on top.

CORPUS = [f"m{i:03}" for i in range(50)]
K = 5


def _experiment(how: str, injected: int) -> tuple[float, float]:
    """(recall@5, share of the answer that is the attacker's) over twenty questions with two right answers each."""
    dice = random.Random(1337)
    found, leaked = 0, 0
    for _ in range(20):
        gold = dice.sample(CORPUS, 2)

        def honest(gold: list[str] = gold) -> list[tuple[str, float]]:
            tail = dice.sample([m for m in CORPUS if m not in gold], OVERFETCH * K - 2)
            return [(id, 1.0 - 0.02 * rank) for rank, id in enumerate([*gold, *tail])]

        hostile = [(f"a{i:03}", 1.0) for i in range(injected)] + honest()
        lists = {"one": honest(), "two": honest(), "hostile": hostile[: OVERFETCH * K]}
        top = [id for id, _ in fuse(lists, how)[:K]]  # type: ignore[arg-type]
        found += len(set(gold) & set(top))
        leaked += sum(id.startswith("a") for id in top)
    return found / 40, leaked / (20 * K)


@pytest.mark.parametrize("injected", [0, 5, 10, 25, 50])
def test_rrf_holds_against_one_hostile_store(injected: int) -> None:
    assert _experiment("rrf", injected) == (1.0, 0.0)
    assert _experiment("weighted", injected) == (1.0, 0.0)


@pytest.mark.parametrize("injected", [5, 10, 25, 50])
def test_max_collapses_under_the_same_attack(injected: int) -> None:
    recall, leak = _experiment("max", injected)
    assert (recall, leak) == (0.5, 0.8)


def test_max_is_as_good_as_any_without_an_attack() -> None:
    assert _experiment("max", 0) == (1.0, 0.0)


# a store that cannot have everything yet


@given(
    st.lists(st.floats(0, 1, width=16), min_size=1, max_size=30),
    st.integers(1, 30),
    st.data(),
    st.sampled_from(("rrf", "max", "weighted")),
    st.integers(1, 3),
)
def test_what_honest_stores_cannot_have_changes_nothing(
    scores: list[float], limit: int, data: st.DataObject, how: str, quorum: int
) -> None:
    """The oracle: both stores have all and rank as the first one does."""
    own = [(f"m{n:02}", score) for n, score in enumerate(sorted(scores, reverse=True))]
    weights = {"two": 0.5, "three": 2.0}
    complete = {"one": own, "two": own[:limit], "three": own[:limit]}
    partial: dict[str, Any] = {"one": own}
    for store in ("two", "three"):
        lacks = data.draw(st.frozensets(st.sampled_from([id for id, _ in own])))
        has = [pair for pair in own if pair[0] not in lacks][:limit]
        partial[store] = with_missing(has, own, lacks, limit)
    wanted = fuse(complete, how, weights=weights, quorum=quorum)  # type: ignore[arg-type]
    assert fuse(partial, how, weights=weights, quorum=quorum) == wanted  # type: ignore[arg-type]


def test_what_is_missing_has_the_first_stores_place_also_where_the_list_is_shorter() -> None:
    own = [(id, 0.5) for id in "abcdef"]
    assert with_missing([("x", 0.9)], own, {"a", "d"}, 20) == [("a", 0.5), ("x", 0.9), None, ("d", 0.5)]
    assert with_missing([("x", 0.9)], own, {"a", "d"}, 2) == [("a", 0.5), ("x", 0.9)]
    assert with_missing([("x", 0.9)], own, set(), 2) == [("x", 0.9)]
    assert dict(fuse({"one": own, "two": with_missing([], own, {"d"}, 20)}))["d"] == pytest.approx(2 / 63)
