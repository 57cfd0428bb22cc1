"""Approving: an attestation as it came, and a new memory that joins another or takes the place of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from staged_requests import REQUEST

from commonplace.engine.governance.decisions import Decision
from commonplace.engine.types import Draft
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import NotFound, ValidationError

YES = Decision(True, "Alice")
RECEIVED = {"dialect": "mrp", "attestation": {"id": "a1", "claim": {"content": "Bob moved"}}}


def stage(subject: Subject, run: Any, **fields: Any) -> Any:
    return run(subject.engine.remember(WHO, Draft("agent", "semantic", "Bob moved", **fields), approval=REQUEST))


def test_a_received_attestation_waits_as_one_and_is_kept_as_it_came(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, provenance=RECEIVED, aliases=["a1"])
    review = run(subject.engine.reviews.get(WHO, staged.review_id))
    assert review["operation"] == "attestation"
    assert run(subject.gone("a1"))
    edited = Draft("agent", "semantic", "Bob left")
    with pytest.raises(ValidationError, match="as its author signed it"):
        run(subject.engine.reviews.decide(WHO, staged.review_id, replace(YES, edited=edited)))
    with pytest.raises(ValidationError, match="as its author signed it"):
        run(subject.engine.reviews.edit(WHO, staged.review_id, edited, {"content": "Bob left"}))
    run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    assert run(subject.get("a1")).provenance["attestation"] == RECEIVED["attestation"]


@pytest.mark.parametrize("apply", ["merge_into", "forget"])
def test_what_apply_names_must_be_there_or_nothing_happens(subject: Subject, run: Any, apply: str) -> None:
    there = run(subject.remember("Bob lives in Rome"))
    staged = stage(subject, run)
    for ref in ("nothing", staged.id):
        given = ref if apply == "merge_into" else (there, ref)
        with pytest.raises(NotFound):
            run(subject.engine.reviews.decide(WHO, staged.review_id, replace(YES, **{apply: given})))
    assert [m.id for m in run(subject.list())] == [there]
    given = there if apply == "merge_into" else (there,)
    done = run(subject.engine.reviews.decide(WHO, staged.review_id, replace(YES, **{apply: given})))
    assert done.applied is not None
    left = run(subject.list())
    expected = "Bob lives in Rome\nBob moved" if apply == "merge_into" else "Bob moved"
    assert [m.content for m in left] == [expected]
