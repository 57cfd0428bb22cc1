"""Reading: by which ids, as of when, and only what may be read."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.testing.subject import Subject
from commonplace.wire.errors import NotFound


def test_an_alias_is_read_as_of_a_past_instant_too(subject: Subject, run: Any) -> None:
    run(subject.remember("before", aliases=["note"]))
    at = subject.clock()
    subject.clock.advance(10)
    run(subject.update("note", content="after"))
    assert (run(subject.get("note", as_of=at)).content, run(subject.get("note")).content) == ("before", "after")


def test_what_has_expired_since_is_gone_from_the_past_too(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Bob's address"))
    then = subject.clock()
    subject.clock.advance(1000)
    run(subject.update(id, expires_at=then + 5000))
    assert run(subject.get(id, as_of=then)).content == "Bob's address"
    assert (
        [m.id for m in run(subject.list(as_of=then))]
        == [m.id for m in run(subject.recall("address", as_of=then))]
        == [id]
    )
    subject.clock.advance(4000)
    with pytest.raises(NotFound):
        run(subject.get(id, as_of=then))
    assert run(subject.list(as_of=then)) == run(subject.recall("address", as_of=then)) == []
