"""Another review system in the place of ours: it decides at once, later, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from staged_requests import REQUEST

from commonplace.config import GovernanceConfig
from commonplace.engine import GovernanceClient, GovernanceDecision, ReviewerIdentity
from commonplace.engine.types import Draft, Forget, Merge, Statement, Update
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Forbidden
from commonplace.wire.validate import check

ALICE = ReviewerIdentity("https://id.example", "248289761001", "alice@example.org", "Alice")


@dataclass
class Board:
    """Decides everything alike."""

    decision: GovernanceDecision | Exception | None
    asked: list[Mapping[str, Any]] = field(default_factory=list)

    async def review(self, request: Mapping[str, Any]) -> GovernanceDecision | None:
        self.asked.append(request)
        if isinstance(self.decision, Exception):
            raise self.decision
        return self.decision


def plug(subject: Subject, decision: Any) -> Board:
    board = Board(decision)
    assert isinstance(board, GovernanceClient)
    subject.engine.settings.governance_client = board
    return board


def test_what_it_approves_happens_at_once_and_its_reviewer_is_noted(subject: Subject, run: Any) -> None:
    board = plug(subject, GovernanceDecision(True, ALICE, "known"))
    done = run(subject.engine.remember(WHO, Draft("agent", "semantic", "Bob moved"), approval=REQUEST, reasoning="why"))
    assert (done.review_id, run(subject.get(done.id)).content) == (None, "Bob moved")
    (asked,) = board.asked
    assert (asked["operation"], asked["agent_id"], asked["reasoning"]) == ("remember", "agent", "why")
    assert asked["diff"]["added"][0]["content"] == "Bob moved"
    (review,) = run(subject.engine.reviews.list(WHO, "approved"))
    decision = review["decision"]
    assert (decision["reviewer"], decision["reason"]) == ("alice@example.org", "known")
    assert decision["identity"] == {
        "iss": "https://id.example", "sub": "248289761001", "email": "alice@example.org", "name": "Alice",
    }  # fmt: skip
    check("memorywire/operations/governance.decision", decision)
    check("memorywire/types/review", review)


@pytest.mark.parametrize("approved", [True, False])
def test_it_is_asked_about_every_operation(subject: Subject, run: Any, approved: bool) -> None:
    engine = subject.engine
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    board = plug(subject, GovernanceDecision(approved, "board", "house rule"))
    attempts = {
        "update": lambda: engine.update(WHO, Update("agent", a, "uno", approval_required=True)),
        "merge": lambda: engine.merge(WHO, Merge("agent", a, [b], approval_required=True)),
        "forget": lambda: engine.forget(WHO, Forget("agent", [a], approval_required=True)),
        "statement": lambda: engine.assert_fact(WHO, Statement("agent", "a", "b", "c", approval_required=True)),
    }
    for operation, attempt in attempts.items():
        if approved:
            assert run(attempt()).review_id is None, operation
        else:
            with pytest.raises(Forbidden, match="board rejected it: house rule"):
                run(attempt())
    assert [asked["operation"] for asked in board.asked] == list(attempts)
    assert len(run(subject.list())) == (0 if approved else 2)
    assert bool(run(engine.graph.query(WHO, "agent", "a"))) is approved


@pytest.mark.parametrize("answer", [None, RuntimeError("down")])
def test_what_it_does_not_decide_stays_pending(subject: Subject, run: Any, answer: Any) -> None:
    plug(subject, answer)
    staged = run(subject.engine.remember(WHO, Draft("agent", "semantic", "Bob moved"), approval=REQUEST))
    assert staged.review_id is not None
    assert run(subject.gone(staged.id))
    assert run(subject.engine.reviews.get(WHO, staged.review_id))["status"] == "pending"


def test_it_is_held_to_four_eyes_and_to_policies(subject: Subject, run: Any) -> None:
    subject.engine.settings.governance = GovernanceConfig(four_eyes=True)
    plug(subject, GovernanceDecision(True, WHO.name))
    staged = run(subject.engine.remember(WHO, Draft("agent", "semantic", "Bob moved"), approval=REQUEST))
    assert staged.review_id is not None, "whoever asked does not approve by another way"
    plug(subject, GovernanceDecision(True, "board"))
    assert run(subject.engine.remember(WHO, Draft("agent", "semantic", "x"), approval=REQUEST)).review_id is None


def test_it_is_asked_about_what_a_rule_wants_reviewed(subject: Subject, run: Any) -> None:
    board = plug(subject, GovernanceDecision(True, "board"))
    run(subject.engine.policies.replace(WHO, [{"name": "all", "action": "review"}]))
    assert run(subject.engine.remember(WHO, Draft("agent", "semantic", "x"))).review_id is None
    assert board.asked[0]["rule"] == "all"
    stored = run(subject.engine.upsert(WHO, Draft("", "semantic", "y"), "n1", "agent"))
    assert (stored.created, stored.receipt.review_id) == (True, None)
