"""Approval learning: counted from consistent decisions, journaled each time, and revocable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commonplace.config import GovernanceConfig
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.governance.learning import Pattern, count, pattern_id
from commonplace.engine.types import Draft, Forget
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Forbidden, NotFound
from commonplace.wire.record import Principal

WREN, RITA = Principal("wren", role="writer"), Principal("rita", role="reviewer")
PATTERN = Pattern("notes", "remember", "agent", "wren", "", "semantic", "semantic", "")
YES, NO = Decision(True), Decision(False)


def decided(n: int, approved: bool, **more: Any) -> dict[str, Any]:
    decision = {"approved": approved, "reviewer": more.pop("reviewer", "rita"), "reviewed_at": n}
    pattern = {name: getattr(PATTERN, name) for name in Pattern.__slots__}
    return {"id": str(n), "requested_by": "wren", "pattern": pattern, "decision": decision, **more}


@pytest.mark.parametrize(
    ("reviews", "expected"),
    [
        ([decided(1, True), decided(2, True)], 2),
        ([decided(2, True), decided(1, False)], 1),
        ([decided(1, True), decided(2, False)], 0),
        ([decided(1, True), decided(2, True, edited_by=["rita"])], 0),
        ([decided(1, True), decided(2, True, edited=True)], 0),
        ([decided(1, True, reviewer="wren")], 0),
        ([decided(1, True), {"id": "2", "pattern": None}, {"id": "3"}], 1),
    ],
)
def test_approvals_in_a_row_by_others_are_counted(reviews: list[dict[str, Any]], expected: int) -> None:
    assert count(reviews, {})[pattern_id(PATTERN)].approved == expected


def test_only_decisions_after_a_revocation_count() -> None:
    reviews = [decided(n, True) for n in (1, 2, 3)]
    assert count(reviews, {pattern_id(PATTERN): 2})[pattern_id(PATTERN)].approved == 1


def write(subject: Subject, run: Any, content: str = "note", **fields: Any) -> Any:
    subject.clock.advance(1)
    return run(subject.engine.remember(WREN, Draft("agent", "semantic", content, **fields)))


def begin(subject: Subject, run: Any, after: int) -> None:
    subject.engine.settings.governance = GovernanceConfig(auto_allow_after=after)
    run(subject.engine.policies.replace(WHO, [{"name": "notes", "when": {"principal": ["wren"]}, "action": "review"}]))


def decide(subject: Subject, run: Any, review_id: str, decision: Decision = YES) -> None:
    run(subject.engine.reviews.decide(RITA, review_id, decision))


def test_after_enough_consistent_approvals_it_is_allowed_and_journaled(subject: Subject, run: Any) -> None:
    begin(subject, run, after=2)
    for place in range(2):
        review_id = write(subject, run, f"note {place}").review_id
        decide(subject, run, review_id)
        (found,) = run(subject.engine.policies.learned(WHO))
        assert (found["approved"], found["auto_allow"]) == (place + 1, place == 1)
    assert write(subject, run).review_id is None
    (entry,), _ = run(subject.engine.ledger.page(WHO, operation="auto_allow"))
    assert (entry.principal, entry.agent_id) == ("wren", "agent")
    assert write(subject, run, source="elsewhere").review_id is not None, "another pattern is another matter"
    kept = run(subject.list())[0].id
    assert run(subject.engine.forget(WREN, Forget("agent", [kept]))).review_id is not None


def test_one_rejection_begins_the_count_anew(subject: Subject, run: Any) -> None:
    begin(subject, run, after=1)
    decide(subject, run, write(subject, run, "a").review_id)
    assert write(subject, run, "b").review_id is None
    subject.engine.settings.governance = GovernanceConfig(auto_allow_after=0)
    rejected = write(subject, run, "c").review_id
    assert rejected is not None, "learning is opt-in"
    decide(subject, run, rejected, NO)
    subject.engine.settings.governance = GovernanceConfig(auto_allow_after=1)
    assert write(subject, run, "d").review_id is not None


def test_what_was_learned_can_be_revoked(subject: Subject, run: Any) -> None:
    begin(subject, run, after=1)
    decide(subject, run, write(subject, run, "a").review_id)
    (found,) = run(subject.engine.policies.learned(WHO))
    with pytest.raises(Forbidden):
        run(subject.engine.policies.revoke(WREN, found["id"]))
    with pytest.raises(NotFound):
        run(subject.engine.policies.revoke(replace(RITA, agents=("other",)), found["id"]))
    run(subject.engine.policies.revoke(RITA, found["id"]))
    assert run(subject.engine.policies.learned(WHO)) == []
    assert write(subject, run, "b").review_id is not None
    with pytest.raises(NotFound):
        run(subject.engine.policies.revoke(RITA, found["id"]))


def test_what_its_author_wants_reviewed_is_reviewed_whatever_was_learned(subject: Subject, run: Any) -> None:
    begin(subject, run, after=1)
    decide(subject, run, write(subject, run, "a").review_id)
    staged = run(subject.engine.remember(WREN, Draft("agent", "semantic", "b"), approval={"content": "b"}))
    assert staged.review_id is not None
