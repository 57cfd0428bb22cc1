"""Ranking: a weighted sum whose order depends on nothing but what was found."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall import ranking
from commonplace.engine.recall.ranking import (
    CLOSELY,
    FOR_OTHERS,
    WITHOUT_TOKENS,
    Blend,
    RankedCandidate,
    Shortlist,
    blends,
    fit_name,
    fitted_blend,
    text_key,
    total,
    with_verdicts,
)
from commonplace.engine.recall.understanding import RecallParts, analyse
from commonplace.stores.base import AgentContext, Candidate
from commonplace.wire.record import Memory


def memory(id: str, content: str = "x", **fields: Any) -> Memory:
    return Memory(id=id, tenant="t", agent_id="a", type="semantic", content=content, **fields)


def rank(candidates: list[Candidate], *asked: Any, runs: Any = (), **options: Any) -> list[RankedCandidate]:
    """All of them read closely."""
    shortlist = Shortlist(candidates, *asked, **options)
    shortlist.add(runs)
    return shortlist.ranked(max(CLOSELY, 2 * len(candidates)))


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
    parts = RecallParts(recency=False)
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
    assert order(rank(found, now, replaced=replaced, parts=RecallParts(validity=False)))[0] == "old"


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
    assert order(rank(found, parts=RecallParts(duplicates=False))) == ["a", "b", "c"]


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


# the sum and the probability it becomes


def test_only_features_with_a_weight_count() -> None:
    assert total({"dense": 0.5, "unknown": 9.0}, {"dense": 2.0, "absent": 7.0}) == 1.0
    assert total({}, fitted_blend().weights) == 0.0


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_a_greater_sum_is_never_less_probable(z: float, more: float) -> None:
    probability = fitted_blend().probability
    assert 0.0 < probability(z) <= probability(z + more) < 1.0 + 1e-12


@pytest.mark.parametrize("name", sorted(blends()))
def test_every_weight_that_ships_is_a_finite_number(name: str) -> None:
    weights, *line = fitted_blend(name)
    assert all(math.isfinite(number) for number in (*weights.values(), *line))
    assert {"dense", "keyword", "coverage"} <= set(weights)


def test_the_weights_are_read_at_first_use_and_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    beside = tmp_path / "weights.json"
    beside.write_text(json.dumps({FOR_OTHERS: {"weights": {"dense": 3.0}, "scale": 1.0, "bias": 0.0}}))
    monkeypatch.setattr(ranking, "WEIGHTS_FILE", beside)
    blends.cache_clear()
    try:
        assert fitted_blend().weights == {"dense": 3.0}
        beside.unlink()
        assert fitted_blend().weights == {"dense": 3.0}
    finally:
        blends.cache_clear()


# what says the same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("A cat", "the cat!", True),
        ("Der Hund schläft.", "der hund schläft", True),
        ("costs 1.5", "costs 15", False),
        ("from 3-4", "from 34", False),
        ("2 + 2", "2 - 2", False),
        ("a", "an", False),  # nothing but articles: the text itself is compared
        ("x" * 5000, "X" * 5000, False),  # too long to be read word by word
        ("is it so", "is it so?", False),
    ],
)
def test_equal_keys_are_equal_sayings(one: str, other: str, same: bool) -> None:
    assert (text_key(memory("a", one)) == text_key(memory("b", other))) is same


@pytest.mark.parametrize("field", ["user_id", "speaker", "title", "event_time", "agent_id", "type"])
def test_the_same_words_about_something_else_are_another_saying(field: str) -> None:
    said = memory("a", "yes")
    assert text_key(said) != text_key(replace(said, **{field: 7 if field == "event_time" else "other"}))


# a shortlist, step by step


def session(*scores: float) -> list[Candidate]:
    return [Candidate(memory(str(i), f"turn {i}", session_id="s"), score, None) for i, score in enumerate(scores)]


def test_only_what_belongs_to_a_session_is_worth_reading_around() -> None:
    alone = Candidate(memory("alone", "no session"), 0.9, None)
    found = [alone, *session(0.1, 0.8, 0.5)]
    assert Shortlist(found).promising(2) == ["1", "2"]
    assert Shortlist(found, parts=RecallParts(context=False)).promising(2) == []


def test_what_was_said_around_becomes_a_candidate_once() -> None:
    run = session(0.9, 0.1, 0.2)
    shortlist = Shortlist(run[:1])
    assert order(shortlist.ranked()) == ["0"]
    shortlist.add([run])
    assert sorted(order(shortlist.ranked())) == ["0", "1", "2"]
    by_id = {r.memory.id: r for r in shortlist.ranked()}
    assert by_id["1"].features["before_gain"] == pytest.approx(0.8)
    assert "before_gain" not in by_id["0"].features


def test_neighbours_farther_than_two_turns_count_for_nothing() -> None:
    run = session(0.1, 0.1, 0.1, 0.9)
    shortlist = Shortlist(run)
    shortlist.add([run])
    gains = {r.memory.id: r.features.get("farther_gain", 0.0) for r in shortlist.ranked()}
    assert gains["1"] == pytest.approx(0.8)
    assert gains["0"] == 0.0


def test_only_the_words_of_the_best_are_looked_at() -> None:
    asked = analyse("What does BF-E417 mean?", AgentContext(), 0)
    found = [Candidate(memory(str(i), "BF-E417", event_time=i), 0.9 - i / 10, None) for i in range(4)]
    ranked = Shortlist(found, asked).ranked(closely=2)
    assert {r.memory.id for r in ranked if "literal" in r.features} == {"0", "1"}


def test_a_chain_of_replacements_ends_with_the_newest_in_front() -> None:
    found = [Candidate(memory(id, f"text {id}"), score, None) for id, score in (("a", 0.9), ("b", 0.5), ("c", 0.1))]
    assert order(rank(found, replaced={"a": "b", "b": "c"})) == ["c", "b", "a"]
    gone = {r.memory.id: r.score for r in rank(found, replaced={"a": "elsewhere"})}
    here = {r.memory.id: r.score for r in rank(found)}
    assert gone["a"] < here["a"], "even where what replaced it was not found"
    assert (gone["b"], gone["c"]) == (here["b"], here["c"])


def test_weights_are_those_that_are_given() -> None:
    found = [Candidate(memory("a", "one"), 0.9, 0.0), Candidate(memory("b", "two"), 0.1, 5.0)]
    assert order(rank(found, blend=Blend({"dense": 1.0}, 1.0, 0.0))) == ["a", "b"]
    assert order(rank(found, blend=Blend({"keyword": 1.0}, 1.0, 0.0))) == ["b", "a"]


# an embedder's own weights


def test_each_embedder_has_its_own_weights_and_others_those_of_the_first() -> None:
    assert fitted_blend("commonplace-encoder-1/int8w").weights["late"] > 0
    assert fitted_blend("someone-elses") == fitted_blend(None) == fitted_blend(FOR_OTHERS)
    assert "late" not in fitted_blend().weights


@pytest.mark.parametrize(
    ("embedder", "late", "name"),
    [
        ("commonplace-encoder-1/int8w", 0.5, "commonplace-encoder-1/int8w"),
        ("commonplace-encoder-1/int8w", None, "commonplace-encoder-1/int8w" + WITHOUT_TOKENS),
        (FOR_OTHERS, None, FOR_OTHERS),
        ("someone-elses", None, "someone-elses"),
    ],
)
def test_a_store_that_keeps_no_tokens_has_a_fit_without_them(embedder: str, late: float | None, name: str) -> None:
    found = [Candidate(memory("a", "one"), 0.5), Candidate(memory("b", "two"), 0.4, late=late)]
    assert fit_name(embedder, found) == name
    assert "late" not in fitted_blend(fit_name(embedder, found[:1])).weights


# what a judge says is one more feature

JUDGED = Blend({"dense": 10.0, "judge": 0.5, "judged": 1.0}, 1.0, -5.0)


def judged_order(found: list[Candidate], logits: dict[str, float], blend: Blend = JUDGED, **replaced: str) -> list[str]:
    ranked = Shortlist(found, analyse("where is it"), replaced, blend=blend).ranked()
    return [r.memory.id for r in with_verdicts(ranked, logits, blend)]


THREE = [Candidate(memory(id, f"text {id}"), dense) for id, dense in (("a", 0.5), ("b", 0.45), ("c", 0.4))]


def test_a_verdict_is_added_to_the_blend_and_does_not_replace_it() -> None:
    assert judged_order(THREE, {"a": -6.0, "b": 2.0}) == ["b", "c", "a"]
    assert judged_order(THREE, {"a": 0.0, "b": 0.5, "c": 0.6}) == ["a", "b", "c"]


def test_verdicts_show_as_features() -> None:
    ranked = Shortlist(THREE, blend=JUDGED).ranked()
    first, second, _ = with_verdicts(ranked, {"a": 1.5}, JUDGED)
    assert (first.features["judge"], first.features["judged"]) == (1.5, 1.0)
    assert "judge" not in second.features
    assert first.score == pytest.approx(JUDGED.probability(total(first.features, JUDGED.weights)))
    assert "judge" not in ranked[0].features


def test_without_a_weight_for_it_a_verdict_moves_nothing() -> None:
    plain = Blend({"dense": 10.0}, 1.0, -5.0)
    assert judged_order(THREE, {"a": -9.0, "c": 9.0}, plain) == ["a", "b", "c"]


def test_what_replaced_a_memory_stands_before_it_whatever_a_judge_says() -> None:
    assert judged_order(THREE, {"a": 9.0, "c": -9.0}, a="c") == ["c", "a", "b"]


def test_what_says_the_same_again_stays_behind_whatever_a_judge_says() -> None:
    twins = [*THREE, Candidate(memory("d", "Text: a!"), 0.48)]
    assert judged_order(twins, {"d": 9.0}) == ["a", "b", "c", "d"]


@given(
    st.lists(
        st.one_of(
            st.text(max_size=12),
            st.lists(
                st.sampled_from(
                    [
                        "The",
                        "a",
                        "an",
                        "tea",
                        "Straße",
                        "STRASSE",
                        "5",
                        "-5",
                        "1.5",
                        "15",
                        ",",
                        "…",
                        "\u2003",
                        "%",
                        "yes?",
                        "_",
                    ]
                ),
                max_size=4,
            ).map(" ".join),
        ),
        max_size=10,
    )
)
def test_whoever_has_a_key_in_common_with_another_is_compared(texts: list[str]) -> None:
    found = [RankedCandidate(memory(str(n), text), 0.5, None, None) for n, text in enumerate(texts)]
    keys = [text_key(r.memory) for r in found]
    alike = {r.memory.id for r, key in zip(found, keys, strict=True) if keys.count(key) > 1}
    assert alike <= {r.memory.id for r in ranking._maybe_alike(found)}


def test_every_blank_is_indifferent() -> None:
    blanks = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()]
    assert not "".join(blanks).translate(ranking._INDIFFERENT)
