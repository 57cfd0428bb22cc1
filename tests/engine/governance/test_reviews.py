"""Reviews: what waits is nowhere to be seen, is decided once, and happens as it was shown."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import Draft, Forget, Merge
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.validate import check

Over = tuple[Subject, Any]
YES, NO = Decision(True, "Alice"), Decision(False, "Alice", "not true")
REQUEST = {"agent_id": "agent", "type": "semantic", "content": "Bob moved", "approval_required": True}


def stage(s: Subject, run: Any, content: str = "Bob moved", **fields: Any) -> Any:
    draft = Draft("agent", "semantic", content, **fields)
    return run(s.engine.remember(WHO, draft, approval={**REQUEST, "content": content}, reasoning="he said so"))


def reviewed(review: dict[str, Any]) -> dict[str, Any]:
    return {k: review[k] for k in ("operation", "agent_id", "request", "diff", "reasoning") if k in review}


def test_a_pending_memory_cannot_be_touched(over: Over) -> None:
    s, run = over
    staged = stage(s, run, aliases=["bob"])
    other = run(s.remember("Bob lives in Rome"))
    for ref in (staged.id, "bob"):
        assert run(s.gone(ref))
        assert run(s.forget(ref)).ids == []
        assert run(s.forget(ref, hard_delete=True)).ids == []
        for resolve_parties in ((ref, other), (other, ref)):
            with pytest.raises(NotFound):
                run(s.merge(*resolve_parties))
        with pytest.raises(NotFound):
            run(s.update(ref, content="x"))
        with pytest.raises(NotFound):
            run(s.engine.history(WHO, "agent", ref))
    assert [m.id for m in run(s.list())] == [other]
    s.clock.advance(10)
    decided = run(s.engine.reviews.decide(WHO, staged.review_id, YES))
    memory = run(s.get("bob"))
    assert (memory.id, memory.created_at, memory.version) == (staged.id, s.clock(), 1)
    assert decided.review["decision"] == {"approved": True, "reviewer": "Alice", "reviewed_at": s.clock()}
    check("memorywire/operations/governance.decision", decided.review["decision"])


def test_a_review_is_decided_once(over: Over) -> None:
    s, run = over
    for first in (YES, NO):
        staged = stage(s, run)
        run(s.engine.reviews.decide(WHO, staged.review_id, first))
        for second in (YES, NO):
            with pytest.raises(Conflict):
                run(s.engine.reviews.decide(WHO, staged.review_id, second))
    assert len(run(s.list())) == 1
    assert run(s.engine.reviews.list(WHO)) == []
    assert [r["status"] for r in run(s.engine.reviews.list(WHO, None))] == ["approved", "rejected"]
    with pytest.raises(NotFound):
        run(s.engine.reviews.decide(WHO, "nothing", YES))


def test_an_edited_request_is_what_gets_written(over: Over) -> None:
    s, run = over
    staged = stage(s, run)
    edited = Draft("agent", "semantic", "Bob moved to Oslo")
    with pytest.raises(ValidationError):
        run(
            s.engine.reviews.decide(
                WHO, staged.review_id, Decision(True, "Alice", edited=Draft("other", "semantic", "x"))
            )
        )
    run(s.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
    assert run(s.get(staged.id)).content == "Bob moved to Oslo"


def test_edited_forgets_and_merges_stay_with_their_agent(over: Over) -> None:
    s, run = over
    a, b, elsewhere, too = (run(s.remember("x", agent)) for agent in ("agent", "agent", "other", "other"))
    run(s.forget(a, approval_required=True))
    run(s.engine.merge(WHO, Merge("agent", a, [b], approval_required=True)))
    forget, merge = run(s.engine.reviews.list(WHO))
    for review, request in ((forget, Forget("other", [elsewhere])), (merge, Merge("other", elsewhere, [too]))):
        with pytest.raises(ValidationError):
            run(s.engine.reviews.decide(WHO, review["id"], Decision(True, "Alice", edited=request)))
    assert len(run(s.list("other"))) == len(run(s.list())) == 2


def test_every_review_follows_the_schema(over: Over) -> None:
    s, run = over
    stage(s, run, metadata={"k": 1}, tags=["x"])
    a, b = run(s.remember("one", entity_name="it")), run(s.remember("two", entity_name="it"))
    run(s.forget(filter={"entity_name": "it"}, approval_required=True, reasoning="old"))
    for strategy in ("keep_canonical", "merge_content"):
        run(s.engine.merge(WHO, Merge("agent", a, [b], strategy, approval_required=True)))
    reviews = run(s.engine.reviews.list(WHO))
    for review in reviews:
        check("memorywire/operations/governance.review", reviewed(review))
    remember, forget, keep, joined = reviews
    assert [m["content"] for m in remember["diff"]["added"]] == ["Bob moved"]
    assert [m["content"] for m in forget["diff"]["removed"]] == ["one", "two"]
    assert ([m["id"] for m in keep["diff"]["removed"]], keep["diff"]["modified"]) == ([b], [])
    (change,) = joined["diff"]["modified"]
    assert (change["before"]["content"], change["after"]["content"]) == ("one", "one\ntwo")
    assert not any("draft" in review or "ids" in review for review in reviews)


def test_a_staged_forget_takes_what_was_shown_and_no_more(over: Over) -> None:
    s, run = over
    shown = run(s.remember("a draft", tags=["draft"]))
    run(s.forget(filter={"tags": "draft"}, approval_required=True))
    later = run(s.remember("another draft", tags=["draft"]))
    (review,) = run(s.engine.reviews.list(WHO))
    decided = run(s.engine.reviews.decide(WHO, review["id"], YES))
    assert decided.outcome.ids == [shown]
    assert [m.id for m in run(s.list())] == [later]


def test_a_staged_merge_takes_what_was_shown_and_no_more(over: Over) -> None:
    s, run = over
    a, b = run(s.remember("Alice", entity_name="alice")), run(s.remember("Alicia", entity_name="alicia"))
    run(s.engine.merge(WHO, Merge("agent", "alice", ["alicia"], approval_required=True)))
    later = run(s.remember("Alicia the second", entity_name="alicia"))
    (review,) = run(s.engine.reviews.list(WHO))
    run(s.engine.reviews.decide(WHO, review["id"], YES))
    assert {m.id for m in run(s.list())} == {a, later}
    assert run(s.store.get("local", [b]))[0].merged_into == a


def test_a_staged_erasure_cascades_to_what_was_shown(over: Over) -> None:
    s, run = over
    a, b = run(s.remember("one")), run(s.remember("two"))
    run(s.merge(a, b, strategy="merge_content"))
    run(s.forget(b, hard_delete=True, cascade=True, approval_required=True))
    (review,) = run(s.engine.reviews.list(WHO))
    assert {m["id"] for m in review["diff"]["removed"]} == {a, b}
    assert set(run(s.engine.reviews.decide(WHO, review["id"], YES)).outcome.ids) == {a, b}
    assert run(s.store.get("local", [a, b])) == []


def test_a_review_about_something_erased_can_no_longer_be_approved(over: Over) -> None:
    s, run = over
    a = run(s.remember("one"))
    run(s.forget(a, approval_required=True))
    (review,) = run(s.engine.reviews.list(WHO))
    run(s.forget(a, hard_delete=True))
    with pytest.raises(Conflict):
        run(s.engine.reviews.decide(WHO, review["id"], YES))


def test_only_reviewers_of_that_agent_decide(over: Over) -> None:
    s, run = over
    staged = stage(s, run)
    for who, fault in (
        (Principal(WHO.name, role="writer"), Forbidden),
        (Principal("w", role="writer"), NotFound),
        (Principal("r", role="reviewer", agents=("other",)), NotFound),
        (Principal("r", role="reviewer", tenant="other"), NotFound),
    ):
        with pytest.raises(fault):
            run(s.engine.reviews.decide(who, staged.review_id, YES))
        if fault is NotFound:
            assert run(s.engine.reviews.list(who)) == []
    run(s.engine.reviews.decide(Principal("r", role="reviewer", agents=("ag*",)), staged.review_id, YES))
    assert run(s.get(staged.id)).provenance["principal"] == WHO.name


def test_a_rejected_write_never_was(over: Over) -> None:
    s, run = over
    staged = stage(s, run, aliases=["bob"])
    decided = run(s.engine.reviews.decide(WHO, staged.review_id, NO))
    assert decided.review["decision"]["reason"] == "not true"
    assert run(s.list()) == run(s.recall("Bob moved")) == []
    assert run(s.store.sequence("local")) == 0
    run(s.remember("Bob stayed", aliases=["bob"]))


def test_a_rejected_write_can_be_erased(over) -> None:
    subject, run = over
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


def test_a_review_is_seen_by_reviewers_and_whoever_asked(over) -> None:
    subject, run = over
    alice = Principal("alice", role="writer")
    run(subject.engine.remember(alice, Draft("agent", "semantic", "for review"), approval={"content": "x"}))
    assert len(run(subject.engine.reviews.list(alice))) == 1
    assert run(subject.engine.reviews.list(Principal("bob", role="writer"))) == []
    assert len(run(subject.engine.reviews.list(Principal("bob", role="reviewer")))) == 1
    assert run(subject.engine.reviews.list(Principal("bob", role="reviewer", agents=("other",)))) == []
