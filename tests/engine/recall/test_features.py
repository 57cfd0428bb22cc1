"""Features: what each says of a candidate, when it is absent, and that every part can be left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall.features import FeatureExtractor, Features, event_moment, searchable_text
from commonplace.engine.recall.understanding import ALL, RecallParts, analyse
from commonplace.stores.base import AgentContext, Candidate
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS

NOW = int(datetime(2026, 3, 18, tzinfo=UTC).timestamp() * 1000)
PEOPLE = AgentContext(frozenset({"Alice Marsh", "Bob"}))


def memory(content: str = "plain", **fields: Any) -> Memory:
    return Memory("m", "local", "agent", "semantic", content, **fields)


def extractor(
    question: str,
    candidates: Sequence[Candidate] = (),
    replaced: dict[str, str] | None = None,
    parts: RecallParts = ALL,
) -> FeatureExtractor:
    return FeatureExtractor(analyse(question, PEOPLE, NOW, parts), candidates, replaced or {}, parts)


def own_features(question: str, found: Memory, parts: RecallParts = ALL, **replaced: str) -> Features:
    return extractor(question, [Candidate(found)], replaced, parts).own_features(Candidate(found))


def word_features(question: str, found: Memory, parts: RecallParts = ALL) -> Features:
    features: Features = {}
    extractor(question, parts=parts).add_word_features(features, found)
    return features


def test_scores_of_both_legs_and_the_share_of_words() -> None:
    best, other = Candidate(memory(), 0.7, 4.0, 0b11), Candidate(memory(), None, 1.0, 0b01)
    reader = extractor("blue harbour", [best, other])
    assert reader.own_features(best) == {"dense": 0.7, "keyword": 1.0, "coverage": 1.0}
    missing = reader.own_features(other)
    assert missing == {"dense": 0.7, "keyword": 0.25, "coverage": 0.5}, "without a vector it is as near as the others"


def test_late_interaction_is_a_feature_where_the_store_knows_it() -> None:
    assert extractor("tea").own_features(Candidate(memory(), 0.4, late=0.6))["late"] == 0.6
    assert "late" not in extractor("tea").own_features(Candidate(memory(), 0.4))


def test_one_without_tokens_among_others_is_taken_to_be_as_much_above_its_cosine() -> None:
    found = [Candidate(memory(), 0.4, late=0.6), Candidate(memory(), 0.2, late=0.3)]
    reader = extractor("tea", found)
    assert reader.own_features(Candidate(memory(), 0.5))["late"] == pytest.approx(0.65)
    assert reader.own_features(Candidate(memory(), None, 1.0))["late"] == pytest.approx(0.45)


def test_late_interaction_of_those_around_it_counts_as_far_as_it_is_more() -> None:
    said = Candidate(memory(), 0.4, late=0.5)
    around = [Candidate(memory(), 0.1, late=late) for late in (0.7, 0.4, 0.8)]
    reader = extractor("tea", [said])
    own = reader.own_features(said)
    reader.add_context(own, said, [around[0], around[2]], [around[1]])
    assert own["before_gain"] == pytest.approx(0.2)
    assert own["after_gain"] == 0.0
    assert own["farther_gain"] == pytest.approx(0.3)
    plain = Candidate(memory(), 0.4)
    own = extractor("tea", [plain]).own_features(plain)
    extractor("tea", [plain]).add_context(own, plain, [Candidate(memory(), 0.6)], [])
    assert own["before_gain"] == pytest.approx(0.2)


def test_a_candidate_that_no_leg_scored_has_nothing() -> None:
    assert own_features("", memory()) == {"dense": 0.0, "keyword": 0.0, "coverage": 0.0}


@pytest.mark.parametrize(("size", "long"), [(400, None), (800, math.log(2)), (4000, math.log(10))])
def test_length_counts_beyond_four_hundred_characters(size: int, long: float | None) -> None:
    candidate = Candidate(memory("x" * size), 0.5, 1.0, 0b1)
    features = extractor("blue harbour", [candidate]).own_features(candidate)
    assert features.get("long") == (None if long is None else pytest.approx(long))
    assert features.get("long_coverage") == (None if long is None else pytest.approx(long / 2))


@pytest.mark.parametrize(
    ("question", "fields", "name", "value", "without"),
    [
        ("the door", {"content": "Which door?"}, "asks", 1.0, "kinds"),
        ("the door", {"content": "哪个门？"}, "asks", 1.0, "kinds"),
        ("the door", {"content": "Which? That door."}, "asks", None, "kinds"),
        ("What did Bob paint?", {"speaker": "Bob"}, "speaker", 1.0, "names"),
        ("What did Alice paint?", {"speaker": "Alice Marsh"}, "speaker", 1.0, "names"),
        ("What did Bob paint?", {"speaker": "Alice Marsh"}, "other_speaker", 1.0, "names"),
        ("What did Bob paint?", {}, "other_speaker", None, "names"),
        ("What was painted?", {"speaker": "Bob"}, "speaker", None, "names"),
        ("what does carol like", {"user_id": "Carol"}, "subject", 1.0, "names"),
        ("the blue harbour at night", {"entity_name": "blue_harbour"}, "subject", 1.0, "names"),
        ("the harbour at night", {"entity_name": "blue-harbour"}, "subject", None, "names"),
        ("in March", {"event_time": NOW - DAY_MS}, "time", 1.0, "times"),
        ("in March", {"created_at": NOW - DAY_MS}, "time", None, "times"),
        ("this week", {"created_at": NOW}, "time", None, "times"),
        ("what is on tonight", {"created_at": NOW}, "time", None, "times"),
        ("last week", {"created_at": NOW - 7 * DAY_MS}, "time", 1.0, "times"),
        ("last week", {"created_at": NOW}, "time", None, "times"),
        ("at night", {"event_time": NOW}, "time", None, "times"),
        ("a lamp", {"importance": 0.9}, "importance", pytest.approx(0.4), None),
        ("a lamp", {"importance": 0.0}, "importance", -0.5, None),
        ("a lamp", {}, "importance", None, None),
    ],
)
def test_what_a_memory_says_for_itself(
    question: str, fields: dict[str, Any], name: str, value: Any, without: str | None
) -> None:
    assert own_features(question, memory(**fields)).get(name) == value
    if without is not None:
        assert name not in own_features(question, memory(**fields), RecallParts(**{without: False}))


def test_far_from_the_period_counts_less() -> None:
    near, far = (own_features("in March", memory(event_time=NOW - days * DAY_MS))["time"] for days in (30, 300))
    assert 1.0 > near > far > 0.0


@pytest.mark.parametrize("named", [{"m": "newer"}, {"home": "newer"}])
def test_what_was_replaced_is_known_by_id_and_by_alias(named: dict[str, str]) -> None:
    old = memory(aliases=["first", "home"])
    assert own_features("where do we live", old, **named)["replaced"] == 1.0
    before = own_features("where did we live before", old, **named)
    assert ("replaced" in before, before["replaced_asked"]) == (False, 1.0)
    assert "replaced" not in own_features("where do we live", old, RecallParts(validity=False), **named)
    assert "replaced" not in own_features("where do we live", old, other="newer")
    reader = extractor("", replaced=named)
    assert (reader.any_replaced, reader.replacement(old), reader.replacement(memory())) == (
        True,
        "newer",
        named.get("m"),
    )
    assert not extractor("").any_replaced


def test_newer_ones_count_unless_the_past_is_asked_for() -> None:
    moments = (NOW - 4 * DAY_MS, NOW - DAY_MS, NOW)
    found = [Candidate(memory(event_time=moment)) for moment in moments]

    def recent(question: str, name: str, parts: RecallParts = ALL) -> list[float | None]:
        reader = extractor(question, found, parts=parts)
        return [reader.own_features(candidate).get(name) for candidate in found]

    assert recent("the port", "recent") == [0.0, 0.75, 1.0]
    assert recent("the port", "latest") == [None] * 3
    assert recent("the current port", "latest") == [0.0, 0.75, 1.0]
    assert recent("the port before the move", "recent") == [None] * 3
    assert recent("the port", "recent", RecallParts(recency=False)) == [None] * 3
    outside = extractor("the port", found).own_features(Candidate(memory(event_time=NOW + 9 * DAY_MS)))
    assert outside["recent"] == 1.0


@pytest.mark.parametrize(
    ("question", "content", "name", "value", "without"),
    [
        ("When did it break?", "it broke on Tuesday", "has_time", 1.0, "kinds"),
        ("When did it break?", "it broke", "has_time", None, "kinds"),
        ("How many came?", "forty came", "has_number", 1.0, "kinds"),
        ("Who came?", "Bob came", "has_person", None, "kinds"),
        ("What did Alice paint?", "alice painted a lake", "mentions", 1.0, "names"),
        ("What did Alice paint?", "Malice painted a lake", "mentions", None, "names"),
        ("Where is the key?", "der Schlüssel ist unter der Matte", "foreign", 1.0, "languages"),
        ("Where is the key?", "the key is under the mat", "foreign", None, "languages"),
        ("Where is the key?", "BF-E417", "foreign", None, "languages"),
        ("What does BF-E417 mean?", "BF-E417: no water", "literal", 1.0, "literals"),
        ("BF-E417 or BF-E418?", "BF-E417: no water", "literal", 0.5, "literals"),
        ("What does BF-E417 mean?", "BF-E4171", "literal", 0.0, "literals"),
        ("What does it mean?", "BF-E417", "literal", None, "literals"),
    ],
)
def test_what_only_its_words_tell(question: str, content: str, name: str, value: Any, without: str) -> None:
    assert word_features(question, memory(content)).get(name) == value
    assert name not in word_features(question, memory(content), RecallParts(**{without: False}))


def test_only_the_beginning_of_a_long_memory_is_looked_at() -> None:
    late = memory("x " * 600 + "Alice on Tuesday")
    assert word_features("When did Alice come?", late) == {}


def test_what_was_said_around_it_counts_for_what_it_adds() -> None:
    question = "blue harbour lights tonight"
    candidates = {
        "question": Candidate(memory("Where are the lights?"), 0.9, 1.0, 0b0001),
        "itself": Candidate(memory(), 0.4, 1.0, 0b0010),
        "next": Candidate(memory(), 0.6, 1.0, 0b0010),
        "last": Candidate(memory(), 0.8, 1.0, 0b0100),
    }
    reader = extractor(question, list(candidates.values()))
    before, itself, after, last = candidates.values()
    terms = analyse(question, PEOPLE, NOW).sought_terms
    features = reader.own_features(itself)
    reader.add_context(features, itself, [before], [after, last])
    assert features["before_gain"] == pytest.approx(0.5)
    assert features["after_gain"] == pytest.approx(0.2)
    assert features["farther_gain"] == pytest.approx(0.4)
    assert features["answers"] == 1.0
    assert features["pair_gain"] == pytest.approx(1 / terms)
    assert features["window_gain"] == pytest.approx(2 / terms)


def test_alone_nothing_is_gained() -> None:
    candidate = Candidate(memory(), 0.4, 1.0, 0b1)
    reader = extractor("blue harbour", [candidate])
    features = reader.own_features(candidate)
    reader.add_context(features, candidate, [], [])
    assert features["window_gain"] == 0.0
    assert not {"before_gain", "after_gain", "farther_gain", "pair_gain", "answers"} & set(features)


def test_a_weaker_neighbour_takes_nothing_away() -> None:
    candidate, weak = Candidate(memory(), 0.9, 1.0, 0b11), Candidate(memory(), 0.1, None, None)
    reader = extractor("blue harbour", [candidate])
    features = reader.own_features(candidate)
    reader.add_context(features, candidate, [weak, weak], [weak])
    assert {name: features[name] for name in ("before_gain", "after_gain", "farther_gain", "window_gain")} == {
        "before_gain": 0.0, "after_gain": 0.0, "farther_gain": 0.0, "window_gain": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(("fields", "moment"), [
    ({"created_at": 5}, 5), ({"created_at": 5, "event_time": 3}, 3), ({"created_at": 5, "event_time": 0}, 0),
])  # fmt: skip
def test_when_it_happened(fields: dict[str, int], moment: int) -> None:
    assert event_moment(memory(**fields)) == moment


def test_the_text_that_is_searched_as_written() -> None:
    assert searchable_text(memory("Über uns", title="ABOUT", tags=["Web", "Café"])) == "about\nüber uns\nweb\ncafé"
    assert searchable_text(memory("x")) == "\nx"


scores = st.none() | st.floats(0, 1)
memories = st.builds(
    memory,
    st.text(max_size=60) | st.just("long " * 200),
    speaker=st.none() | st.sampled_from(["Alice Marsh", "Bob", "Carol"]),
    event_time=st.none() | st.integers(0, 2 * NOW),
    importance=st.none() | st.floats(0, 1),
)
candidates = st.lists(st.builds(Candidate, memories, scores, scores, st.none() | st.integers(0, 7)), min_size=1)


@given(st.text(max_size=60) | st.sampled_from(["What did Bob paint in March?", "the latest port"]), candidates)
def test_features_of_anything_are_finite_numbers(question: str, found: list[Candidate]) -> None:
    reader = extractor(question, found)
    for i, candidate in enumerate(found):
        features = reader.own_features(candidate)
        reader.add_context(features, candidate, found[:i][::-1], found[i + 1 :])
        reader.add_word_features(features, candidate.memory)
        assert all(math.isfinite(value) for value in features.values())
        assert 0.0 <= features["keyword"] <= 1.0
