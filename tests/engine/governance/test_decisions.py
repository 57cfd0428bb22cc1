"""Deciding: in time, once, of what was looked at, and by other eyes where the operator wants that."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from staged_requests import REQUEST, stage_all
from stored_records import stored_records

from commonplace.config import GovernanceConfig
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.types import Draft, Forget, Merge, Receipt, Statement, Update
from commonplace.testing.subject import DAY_MS, WHO, Subject
from commonplace.wire.errors import Conflict, Fault, Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal

YES, NO = Decision(True, "Alice"), Decision(False, "Alice", "not true")
OPERATIONS = ("remember", "update", "forget", "merge", "statement")
WRITER = Principal("wren", role="writer")
REVIEWERS = Principal("rita", role="reviewer"), Principal("rob", role="reviewer")


def govern(subject: Subject, **settings: Any) -> None:
    subject.engine.settings.governance = GovernanceConfig(**settings)


def stage(subject: Subject, run: Any, who: Principal = WHO, content: str = "Bob moved") -> Any:
    return run(subject.engine.remember(who, Draft("agent", "semantic", content), approval=REQUEST))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_of_two_reviewers_at_once_one_wins_and_the_other_is_told(subject: Subject, run: Any, operation: str) -> None:
    review = stage_all(subject, run)[operation]

    async def race() -> list[Any]:
        decide = subject.engine.reviews.decide
        return await asyncio.gather(
            *(decide(who, review, decision) for who, decision in zip(REVIEWERS, (YES, NO), strict=True)),
            return_exceptions=True,
        )

    won, lost = sorted(run(race()), key=lambda outcome: isinstance(outcome, Conflict))
    assert isinstance(lost, Conflict)
    status, reviewer = won.review["status"], won.review["decision"]["reviewer"]
    assert f"was {status} already by {reviewer}" in str(lost)
    assert run(subject.engine.reviews.get(WHO, review))["status"] == status


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_old_revision_cannot_be_approved(subject: Subject, run: Any, operation: str) -> None:
    review = stage_all(subject, run)[operation]
    reviews = subject.engine.reviews
    shown = run(reviews.get(WHO, review))
    assert shown["revision"] == 1
    edits: dict[str, Any] = {
        "remember": Draft("agent", "semantic", "coffee"),
        "update": Update("agent", "", "coffee"),
        "statement": Statement("agent", "coffee", "is", "brown"),
    }
    if operation == "forget":
        edits[operation] = Forget("agent", [shown["nearest"][0]["id"]])
    if operation == "merge":
        edits[operation] = Merge("agent", *(m["id"] for m in shown["diff"]["removed"]), [shown["nearest"][0]["id"]])
    request = {"agent_id": "agent", **_fields(edits[operation])}
    fresh = run(reviews.edit(REVIEWERS[0], review, edits[operation], request, revision=1))
    assert (fresh["revision"], fresh["edited_by"], fresh["status"]) == (2, ["rita"], "pending")
    assert fresh["diff"] != shown["diff"]
    for stale in (replace(YES, revision=1), replace(NO, revision=1)):
        with pytest.raises(Conflict, match="revision 2, not 1") as refused:
            run(reviews.decide(WHO, review, stale))
        assert refused.value.details["review"]["diff"] == fresh["diff"]
    with pytest.raises(Conflict):
        run(reviews.edit(REVIEWERS[0], review, edits[operation], request, revision=1))
    done = run(reviews.decide(WHO, review, replace(YES, revision=2)))
    assert done.review["status"] == "approved"


def _fields(edit: Any) -> dict[str, Any]:
    names = ("content", "subject", "predicate", "object", "ids", "canonical", "duplicates")
    found = {name: getattr(edit, name) for name in names if getattr(edit, name, None)}
    return {**found, "type": "semantic"} if isinstance(edit, Draft) else found


def test_an_edit_is_what_is_approved_and_the_ledger_knows_of_it(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    edited = Draft("agent", "semantic", "Bob moved to Oslo")
    run(subject.engine.reviews.edit(REVIEWERS[0], staged.review_id, edited, {"content": "Bob moved to Oslo"}))
    assert run(subject.gone(staged.id)), "an edit approves nothing"
    run(subject.engine.reviews.decide(REVIEWERS[1], staged.review_id, YES))
    assert run(subject.get(staged.id)).content == "Bob moved to Oslo"
    entries, _ = run(subject.engine.ledger.page(WHO))
    assert [(e.operation, e.principal) for e in entries][-3:] == [
        ("edit_review", "rita"), ("approve", "rob"), ("remember", "local"),
    ]  # fmt: skip


def test_nobody_but_a_reviewer_edits(subject: Subject, run: Any) -> None:
    staged, edited = stage(subject, run, WRITER), Draft("agent", "semantic", "x")
    for who, fault in ((WRITER, Forbidden), (replace(WRITER, name="other"), NotFound)):
        with pytest.raises(fault):
            run(subject.engine.reviews.edit(who, staged.review_id, edited, {"content": "x"}))
    with pytest.raises(ValidationError):
        run(subject.engine.reviews.edit(WHO, staged.review_id, Forget("agent", ["x"]), {}))


def test_with_four_eyes_nobody_approves_what_they_asked_for_or_edited(subject: Subject, run: Any) -> None:
    rita, rob = REVIEWERS
    govern(subject, four_eyes=True)
    staged = stage(subject, run, rita)
    decide = subject.engine.reviews.decide
    with pytest.raises(Forbidden, match="nobody approves their own write"):
        run(decide(rita, staged.review_id, YES))
    edited = replace(YES, edited=Draft("agent", "semantic", "x"))
    with pytest.raises(Forbidden, match="an edit waits for another"):
        run(decide(rob, staged.review_id, edited))
    run(subject.engine.reviews.edit(rob, staged.review_id, Draft("agent", "semantic", "Bob left"), {"content": "x"}))
    for who in REVIEWERS:
        with pytest.raises(Forbidden):
            run(decide(who, staged.review_id, YES))
    run(decide(Principal("carol", role="reviewer"), staged.review_id, YES))
    assert run(subject.get(staged.id)).content == "Bob left"
    own = stage(subject, run, rita)
    assert run(decide(rita, own.review_id, NO)).review["status"] == "rejected", "one may withdraw one's own"


def test_with_four_eyes_open_local_mode_says_that_names_need_tokens(subject: Subject, run: Any) -> None:
    govern(subject, four_eyes=True)
    staged = stage(subject, run)
    with pytest.raises(Forbidden, match=r"on the page or over HTTP with another's token .*token create"):
        run(subject.engine.reviews.decide(WHO, staged.review_id, replace(YES, reviewer="someone else")))
    run(subject.engine.reviews.decide(REVIEWERS[0], staged.review_id, YES))


def test_many_are_decided_each_with_its_own_outcome(subject: Subject, run: Any) -> None:
    first, second, third = (stage(subject, run, content=text) for text in ("one", "two", "three"))
    run(subject.engine.reviews.decide(WHO, second.review_id, NO))
    ids = [first.review_id, second.review_id, "nothing", third.review_id, first.review_id]
    outcomes = run(subject.engine.reviews.decide_many(WHO, ids, YES))
    codes = [each.code if isinstance(each, Fault) else each.review["status"] for each in outcomes]
    assert codes == ["approved", "conflict", "not_found", "approved", "approved"]
    assert {m.content for m in run(subject.list())} == {"one", "three"}
    for wrong in ([], ["x"] * 1001):
        with pytest.raises(ValidationError, match="1 to 1000 reviews"):
            run(subject.engine.reviews.decide_many(WHO, wrong, YES))


@pytest.mark.parametrize("rejected", ["keep", "erase"])
def test_a_stale_review_expires(subject: Subject, run: Any, rejected: str) -> None:
    govern(subject, review_days=7, rejected=rejected)
    staged = stage(subject, run, content="zanzibar")
    subject.clock.advance(7 * DAY_MS - 1)
    assert run(subject.engine.reviews.get(WHO, staged.review_id))["status"] == "pending"
    subject.clock.advance(1)
    assert run(subject.engine.reviews.list(WHO)) == []
    assert [r["id"] for r in run(subject.engine.reviews.list(WHO, "expired"))] == [staged.review_id]
    assert run(subject.engine.upkeep.status(WHO))["pending_reviews"] == 0
    for decision in (YES, NO):
        with pytest.raises(Conflict, match="has expired: it waited longer than 7 days"):
            run(subject.engine.reviews.decide(WHO, staged.review_id, decision))
    assert run(subject.engine.reviews.sweep(WHO)) == 1
    assert run(subject.engine.reviews.sweep(WHO)) == 0
    assert run(subject.engine.reviews.get(WHO, staged.review_id))["status"] == "expired"
    assert ("zanzibar" in stored_records(subject, run)) is (rejected == "keep")
    assert run(subject.gone(staged.id))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_was_rejected_can_be_erased_at_once(subject: Subject, run: Any, operation: str) -> None:
    review = stage_all(subject, run)[operation]
    govern(subject, rejected="erase")
    run(subject.engine.reviews.decide(WHO, review, replace(NO, reason="because of tea")))
    record = run(subject.store.record("local", "review", review))
    assert record.value["status"] == "rejected"
    assert "tea" not in json.dumps(record.value)
    assert len(run(subject.list())) == 3, "what the review was about is left alone"
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_by_default_what_was_rejected_is_kept_for_the_audit(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    run(subject.engine.reviews.decide(WHO, staged.review_id, NO))
    assert run(subject.engine.reviews.get(WHO, staged.review_id))["diff"]["added"][0]["content"] == "Bob moved"


def test_the_same_key_after_a_rejection_that_erased_says_so(subject: Subject, run: Any) -> None:
    govern(subject, rejected="erase")

    async def send() -> Receipt:
        return await subject.engine.remember(
            WHO, Draft("agent", "semantic", "Bob moved"), approval=REQUEST, idempotency_key="key"
        )

    staged = run(send())
    run(subject.engine.reviews.decide(WHO, staged.review_id, NO))
    with pytest.raises(Conflict, match="has been erased"):
        run(send())
