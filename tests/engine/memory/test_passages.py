"""Passages: they cover the whole text, overlap, and stay within bounds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.memory.passages import OVERLAP_CHARS, PASSAGE_CHARS, TITLE_CHARS, indexed_text, passages, split
from commonplace.wire.record import Memory


def memory(id: str, content: str = "x", **fields: Any) -> Memory:
    return Memory(id, "t", "agent", "semantic", content, **fields)


texts = st.text(max_size=400).map(lambda t: t * 12) | st.lists(
    st.sampled_from(["word ", "A sentence ends. ", "\n\n", "日本語。", "x" * 500, "! "]), max_size=300
).map("".join)


@given(texts)
def test_parts_cover_the_whole_text_in_order_and_are_bounded(text: str) -> None:
    parts = split(text)
    assert parts
    assert all(len(part) <= PASSAGE_CHARS + OVERLAP_CHARS for part in parts)
    assert parts[0] + "".join(part[OVERLAP_CHARS:] for part in parts[1:]) == text
    assert len(parts) <= 2 + len(text) // (2 * PASSAGE_CHARS // 3 - OVERLAP_CHARS)


def test_short_texts_stay_whole_and_every_part_carries_the_title() -> None:
    assert split("short") == ["short"]
    parts = passages(memory("a", "One sentence. " * 300, title="On boats"))
    assert len(parts) > 3
    assert all(part.startswith("On boats\n") for part in parts)
    assert all(part.rstrip().endswith(".") for part in parts)
    assert all(len(part) < 2000 for part in passages(memory("a", "x", title="t" * 100_000)))


@pytest.mark.parametrize("size", [0, 1, PASSAGE_CHARS, PASSAGE_CHARS + OVERLAP_CHARS])
def test_what_fits_into_one_part_is_one_part(size: int) -> None:
    assert split("x" * size) == ["x" * size]


def test_one_character_more_makes_two_parts_that_overlap() -> None:
    one, two = split("x" * (PASSAGE_CHARS + OVERLAP_CHARS + 1))
    assert (len(one), len(two)) == (PASSAGE_CHARS, 2 * OVERLAP_CHARS + 1)


def test_a_part_ends_where_a_sentence_does_if_one_ends_near_its_end() -> None:
    early, late = "a" * 400 + ". ", "b" * 400 + ". "
    first, *_ = split(early + late + "c" * 900)
    assert first == early + late
    first, *_ = split("a" * 300 + ". " + "c" * 2000)
    assert len(first) == PASSAGE_CHARS, "too early to end there"


@pytest.mark.parametrize("end", [".", "!", "?", "。", "！", "？", "\n", "\n\n"])
def test_every_sign_that_ends_a_sentence_ends_a_part(end: str) -> None:
    first, *_ = split("a" * 800 + end + "b" * 2000)
    assert first == "a" * 800 + end


def test_a_long_title_is_repeated_in_part() -> None:
    parts = passages(memory("a", "x" * 3000, title="t" * 1000))
    assert all(part.startswith("t" * TITLE_CHARS + "\nx") for part in parts)
    assert passages(memory("a", "")) == [""]


@pytest.mark.parametrize(("fields", "text"), [
    ({}, "x"), ({"title": "On boats"}, "On boats\nx"), ({"tags": ["a", "b"]}, "x\na b"),
    ({"title": "T", "tags": ["a"]}, "T\nx\na"), ({"title": ""}, "x"),
])  # fmt: skip
def test_what_keywords_are_taken_from(fields: dict[str, Any], text: str) -> None:
    assert indexed_text(memory("a", "x", **fields)) == text


@pytest.mark.parametrize(
    ("fields", "plain", "with_speakers"),
    [
        ({}, "tea", "tea"),
        ({"title": "Drinks"}, "Drinks\ntea", "Drinks\ntea"),
        ({"event_time": 1_700_000_000_000}, "tea", "tea"),
        ({"speaker": "Alice"}, "tea", "Alice: tea"),
        ({"speaker": "Alice", "event_time": 1_700_000_000_000}, "tea", "Alice (2023-11-14): tea"),
        ({"speaker": "Alice", "event_time": -1}, "tea", "Alice (1969-12-31): tea"),
        ({"speaker": "Alice", "title": "Drinks"}, "Drinks\ntea", "Alice: tea"),
        ({"speaker": "Alice", "event_time": 10**18}, "tea", f"Alice ({10**18}): tea"),
        ({"speaker": "A" * 500}, "tea", "A" * TITLE_CHARS + ": tea"),
    ],
)
def test_a_turn_carries_who_said_it_and_when_for_those_that_were_trained_so(
    fields: dict[str, Any], plain: str, with_speakers: str
) -> None:
    turn = memory("a", "tea", **fields)
    assert passages(turn) == [plain]
    assert passages(turn, speakers=True) == [with_speakers]


def test_every_passage_of_a_turn_carries_its_speaker() -> None:
    parts = passages(memory("a", "One sentence. " * 300, speaker="Alice"), speakers=True)
    assert len(parts) > 3
    assert all(part.startswith("Alice: ") for part in parts)
