"""What says the same as something said before, and what only has its words."""

from __future__ import annotations

import pytest

from commonplace.engine.transfer.near_duplicates import NearDuplicates, is_near_duplicate
from commonplace.engine.types import Draft


def draft(text: str, user: str | None = None, project: str | None = None) -> Draft:
    return Draft("agent", "semantic", text, user_id=user, project=project)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (draft("We deploy at 9 on Mondays."), draft("we deploy at 9, on Mondays!"), True),
        (draft("We deploy at 9 on Mondays."), draft("We deploy at 10 on Mondays."), False),
        (draft("Our tests are always quick."), draft("Our tests are not always quick."), False),
        (draft("I prefer tabs over spaces."), draft("We like long walks on the beach."), False),
        (draft("I prefer tabs."), draft("I prefer tabs.", "alice", "atlas"), True),
        (draft("I prefer tabs.", "alice"), draft("I prefer tabs.", "alice", "atlas"), True),
        (draft("I prefer tabs.", "alice"), draft("I prefer tabs.", "bob"), False),
        (draft("I prefer tabs.", project="atlas"), draft("I prefer tabs.", project="borealis"), False),
        (draft(""), draft(""), False),
    ],
)
def test_both_ways_of_asking_say_the_same(one: Draft, other: Draft, same: bool) -> None:
    for first, second in ((one, other), (other, one)):
        said = NearDuplicates[str]()
        said.add(draft("something else altogether"), "else")
        said.add(first, "it")
        assert list(said.of(second)) == ["it"] * same
        assert is_near_duplicate(first, second) is same
