"""Forgetting and erasing: what is meant, what is shown of it beforehand, and what is left of it afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from stored_records import stored_records

from commonplace.embedders.hashing import Hashing
from commonplace.engine import Engine
from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import Draft, Expire, Forget
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import START, WHO, FakeClock, Subject
from commonplace.wire.record import Principal


def interrupt(subject: Subject, verb: str, act: Any) -> None:
    """Let `act` happen once, right after the store was asked for this."""
    plain = getattr(subject.store, verb)

    async def asked(*args: Any, **options: Any) -> Any:
        answer = await plain(*args, **options)
        setattr(subject.store, verb, plain)
        await act()
        return answer

    setattr(subject.store, verb, asked)


def test_what_was_corrected_since_the_filter_found_it_stays(subject: Subject, run: Any) -> None:
    id = run(subject.remember("wrong", confidence=0.1, tags=["draft"]))
    for forget in (
        lambda: subject.engine.forget(WHO, Forget("agent", filter={"tags": "draft"})),
        lambda: subject.engine.forget(WHO, Forget("agent", filter={"tags": "draft"}, hard_delete=True)),
        lambda: subject.expire(confidence_below=0.5),
    ):
        interrupt(subject, "scan", lambda: subject.update(id, content="right", confidence=1.0, tags=[]))
        run(forget())
        assert run(subject.get(id)).content == "right"
        run(subject.update(id, content="wrong", confidence=0.1, tags=["draft"]))
    interrupt(subject, "get", lambda: subject.update(id, content="right"))
    assert run(subject.forget(id)).ids == [id], "who names a memory means it whatever it says"


def test_reasons_go_with_what_they_are_about(subject: Subject, run: Any) -> None:
    soft, hard = run(subject.remember("one")), run(subject.remember("two"))
    run(subject.forget(soft, reason="MARK: it said one"))
    assert "MARK" in stored_records(subject, run)
    run(subject.forget(soft, hard_delete=True, reason="MARK again"))
    run(subject.forget(hard, hard_delete=True, reason="MARK again"))
    assert "MARK" not in stored_records(subject, run)
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None


def test_a_decision_about_something_erased_loses_its_words(subject: Subject, run: Any) -> None:
    staged = run(subject.engine.remember(WHO, Draft("agent", "semantic", "MARK"), approval={"content": "MARK"}))
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", "because MARK")))
    run(subject.forget(staged.id, hard_delete=True))
    assert "MARK" not in stored_records(subject, run)
    assert run(subject.engine.reviews.get(WHO, staged.review_id))["decision"]["reviewer"] == "Alice"


def test_previews_show_what_reads_hide_by_name_only(subject: Subject, run: Any) -> None:
    expired = run(subject.remember("MARK one", expires_at=START + 1, tags=["x"], title="MARK", confidence=0.1))
    deleted = run(subject.remember("MARK two", tags=["x"]))
    live = run(subject.remember("here", tags=["x"], confidence=0.1))
    run(subject.forget(deleted))
    subject.clock.advance(1)
    request = Forget("agent", filter={"tags": "x"}, hard_delete=True)
    found = run(subject.engine.preview_forget(WHO, request))
    assert {(m.id, m.content) for m in found} == {(expired, "(expired)"), (deleted, "(deleted)"), (live, "here")}
    assert "MARK" not in repr(found)
    due = run(subject.engine.preview_expire(WHO, Expire("agent", confidence_below=0.5)))
    assert {m.id for m in due} == {expired, live}
    assert "MARK" not in repr(due)
    run(subject.engine.forget(WHO, replace(request, approval_required=True)))
    (review,) = run(subject.engine.reviews.list(WHO))
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
