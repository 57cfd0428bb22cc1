"""Staging: what waits is nowhere to be seen, cannot be touched, and shows a reviewer what would happen."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from redaction_corpus.credentials import BY_FORM
from stored_records import stored_records

from commonplace.engine.governance.decisions import Decision
from commonplace.engine.governance.staging import to_document
from commonplace.engine.redaction import scanner
from commonplace.engine.types import Draft, Forget, Merge, Receipt, Statement, Update
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.validate import check

YES, NO = Decision(True, "Alice"), Decision(False, "Alice", "not true")
REQUEST = {"agent_id": "agent", "type": "semantic", "content": "Bob moved", "approval_required": True}


def stage(subject: Subject, run: Any, content: str = "Bob moved", **fields: Any) -> Any:
    draft = Draft("agent", "semantic", content, **fields)
    return run(subject.engine.remember(WHO, draft, approval={**REQUEST, "content": content}, reasoning="he said so"))


def reviewed(review: dict[str, Any]) -> dict[str, Any]:
    return {k: review[k] for k in ("operation", "agent_id", "request", "diff", "reasoning") if k in review}


def test_a_pending_memory_cannot_be_touched(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, aliases=["bob"])
    other = run(subject.remember("Bob lives in Rome"))
    for ref in (staged.id, "bob"):
        assert run(subject.gone(ref))
        assert run(subject.forget(ref)).ids == []
        assert run(subject.forget(ref, hard_delete=True)).ids == []
        for parties in ((ref, other), (other, ref)):
            with pytest.raises(NotFound):
                run(subject.merge(*parties))
        with pytest.raises(NotFound):
            run(subject.update(ref, content="x"))
        with pytest.raises(NotFound):
            run(subject.engine.history(WHO, "agent", ref))
    assert [m.id for m in run(subject.list())] == [other]
    subject.clock.advance(10)
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    memory = run(subject.get("bob"))
    assert (memory.id, memory.created_at, memory.version) == (staged.id, subject.clock(), 1)
    assert decided.review["decision"] == {"approved": True, "reviewer": "Alice", "reviewed_at": subject.clock()}
    check("memorywire/operations/governance.decision", decided.review["decision"])


def test_a_review_holds_no_secret(subject: Subject, run: Any) -> None:
    token = BY_FORM["github"](Random(5))
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    request = {**REQUEST, "content": f"it is {token}"}
    draft = Draft("agent", "semantic", request["content"])
    run(subject.engine.remember(WHO, draft, approval=request, reasoning=f"said {token}"))
    run(subject.forget(a, approval_required=True, reason=token, reasoning=f"said {token}"))
    run(subject.engine.merge(WHO, Merge("agent", a, [b], approval_required=True, reasoning=f"said {token}")))
    records = run(subject.store.records("local", "review"))
    assert len(records) == 3
    for record in records:
        assert record.value["reasoning"] == "said <REDACTED:github_token>"
        assert token not in json.dumps(record.value)


def test_every_review_follows_the_schema(subject: Subject, run: Any) -> None:
    stage(subject, run, metadata={"k": 1}, tags=["x"])
    a, b = run(subject.remember("one", entity_name="it")), run(subject.remember("two", entity_name="it"))
    run(subject.forget(filter={"entity_name": "it"}, approval_required=True, reasoning="old"))
    for strategy in ("keep_canonical", "merge_content"):
        run(subject.engine.merge(WHO, Merge("agent", a, [b], strategy, approval_required=True)))
    reviews = run(subject.engine.reviews.list(WHO))
    for review in reviews:
        check("memorywire/operations/governance.review", reviewed(review))
    remember, forget, keep, joined = reviews
    assert [m["content"] for m in remember["diff"]["added"]] == ["Bob moved"]
    assert [m["content"] for m in forget["diff"]["removed"]] == ["one", "two"]
    assert ([m["id"] for m in keep["diff"]["removed"]], keep["diff"]["modified"]) == ([b], [])
    (change,) = joined["diff"]["modified"]
    assert (change["before"]["content"], change["after"]["content"]) == ("one", "one\ntwo")
    assert not any("draft" in review or "ids" in review for review in reviews)


DRAFT = Draft("agent", "semantic", "Alice plays the violin", metadata={"k": [1, {"x": "é"}]})


def remember_once(subject: Subject, run: Any, draft: Draft = DRAFT, key: str = "k1", **options: Any) -> Receipt:
    return run(subject.engine.remember(WHO, draft, idempotency_key=key, **options))  # type: ignore[no-any-return]


def test_a_staged_write_is_idempotent_too(subject: Subject, run: Any) -> None:
    first = remember_once(subject, run, approval={"content": "x"})
    again = remember_once(subject, run, approval={"content": "x"})
    assert (again.id, again.review_id) == (first.id, first.review_id)
    assert len(run(subject.engine.reviews.list(WHO))) == 1


@pytest.mark.parametrize(
    ("request_", "document"),
    [
        (Forget("agent", ["a"]), {"agent_id": "agent", "ids": ["a"]}),
        (Forget("agent", filter={"tags": "x"}, reason="old"),
         {"agent_id": "agent", "filter": {"tags": "x"}, "reason": "old"}),
        (Forget("agent", ["a"], user_id="bob", hard_delete=True, cascade=True, reasoning="r"),
         {"agent_id": "agent", "ids": ["a"], "user_id": "bob", "hard_delete": True, "cascade": True, "reasoning": "r"}),
        (Merge("agent", "a", ["b"], "merge_content"),
         {"agent_id": "agent", "canonical": "a", "duplicates": ["b"], "strategy": "merge_content"}),
    ],
)  # fmt: skip
def test_a_request_is_shown_as_it_was_given_and_taken_up_again(request_: Any, document: dict[str, Any]) -> None:
    shown = to_document(request_)
    assert {name: value for name, value in shown.items() if value is not False} == document
    assert type(request_)(**shown) == request_


def test_what_waits_is_told_to_the_ledger_without_its_words(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    (entry,) = run(subject.engine.ledger.entries(WHO))
    assert (entry.operation, entry.agent_id) == ("stage_remember", "agent")
    assert json.loads(entry.parts[0].payload) == {"review_id": staged.review_id}
    assert (staged.stores, staged.memory) == ([], None)


def test_a_staged_write_shows_all_that_was_given(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, title="Moves", tags=["bob"], metadata={"k": 1}, confidence=0.5, user_id="bob")
    (review,) = run(subject.engine.reviews.list(WHO))
    assert review["diff"] == {
        "added": [{"id": staged.id, "type": "semantic", "content": "Bob moved", "confidence": 0.5, "user_id": "bob",
                   "title": "Moves", "tags": ["bob"], "metadata": {"k": 1}}],
        "removed": [], "modified": [],
    }  # fmt: skip
    assert (review["reasoning"], review["requested_by"], review["status"]) == ("he said so", WHO.name, "pending")
    assert (review["created_at"], review["memory_id"]) == (subject.clock(), staged.id)


def test_a_staged_forget_or_merge_changes_nothing_yet(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    forgotten = run(subject.forget(a, approval_required=True, hard_delete=True))
    merged = run(subject.engine.merge(WHO, Merge("agent", a, [b], "merge_content", approval_required=True)))
    assert (forgotten.ids, forgotten.erased) == ([], True)
    assert (merged.survivor.id, merged.losers, merged.changed) == (a, [], False)
    assert [review["id"] for review in run(subject.engine.reviews.list(WHO))] == [
        forgotten.review_id, merged.review_id]  # fmt: skip
    assert {m.content for m in run(subject.list())} == {"one", "two"}
    assert {m.version for m in run(subject.list())} == {1}


def test_a_staged_merge_by_confidence_shows_who_loses(subject: Subject, run: Any) -> None:
    low, high = run(subject.remember("low", confidence=0.1)), run(subject.remember("high", confidence=0.9))
    run(subject.engine.merge(WHO, Merge("agent", low, [high], "keep_highest_confidence", approval_required=True)))
    (review,) = run(subject.engine.reviews.list(WHO))
    assert ([m["id"] for m in review["diff"]["removed"]], review["diff"]["modified"]) == ([low], [])


@pytest.mark.parametrize("fields", [{"content": " "}, {"expires_at": 1}, {"aliases": ["a", "a"]}])
def test_what_could_not_be_kept_is_not_staged(subject: Subject, run: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        stage(subject, run, **{"content": "Bob moved", **fields})
    assert run(subject.engine.reviews.list(WHO)) == []


def test_what_does_not_exist_is_not_staged_for_merging(subject: Subject, run: Any) -> None:
    a = run(subject.remember("one"))
    for canonical, duplicate in ((a, "nothing"), ("nothing", a)):
        with pytest.raises(NotFound):
            run(subject.engine.merge(WHO, Merge("agent", canonical, [duplicate], approval_required=True)))
    assert run(subject.engine.reviews.list(WHO)) == []


def test_readers_stage_nothing(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    reader = Principal("r", role="reader")
    for work in (
        subject.engine.remember(reader, DRAFT, approval={}),
        subject.engine.forget(reader, Forget("agent", [a], approval_required=True)),
        subject.engine.merge(reader, Merge("agent", a, [b], approval_required=True)),
    ):
        with pytest.raises(Forbidden):
            run(work)


def test_the_same_key_with_another_body_is_a_conflict_while_it_waits(subject: Subject, run: Any) -> None:
    remember_once(subject, run, approval={"content": "x"})
    with pytest.raises(Conflict):
        remember_once(subject, run, replace(DRAFT, content="other"), approval={"content": "x"})
    (review,) = run(subject.engine.reviews.list(WHO))
    run(subject.engine.reviews.decide(WHO, review["id"], YES))
    again = remember_once(subject, run, approval={"content": "x"})
    assert (again.id, again.review_id) == (review["memory_id"], review["id"]), "decided by now, and still the same"


@pytest.mark.parametrize("first", [None, {"content": "x"}])
def test_the_same_key_with_or_without_approval_is_another_request(subject: Subject, run: Any, first: Any) -> None:
    remember_once(subject, run, approval=first)
    with pytest.raises(Conflict, match="used before with another request"):
        remember_once(subject, run, approval=None if first else {"content": "x"})
    assert len(run(subject.list())) + len(run(subject.engine.reviews.list(WHO))) == 1


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("operation", ["forget", "erase", "merge"])
def test_a_staged_forget_or_merge_changes_nothing_until_it_is_approved(
    subject: Subject, run: Any, operation: str, approved: bool
) -> None:
    a, b = run(subject.remember("Bob lives in Rome")), run(subject.remember("Bob is in Rome"))
    before = {id: run(subject.store.history("local", id)) for id in (a, b)}
    if operation == "merge":
        staged: Any = run(subject.engine.merge(WHO, Merge("agent", a, [b], "merge_content", approval_required=True)))
        assert staged.losers == []
    else:
        staged = run(subject.forget(b, hard_delete=operation == "erase", approval_required=True))
        assert staged.ids == []
    assert staged.review_id is not None
    assert {id: run(subject.store.history("local", id)) for id in (a, b)} == before
    assert {m.id for m in run(subject.recall("Rome"))} == {a, b}
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(approved, "Alice")))
    left = {a} if approved else {a, b}
    assert {m.id for m in run(subject.list())} == {m.id for m in run(subject.recall("Rome"))} == left
    joined = "Bob lives in Rome\nBob is in Rome" if approved and operation == "merge" else "Bob lives in Rome"
    assert run(subject.get(a)).content == joined
    assert bool(run(subject.store.history("local", b))) is not (approved and operation == "erase")


# changes and statements


def test_a_staged_change_shows_before_and_after_and_changes_nothing(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Bob lives in Rome", tags=["x"], metadata={"tags": ["x"], "n": 1}))
    update = Update("agent", id, content="Bob lives in Oslo", approval_required=True, reasoning="he said so")
    staged = run(subject.engine.update(WHO, update))
    assert (staged.memory.content, staged.memory.version) == ("Bob lives in Rome", 1)
    assert run(subject.get(id)).content == "Bob lives in Rome"
    (review,) = run(subject.engine.reviews.list(WHO))
    assert (review["id"], review["operation"], review["reasoning"]) == (staged.review_id, "update", "he said so")
    (change,) = review["diff"]["modified"]
    assert (change["before"]["content"], change["after"]["content"]) == ("Bob lives in Rome", "Bob lives in Oslo")
    assert change["before"]["id"] == id
    assert review["request"] == {
        "agent_id": "agent", "content": "Bob lives in Oslo", "approval_required": True, "reasoning": "he said so",
    }  # fmt: skip
    check("memorywire/operations/governance.review", reviewed(review))
    check("memorywire/types/review", review)


def test_a_staged_change_of_sharing_says_with_whom(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Bob lives in Rome"))
    run(subject.engine.update(WHO, Update("agent", id, privacy_intent={"share_with": ["*"]}, approval_required=True)))
    (review,) = run(subject.engine.reviews.list(WHO))
    assert review["diff"]["modified"][0]["after"]["privacy_intent"] == {"share_with": ["*"]}


@pytest.mark.parametrize(
    ("fields", "fault"),
    [({"content": " "}, ValidationError), ({"expires_at": 1}, ValidationError), ({"expected_version": 2}, Conflict)],
)
def test_a_change_that_could_not_be_made_is_not_staged(
    subject: Subject, run: Any, fields: dict[str, Any], fault: type[Exception]
) -> None:
    id = run(subject.remember("Bob lives in Rome"))
    with pytest.raises(fault):
        run(subject.engine.update(WHO, Update("agent", id, **{"content": "x", **fields}, approval_required=True)))
    with pytest.raises(NotFound):
        run(subject.engine.update(WHO, Update("agent", "nobody", content="x", approval_required=True)))
    assert run(subject.engine.reviews.list(WHO)) == []


def test_a_staged_statement_shows_what_it_would_end_and_is_nowhere_yet(subject: Subject, run: Any) -> None:
    run(subject.engine.assert_fact(WHO, Statement("agent", "Bob", "lives_in", "Rome")))
    waiting = Statement("agent", " Bob ", "lives_in", "Oslo", approval_required=True, reasoning="he said so")
    staged = run(subject.engine.assert_fact(WHO, waiting))
    assert staged.review_id is not None
    assert [t.object for t in run(subject.engine.graph.query(WHO, "agent", "Bob"))] == ["Rome"]
    assert len(run(subject.engine.graph.history(WHO, "agent", "Bob"))) == 1
    (review,) = run(subject.engine.reviews.list(WHO))
    assert (review["operation"], review["reasoning"]) == ("statement", "he said so")
    (added,), (ended,) = review["diff"]["added"], review["diff"]["modified"]
    assert (added["id"], added["subject"], added["object"]) == (staged.triple.id, "Bob", "Oslo")
    assert (ended["before"]["object"], "valid_to" in ended["before"]) == ("Rome", False)
    assert ended["after"]["valid_to"] == added["valid_from"] == subject.clock()
    check("memorywire/operations/governance.review", reviewed(review))
    check("memorywire/types/review", review)


def test_what_waits_to_be_changed_or_stated_holds_no_secret(subject: Subject, run: Any) -> None:
    token = BY_FORM["github"](Random(5))
    id = run(subject.remember("Bob lives in Rome"))
    said = {"approval_required": True, "reasoning": f"said {token}"}
    run(subject.engine.update(WHO, Update("agent", id, content=f"it is {token}", metadata={"k": token}, **said)))
    run(subject.engine.assert_fact(WHO, Statement("agent", "Bob", "says", token, provenance=token, **said)))
    records = run(subject.store.records("local", "review"))
    assert len(records) == 2
    for record in records:
        assert record.value["reasoning"] == "said <REDACTED:github_token>"
        assert token not in json.dumps(record.value)


@pytest.mark.parametrize("who", [Principal(name="r", role="reader"), Principal(name="w", role="writer", agents=("x",))])
def test_who_may_not_write_stages_no_change_and_no_statement(subject: Subject, run: Any, who: Principal) -> None:
    id = run(subject.remember("Bob lives in Rome"))
    with pytest.raises(Forbidden):
        run(subject.engine.update(who, Update("agent", id, content="x", approval_required=True)))
    with pytest.raises(Forbidden):
        run(subject.engine.assert_fact(who, Statement("agent", "Bob", "is", "x", approval_required=True)))


# what happens while a review is being made


def meanwhile(subject: Subject, patched: pytest.MonkeyPatch, deed: Callable[[], Any]) -> None:
    """Something else is written after the next unit of work has read, and before it writes."""
    transact = subject.store.transact

    async def after_it(tenant: str, work: Any) -> Any:
        patched.setattr(subject.store, "transact", transact)
        await deed()
        return await transact(tenant, work)

    patched.setattr(subject.store, "transact", after_it)


def asked(subject: Subject, operation: str, a: str, b: str) -> Any:
    if operation == "merge":
        return subject.engine.merge(WHO, Merge("agent", a, [b], "merge_content", approval_required=True))
    if operation == "update":
        return subject.engine.update(WHO, Update("agent", a, tags=["y"], approval_required=True))
    return subject.forget(filter={"tags": "x"}, approval_required=True)


@pytest.mark.parametrize("operation", ["merge", "update", "forget"])
def test_a_review_quotes_nothing_that_was_erased_while_it_was_made(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    a, b = run(subject.remember("Bob lives in Rome", tags=["x"])), run(subject.remember("Bob moved", tags=["x"]))
    meanwhile(subject, monkeypatch, lambda: subject.forget(a, hard_delete=True))
    with contextlib.suppress(NotFound):
        run(asked(subject, operation, a, b))
    assert "Rome" not in stored_records(subject, run)


@pytest.mark.parametrize("operation", ["merge", "update", "forget"])
def test_a_review_shows_what_is_there_when_it_is_made(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    a, b = run(subject.remember("Bob lives in Rome", tags=["x"])), run(subject.remember("Bob moved", tags=["x"]))
    meanwhile(subject, monkeypatch, lambda: subject.update(a, content="Bob lives in Oslo"))
    staged = run(asked(subject, operation, a, b))
    assert "Oslo" in json.dumps(run(subject.engine.reviews.get(WHO, staged.review_id))["diff"])
    run(subject.engine.reviews.decide(WHO, staged.review_id, YES))


FIELDS: dict[str, Any] = {
    "title": "Home", "project": "atlas", "session_id": "s1", "speaker": "bob", "entity_name": "Bob",
    "tags": ["x"], "importance": 0.5, "event_time": 5, "supersedes": ["old"],
}  # fmt: skip


@pytest.mark.parametrize("operation", ["update", "forget", "merge"])
def test_a_review_shows_the_fields_that_would_change_whichever_protocol_wrote_them(
    subject: Subject, run: Any, operation: str
) -> None:
    """New metadata replaces the old with all the fields that it is shown with, so those are shown, too."""
    a = run(subject.remember("Bob lives in Rome", **FIELDS))
    b = run(subject.remember("Bob moved", project="other"))
    if operation == "update":
        run(subject.engine.update(WHO, Update("agent", a, metadata={"n": 1}, approval_required=True)))
    elif operation == "merge":
        run(subject.engine.merge(WHO, Merge("agent", b, [a], "merge_content", approval_required=True)))
    else:
        run(subject.forget(a, approval_required=True))
    (review,) = run(subject.engine.reviews.list(WHO))
    diff = review["diff"]
    gone = diff["modified"][0]["before"] if operation == "update" else diff["removed"][0]
    told = {**gone["metadata"], **gone}
    assert {name: told.get(name) for name in FIELDS} == FIELDS
    if operation == "update":
        assert diff["modified"][0]["after"]["metadata"] == {"n": 1}
    if operation == "merge":
        assert [diff["modified"][0][then]["metadata"]["project"] for then in ("before", "after")] == ["other", "other"]


@pytest.mark.parametrize("status", ["pending", "rejected"])
@pytest.mark.parametrize("by", ["user", "id"])
def test_an_approved_erasure_takes_staged_writes_like_one_that_needed_no_approval(
    subject: Subject, run: Any, status: str, by: str
) -> None:
    staged = stage(subject, run, "Bob lives in Rome", user_id="bob")
    other = stage(subject, run, "Alice moved", user_id="alice")
    if status == "rejected":
        run(subject.engine.reviews.decide(WHO, staged.review_id, NO))
    request: dict[str, Any] = {"filter": {"user_id": "bob"}} if by == "user" else {"ids": [staged.id]}
    asked = run(subject.engine.forget(WHO, Forget("agent", **request, hard_delete=True, approval_required=True)))
    shown = run(subject.engine.reviews.get(WHO, asked.review_id))["diff"]["removed"]
    assert "Rome" in stored_records(subject, run), "nothing happened yet"
    done = run(subject.engine.reviews.decide(WHO, asked.review_id, YES)).outcome
    meant = by == "user" or status == "rejected"  # what waits is not named by an id that nobody knows yet
    assert [memory["id"] for memory in shown] == done.ids == ([staged.id] if meant else [])
    assert ("Rome" in stored_records(subject, run)) is not meant
    run(subject.engine.reviews.decide(WHO, other.review_id, YES))


def test_a_staged_write_that_became_a_memory_is_shown_before_it_is_erased(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, "Bob lives in Rome", user_id="bob")
    request = Forget("agent", filter={"user_id": "bob"}, hard_delete=True, approval_required=True)
    asked = run(subject.engine.forget(WHO, request))
    run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    with pytest.raises(Conflict, match="look again"):
        run(subject.engine.reviews.decide(WHO, asked.review_id, YES))
    (shown,) = run(subject.engine.reviews.get(WHO, asked.review_id))["diff"]["removed"]
    assert (shown["id"], shown["content"]) == (staged.id, "Bob lives in Rome")
    run(subject.engine.reviews.decide(WHO, asked.review_id, YES))
    assert "Rome" not in stored_records(subject, run)


@pytest.mark.parametrize(
    "way", ["remember", "update", "forget", "merge", "statement", "stated", "decision", "forgotten", "erased draft"]
)
def test_a_long_text_is_searched_for_secrets_where_nobody_waits(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Not by the event loop, which answers everyone, nor by the one writer."""
    a, b = run(subject.remember("Bob lives in Rome")), run(subject.remember("Bob moved"))
    staged = stage(subject, run, "Bob was in Lima", user_id="bob")
    long = "token= " * 20_000
    searched: list[bool] = []
    clean = scanner.redact

    def watched(text: str, *more: Any) -> Any:
        if "token= token=" in text:
            name = threading.current_thread().name
            searched.append(name != threading.main_thread().name and "writer" not in name)
        return clean(text, *more)

    monkeypatch.setattr(scanner, "redact", watched)
    said: dict[str, Any] = {"approval_required": True, "reasoning": long}
    engine = subject.engine
    ways: dict[str, Callable[[], Any]] = {
        "remember": lambda: engine.remember(WHO, Draft("agent", "semantic", "x"), approval=REQUEST, reasoning=long),
        "update": lambda: engine.update(WHO, Update("agent", a, content="x", **said)),
        "forget": lambda: engine.forget(WHO, Forget("agent", [a], **said)),
        "merge": lambda: engine.merge(WHO, Merge("agent", a, [b], **said)),
        "statement": lambda: engine.assert_fact(WHO, Statement("agent", "Bob", "is", "tall", **said)),
        "stated": lambda: engine.assert_fact(WHO, Statement("agent", "Bob", "is", long)),
        "decision": lambda: engine.reviews.decide(WHO, staged.review_id, Decision(False, "Alice", long)),
        "forgotten": lambda: engine.forget(WHO, Forget("agent", [a], reason=long)),
        "erased draft": lambda: subject.forget(filter={"user_id": "bob"}, hard_delete=True, reason=long),
    }
    with contextlib.suppress(ValidationError):  # what is stated must be short
        run(ways[way]())
    assert searched, "it was searched"
    assert all(searched)
