"""Passages: they cover the whole text, overlap, and stay within bounds."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from commonplace.engine.memory.passages import OVERLAP_CHARS, PASSAGE_CHARS, passages, split
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
