"""What was promised to be gone is gone: retention, erasure, and views that show no more than a read would."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from commonplace.dialects.memorywire.records import entry_to_wire
from commonplace.engine.governance.reviews import Decision
from commonplace.engine.memory import expire
from commonplace.engine.memory.retention import inherit_retention, promised_end
from commonplace.engine.types import Draft, Expire, Forget, Merge
from commonplace.testing.subject import DAY_MS, START, WHO, Subject
from commonplace.wire.errors import NotFound
from commonplace.wire.record import Memory

Over = tuple[Subject, Any]
KEPT = {"privacy": {"retain": 30}}
END = START + 30 * DAY_MS


@pytest.mark.parametrize(("retain", "expires_at", "end"), [
    (None, None, None), (None, 7, 7), (1, None, DAY_MS), (1, 7, 7), (1, DAY_MS + 1, DAY_MS), (2**53, None, 2**53 - 1),
])  # fmt: skip
def test_the_promise_is_the_latest_end(retain: int | None, expires_at: int | None, end: int | None) -> None:
    assert promised_end({} if retain is None else {"retain": retain}, 0, expires_at) == end


def test_the_strictest_promise_binds() -> None:
    def memory(id: str, retain: int | None, expires_at: int | None) -> Memory:
        privacy = {} if retain is None else {"retain": retain, "user_consent_id": id}
        return Memory(id, "t", "a", "semantic", id, privacy=privacy, expires_at=expires_at)

    plain, brief, strict, lax = memory("p", None, None), memory("b", None, 3), memory("s", 9, 5), memory("l", 2, 8)
    held = inherit_retention(plain, [lax, plain, strict, brief])
    assert (held.expires_at, held.privacy) == (5, {"retain": 9, "user_consent_id": "s"})
    assert inherit_retention(lax, [lax, strict]).privacy == {"retain": 9, "user_consent_id": "l"}
    assert inherit_retention(brief, [strict]).expires_at == 3
    assert inherit_retention(brief, [plain]) is brief


@pytest.mark.parametrize("later", [None, END + 1])
def test_an_update_does_not_outlast_the_promise(over: Over, later: int | None) -> None:
    s, run = over
    id = run(s.remember("Bob's address", **KEPT))
    assert run(s.update(id, expires_at=later)).expires_at == END
    assert run(s.update(id, expires_at=END - 1)).expires_at == END - 1


def test_a_merge_keeps_the_promise_of_what_it_takes_in(over: Over) -> None:
    s, run = over
    kept, other = run(s.remember("Bob likes tea")), run(s.remember("Bob's address", **KEPT))
    survivor = run(s.merge(kept, other, strategy="merge_content")).survivor
    assert (survivor.expires_at, survivor.privacy["retain"]) == (END, 30)
    s.clock.advance(30 * DAY_MS)
    assert run(expire.sweep(s.engine._core, WHO)) == 2
    assert run(s.store.history("local", kept)) == run(s.store.history("local", other)) == []


def test_a_rejected_write_is_not_quoted_for_longer_than_promised(over: Over) -> None:
    s, run = over
    for content, fields in (("Bob's address", KEPT), ("Bob likes tea", {})):
        request = {"agent_id": "agent", "type": "semantic", "content": content}
        staged = run(s.engine.remember(WHO, Draft("agent", "semantic", content, **fields), approval=request))
        run(s.engine.reviews.decide(WHO, staged.review_id, Decision(False, "Alice")))
    s.clock.advance(30 * DAY_MS - 1)
    assert run(expire.sweep(s.engine._core, WHO)) == 0
    s.clock.advance(1)
    assert run(expire.sweep(s.engine._core, WHO)) == 1
    records = repr(run(s.store.records("local", "review")))
    assert "address" not in records
    assert "tea" in records
    assert run(expire.sweep(s.engine._core, WHO)) == 0


# erasing


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


@pytest.mark.parametrize("operation", ["forget", "merge"])
def test_an_edited_review_is_about_what_the_edit_names(over: Over, operation: str) -> None:
    s, run = over
    a, b, c, d = (run(s.remember(text, tags=[text])) for text in "abcd")
    edited: Any
    if operation == "forget":
        run(s.forget(a, approval_required=True))
        edited = Forget("agent", [c], {"tags": "c"}, reason="MARK")
    else:
        run(s.engine.merge(WHO, Merge("agent", a, [b], approval_required=True)))
        edited = Merge("agent", d, [c], reasoning="MARK")
    (review,) = run(s.engine.reviews.list(WHO))
    request = {name: value for name, value in asdict(edited).items() if value is not None}
    run(s.engine.reviews.decide(WHO, review["id"], Decision(True, "Alice", edited=edited, edited_request=request)))
    assert "MARK" in everything(s, run)
    run(s.forget(c, hard_delete=True))
    assert "MARK" not in everything(s, run)


# looking


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


def test_an_edit_keeps_what_the_record_is_to_its_protocol(over: Over) -> None:
    s, run = over
    draft = Draft("agent", "semantic", "use tabs", kind="lesson", aliases=["l1"], provenance={"dialect": "amp"})
    for alias, kind, metadata in (("l1", "lesson", {}), ("l2", "snippet", {"kind": "snippet"})):
        staged = run(s.engine.remember(WHO, replace(draft, aliases=[alias]), approval={"content": "use tabs"}))
        edited = Draft("agent", "semantic", "use spaces", metadata={"kind": kind, "k": 1})
        run(s.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
        memory = run(s.get(alias))
        assert (memory.id, memory.content, memory.kind) == (staged.id, "use spaces", "lesson")
        assert memory.provenance["dialect"] == "amp"
        assert memory.metadata == {**metadata, "k": 1}
