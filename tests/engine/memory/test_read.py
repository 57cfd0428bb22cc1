"""Reading: by which ids, as of when, and only what may be read."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.testing.subject import Subject
from commonplace.wire.errors import NotFound

Over = tuple[Subject, Any]


def test_an_alias_is_read_as_of_a_past_instant_too(over: Over) -> None:
    s, run = over
    run(s.remember("before", aliases=["note"]))
    at = s.clock()
    s.clock.advance(10)
    run(s.update("note", content="after"))
    assert (run(s.get("note", as_of=at)).content, run(s.get("note")).content) == ("before", "after")


def test_what_has_expired_since_is_gone_from_the_past_too(over: Over) -> None:
    s, run = over
    id = run(s.remember("Bob's address"))
    then = s.clock()
    s.clock.advance(1000)
    run(s.update(id, expires_at=then + 5000))
    assert run(s.get(id, as_of=then)).content == "Bob's address"
    assert [m.id for m in run(s.list(as_of=then))] == [m.id for m in run(s.recall("address", as_of=then))] == [id]
    s.clock.advance(4000)
    with pytest.raises(NotFound):
        run(s.get(id, as_of=then))
    assert run(s.list(as_of=then)) == run(s.recall("address", as_of=then)) == []
