"""Names: which of the people an agent knows a question names."""

from __future__ import annotations

from commonplace.engine.recall import names


def test_a_beginning_that_fits_two_names_names_nobody() -> None:
    assert names.match_names("Ali wrote", frozenset({"Alice", "Alistair"})) == []


def test_names_without_capitals_are_found_too() -> None:
    assert [n.name for n in names.match_names("夏美の当番はいつ", frozenset({"夏美"}))] == []  # no word ends there
    assert [n.name for n in names.match_names("夏美 当番", frozenset({"夏美"}))] == ["夏美"]
