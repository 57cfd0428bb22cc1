"""What quotes an erased memory loses the quote, and what only named it stays."""

from __future__ import annotations

from typing import Any

import pytest
from stored_records import stored_records

from commonplace.engine.core import REVIEW
from commonplace.engine.memory.erase_records import erase_records, reject_pending
from commonplace.engine.types import Draft, Merge, Statement, Update
from commonplace.testing.subject import WHO, Subject


def quoting(subject: Subject, run: Any, id: str, operation: str) -> Any:
    """A review of each kind that quotes this memory."""
    match operation:
        case "update":
            return subject.engine.update(WHO, Update("agent", id, content="kingfisher two", approval_required=True))
        case "forget":
            return subject.forget(id, approval_required=True)
        case "merge":
            other = run(subject.remember("another"))
            return subject.engine.merge(WHO, Merge("agent", other, [id], approval_required=True))
    said = Statement("agent", "kingfisher", "is", "a kingfisher", provenance=id, approval_required=True)
    return subject.engine.assert_fact(WHO, said)


@pytest.mark.parametrize("operation", ["update", "forget", "merge", "statement"])
def test_a_review_keeps_nothing_of_what_it_quoted(subject: Subject, run: Any, operation: str) -> None:
    id = run(subject.remember("a kingfisher"))
    review = run(quoting(subject, run, id, operation)).review_id
    run(subject.store.transact("local", lambda tx: erase_records(tx, id)))
    (kept,) = run(subject.store.records("local", REVIEW))
    assert "kingfisher" not in repr(kept)
    assert (kept.value["id"], kept.value["operation"], kept.value["erased"]) == (review, operation, True)
    assert id not in kept.about


def test_an_idempotency_key_is_kept_as_a_hash(subject: Subject, run: Any) -> None:
    kept = run(subject.engine.remember(WHO, Draft("agent", "semantic", "x"), idempotency_key="a kingfisher"))
    run(subject.store.transact("local", lambda tx: erase_records(tx, kept.id)))
    assert "kingfisher" not in stored_records(subject, run)


def test_only_what_waits_is_rejected(subject: Subject, run: Any) -> None:
    id = run(subject.remember("a kingfisher"))
    review = run(quoting(subject, run, id, "forget")).review_id
    for _ in range(2):
        run(subject.store.transact("local", lambda tx: reject_pending(tx, WHO, review)))
        subject.clock.advance(10)
    found = run(subject.engine.reviews.get(WHO, review))
    assert (found["status"], found["decision"]["reviewed_at"]) == ("rejected", subject.clock() - 20)
