"""Taking a merge back: both are as they were, by all their names, and nothing else can be taken apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commonplace.stores.base import Entry
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound
from commonplace.wire.record import Principal


def test_both_are_there_again_by_their_own_names(subject: Subject, run: Any) -> None:
    one = run(subject.remember("Alice plays the violin", aliases=["v1"]))
    other = run(subject.remember("Alice plays violin", aliases=["v2"], tags=["music"]))
    third = run(subject.remember("Alice plays a violin"))
    before = run(subject.get(other))
    run(subject.merge(one, other))
    run(subject.merge(one, third))
    assert run(subject.get("v2")).id == one
    back = run(subject.engine.unmerge(WHO, "agent", other))
    assert (back.status, back.merged_into, back.content, back.tags) == ("live", None, before.content, ["music"])
    assert [run(subject.get(name)).id for name in ("v1", "v2", one, other, third)] == [one, other, one, other, one]
    assert {memory.id for memory in run(subject.recall("violin", min_score=0.0))} == {one, other}
    assert [entry.operation for entry in run(subject.engine.ledger.entries(WHO))][-2:] == ["unmerge", "recall"]
    assert run(subject.engine.ledger.verify(WHO)).problem is None
    with pytest.raises(NotFound):
        run(subject.engine.unmerge(WHO, "agent", other))


def test_what_cannot_be_taken_apart_says_why(subject: Subject, run: Any) -> None:
    one, other = run(subject.remember("Alice plays the violin")), run(subject.remember("Bob plays the flute"))
    for id in (one, "nothing", "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"):
        with pytest.raises(NotFound, match="became part of another"):
            run(subject.engine.unmerge(WHO, "agent", id))
    run(subject.merge(one, other, strategy="merge_content"))
    run(subject.update(one, tags=["music"]))
    with pytest.raises(Conflict, match="are part of"):
        run(subject.engine.unmerge(WHO, "agent", other))
    kept, lost = run(subject.remember("tea")), run(subject.remember("some tea"))
    run(subject.merge(kept, lost))
    run(subject.forget(kept))
    with pytest.raises(Conflict, match=f"bring {kept} back first"):
        run(subject.engine.unmerge(WHO, "agent", lost))
    run(subject.engine.undelete(WHO, "agent", kept))
    assert run(subject.engine.unmerge(WHO, "agent", lost)).id == lost


def test_the_wall_and_the_role_hold(subject: Subject, run: Any) -> None:
    kept, lost = run(subject.remember("tea")), run(subject.remember("some tea"))
    run(subject.merge(kept, lost))
    with pytest.raises(Forbidden):
        run(subject.engine.unmerge(Principal("r", role="reader"), "agent", lost))
    with pytest.raises(NotFound):
        run(subject.engine.unmerge(WHO, "other", lost))


@pytest.mark.parametrize("content", ["the code is 4711", "another guess"])
def test_what_another_agent_has_is_neither_changed_nor_told(subject: Subject, run: Any, content: str) -> None:
    theirs = run(subject.remember("their words\nthe code is 4711", agent="neighbour", aliases=["amp-17"]))
    (memory,) = run(subject.store.get("local", [run(subject.remember(content))]))
    tied = replace(memory, status="archived", merged_into=theirs, aliases=["amp-17"])
    run(subject.store.transact("local", lambda tx: tx.put(Entry(tied, None, b""))))
    before = run(subject.store.get("local", [theirs]))
    assert run(subject.engine.undo(WHO, [tied.id])).restored == [tied.id]
    assert run(subject.store.get("local", [theirs])) == before
    assert run(subject.get(tied.id)).content == content
