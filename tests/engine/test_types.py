"""What callers hand to the engine: requests that cannot change, and drafts that fit the record they become."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from commonplace.engine.types import Draft, Expire, Forget, Hit, Merge, RecallResult, Receipt, Snapshot
from commonplace.wire.record import Memory

MEMORY = Memory("m", "local", "agent", "semantic", "x")


def test_every_field_of_a_draft_is_one_of_the_memory_it_becomes() -> None:
    drafted = {field.name for field in fields(Draft)} - {"embedding"}
    assert drafted <= {field.name for field in fields(Memory)}


@pytest.mark.parametrize("name", sorted({field.name for field in fields(Draft)} - {"embedding", "agent_id"}))
def test_a_draft_that_says_nothing_is_a_memory_that_says_nothing(name: str) -> None:
    assert getattr(Draft("agent", "semantic", "x"), name) == getattr(MEMORY, name)


@pytest.mark.parametrize(
    "request_",
    [Forget("agent"), Merge("agent", "a", ["b"]), Expire("agent"), Snapshot(1, 2)],
    ids=lambda request: type(request).__name__,
)
def test_a_request_stays_as_it_was_made(request_: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(request_, fields(request_)[0].name, "another")


@pytest.mark.parametrize("make", [
    lambda: Draft("agent", "semantic", "x"), lambda: Receipt("i", 0, []), lambda: Hit(MEMORY, 1.0, "memory"),
    lambda: RecallResult([], [], 0.0),
])  # fmt: skip
def test_no_two_share_a_list_or_a_dictionary(make: Any) -> None:
    one, other = make(), make()
    for field in fields(one):
        value = getattr(one, field.name)
        if isinstance(value, (list, dict)) and field.default_factory is not None:
            assert value is not getattr(other, field.name), field.name
