"""Two texts side by side: nothing is lost, and what is the same is not marked."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commonplace.ui.text_diff import Run, side_by_side


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_runs_of_a_side_are_its_text(before: str, after: str) -> None:
    left, right = side_by_side(before, after)
    assert "".join(run.text for run in left) == before
    assert "".join(run.text for run in right) == after


def test_only_the_words_that_differ_are_marked() -> None:
    left, right = side_by_side("Bob lives in Rome and likes tea", "Bob lives in New York and likes tea")
    assert [run.text for run in left if run.changed] == ["Rome"]
    assert [run.text for run in right if run.changed] == ["New York"]
    assert side_by_side("same", "same") == ([Run("same", False)], [Run("same", False)])


@pytest.mark.parametrize(("before", "after"), [("", "new"), ("old", ""), ("", "")])
def test_an_empty_side(before: str, after: str) -> None:
    left, right = side_by_side(before, after)
    assert all(run.changed for run in (*left, *right) if run.text)


def test_a_long_text_is_compared_by_lines_and_a_longer_one_not_at_all() -> None:
    """So that nobody's text keeps the server busy: comparing words takes up to the square of their number."""
    many = [f"word{i} " * 4 + "\n" for i in range(1000)]
    left, right = side_by_side("".join(many), "".join([*many[:500], "new line\n", *many[501:]]))
    assert [run.text for run in left if run.changed] == [many[500]]
    assert [run.text for run in right if run.changed] == ["new line\n"]
    endless = "x\n" * 200_000
    assert side_by_side(endless, endless + "y") == ([Run(endless, True)], [Run(endless + "y", True)])
