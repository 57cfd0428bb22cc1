"""Reviews: each is decided once, by who may, and happens as it was shown."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from stored_records import stored_records

from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import Draft, Forget, Merge
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal

YES, NO = Decision(True, "Alice"), Decision(False, "Alice", "not true")
REQUEST = {"agent_id": "agent", "type": "semantic", "content": "Bob moved", "approval_required": True}


def stage(subject: Subject, run: Any, content: str = "Bob moved", **fields: Any) -> Any:
    draft = Draft("agent", "semantic", content, **fields)
    return run(subject.engine.remember(WHO, draft, approval={**REQUEST, "content": content}, reasoning="he said so"))


def test_a_review_is_decided_once(subject: Subject, run: Any) -> None:
    for first in (YES, NO):
        staged = stage(subject, run)
        run(subject.engine.reviews.decide(WHO, staged.review_id, first))
        for second in (YES, NO):
            with pytest.raises(Conflict):
                run(subject.engine.reviews.decide(WHO, staged.review_id, second))
    assert len(run(subject.list())) == 1
    assert run(subject.engine.reviews.list(WHO)) == []
    assert [r["status"] for r in run(subject.engine.reviews.list(WHO, None))] == ["approved", "rejected"]
    with pytest.raises(NotFound):
        run(subject.engine.reviews.decide(WHO, "nothing", YES))


def test_an_edited_request_is_what_gets_written(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    edited = Draft("agent", "semantic", "Bob moved to Oslo")
    with pytest.raises(ValidationError):
        run(
            subject.engine.reviews.decide(
                WHO, staged.review_id, Decision(True, "Alice", edited=Draft("other", "semantic", "x"))
            )
        )
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
    assert run(subject.get(staged.id)).content == "Bob moved to Oslo"


def test_edited_forgets_and_merges_stay_with_their_agent(subject: Subject, run: Any) -> None:
    a, b, elsewhere, too = (run(subject.remember("x", agent)) for agent in ("agent", "agent", "other", "other"))
    run(subject.forget(a, approval_required=True))
    run(subject.engine.merge(WHO, Merge("agent", a, [b], approval_required=True)))
    forget, merge = run(subject.engine.reviews.list(WHO))
    for review, request in ((forget, Forget("other", [elsewhere])), (merge, Merge("other", elsewhere, [too]))):
        with pytest.raises(ValidationError):
            run(subject.engine.reviews.decide(WHO, review["id"], Decision(True, "Alice", edited=request)))
    assert len(run(subject.list("other"))) == len(run(subject.list())) == 2


def test_a_staged_forget_takes_what_was_shown_and_no_more(subject: Subject, run: Any) -> None:
    shown = run(subject.remember("a draft", tags=["draft"]))
    run(subject.forget(filter={"tags": "draft"}, approval_required=True))
    later = run(subject.remember("another draft", tags=["draft"]))
    (review,) = run(subject.engine.reviews.list(WHO))
    decided = run(subject.engine.reviews.decide(WHO, review["id"], YES))
    assert decided.outcome.ids == [shown]
    assert [m.id for m in run(subject.list())] == [later]


def test_a_staged_merge_takes_what_was_shown_and_no_more(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("Alice", entity_name="alice")), run(subject.remember("Alicia", entity_name="alicia"))
    run(subject.engine.merge(WHO, Merge("agent", "alice", ["alicia"], approval_required=True)))
    later = run(subject.remember("Alicia the second", entity_name="alicia"))
    (review,) = run(subject.engine.reviews.list(WHO))
    run(subject.engine.reviews.decide(WHO, review["id"], YES))
    assert {m.id for m in run(subject.list())} == {a, later}
    assert run(subject.store.get("local", [b]))[0].merged_into == a


def test_a_staged_erasure_cascades_to_what_was_shown(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    run(subject.merge(a, b, strategy="merge_content"))
    run(subject.forget(b, hard_delete=True, cascade=True, approval_required=True))
    (review,) = run(subject.engine.reviews.list(WHO))
    assert {m["id"] for m in review["diff"]["removed"]} == {a, b}
    assert set(run(subject.engine.reviews.decide(WHO, review["id"], YES)).outcome.ids) == {a, b}
    assert run(subject.store.get("local", [a, b])) == []


def test_a_review_about_something_erased_can_no_longer_be_approved(subject: Subject, run: Any) -> None:
    a = run(subject.remember("one"))
    run(subject.forget(a, approval_required=True))
    (review,) = run(subject.engine.reviews.list(WHO))
    run(subject.forget(a, hard_delete=True))
    with pytest.raises(Conflict):
        run(subject.engine.reviews.decide(WHO, review["id"], YES))


def test_only_reviewers_of_that_agent_decide(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    for who, fault in (
        (Principal(WHO.name, role="writer"), Forbidden),
        (Principal("w", role="writer"), NotFound),
        (Principal("r", role="reviewer", agents=("other",)), NotFound),
        (Principal("r", role="reviewer", tenant="other"), NotFound),
    ):
        with pytest.raises(fault):
            run(subject.engine.reviews.decide(who, staged.review_id, YES))
        if fault is NotFound:
            assert run(subject.engine.reviews.list(who)) == []
    run(subject.engine.reviews.decide(Principal("r", role="reviewer", agents=("ag*",)), staged.review_id, YES))
    assert run(subject.get(staged.id)).provenance["principal"] == WHO.name


def test_a_rejected_write_never_was(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, aliases=["bob"])
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, NO))
    assert decided.review["decision"]["reason"] == "not true"
    assert run(subject.list()) == run(subject.recall("Bob moved")) == []
    assert run(subject.store.sequence("local")) == 0
    run(subject.remember("Bob stayed", aliases=["bob"]))


def test_a_rejected_write_can_be_erased(subject: Subject, run: Any) -> None:
    staged = run(
        subject.engine.remember(WHO, Draft("agent", "semantic", "a rejected secret"), approval={"content": "a"})
    )
    forget = Forget("agent", [staged.id], hard_delete=True)
    assert run(subject.engine.forget(WHO, forget)).ids == []  # while it is pending nobody can touch it
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(False, "bob")))
    assert run(subject.engine.forget(WHO, forget)).ids == [staged.id]
    (review,) = run(subject.engine.reviews.list(WHO, None))
    assert review["status"] == "rejected"
    assert "secret" not in str(review)
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None


def test_a_review_is_seen_by_reviewers_and_whoever_asked(subject: Subject, run: Any) -> None:
    alice = Principal("alice", role="writer")
    run(subject.engine.remember(alice, Draft("agent", "semantic", "for review"), approval={"content": "x"}))
    assert len(run(subject.engine.reviews.list(alice))) == 1
    assert run(subject.engine.reviews.list(Principal("bob", role="writer"))) == []
    assert len(run(subject.engine.reviews.list(Principal("bob", role="reviewer")))) == 1
    assert run(subject.engine.reviews.list(Principal("bob", role="reviewer", agents=("other",)))) == []


@pytest.mark.parametrize("operation", ["forget", "merge"])
def test_an_edited_review_is_about_what_the_edit_names(subject: Subject, run: Any, operation: str) -> None:
    a, b, c, d = (run(subject.remember(text, tags=[text])) for text in "abcd")
    edited: Any
    if operation == "forget":
        run(subject.forget(a, approval_required=True))
        edited = Forget("agent", [c], {"tags": "c"}, reason="MARK")
    else:
        run(subject.engine.merge(WHO, Merge("agent", a, [b], approval_required=True)))
        edited = Merge("agent", d, [c], reasoning="MARK")
    (review,) = run(subject.engine.reviews.list(WHO))
    request = {name: value for name, value in asdict(edited).items() if value is not None}
    run(
        subject.engine.reviews.decide(WHO, review["id"], Decision(True, "Alice", edited=edited, edited_request=request))
    )
    assert "MARK" in stored_records(subject, run)
    run(subject.forget(c, hard_delete=True))
    assert "MARK" not in stored_records(subject, run)


def test_an_edit_keeps_what_the_record_is_to_its_protocol(subject: Subject, run: Any) -> None:
    draft = Draft("agent", "semantic", "use tabs", kind="lesson", aliases=["l1"], provenance={"dialect": "amp"})
    for alias, kind, metadata in (("l1", "lesson", {}), ("l2", "snippet", {"kind": "snippet"})):
        staged = run(subject.engine.remember(WHO, replace(draft, aliases=[alias]), approval={"content": "use tabs"}))
        edited = Draft("agent", "semantic", "use spaces", metadata={"kind": kind, "k": 1})
        run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
        memory = run(subject.get(alias))
        assert (memory.id, memory.content, memory.kind) == (staged.id, "use spaces", "lesson")
        assert memory.provenance["dialect"] == "amp"
        assert memory.metadata == {**metadata, "k": 1}


def test_a_review_of_an_agent_with_an_odd_name_can_be_approved(subject: Subject, run: Any) -> None:
    who = Principal("alice", role="reviewer", agents=("team[1]",))
    staged = run(subject.engine.remember(who, Draft("team[1]", "semantic", "x"), approval={"content": "x"}))
    run(subject.engine.reviews.decide(who, staged.review_id, Decision(True, "Alice")))
    assert run(subject.get(staged.id, "team[1]")).content == "x"
