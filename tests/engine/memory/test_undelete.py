"""Bringing back what was forgotten or archived: as it was, as a new version, and never what was erased."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from redaction_corpus.credentials import BY_FORM

from commonplace.config import RedactionConfig
from commonplace.engine.redaction import Redactor
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS


def undelete(subject: Subject, run: Any, id: str, who: Principal = WHO, agent: str = "agent", **more: Any) -> Any:
    return run(subject.engine.undelete(who, agent, id, **more))


@pytest.mark.parametrize("way", ["forget", "delete", "expire", "archive"])
def test_it_is_as_it_was_and_found_again(subject: Subject, run: Any, way: str) -> None:
    id = run(subject.remember("Alice plays the violin", tags=["music"], metadata={"k": 1}, user_id="alice"))
    before = run(subject.get(id))
    subject.clock.advance(DAY_MS)
    match way:
        case "forget":
            run(subject.forget(id))
        case "delete":
            run(subject.engine.delete(WHO, id))
        case "expire":
            run(subject.expire(type="semantic"))
        case "archive":
            run(subject.expire("archive", type="semantic"))
    assert run(subject.recall("violin")) == []
    hidden = subject.clock()
    subject.clock.advance(DAY_MS)
    back = undelete(subject, run, id, reason="a slip")
    assert (back.status, back.version) == ("live", 3)
    kept = ("content", "tags", "metadata", "user_id", "created_at", "content_hash", "confidence", "kind")
    assert [getattr(back, name) for name in kept] == [getattr(before, name) for name in kept]
    assert [m.id for m in run(subject.recall("violin"))] == [id]
    assert [m.status for m in run(subject.engine.history(WHO, "agent", id))][-1] == "live"
    assert run(subject.recall("violin", as_of=hidden)) == [], "it was hidden then"
    (entry,) = run(subject.engine.ledger.entries(WHO, operation="undelete"))
    assert "a slip" in str(entry)
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None
    if isinstance(subject.store, SqliteStore):
        assert all(finding.ok for finding in run(subject.engine.upkeep.doctor(WHO, repair=False)))


def test_what_was_erased_never_comes_back(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Alice plays the violin"))
    run(subject.forget(id))
    run(subject.forget(id, hard_delete=True))
    promised = run(subject.remember("Bob plays the flute", privacy={"retain": 30}))
    run(subject.forget(promised))
    for gone in (id, promised, "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f", "nothing"):
        with pytest.raises(NotFound, match="erased"):
            undelete(subject, run, gone)


def test_what_is_over_stays_away(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Alice plays the violin", expires_at=subject.clock() + DAY_MS))
    run(subject.forget(id))
    subject.clock.advance(DAY_MS)
    with pytest.raises(NotFound, match="its time is over"):
        undelete(subject, run, id)


def test_what_is_not_gone_cannot_be_brought_back(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Alice plays the violin"))
    with pytest.raises(Conflict, match="is there"):
        undelete(subject, run, id)
    assert run(subject.get(id)).version == 1


def test_what_became_part_of_another_stays_part_of_it(subject: Subject, run: Any) -> None:
    one, other = (run(subject.remember(text)) for text in ("Alice plays the violin", "Alice plays violin"))
    run(subject.merge(one, other))
    with pytest.raises(Conflict, match=f"part of {one}"):
        undelete(subject, run, other)


def test_a_name_that_another_has_by_now_is_a_conflict(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Alice plays the violin", aliases=["lesson-1"]))
    run(subject.forget(id))
    taken = run(subject.remember("Bob plays the flute", aliases=["lesson-1"]))
    with pytest.raises(Conflict, match="lesson-1"):
        undelete(subject, run, id)
    run(subject.forget(taken))
    assert undelete(subject, run, id).aliases == ["lesson-1"]


def test_the_wall_and_the_role_hold(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Alice plays the violin"))
    run(subject.forget(id))
    for who, agent in ((WHO, "other"), (replace(WHO, tenant="acme"), "agent")):
        with pytest.raises(NotFound):
            undelete(subject, run, id, who, agent)
    with pytest.raises(Forbidden):
        undelete(subject, run, id, replace(WHO, role="reader"))


def test_a_secret_that_is_known_by_now_is_replaced(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    key = BY_FORM["aws_access_key"](Random(11))
    with monkeypatch.context() as before:
        before.setattr(subject.engine._core, "redactor", Redactor(RedactionConfig(mode="off")))
        id = run(subject.remember(f"the key is {key}"))
        was = run(subject.get(id))
    run(subject.forget(id))
    back = undelete(subject, run, id)
    assert back.content == "the key is <REDACTED:aws_access_key>"
    assert back.content_hash != was.content_hash
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None


def test_what_is_erased_meanwhile_stays_erased(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    id = run(subject.remember("Alice plays the violin"))
    run(subject.forget(id))
    make_entries = subject.engine._core.make_entries

    async def slowly(*args: Any) -> Any:
        await subject.forget(id, hard_delete=True)
        return await make_entries(*args)

    monkeypatch.setattr(subject.engine._core, "make_entries", slowly)
    with pytest.raises(NotFound):
        undelete(subject, run, id)
    assert run(subject.store.get(WHO.tenant, [id])) == []
