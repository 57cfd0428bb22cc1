"""Words in sentences for people."""

from __future__ import annotations

import pytest

from commonplace.wire.words import plural, shorten


@pytest.mark.parametrize(
    ("count", "thing", "said"),
    [(1, "memory", "1 memory"), (0, "memory", "0 memories"), (1000, "box", "1,000 boxes"), (2, "line", "2 lines")],
)
def test_a_number_of_things(count: int, thing: str, said: str) -> None:
    assert plural(count, thing) == said


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("tea", "tea"), ("teas", "te…")])
def test_what_is_too_long_says_so_in_its_last_character(text: str, shown: str) -> None:
    assert shorten(text, 3) == shown
