"""Reviews: each is decided once, by who may, and happens as it was shown."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest
from redaction_corpus.credentials import BY_FORM
from stored_records import stored_records

from commonplace.engine.core import BACKUP, SYSTEM
from commonplace.engine.governance.approval import as_edited
from commonplace.engine.governance.decisions import Decision, may_see, shown
from commonplace.engine.types import Draft, Forget, Merge, Statement, Update
from commonplace.stores.base import Record
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal

YES, NO = Decision(True, "Alice"), Decision(False, "Alice", "not true")
REQUEST = {"agent_id": "agent", "type": "semantic", "content": "Bob moved", "approval_required": True}


def stage(subject: Subject, run: Any, content: str = "Bob moved", **fields: Any) -> Any:
    draft = Draft("agent", "semantic", content, **fields)
    return run(subject.engine.remember(WHO, draft, approval={**REQUEST, "content": content}, reasoning="he said so"))


def test_a_review_is_decided_once(subject: Subject, run: Any) -> None:
    for first in (YES, NO):
        staged = stage(subject, run)
        run(subject.engine.reviews.decide(WHO, staged.review_id, first))
        for second in (YES, NO):
            with pytest.raises(Conflict):
                run(subject.engine.reviews.decide(WHO, staged.review_id, second))
    assert len(run(subject.list())) == 1
    assert run(subject.engine.reviews.list(WHO)) == []
    assert [r["status"] for r in run(subject.engine.reviews.list(WHO, None))] == ["approved", "rejected"]
    with pytest.raises(NotFound):
        run(subject.engine.reviews.decide(WHO, "nothing", YES))


def test_an_edited_request_is_what_gets_written(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    edited = Draft("agent", "semantic", "Bob moved to Oslo")
    with pytest.raises(ValidationError):
        run(
            subject.engine.reviews.decide(
                WHO, staged.review_id, Decision(True, "Alice", edited=Draft("other", "semantic", "x"))
            )
        )
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
    assert run(subject.get(staged.id)).content == "Bob moved to Oslo"


def test_edited_forgets_and_merges_stay_with_their_agent(subject: Subject, run: Any) -> None:
    a, b, elsewhere, too = (run(subject.remember("x", agent)) for agent in ("agent", "agent", "other", "other"))
    run(subject.forget(a, approval_required=True))
    run(subject.engine.merge(WHO, Merge("agent", a, [b], approval_required=True)))
    forget, merge = run(subject.engine.reviews.list(WHO))
    for review, request in ((forget, Forget("other", [elsewhere])), (merge, Merge("other", elsewhere, [too]))):
        with pytest.raises(ValidationError):
            run(subject.engine.reviews.decide(WHO, review["id"], Decision(True, "Alice", edited=request)))
    assert len(run(subject.list("other"))) == len(run(subject.list())) == 2


def test_a_staged_forget_takes_what_was_shown_and_no_more(subject: Subject, run: Any) -> None:
    shown = run(subject.remember("a draft", tags=["draft"]))
    run(subject.forget(filter={"tags": "draft"}, approval_required=True))
    later = run(subject.remember("another draft", tags=["draft"]))
    (review,) = run(subject.engine.reviews.list(WHO))
    decided = run(subject.engine.reviews.decide(WHO, review["id"], YES))
    assert decided.outcome.ids == [shown]
    assert [m.id for m in run(subject.list())] == [later]


def test_a_staged_merge_takes_what_was_shown_and_no_more(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("Alice", entity_name="alice")), run(subject.remember("Alicia", entity_name="alicia"))
    run(subject.engine.merge(WHO, Merge("agent", "alice", ["alicia"], approval_required=True)))
    later = run(subject.remember("Alicia the second", entity_name="alicia"))
    (review,) = run(subject.engine.reviews.list(WHO))
    run(subject.engine.reviews.decide(WHO, review["id"], YES))
    assert {m.id for m in run(subject.list())} == {a, later}
    assert run(subject.store.get("local", [b]))[0].merged_into == a


def test_a_staged_erasure_cascades_to_what_was_shown(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    run(subject.merge(a, b, strategy="merge_content"))
    run(subject.forget(b, hard_delete=True, cascade=True, approval_required=True))
    (review,) = run(subject.engine.reviews.list(WHO))
    assert {m["id"] for m in review["diff"]["removed"]} == {a, b}
    assert set(run(subject.engine.reviews.decide(WHO, review["id"], YES)).outcome.ids) == {a, b}
    assert run(subject.store.get("local", [a, b])) == []


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("cascade", [False, True])
def test_an_approved_erasure_says_as_much_as_one_that_needed_no_approval(
    subject: Subject, run: Any, cascade: bool, edited: bool
) -> None:
    a, b, c = (run(subject.remember(text)) for text in ("one", "two", "three"))
    run(subject.merge(b, c, strategy="merge_content"))
    run(subject.merge(a, b, strategy="merge_content"))
    run(subject.store.transact(SYSTEM, lambda tx: tx.put_record(Record(BACKUP, "b", {"path": "copy.db", "at": 1}))))
    request = Forget("agent", [b], hard_delete=True, cascade=cascade, approval_required=True)
    staged = run(subject.engine.forget(WHO, Forget("agent", [a], approval_required=True) if edited else request))
    decision = Decision(True, "Alice", edited=request if edited else None)
    done = run(subject.engine.reviews.decide(WHO, staged.review_id, decision)).outcome
    taken = {a, b, c} if cascade else {b}
    assert (set(done.ids), done.erased) == (taken, True)
    assert {m.id for m in run(subject.store.get("local", [a, b, c]))} == {a, b, c} - taken
    assert (done.descendants, done.sources) == (([], []) if cascade else ([a], [c]))
    assert (done.backups, done.backup_count) == (["copy.db"], 1)


def test_a_review_about_something_erased_can_no_longer_be_approved(subject: Subject, run: Any) -> None:
    a = run(subject.remember("one"))
    run(subject.forget(a, approval_required=True))
    (review,) = run(subject.engine.reviews.list(WHO))
    run(subject.forget(a, hard_delete=True))
    with pytest.raises(Conflict):
        run(subject.engine.reviews.decide(WHO, review["id"], YES))


def test_only_reviewers_of_that_agent_decide(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    for who, fault in (
        (Principal(WHO.name, role="writer"), Forbidden),
        (Principal("w", role="writer"), NotFound),
        (Principal("r", role="reviewer", agents=("other",)), NotFound),
        (Principal("r", role="reviewer", tenant="other"), NotFound),
    ):
        with pytest.raises(fault):
            run(subject.engine.reviews.decide(who, staged.review_id, YES))
        if fault is NotFound:
            assert run(subject.engine.reviews.list(who)) == []
    run(subject.engine.reviews.decide(Principal("r", role="reviewer", agents=("ag*",)), staged.review_id, YES))
    assert run(subject.get(staged.id)).provenance["principal"] == WHO.name


def test_a_rejected_write_never_was(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, aliases=["bob"])
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, NO))
    assert decided.review["decision"]["reason"] == "not true"
    assert run(subject.list()) == run(subject.recall("Bob moved")) == []
    assert run(subject.store.sequence("local")) == 0
    run(subject.remember("Bob stayed", aliases=["bob"]))


@pytest.mark.parametrize("approved", [True, False])
def test_what_a_reviewer_writes_holds_no_secret(subject: Subject, run: Any, approved: bool) -> None:
    token = BY_FORM["github"](Random(5))
    staged = stage(subject, run)
    decision = Decision(approved, f"Alice {token}", f"because {token}")
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, decision)).review["decision"]
    assert decided["reviewer"] == "Alice <REDACTED:github_token>"
    assert decided["reason"] == "because <REDACTED:github_token>"
    assert token not in stored_records(subject, run)


def test_a_rejected_write_can_be_erased(subject: Subject, run: Any) -> None:
    staged = run(
        subject.engine.remember(WHO, Draft("agent", "semantic", "a rejected secret"), approval={"content": "a"})
    )
    forget = Forget("agent", [staged.id], hard_delete=True)
    assert run(subject.engine.forget(WHO, forget)).ids == []  # while it is pending nobody can touch it
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(False, "bob")))
    assert run(subject.engine.forget(WHO, forget)).ids == [staged.id]
    (review,) = run(subject.engine.reviews.list(WHO, None))
    assert review["status"] == "rejected"
    assert "secret" not in str(review)
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None


def test_a_review_is_seen_by_reviewers_and_whoever_asked(subject: Subject, run: Any) -> None:
    alice = Principal("alice", role="writer")
    run(subject.engine.remember(alice, Draft("agent", "semantic", "for review"), approval={"content": "x"}))
    assert len(run(subject.engine.reviews.list(alice))) == 1
    assert run(subject.engine.reviews.list(Principal("bob", role="writer"))) == []
    assert len(run(subject.engine.reviews.list(Principal("bob", role="reviewer")))) == 1
    assert run(subject.engine.reviews.list(Principal("bob", role="reviewer", agents=("other",)))) == []


@pytest.mark.parametrize("operation", ["forget", "merge"])
def test_an_edited_review_is_about_what_the_edit_names(subject: Subject, run: Any, operation: str) -> None:
    a, b, c, d = (run(subject.remember(text, tags=[text])) for text in "abcd")
    edited: Any
    if operation == "forget":
        run(subject.forget(a, approval_required=True))
        edited = Forget("agent", [c], {"tags": "c"}, reason="MARK")
    else:
        run(subject.engine.merge(WHO, Merge("agent", a, [b], approval_required=True)))
        edited = Merge("agent", d, [c], reasoning="MARK")
    (review,) = run(subject.engine.reviews.list(WHO))
    request = {name: value for name, value in asdict(edited).items() if value is not None}
    run(
        subject.engine.reviews.decide(WHO, review["id"], Decision(True, "Alice", edited=edited, edited_request=request))
    )
    assert "MARK" in stored_records(subject, run)
    run(subject.forget(c, hard_delete=True))
    assert "MARK" not in stored_records(subject, run)


def test_an_edit_keeps_what_the_record_is_to_its_protocol(subject: Subject, run: Any) -> None:
    draft = Draft("agent", "semantic", "use tabs", kind="lesson", aliases=["l1"], provenance={"dialect": "amp"})
    for alias, kind, metadata in (("l1", "lesson", {}), ("l2", "snippet", {"kind": "snippet"})):
        staged = run(subject.engine.remember(WHO, replace(draft, aliases=[alias]), approval={"content": "use tabs"}))
        edited = Draft("agent", "semantic", "use spaces", metadata={"kind": kind, "k": 1})
        run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
        memory = run(subject.get(alias))
        assert (memory.id, memory.content, memory.kind) == (staged.id, "use spaces", "lesson")
        assert memory.provenance["dialect"] == "amp"
        assert memory.metadata == {**metadata, "k": 1}


def test_a_review_of_an_agent_with_an_odd_name_can_be_approved(subject: Subject, run: Any) -> None:
    who = Principal("alice", role="reviewer", agents=("team[1]",))
    staged = run(subject.engine.remember(who, Draft("team[1]", "semantic", "x"), approval={"content": "x"}))
    run(subject.engine.reviews.decide(who, staged.review_id, Decision(True, "Alice")))
    assert run(subject.get(staged.id, "team[1]")).content == "x"


@pytest.mark.parametrize(
    ("who", "may"),
    [
        (Principal("alice", role="reader"), True),  # whoever asked
        (Principal("alice", role="writer", agents=("other",)), False),
        (Principal("bob", role="writer"), False),
        (Principal("bob", role="reviewer"), True),
        (Principal("bob", role="admin", agents=("ag*",)), True),
        (Principal("bob", role="admin", agents=("other",)), False),
    ],
)
def test_who_may_see_what_waits(who: Principal, may: bool) -> None:
    assert may_see(who, {"requested_by": "alice", "agent_id": "agent"}) is may


def test_callers_see_neither_the_engines_notes_nor_nulls() -> None:
    review = {"id": "r", "draft": {"content": "x"}, "ids": ["a"], "reasoning": None, "diff": {}, "status": "pending"}
    assert shown(review) == {"id": "r", "diff": {}, "status": "pending"}


@pytest.mark.parametrize(
    ("kind", "metadata", "kept"),
    [
        ("lesson", {"kind": "lesson", "k": 1}, {"k": 1}),
        ("lesson", {"kind": "snippet"}, {"kind": "snippet"}),
        ("", {"kind": "lesson"}, {"kind": "lesson"}),
        ("lesson", {}, {}),
    ],
)
def test_an_edit_is_of_what_was_staged(kind: str, metadata: dict[str, Any], kept: dict[str, Any]) -> None:
    staged = Draft("agent", "semantic", "old", kind=kind, aliases=["n1"], provenance={"dialect": "amp"})
    made = as_edited(staged, Draft("agent", "semantic", "new", metadata=metadata, aliases=["x"], provenance={"a": 1}))
    assert (made.content, made.kind, made.aliases, made.provenance) == ("new", kind, ["n1"], {"dialect": "amp"})
    assert made.metadata == kept


def test_an_approved_memory_may_join_another(subject: Subject, run: Any) -> None:
    canonical = run(subject.remember("Bob lives in Rome", aliases=["bob"]))
    staged = stage(subject, run)
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", merge_into="bob")))
    assert decided.outcome.id == staged.id
    assert decided.applied.survivor.id == canonical
    assert run(subject.get(canonical)).content == "Bob lives in Rome\nBob moved"
    (gone,) = run(subject.store.get("local", [staged.id]))
    assert (gone.status, gone.merged_into) == ("deleted", canonical)
    operations = [entry.operation for entry in run(subject.engine.ledger.entries(WHO))]
    assert operations == ["remember", "stage_remember", "approve", "remember", "merge"]


def test_an_approved_memory_may_take_the_place_of_others(subject: Subject, run: Any) -> None:
    old, other, kept = (run(subject.remember(text)) for text in ("Bob lives in Rome", "Bob is in Rome", "Bob is tall"))
    staged = stage(subject, run)
    decision = Decision(True, "Alice", forget=(old, other))
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, decision))
    assert decided.applied.ids == [old, other]
    assert {m.id for m in run(subject.list())} == {staged.id, kept}
    entry = run(subject.engine.ledger.entries(WHO, operation="forget"))[0]
    assert json.loads(entry.parts[-1].payload) == {"reason": f"superseded by {staged.id}"}


@pytest.mark.parametrize("decision", [
    Decision(False, "Alice", merge_into="bob"), Decision(False, "Alice", forget=("bob",)),
    Decision(True, "Alice", merge_into="bob", forget=("bob",)),
])  # fmt: skip
def test_what_else_happens_goes_with_approving_and_is_one_thing(subject: Subject, run: Any, decision: Decision) -> None:
    run(subject.remember("Bob lives in Rome", aliases=["bob"]))
    staged = stage(subject, run)
    with pytest.raises(ValidationError) as refused:
        run(subject.engine.reviews.decide(WHO, staged.review_id, decision))
    assert refused.value.details == {"field": "apply"}
    assert run(subject.engine.reviews.get(WHO, staged.review_id))["status"] == "pending"


def test_only_a_remember_joins_or_replaces(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    staged = run(subject.forget(a, approval_required=True))
    with pytest.raises(ValidationError, match="apply is only for approving a remember"):
        run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", forget=(b,))))


def test_what_it_should_join_must_be_there(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    for decision in (Decision(True, "Alice", merge_into="nothing"), Decision(True, "Alice", forget=("nothing",))):
        with pytest.raises(NotFound):
            run(subject.engine.reviews.decide(WHO, staged.review_id, decision))
    assert run(subject.gone(staged.id))
    run(subject.engine.reviews.decide(WHO, staged.review_id, YES))


def test_a_staged_write_whose_time_ran_out_can_be_rejected_only(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, expires_at=subject.clock() + 5)
    subject.clock.advance(5)
    with pytest.raises(ValidationError, match="expires_at must be in the future"):
        run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    run(subject.engine.reviews.decide(WHO, staged.review_id, NO))


def test_an_alias_that_was_taken_meanwhile_leaves_the_review_open(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, aliases=["bob"])
    other = run(subject.remember("another", aliases=["bob"]))
    with pytest.raises(Conflict):
        run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    assert run(subject.engine.reviews.get(WHO, staged.review_id))["status"] == "pending"
    run(subject.forget(other))
    run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    assert run(subject.get("bob")).id == staged.id


def test_reviews_are_listed_by_status_oldest_first(subject: Subject, run: Any) -> None:
    ids = []
    for content in ("one", "two", "three"):
        subject.clock.advance(1)
        ids.append(stage(subject, run, content).review_id)
    run(subject.engine.reviews.decide(WHO, ids[1], NO))
    listed = {status: [r["id"] for r in run(subject.engine.reviews.list(WHO, status))]
              for status in ("pending", "rejected", "approved", None)}  # fmt: skip
    assert listed == {"pending": [ids[0], ids[2]], "rejected": [ids[1]], "approved": [], None: ids}


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize(
    ("who", "given", "reviewer"),
    [
        (WHO, "Alice", "Alice"),
        (WHO, None, WHO.name),
        (Principal("ruth", role="reviewer"), "Alice", "ruth"),
        (Principal("ruth"), "Alice", "ruth"),
        (Principal("ruth"), None, "ruth"),
        (replace(WHO, role="reviewer"), "Alice", WHO.name),
    ],
)
def test_only_the_open_local_operator_names_another_reviewer(
    subject: Subject, run: Any, who: Principal, given: str | None, reviewer: str, approved: bool
) -> None:
    staged = stage(subject, run)
    decided = run(subject.engine.reviews.decide(who, staged.review_id, Decision(approved, given)))
    assert decided.review["decision"]["reviewer"] == reviewer
    (part,) = run(subject.engine.ledger.entries(WHO))[1].parts
    assert json.loads(part.payload)["reviewer"] == reviewer


def test_the_memory_is_the_askers_and_the_approval_the_reviewers(subject: Subject, run: Any) -> None:
    writer, reviewer = Principal("walt", role="writer"), Principal("ruth", role="reviewer")
    staged = run(subject.engine.remember(writer, Draft("agent", "semantic", "x"), approval={"content": "x"}))
    run(subject.engine.reviews.decide(reviewer, staged.review_id, Decision(True, "Ruth")))
    entries = run(subject.engine.ledger.entries(WHO))
    told = [(entry.operation, entry.principal) for entry in entries]
    assert told == [("stage_remember", "walt"), ("approve", "ruth"), ("remember", "walt")]
    assert json.loads(entries[1].parts[0].payload) == {
        "review_id": staged.review_id, "reviewer": "ruth", "edited": False}  # fmt: skip
    assert json.loads(entries[2].parts[0].payload)["review_id"] == staged.review_id


def test_an_edited_forget_takes_what_the_edit_means(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one", tags=["x"])), run(subject.remember("two", tags=["y"]))
    staged = run(subject.forget(a, approval_required=True))
    edited = Forget("agent", filter={"tags": "y"})
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
    assert decided.outcome.ids == [b]
    assert [m.id for m in run(subject.list())] == [a]


@pytest.mark.parametrize("edited", [
    Draft("agent", "semantic", "x"), Merge("agent", "a", ["b"]), Forget("other", ["a"]),
])  # fmt: skip
def test_an_edit_is_the_same_operation_of_the_same_agent(subject: Subject, run: Any, edited: Any) -> None:
    a = run(subject.remember("one"))
    staged = run(subject.forget(a, approval_required=True))
    with pytest.raises(ValidationError, match="the edited request must be a forget of the same agent"):
        run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))


# what a reviewer was shown


def staged_change(subject: Subject, run: Any, operation: str) -> tuple[str, str, str]:
    """A review, and the two memories it is about."""
    a, b = run(subject.remember("Bob lives in Rome", tags=["x"])), run(subject.remember("Bob is in Rome", tags=["x"]))
    if operation == "merge":
        staged = run(subject.engine.merge(WHO, Merge("agent", a, [b], "merge_content", approval_required=True)))
    else:
        staged = run(subject.forget(filter={"tags": "x"}, approval_required=True, hard_delete=operation == "erase"))
    return staged.review_id, a, b


@pytest.mark.parametrize("operation", ["forget", "erase", "merge"])
@pytest.mark.parametrize("which", [0, 1])
def test_approving_what_has_moved_on_is_a_conflict_with_a_fresh_diff(
    subject: Subject, run: Any, operation: str, which: int
) -> None:
    review, *ids = staged_change(subject, run, operation)
    run(subject.update(ids[which], content="Bob lives in Oslo"))
    with pytest.raises(Conflict, match="has changed since") as moved:
        run(subject.engine.reviews.decide(WHO, review, YES))
    assert moved.value.details["review"]["diff"] == run(subject.engine.reviews.get(WHO, review))["diff"]
    assert {m.id for m in run(subject.list())} == set(ids), "nothing happened"
    fresh = run(subject.engine.reviews.get(WHO, review))
    assert (fresh["status"], "decision" in fresh, fresh["revision"]) == ("pending", False, 2)
    assert "Bob lives in Oslo" in json.dumps(fresh["diff"])
    run(subject.engine.reviews.decide(WHO, review, YES))
    left = [m.id for m in run(subject.list())]
    assert left == ([ids[0]] if operation == "merge" else [])


@pytest.mark.parametrize("operation", ["forget", "erase"])
def test_a_fresh_diff_is_what_the_request_means_now(subject: Subject, run: Any, operation: str) -> None:
    review, a, b = staged_change(subject, run, operation)
    run(subject.update(a, tags=[]))
    later = run(subject.remember("Bob was in Rome", tags=["x"]))
    with pytest.raises(Conflict):
        run(subject.engine.reviews.decide(WHO, review, YES))
    shown = run(subject.engine.reviews.get(WHO, review))["diff"]["removed"]
    assert {m["id"] for m in shown} == {b, later}
    assert set(run(subject.engine.reviews.decide(WHO, review, YES)).outcome.ids) == {b, later}
    run(subject.forget(later, hard_delete=True))
    assert "was in Rome" not in stored_records(subject, run), "a fresh diff quotes what it shows"


@pytest.mark.parametrize("kind", ["", "attestation"])
@pytest.mark.parametrize("change", ["changed", "forgotten", "erased"])
def test_a_new_memory_is_approved_beside_what_it_was_shown_beside(
    subject: Subject, run: Any, kind: str, change: str
) -> None:
    known = run(subject.remember("Bob lives in Rome"))
    provenance = {"attestation": {"id": "x"}} if kind else {}
    draft = Draft("agent", "semantic", "Bob lives in Oslo", provenance=provenance)
    review = run(subject.engine.remember(WHO, draft, approval={"content": draft.content})).review_id
    shown = run(subject.engine.reviews.get(WHO, review))
    assert ([each["id"] for each in shown["nearest"]], shown["versions"]) == ([known], {known: 1})
    run(subject.recall("Rome"))
    if change == "changed":
        run(subject.update(known, content="Bob has left Rome"))
    else:
        run(subject.forget(known, hard_delete=change == "erased"))
    with pytest.raises(Conflict, match="has changed since") as moved:
        run(subject.engine.reviews.decide(WHO, review, YES))
    fresh = run(subject.engine.reviews.get(WHO, review))
    assert (fresh["status"], fresh["revision"]) == ("pending", 2)
    assert moved.value.details["review"]["versions"] == fresh["versions"] == ({known: 2} if change == "changed" else {})
    run(subject.engine.reviews.decide(WHO, review, YES))
    assert "Bob lives in Oslo" in [m.content for m in run(subject.list())]


@pytest.mark.parametrize("apply", ["merge_into", "forget"])
def test_what_a_new_memory_joins_or_replaces_is_what_the_reviewer_has_read(
    subject: Subject, run: Any, apply: str
) -> None:
    known = run(subject.remember("Bob lives in Rome"))
    draft = Draft("agent", "semantic", "Bob lives in Oslo")
    review = run(subject.engine.remember(WHO, draft, approval={"content": draft.content})).review_id
    run(subject.update(known, content="Bob lives in Rome and owes Alice 40"))
    decision = Decision(True, **({"merge_into": known} if apply == "merge_into" else {"forget": (known,)}))
    with pytest.raises(Conflict, match="has changed since"):
        run(subject.engine.reviews.decide(WHO, review, decision))
    assert [m.content for m in run(subject.list())] == ["Bob lives in Rome and owes Alice 40"]
    run(subject.engine.reviews.decide(WHO, review, decision))


def test_a_merge_of_what_is_gone_can_only_be_turned_down(subject: Subject, run: Any) -> None:
    review, _, b = staged_change(subject, run, "merge")
    run(subject.forget(b))
    with pytest.raises(Conflict, match="reject it"):
        run(subject.engine.reviews.decide(WHO, review, YES))
    run(subject.engine.reviews.decide(WHO, review, NO))


def test_a_demotion_is_no_other_version(subject: Subject, run: Any) -> None:
    review, a, b = staged_change(subject, run, "forget")
    run(subject.expire("demote", type="semantic"))
    run(subject.recall("Rome"))
    assert set(run(subject.engine.reviews.decide(WHO, review, YES)).outcome.ids) == {a, b}


# changes and statements


def staged_update(subject: Subject, run: Any, **fields: Any) -> tuple[str, str]:
    """A review, and the memory it would change."""
    id = run(subject.remember("Bob lives in Rome", tags=["x"], metadata={"tags": ["x"], "n": 1}))
    update = Update("agent", id, **{"content": "Bob lives in Oslo", **fields}, approval_required=True)
    return run(subject.engine.update(WHO, update)).review_id, id


def test_an_approved_change_is_the_next_version_and_its_askers(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Bob lives in Rome"))
    asker = Principal(name="bob", role="writer")
    staged = run(subject.engine.update(asker, Update("agent", id, content="Bob moved", approval_required=True)))
    subject.clock.advance(10)
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    memory = run(subject.get(id))
    assert (memory.content, memory.version, memory.updated_at) == ("Bob moved", 2, subject.clock())
    assert decided.outcome.id == id
    assert [m.id for m in run(subject.recall("moved"))] == [id]
    (entry,) = run(subject.engine.ledger.entries(WHO, operation="update", limit=10))
    assert entry.principal == "bob"
    with pytest.raises(Conflict):
        run(subject.engine.reviews.decide(WHO, staged.review_id, YES))


@pytest.mark.parametrize("change", [{"tags": ["y"]}, {"content": "Bob lives in Oslo"}, {"metadata": {"m": 2}}])
def test_a_change_of_what_moved_on_is_shown_anew_and_means_the_same(
    subject: Subject, run: Any, change: dict[str, Any]
) -> None:
    review, id = staged_update(subject, run, **{"content": None, **change})
    moved = run(subject.engine.update(WHO, Update("agent", id, metadata={"tags": ["x"], "n": 5}))).memory
    with pytest.raises(Conflict, match="has changed since"):
        run(subject.engine.reviews.decide(WHO, review, YES))
    assert run(subject.get(id)).version == moved.version
    (shown,) = run(subject.engine.reviews.get(WHO, review))["diff"]["modified"]
    assert shown["before"]["metadata"] == {"tags": ["x"], "n": 5}
    run(subject.engine.reviews.decide(WHO, review, YES))
    kept = run(subject.get(id))
    assert kept.content == change.get("content", "Bob lives in Rome")
    assert kept.metadata == change.get("metadata", {"tags": change.get("tags", ["x"]), "n": 5})
    assert kept.tags == change.get("tags", [] if "metadata" in change else ["x"])


@pytest.mark.parametrize("way", ["forget", "merge"])
def test_a_change_of_what_is_gone_can_only_be_turned_down(subject: Subject, run: Any, way: str) -> None:
    review, id = staged_update(subject, run)
    run(subject.forget(id) if way == "forget" else subject.merge(run(subject.remember("Bob is in Rome")), id))
    with pytest.raises(Conflict):
        run(subject.engine.reviews.decide(WHO, review, YES))
    run(subject.engine.reviews.decide(WHO, review, NO))
    assert "Oslo" not in repr(run(subject.list()))


def test_an_edited_change_is_what_gets_written(subject: Subject, run: Any) -> None:
    review, id = staged_update(subject, run)
    edited = Update("agent", "", content="Bob lives in Bergen")
    run(subject.engine.reviews.decide(WHO, review, Decision(True, "Alice", edited=edited)))
    assert run(subject.get(id)).content == "Bob lives in Bergen"


@pytest.mark.parametrize("which", ["forget", "elsewhere"])
def test_an_edited_change_is_a_change_of_the_same_agent(subject: Subject, run: Any, which: str) -> None:
    review, id = staged_update(subject, run)
    edited = Forget("agent", [id]) if which == "forget" else Update("other", id, content="x")
    with pytest.raises(ValidationError, match="must be an update of the same agent"):
        run(subject.engine.reviews.decide(WHO, review, Decision(True, "Alice", edited=edited)))


def test_erasing_a_memory_erases_what_would_change_it(subject: Subject, run: Any) -> None:
    review, id = staged_update(subject, run)
    run(subject.forget(id, hard_delete=True))
    assert "Oslo" not in stored_records(subject, run)
    with pytest.raises(Conflict, match="erased"):
        run(subject.engine.reviews.decide(WHO, review, YES))


def test_a_change_that_was_turned_down_is_gone_with_its_memory_alone(subject: Subject, run: Any) -> None:
    """A review of a change names a memory that is there: erasing turned-down writes must not take it."""
    review, id = staged_update(subject, run)
    run(subject.engine.reviews.decide(WHO, review, NO))
    run(subject.forget(filter={"content": "Bob lives in Oslo"}, hard_delete=True))
    assert run(subject.get(id)).content == "Bob lives in Rome"


def staged_statement(subject: Subject, run: Any, **fields: Any) -> Any:
    run(subject.engine.assert_fact(WHO, Statement("agent", "Bob", "lives_in", "Rome")))
    subject.clock.advance(10)
    waiting = Statement("agent", "Bob", "lives_in", "Oslo", **fields, approval_required=True)
    return run(subject.engine.assert_fact(Principal(name="bob", role="writer"), waiting))


def test_an_approved_statement_begins_then_and_ends_what_held(subject: Subject, run: Any) -> None:
    staged = staged_statement(subject, run)
    began = subject.clock.advance(10)
    decided = run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    (held, now) = run(subject.engine.graph.history(WHO, "agent", "Bob"))
    assert (held.object, held.valid_to, now.object, now.valid_from) == ("Rome", began, "Oslo", began)
    assert (now.id, now.asserted_by) == (staged.triple.id, "bob")
    assert decided.outcome.triple == now


@pytest.mark.parametrize("since", [None, 1_000])
def test_a_statement_whose_line_moved_on_is_shown_anew(subject: Subject, run: Any, since: int | None) -> None:
    staged = staged_statement(subject, run, valid_from=since)
    moved = Statement("agent", "Bob", "lives_in", "Bergen", valid_from=None if since is None else since - 500)
    run(subject.engine.assert_fact(WHO, moved))
    with pytest.raises(Conflict, match="has changed since"):
        run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    assert all(t.object != "Oslo" for t in run(subject.engine.graph.history(WHO, "agent", "Bob")))
    shown = run(subject.engine.reviews.get(WHO, staged.review_id))["diff"]
    assert shown["modified"][0]["before"]["object"] == "Bergen"
    run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    assert any(t.object == "Oslo" for t in run(subject.engine.graph.history(WHO, "agent", "Bob")))


def test_an_edited_statement_is_what_gets_stated(subject: Subject, run: Any) -> None:
    staged = staged_statement(subject, run)
    for wrong in (Forget("agent", ["x"]), Statement("other", "Bob", "is", "x")):
        with pytest.raises(ValidationError, match="must be a statement of the same agent"):
            run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=wrong)))
    edited = Statement("agent", "Bob", "lives_in", "Bergen")
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
    assert [t.object for t in run(subject.engine.graph.query(WHO, "agent", "Bob"))] == ["Bergen"]


@pytest.mark.parametrize("status", ["pending", "rejected", "approved"])
@pytest.mark.parametrize("mentions", [False, True])
def test_erasing_a_subject_erases_what_waits_to_be_stated_of_it(
    subject: Subject, run: Any, status: str, mentions: bool
) -> None:
    waiting = Statement("agent", "Bob", "lives_in", "Oslo", approval_required=True, reasoning="he is in Oslo")
    staged = run(subject.engine.assert_fact(WHO, waiting))
    other = Statement("agent", "Carol", "lives_in", "Lima", approval_required=True)
    kept = run(subject.engine.assert_fact(WHO, other))
    if status != "pending":
        run(subject.engine.reviews.decide(WHO, staged.review_id, YES if status == "approved" else NO))
    gone = run(subject.engine.graph.erase(WHO, "agent", "Oslo" if mentions else "Bob", mentions=mentions))
    assert gone.ids == [staged.triple.id]
    assert "Oslo" not in stored_records(subject, run)
    review = run(subject.engine.reviews.get(WHO, staged.review_id))
    assert (review["status"], review["erased"]) == ("rejected" if status == "pending" else status, True)
    run(subject.engine.reviews.decide(WHO, kept.review_id, YES))
    assert [t.object for t in run(subject.engine.graph.query(WHO, "agent", "Carol"))] == ["Lima"]


def test_erasing_a_memory_erases_what_waits_to_be_stated_from_it(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Bob moved to Oslo"))
    waiting = Statement("agent", "Bob", "lives_in", "Oslo", provenance=id, approval_required=True)
    staged = run(subject.engine.assert_fact(WHO, waiting))
    run(subject.forget(id, hard_delete=True))
    assert "Oslo" not in stored_records(subject, run)
    with pytest.raises(Conflict, match="erased"):
        run(subject.engine.reviews.decide(WHO, staged.review_id, YES))


@pytest.mark.parametrize("operation", ["update", "statement"])
def test_a_change_or_statement_joins_nothing(subject: Subject, run: Any, operation: str) -> None:
    review = staged_update(subject, run)[0] if operation == "update" else staged_statement(subject, run).review_id
    with pytest.raises(ValidationError, match="only for approving a remember"):
        run(subject.engine.reviews.decide(WHO, review, Decision(True, "Alice", merge_into="x")))


def test_a_fresh_diff_quotes_nothing_that_was_erased_while_it_was_made(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    review, a, _ = staged_change(subject, run, "forget")
    run(subject.update(a, content="Bob lives in Oslo"))
    later = run(subject.remember("Bob was in Lima", tags=["x"]))
    transact, units = subject.store.transact, iter(range(9))

    async def erasing(tenant: str, work: Any) -> Any:
        if next(units) == 1:  # the first approves, the second keeps the fresh diff
            await subject.forget(later, hard_delete=True)
        return await transact(tenant, work)

    monkeypatch.setattr(subject.store, "transact", erasing)
    with pytest.raises(Conflict, match="look again"):
        run(subject.engine.reviews.decide(WHO, review, YES))
    assert "Lima" not in stored_records(subject, run)
    assert "Oslo" in stored_records(subject, run)


def test_erasing_a_subject_leaves_what_was_stated_of_another_by_an_edit(subject: Subject, run: Any) -> None:
    waiting = Statement("agent", "Alice", "lives_in", "Oslo", approval_required=True)
    staged = run(subject.engine.assert_fact(WHO, waiting))
    edited = Statement("agent", "Bob", "lives_in", "Rome")
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice", edited=edited)))
    gone = run(subject.engine.graph.erase(WHO, "agent", "Alice"))
    assert gone.ids == [], "what Bob's statement is called stands for what is still there"
    assert "Oslo" not in stored_records(subject, run)
    assert [t.object for t in run(subject.engine.graph.query(WHO, "agent", "Bob"))] == ["Rome"]
    assert not run(subject.engine.ledger.entries(WHO, operation="graph_erase", limit=10))


def test_erasing_a_subject_takes_what_is_approved_at_that_moment(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = run(subject.engine.assert_fact(WHO, Statement("agent", "Bob", "is", "tall", approval_required=True)))
    records = subject.store.records

    async def approving(tenant: str, kind: str) -> Any:  # which an erasure asks for when no statement is left
        monkeypatch.setattr(subject.store, "records", records)
        await subject.engine.reviews.decide(WHO, staged.review_id, YES)
        return await records(tenant, kind)

    monkeypatch.setattr(subject.store, "records", approving)
    assert run(subject.engine.graph.erase(WHO, "agent", "Bob")).ids == [staged.triple.id]
    assert run(subject.engine.graph.history(WHO, "agent", "Bob")) == []
    assert "tall" not in stored_records(subject, run)


# page by page


def pages(subject: Subject, run: Any, who: Principal = WHO, **options: Any) -> list[list[str]]:
    """The ids of every page, each asked for with the cursor of the one before."""
    found: list[list[str]] = []
    cursor: str | None = None
    while True:
        reviews, cursor = run(subject.engine.reviews.page(who, cursor=cursor, **options))
        found.append([review["id"] for review in reviews])
        if cursor is None:
            return found


def test_pages_hold_every_review_once_in_order(subject: Subject, run: Any) -> None:
    staged = []
    for i in range(5):
        staged.append(stage(subject, run, f"note {i}").review_id)
        subject.clock.advance(1)
    run(subject.engine.reviews.decide(WHO, staged[1], YES))
    pending = [staged[0], *staged[2:]]
    assert pages(subject, run, limit=2) == [pending[:2], pending[2:]]
    assert pages(subject, run, limit=3, newest_first=True) == [pending[:0:-1], pending[:1]]
    assert pages(subject, run, status="approved") == [[staged[1]]]
    assert pages(subject, run, status=None, limit=5) == [staged]
    assert pages(subject, run, agent_id="other") == [[]]
    assert pages(subject, run, operation="forget") == [[]]
    behind, _ = run(subject.engine.reviews.page(WHO, after=pending[0], limit=1))
    assert [review["id"] for review in behind] == [pending[1]]
    with pytest.raises(ValidationError):
        run(subject.engine.reviews.page(WHO, limit=0))


OTHER_LISTS: list[dict[str, Any]] = [
    {"status": "approved"}, {"status": None}, {"agent_id": "agent"}, {"operation": "remember"}, {"newest_first": True},
]  # fmt: skip


@pytest.mark.parametrize("other", OTHER_LISTS, ids=str)
def test_a_cursor_of_another_list_of_reviews_is_refused(subject: Subject, run: Any, other: dict[str, Any]) -> None:
    for i in range(3):
        stage(subject, run, f"note {i}")
    _, cursor = run(subject.engine.reviews.page(WHO, limit=1))
    assert cursor is not None
    with pytest.raises(ValidationError, match=r"invalid cursor .* with the same conditions") as refused:
        run(subject.engine.reviews.page(WHO, limit=1, cursor=cursor, **other))
    assert refused.value.details["field"] == "cursor"
    (second,), _ = run(subject.engine.reviews.page(WHO, limit=1, cursor=cursor))
    assert second["request"]["content"] == "note 1"


@pytest.mark.parametrize("condition", [{"status": "decided"}, {"operation": "remembr"}], ids=str)
def test_a_condition_that_no_review_can_meet_is_refused(subject: Subject, run: Any, condition: dict[str, str]) -> None:
    (name,) = condition
    with pytest.raises(ValidationError, match=f"{name} is one of .*, not ") as refused:
        run(subject.engine.reviews.page(WHO, **condition))
    assert refused.value.details["field"] == name
    if name == "status":
        with pytest.raises(ValidationError, match="status is one of pending, approved, rejected, expired, not"):
            run(subject.engine.reviews.list(WHO, **condition))


def test_a_page_shows_what_the_caller_may_see(subject: Subject, run: Any) -> None:
    for name, agent in (("alice", "mine"), ("bob", "mine"), ("bob", "other")):
        author = Principal(name, role="writer")
        run(subject.engine.remember(author, Draft(agent, "semantic", f"{name} said"), approval=REQUEST))
        subject.clock.advance(1)
    every = [review["id"] for review in run(subject.engine.reviews.list(WHO))]
    assert pages(subject, run, Principal("rita", role="reviewer", agents=("mine",)), limit=1) == [every[:1], every[1:2]]
    assert pages(subject, run, Principal("alice", role="writer")) == [every[:1]]
    assert pages(subject, run, Principal("nobody", role="reader")) == [[]]
    assert pages(subject, run, Principal("rita", "elsewhere", "reviewer")) == [[]]


def test_what_has_waited_too_long_is_on_the_page_of_the_expired(subject: Subject, run: Any) -> None:
    governance = subject.engine.settings.governance
    subject.engine.settings.governance = replace(governance, review_days=1)
    old = stage(subject, run, "old").review_id
    subject.clock.advance(2 * 86_400_000)
    new = stage(subject, run, "new").review_id
    assert pages(subject, run) == [[new]]
    assert pages(subject, run, status="expired") == [[old]]


# what a reviewer changes of a request


def change(subject: Subject, run: Any, review_id: str, **changes: Any) -> Any:
    edited, request = run(subject.engine.reviews.with_changes(WHO, review_id, changes))
    decision = Decision(True, "Alice", edited=edited, edited_request=request)
    return run(subject.engine.reviews.decide(WHO, review_id, decision))


def test_changes_leave_the_rest_of_a_new_memory_as_it_was(subject: Subject, run: Any) -> None:
    staged = stage(subject, run, kind="lesson", tags=["home"], source="call", metadata={"room": 3}, aliases=["a-1"])
    decided = change(subject, run, staged.review_id, content="Bob moved to Oslo", tags=["home", "oslo"])
    kept = run(subject.get(staged.id))
    assert (kept.content, kept.tags) == ("Bob moved to Oslo", ["home", "oslo"])
    assert (kept.kind, kept.source, kept.metadata, kept.aliases) == ("lesson", "call", {"room": 3}, ["a-1"])
    assert decided.review["request"]["content"] == "Bob moved to Oslo"


def test_changes_of_every_other_operation(subject: Subject, run: Any) -> None:
    engine = subject.engine
    a, b, c = (run(subject.remember(text)) for text in ("one", "two", "three"))
    update = run(engine.update(WHO, Update("agent", a, content="uno", approval_required=True)))
    change(subject, run, update.review_id, content="ein")
    assert run(subject.get(a)).content == "ein"
    forget = run(engine.forget(WHO, Forget("agent", [b, c], approval_required=True)))
    assert change(subject, run, forget.review_id, ids=[b]).outcome.ids == [b]
    merge = run(engine.merge(WHO, Merge("agent", a, [c], approval_required=True)))
    assert change(subject, run, merge.review_id, strategy="merge_content").outcome.survivor.content == "ein\nthree"
    said = Statement("agent", "Bob", "lives in", "Rome", approval_required=True)
    stated = run(engine.assert_fact(WHO, said))
    assert change(subject, run, stated.review_id, object="Oslo").outcome.triple.object == "Oslo"


def test_only_fields_of_the_request_can_be_changed_and_only_by_reviewers(subject: Subject, run: Any) -> None:
    staged = stage(subject, run)
    with pytest.raises(ValidationError, match="agent_id of remember cannot be edited; there are content"):
        run(subject.engine.reviews.with_changes(WHO, staged.review_id, {"agent_id": "other"}))
    with pytest.raises(NotFound):
        run(subject.engine.reviews.with_changes(Principal("eve", role="writer"), staged.review_id, {"content": "x"}))


def test_many_are_decided_as_they_were_looked_at(subject: Subject, run: Any) -> None:
    first, second = (stage(subject, run, text).review_id for text in ("one", "two"))
    edited = Draft("agent", "semantic", "other")
    run(subject.engine.reviews.edit(WHO, second, edited, {**REQUEST, "content": "other"}))
    done, outdated = run(subject.engine.reviews.decide_many(WHO, [first, second], YES, {first: 1, second: 1}))
    assert done.review["status"] == "approved"
    assert isinstance(outdated, Conflict)
    assert outdated.details["review_id"] == second
