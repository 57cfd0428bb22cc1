"""An id's short form is the same id: it goes there and back, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commonplace.wire.canonical import mint_id
from commonplace.wire.short_ids import expand_id, shorten_id


@given(st.integers(0, 1000))
def test_there_and_back(number: int) -> None:
    id = mint_id(number * 1_000_003)
    short = shorten_id(id)
    assert len(short) == 22
    assert short.isalnum()
    assert not set("0OIl") & set(short)
    assert expand_id(short) == id
    assert expand_id(id) == id


@given(st.text(max_size=40))
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert shorten_id(text) == text
    assert expand_id(text) == text


@pytest.mark.parametrize("text", ["z" * 22, "1" * 22, "lesson_2026_deployment", "2" * 23, "2" * 21])
def test_an_alias_of_the_same_length_stays_an_alias(text: str) -> None:
    assert expand_id(text) == text
