"""Staging: what waits is nowhere to be seen, cannot be touched, and shows a reviewer what would happen."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import Draft, Merge, Receipt
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import NotFound
from commonplace.wire.validate import check

YES, NO = Decision(True, "Alice"), Decision(False, "Alice", "not true")
REQUEST = {"agent_id": "agent", "type": "semantic", "content": "Bob moved", "approval_required": True}


def stage(subject: Subject, run: Any, content: str = "Bob moved", **fields: Any) -> Any:
    draft = Draft("agent", "semantic", content, **fields)
    return run(subject.engine.remember(WHO, draft, approval={**REQUEST, "content": content}, reasoning="he said so"))


def reviewed(review: dict[str, Any]) -> dict[str, Any]:
    return {k: review[k] for k in ("operation", "agent_id", "request", "diff", "reasoning") if k in review}


def test_a_pending_memory_cannot_be_touched(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, aliases=["bob"])
    other = run(subject.remember("Bob lives in Rome"))
    for ref in (staged.id, "bob"):
        assert run(subject.gone(ref))
        assert run(subject.forget(ref)).ids == []
        assert run(subject.forget(ref, hard_delete=True)).ids == []
        for resolve_parties in ((ref, other), (other, ref)):
            with pytest.raises(NotFound):
                run(subject.merge(*resolve_parties))
        with pytest.raises(NotFound):
            run(subject.update(ref, content="x"))
        with pytest.raises(NotFound):
            run(subject.engine.history(WHO, "agent", ref))
    assert [m.id for m in run(subject.list())] == [other]
    subject.clock.advance(10)
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    memory = run(subject.get("bob"))
    assert (memory.id, memory.created_at, memory.version) == (staged.id, subject.clock(), 1)
    assert decided.review["decision"] == {"approved": True, "reviewer": "Alice", "reviewed_at": subject.clock()}
    check("memorywire/operations/governance.decision", decided.review["decision"])


def test_every_review_follows_the_schema(subject: Subject, run: Any) -> None:
    stage(subject, run, metadata={"k": 1}, tags=["x"])
    a, b = run(subject.remember("one", entity_name="it")), run(subject.remember("two", entity_name="it"))
    run(subject.forget(filter={"entity_name": "it"}, approval_required=True, reasoning="old"))
    for strategy in ("keep_canonical", "merge_content"):
        run(subject.engine.merge(WHO, Merge("agent", a, [b], strategy, approval_required=True)))
    reviews = run(subject.engine.reviews.list(WHO))
    for review in reviews:
        check("memorywire/operations/governance.review", reviewed(review))
    remember, forget, keep, joined = reviews
    assert [m["content"] for m in remember["diff"]["added"]] == ["Bob moved"]
    assert [m["content"] for m in forget["diff"]["removed"]] == ["one", "two"]
    assert ([m["id"] for m in keep["diff"]["removed"]], keep["diff"]["modified"]) == ([b], [])
    (change,) = joined["diff"]["modified"]
    assert (change["before"]["content"], change["after"]["content"]) == ("one", "one\ntwo")
    assert not any("draft" in review or "ids" in review for review in reviews)


DRAFT = Draft("agent", "semantic", "Alice plays the violin", metadata={"k": [1, {"x": "é"}]})


def remember_once(subject: Subject, run: Any, draft: Draft = DRAFT, key: str = "k1", **options: Any) -> Receipt:
    return run(subject.engine.remember(WHO, draft, idempotency_key=key, **options))  # type: ignore[no-any-return]


def test_a_staged_write_is_idempotent_too(subject: Subject, run: Any) -> None:
    first = remember_once(subject, run, approval={"content": "x"})
    again = remember_once(subject, run, approval={"content": "x"})
    assert (again.id, again.review_id) == (first.id, first.review_id)
    assert len(run(subject.engine.reviews.list(WHO))) == 1
