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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I prefer tabs over spaces.", "I PREFER tabs,  over spaces!"),
        ("I prefer tabs over spaces.", "I really prefer tabs over spaces."),
        ("I prefer tabs over spaces.", "Ok, I actually prefer the tabs over spaces"),
        ("I am allergic to peanuts.", "I'm allergic to peanuts!"),
        ("Our server does not use Redis.", "Our server doesn’t use Redis."),
        ("We will not deploy on Fridays.", "We won't deploy on Fridays."),
        ("We cannot use Redis.", "We can't use Redis."),
        ("Let us use ruff.", "Let's use ruff."),
        ("It is called stable.", "it's called stable"),
        ("The port is 8420, not 8080.", "Port is 8420 not 8080"),
        ("We use C++.", "We use C++!"),
    ],
)
def test_case_punctuation_articles_fillers_and_contractions_change_nothing(one: str, other: str) -> None:
    assert is_near_duplicate(draft(one), draft(other))
    assert is_near_duplicate(draft(other), draft(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I prefer tabs over spaces in Python files.", "I prefer spaces over tabs in Python files."),
        ("Our port is 8080, not 8420.", "Our port is 8420, not 8080."),
        ("We moved to Postgres from MySQL last year.", "We moved to MySQL from Postgres last year."),
        (
            "Always deploy the billing service from the main branch on Monday mornings before the daily standup.",
            "Always deploy the billing service from the main branch on Tuesday mornings before the daily standup.",
        ),
        ("My birthday is on the 3rd of May.", "My birthday is on the 3rd of June."),
        ("My manager is Alice and my deputy is Bob.", "My manager is Bob and my deputy is Alice."),
        ("Let's use version v1.2.3 of the library.", "Let's use version v3.2.1 of the library."),
        ("We use C++ for the core engine.", "We use C# for the core engine."),
        ("Our margin is 5 percent this year.", "Our margin is -5 percent this year."),
        ("The flat has 5² tiles on the floor of the kitchen.", "The flat has 52 tiles on the floor of the kitchen."),
        ("We deploy .NET to the cluster.", "We deploy NET to the cluster."),
        ("Our team A uses Redis for the cache.", "Our team uses Redis for the cache."),
        ("No, deploys happen on Friday.", "No deploys happen on Friday."),
        ("We do not really mind long functions.", "We do not mind long functions."),
        ("Our magic word is please.", "Our magic word is also."),
        ("The healthy state is OK for us.", "The healthy state is yes for us."),
        ("Alice's server is down.", "Alice server is down."),
        ("We deploy on Mondays?", "We deploy on Mondays."),
    ],
)
def test_another_word_number_symbol_or_order_is_something_else(one: str, other: str) -> None:
    assert not is_near_duplicate(draft(one), draft(other))
    assert not is_near_duplicate(draft(other), draft(one))


def test_punctuation_alone_says_nothing_twice() -> None:
    assert not is_near_duplicate(draft("..."), draft("!!!"))
