"""Forgetting and erasing: what is meant, what is shown of it beforehand, and what is left of it afterwards."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_records import stored_records

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.core import BACKUP, SYSTEM
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.memory.erase import must_erase
from commonplace.engine.memory.forget import by_filter, preview_of, status_label
from commonplace.engine.types import Draft, Expire, Forget
from commonplace.stores.base import Record
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import START, WHO, FakeClock, Subject
from commonplace.wire.errors import Conflict, Forbidden, ValidationError
from commonplace.wire.record import Memory, Principal


def interrupt(subject: Subject, verb: str, act: Any) -> None:
    """Let `act` happen once, right after the store was asked for this."""
    plain = getattr(subject.store, verb)

    async def asked(*args: Any, **options: Any) -> Any:
        answer = await plain(*args, **options)
        setattr(subject.store, verb, plain)
        await act()
        return answer

    setattr(subject.store, verb, asked)


def test_a_rejected_write_is_erased_for_its_own_agent_only(subject: Subject, run: Any) -> None:
    staged = run(
        subject.engine.remember(WHO, Draft("agent", "semantic", "a rejected secret"), approval={"content": "a"})
    )
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(False, "Alice")))
    assert run(subject.forget(staged.id, agent="other", hard_delete=True)).ids == []
    assert "rejected secret" in stored_records(subject, run)
    assert run(subject.forget(staged.id, hard_delete=True)).ids == [staged.id]
    assert "rejected secret" not in stored_records(subject, run)


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


def test_a_reason_goes_with_what_it_is_about_and_that_of_an_erasure_stays(subject: Subject, run: Any) -> None:
    soft, hard = run(subject.remember("one")), run(subject.remember("two"))
    run(subject.forget(soft, reason="MARK: it said one"))
    assert "MARK" in stored_records(subject, run)
    run(subject.forget(soft, hard, hard_delete=True, reason="Alice asked for it"))
    assert "MARK" not in stored_records(subject, run)
    entry = run(subject.engine.ledger.entries(WHO, operation="forget"))[-1]
    assert json.loads(entry.parts[-1].payload) == {"reason": "Alice asked for it"}
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
        engine = await Engine.open(SqliteStore(tmp_path / "commonplace.db", clock), HashingEmbedder(), clock=clock)
        noted = Record(BACKUP, "b", {"path": "copy.db", "at": clock()})
        await engine._core.transact(SYSTEM, lambda tx: tx.put_record(noted))
        for who, told in ((WHO, ["copy.db"]), (Principal("a", role="writer"), [])):
            kept = await engine.remember(WHO, Draft("agent", "semantic", "x"))
            gone = await engine.forget(who, Forget("agent", [kept.id], hard_delete=True))
            assert (gone.backups, gone.backup_count) == (told, 1)
        await engine.close()

    asyncio.run(scenario())


def memory(**fields: Any) -> Memory:
    return Memory("m", "local", "agent", "semantic", "secret text", **fields)


@pytest.mark.parametrize(("request_", "chosen"), [
    (Forget("agent", ["a"]), False), (Forget("agent", filter={"tags": "x"}), True),
    (Forget("agent", ["a"], {"tags": "x"}), True), (Forget("agent", ["a"], {}, user_id="bob"), False),
])  # fmt: skip
def test_whether_what_memories_say_chose_them(request_: Forget, chosen: bool) -> None:
    assert by_filter(request_) is chosen


@pytest.mark.parametrize(("fields", "label", "shown"), [
    ({}, "live", True), ({"status": "archived"}, "archived", True), ({"status": "deleted"}, "deleted", False),
    ({"status": "pending"}, "pending", False), ({"expires_at": 10}, "expired", False),
    ({"expires_at": 10, "status": "archived"}, "expired", False),
    ({"expires_at": 10, "status": "deleted"}, "deleted", False), ({"expires_at": 11}, "live", True),
])  # fmt: skip
def test_what_a_preview_shows(fields: dict[str, Any], label: str, shown: bool) -> None:
    given = memory(**fields, title="secret title", created_at=3, version=2, content_hash="h")
    assert status_label(given, 10) == label
    seen = preview_of(given, 10)
    if shown:
        assert seen is given
    else:
        assert (seen.content, seen.title, seen.created_at, seen.version) == (f"({label})", None, 3, 2)
        assert "secret" not in repr(seen)


@pytest.mark.parametrize(("privacy", "must"), [({}, False), ({"share_with": ["*"]}, False), ({"retain": 1}, True)])
def test_what_was_promised_to_be_gone_leaves_nothing(privacy: dict[str, Any], must: bool) -> None:
    assert must_erase(memory(privacy=privacy)) is must


@pytest.mark.parametrize("fields", [{}, {"filter": {}}, {"user_id": "bob"}, {"filter": {}, "user_id": "bob"}])
def test_a_forget_of_everything_is_refused(subject: Subject, run: Any, fields: dict[str, Any]) -> None:
    run(subject.remember("x", user_id="bob"))
    with pytest.raises(ValidationError, match="forget needs ids or filter"):
        run(subject.forget(**fields))
    assert len(run(subject.list())) == 1


def test_ids_and_filter_and_user_must_all_hold(subject: Subject, run: Any) -> None:
    a = run(subject.remember("a", tags=["x"], user_id="bob"))
    b = run(subject.remember("b", tags=["x"], user_id="eve"))
    c = run(subject.remember("c", user_id="bob"))
    request = Forget("agent", [a, b, c, "nothing"], {"tags": "x"}, user_id="bob")
    assert [m.id for m in run(subject.engine.preview_forget(WHO, request))] == [a]
    assert run(subject.engine.forget(WHO, request)).ids == [a]
    assert {m.id for m in run(subject.list())} == {b, c}


def test_a_softly_forgotten_memory_is_gone_everywhere_but_can_still_be_erased(subject: Subject, run: Any) -> None:
    id = run(subject.remember("the violin", aliases=["note"]))
    done = run(subject.forget("note"))
    assert (done.ids, done.erased, done.store) == ([id], False, subject.store.name)
    assert run(subject.gone(id))
    assert run(subject.list()) == run(subject.recall("violin")) == []
    assert run(subject.forget(id)).ids == []
    assert len(run(subject.store.history("local", id))) == 2
    assert run(subject.forget(id, hard_delete=True)).ids == [id]
    assert run(subject.store.history("local", id)) == []


def test_erasing_takes_statements_derived_from_it_along(subject: Subject, run: Any) -> None:
    id, other = run(subject.remember("x", aliases=["note"])), run(subject.remember("y"))
    for predicate, source in (("knows", id), ("likes", "note"), ("sees", other)):
        run(subject.engine.graph.assert_fact(
            WHO, "agent", subject="Alice", predicate=predicate, object="Bob", provenance=source
        ))  # fmt: skip
    run(subject.forget(id))
    assert len(run(subject.engine.graph.query(WHO, "agent", "Alice"))) == 3, "a soft one may be undone"
    run(subject.forget(id, hard_delete=True))
    assert [t.predicate for t in run(subject.engine.graph.history(WHO, "agent", "Alice"))] == ["sees"]


def test_what_it_was_merged_into_is_named_or_goes_too(subject: Subject, run: Any) -> None:
    a, b, c = (run(subject.remember(text)) for text in "abc")
    run(subject.merge(b, a, strategy="merge_content"))
    run(subject.merge(c, b, strategy="merge_content"))
    named = run(subject.forget(a, hard_delete=True))
    assert (named.ids, named.descendants) == ([a], [b, c]), "their text lives on there"
    d, e = run(subject.remember("d")), run(subject.remember("e"))
    run(subject.merge(e, d))
    taken = run(subject.forget(d, hard_delete=True, cascade=True))
    assert (sorted(taken.ids), taken.descendants) == (sorted([d, e]), [])


def test_many_are_forgotten_in_several_units_of_work(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.engine.memory.forget.CHUNK", 2)
    ids = [run(subject.remember(str(i), tags=["x"])) for i in range(5)]
    assert run(subject.forget(filter={"tags": "x"})).ids == ids
    entries = run(subject.engine.ledger.entries(WHO, operation="forget"))
    assert [len(entry.parts) for entry in entries] == [2, 2, 1]


@pytest.mark.parametrize("ref", ["{id}", "note", "drawer_{id}"])
def test_one_memory_is_deleted_by_any_id(subject: Subject, run: Any, ref: str) -> None:
    id = run(subject.remember("x", aliases=["note"]))
    assert run(subject.engine.delete(WHO, ref.format(id=id))).ids
    assert run(subject.gone(id))
    assert not run(subject.engine.delete(WHO, ref.format(id=id))).ids
    assert len(run(subject.store.history("local", id))) == 2, "softly"


def test_deleting_needs_a_writer_and_a_name_that_means_one(subject: Subject, run: Any) -> None:
    for agent in ("one", "two"):
        run(subject.remember("x", agent, aliases=["note"]))
    with pytest.raises(Conflict):
        run(subject.engine.delete(WHO, "note"))
    with pytest.raises(Forbidden):
        run(subject.engine.delete(Principal("r", role="reader"), "note", "one"))
    assert run(subject.engine.delete(Principal("w", role="writer", agents=("two",)), "note")).ids
    assert run(subject.get("note", "one")).content == "x"


def test_deleting_what_was_promised_to_be_gone_erases_it(subject: Subject, run: Any) -> None:
    id = run(subject.remember("x", privacy={"retain": 9}))
    assert run(subject.engine.delete(WHO, id)).ids
    assert run(subject.store.history("local", id)) == []
