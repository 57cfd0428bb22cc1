"""Who may look at policies, try them and change them; the rest is in test_policies.py and test_learning.py."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Forbidden, ValidationError
from commonplace.wire.record import Principal


def test_readers_and_writers_see_no_rules_and_try_none(subject: Subject, run: Any) -> None:
    policies = subject.engine.policies
    for role in ("reader", "writer"):
        who = Principal("x", role=role)
        for attempt in (policies.get(who), policies.dry_run(who, []), policies.learned(who), policies.revoke(who, "x")):
            with pytest.raises(Forbidden):
                run(attempt)


@pytest.mark.parametrize("days", [0, 3651])
def test_a_dry_run_looks_back_some_days(subject: Subject, run: Any, days: int) -> None:
    with pytest.raises(ValidationError, match="days must be a whole number from 1 to 3650"):
        run(subject.engine.policies.dry_run(WHO, [], days))


def test_a_dry_run_shows_a_reviewer_only_agents_of_theirs(subject: Subject, run: Any) -> None:
    run(subject.remember("one", "ada"))
    run(subject.remember("two", "bea"))
    rule = {"name": "all", "action": "review"}
    found = run(subject.engine.policies.dry_run(Principal("r", role="reviewer", agents=("ada",)), [rule]))
    assert [each["agent_id"] for each in found["caught"]] == ["ada"]


def test_what_was_erased_is_not_in_a_dry_run(subject: Subject, run: Any) -> None:
    id = run(subject.remember("zanzibar"))
    run(subject.forget(id, hard_delete=True))
    found = run(subject.engine.policies.dry_run(WHO, [{"name": "all", "action": "review"}]))
    assert "zanzibar" not in repr(found)
