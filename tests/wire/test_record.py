"""The record: which agents a name given to a token means, and words that schemas say, too."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given, strategies as st

from commonplace.wire.record import REVIEW_STATUSES, Principal, covers
from commonplace.wire.validate import schema


@pytest.mark.parametrize(("pattern", "agent", "meant"), [
    ("team[1]", "team[1]", True), ("team[1]", "team1", False), ("team?", "team?", True), ("team?", "teams", False),
    ("*", "anything", True), ("team-*", "team-", True), ("team-*", "team", False), ("a*a", "a", False),
    ("a*b*c", "a-b-b-c", True), ("a*b*c", "a-c-b", False), ("*b*", "abc", True), ("", "", True), ("", "a", False),
    ("x*\n*", "xy\nz", True),
])  # fmt: skip
def test_only_a_star_is_special(pattern: str, agent: str, meant: bool) -> None:
    assert covers(pattern, agent) is meant
    assert Principal(agents=("other", pattern)).may_use(agent) is meant


@given(st.text("ab*", max_size=8), st.text("ab\n", max_size=10))
def test_stars_mean_what_they_mean_to_a_shell(pattern: str, agent: str) -> None:
    assert covers(pattern, agent) is fnmatchcase(agent, pattern)


def test_the_statuses_of_a_review_are_those_of_the_schemas() -> None:
    asked, told = (
        schema(f"memorywire/{name}")["properties"]["status"] for name in ("operations/reviews", "types/review")
    )
    assert asked["enum"] == [*told["enum"], "all"] == [*REVIEW_STATUSES, "all"]
