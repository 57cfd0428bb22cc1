"""Forgetting and erasing: what is meant, what is shown of it beforehand, and what is left of it afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from commonplace.dialects.memorywire.records import entry_to_wire
from commonplace.embedders.hashing import Hashing
from commonplace.engine import Engine
from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import Draft, Expire, Forget
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import START, WHO, FakeClock, Subject
from commonplace.wire.record import Principal

Over = tuple[Subject, Any]


def between(s: Subject, verb: str, act: Any) -> None:
    """Let `act` happen once, right after the store was asked for this."""
    plain = getattr(s.store, verb)

    async def asked(*args: Any, **options: Any) -> Any:
        answer = await plain(*args, **options)
        setattr(s.store, verb, plain)
        await act()
        return answer

    setattr(s.store, verb, asked)


def test_what_was_corrected_since_the_filter_found_it_stays(over: Over) -> None:
    s, run = over
    id = run(s.remember("wrong", confidence=0.1, tags=["draft"]))
    for forget in (
        lambda: s.engine.forget(WHO, Forget("agent", filter={"tags": "draft"})),
        lambda: s.engine.forget(WHO, Forget("agent", filter={"tags": "draft"}, hard_delete=True)),
        lambda: s.expire(confidence_below=0.5),
    ):
        between(s, "scan", lambda: s.update(id, content="right", confidence=1.0, tags=[]))
        run(forget())
        assert run(s.get(id)).content == "right"
        run(s.update(id, content="wrong", confidence=0.1, tags=["draft"]))
    between(s, "get", lambda: s.update(id, content="right"))
    assert run(s.forget(id)).ids == [id], "who names a memory means it whatever it says"


def everything(s: Subject, run: Any) -> str:
    """All that is kept beside memories."""
    kept = [run(s.store.records("local", kind)) for kind in ("review", "idempotency")]
    return repr((kept, [entry_to_wire(e) for e in run(s.engine.ledger.entries(WHO, limit=1000))]))


def test_reasons_go_with_what_they_are_about(over: Over) -> None:
    s, run = over
    soft, hard = run(s.remember("one")), run(s.remember("two"))
    run(s.forget(soft, reason="MARK: it said one"))
    assert "MARK" in everything(s, run)
    run(s.forget(soft, hard_delete=True, reason="MARK again"))
    run(s.forget(hard, hard_delete=True, reason="MARK again"))
    assert "MARK" not in everything(s, run)
    assert run(s.engine.ledger.verify(WHO)).first_bad is None


def test_a_decision_about_something_erased_loses_its_words(over: Over) -> None:
    s, run = over
    staged = run(s.engine.remember(WHO, Draft("agent", "semantic", "MARK"), approval={"content": "MARK"}))
    run(s.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", "because MARK")))
    run(s.forget(staged.id, hard_delete=True))
    assert "MARK" not in everything(s, run)
    assert run(s.engine.reviews.get(WHO, staged.review_id))["decision"]["reviewer"] == "Alice"


def test_previews_show_what_reads_hide_by_name_only(over: Over) -> None:
    s, run = over
    expired = run(s.remember("MARK one", expires_at=START + 1, tags=["x"], title="MARK", confidence=0.1))
    deleted = run(s.remember("MARK two", tags=["x"]))
    live = run(s.remember("here", tags=["x"], confidence=0.1))
    run(s.forget(deleted))
    s.clock.advance(1)
    request = Forget("agent", filter={"tags": "x"}, hard_delete=True)
    found = run(s.engine.preview_forget(WHO, request))
    assert {(m.id, m.content) for m in found} == {(expired, "(expired)"), (deleted, "(deleted)"), (live, "here")}
    assert "MARK" not in repr(found)
    due = run(s.engine.preview_expire(WHO, Expire("agent", confidence_below=0.5)))
    assert {m.id for m in due} == {expired, live}
    assert "MARK" not in repr(due)
    run(s.engine.forget(WHO, replace(request, approval_required=True)))
    (review,) = run(s.engine.reviews.list(WHO))
    removed = {m["id"]: m for m in review["diff"]["removed"]}
    assert removed[expired] == {"id": expired, "status": "expired"}
    assert removed[deleted] == {"id": deleted, "status": "deleted"}
    assert removed[live]["content"] == "here"


def test_where_backups_lie_is_told_to_the_operator_alone(tmp_path: Path, clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(SqliteStore(tmp_path / "commonplace.db", clock), Hashing(), clock=clock)
        path = tmp_path / "backup.db"
        await engine.upkeep.backup(WHO, path)
        for who, told in ((WHO, [str(path)]), (Principal("a", role="writer"), [])):
            kept = await engine.remember(WHO, Draft("agent", "semantic", "x"))
            gone = await engine.forget(who, Forget("agent", [kept.id], hard_delete=True))
            assert (gone.backups, gone.backup_count) == (told, 1)
        await engine.close()

    asyncio.run(scenario())
