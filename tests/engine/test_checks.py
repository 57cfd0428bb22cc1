"""What is refused everywhere in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.checks import (
    RANK,
    check_agent_name,
    check_expiry,
    check_one_of,
    check_page_size,
    memory_not_found,
    require_operator,
    require_role,
)
from commonplace.wire.errors import Forbidden, ValidationError
from commonplace.wire.record import MAX_PAGE, Principal


@pytest.mark.parametrize("needed", RANK)
@pytest.mark.parametrize("role", RANK)
def test_a_role_includes_those_below_it(role: Any, needed: Any) -> None:
    who = Principal("alice", role=role)
    if list(RANK).index(role) >= list(RANK).index(needed):
        require_role(who, needed)
    else:
        with pytest.raises(Forbidden, match=f"alice is a {role}; this needs the role {needed}"):
            require_role(who, needed)


@pytest.mark.parametrize(
    ("who", "is_operator"),
    [
        (Principal("alice"), True),
        (Principal("alice", role="reviewer"), False),
        (Principal("alice", tenant="acme"), False),
        (Principal("alice", agents=("ada",)), False),
    ],
)
def test_the_operator_is_the_local_admin_of_every_agent(who: Principal, is_operator: bool) -> None:
    if is_operator:
        require_operator(who, "make a backup")
    else:
        with pytest.raises(Forbidden, match="alice may not make a backup; only an admin of the tenant local"):
            require_operator(who, "make a backup")


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "\x1b[31mred", "nul\0"])
def test_no_control_character_is_in_the_name_of_an_agent(name: str) -> None:
    with pytest.raises(ValidationError) as refused:
        check_agent_name(name)
    assert refused.value.details == {"field": "agent_id"}


@pytest.mark.parametrize("name", ["ada", "Ada Lovelace", "日本語", "a/b:c"])
def test_other_names_are_taken(name: str) -> None:
    check_agent_name(name)


@pytest.mark.parametrize(("limit", "fits"), [(0, False), (1, True), (MAX_PAGE, True), (MAX_PAGE + 1, False)])
def test_a_page_has_from_one_to_the_most(limit: int, fits: bool) -> None:
    if fits:
        check_page_size(limit)
    else:
        with pytest.raises(ValidationError, match=f"limit must be a whole number from 1 to {MAX_PAGE}, not {limit}"):
            check_page_size(limit)


@pytest.mark.parametrize(("expires_at", "fits"), [(None, True), (99, False), (100, False), (101, True)])
def test_an_expiry_lies_in_the_future(expires_at: int | None, fits: bool) -> None:
    if fits:
        check_expiry(expires_at, 100)
    else:
        with pytest.raises(ValidationError, match="expires_at must be in the future"):
            check_expiry(expires_at, 100)


@pytest.mark.parametrize(("status", "fits"), [(None, True), ("pending", True), ("decided", False), ("", False)])
def test_a_word_that_a_list_does_not_know_is_refused_with_those_it_knows(status: str | None, fits: bool) -> None:
    if fits:
        check_one_of("status", status, ("pending", "approved"))
    else:
        with pytest.raises(ValidationError, match=f"status is one of pending, approved, not {status!r}"):
            check_one_of("status", status, ("pending", "approved"))


def test_what_is_not_there_is_told_with_a_way_to_look() -> None:
    fault = memory_not_found("ada", "x")
    assert fault.summary == "no memory x for agent ada"
    assert fault.hint == "`commonplace list --agent ada` shows what there is"
