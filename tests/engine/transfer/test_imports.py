"""Taking histories in; tests/transfer shows it with files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commonplace.engine import Draft, Forget, Palace, Triple
from commonplace.stores.base import Record
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Conflict, Unavailable
from commonplace.wire.record import Memory, Principal

OLD = Memory(
    "01977947-3800-729e-a907-e5e26cc71904", "", "agent", "semantic", "from elsewhere", created_at=5, updated_at=5
)


def test_one_that_is_wrong_does_not_keep_the_others_out(subject: Subject, run: Any) -> None:
    good = replace(OLD, id=OLD.id.replace("a907", "a908"))
    wrong = [replace(OLD, content=" "), replace(OLD, id="x"), replace(OLD, expires_at=1), replace(OLD, agent_id="a\nb")]
    done = run(subject.engine.imports.memories(WHO, [[each] for each in [*wrong, good]]))
    assert [each.result for each in done] == ["left_out"] * 4 + ["written"]
    assert all(each.reason for each in done[:4])
    assert [m.content for m in run(subject.list())] == ["from elsewhere"]


def test_versions_of_two_memories_are_no_history(subject: Subject, run: Any) -> None:
    other = replace(OLD, agent_id="other")
    (done,) = run(subject.engine.imports.memories(WHO, [[OLD, other]]))
    assert "one id" in done.reason


def test_what_was_erased_is_remembered_by_the_ledger(subject: Subject, run: Any) -> None:
    kept, gone = run(subject.remember("kept")), run(subject.remember("gone"))
    run(subject.forget(gone, hard_delete=True))
    erased = run(subject.engine.imports.erasures(WHO))
    run(erased.read())
    assert run(erased.erased_among([kept, gone])) == {gone}


def test_an_id_of_another_tenant_keeps_nobody_elses_out(subject: Subject, run: Any) -> None:
    id = run(subject.remember("ours"))
    eve = Principal("eve", tenant="other")
    done = run(subject.engine.imports.memories(eve, [[replace(OLD, id=id)], [OLD]]))
    assert done[1].result == "written"
    assert run(subject.get(id)).content == "ours"


def test_a_dry_run_writes_nothing_after_a_conflict_either(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = subject.engine.imports._write, list[Any]()

    async def refused_at_first(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise Conflict("somebody else was first")
        return await real(*args, **options)

    monkeypatch.setattr(subject.engine.imports, "_write", refused_at_first)
    (done,) = run(subject.engine.imports.memories(WHO, [[OLD]], dry_run=True))
    assert (done.result, len(calls)) == ("written", 2)
    assert run(subject.list()) == []
    assert run(subject.store.audit_head("local")) == (0, "")


def test_a_palace_that_says_something_stays(subject: Subject, run: Any) -> None:
    run(subject.engine.palaces.create(WHO, "library", "mine"))
    done = run(subject.engine.imports.palace(WHO, Palace("library", "theirs")))
    assert done.result == "left_out"
    assert run(subject.engine.palaces.get(WHO, "library")).description == "mine"


def test_a_palace_is_told_what_it_does_not_say_yet(subject: Subject, run: Any) -> None:
    imports, palaces = subject.engine.imports, subject.engine.palaces
    parts = {"description": "where the books are", "identity": "I am the library"}
    for first, second in (("description", "identity"), ("identity", "description")):
        for said in ({first: parts[first]}, parts):
            for dry_run in (True, False):
                done = run(imports.palace(WHO, Palace(first, **said), dry_run=dry_run))
                assert done.result == "written", said
            assert run(imports.palace(WHO, Palace(first, **said))).result == "known"
        held = run(palaces.get(WHO, first))
        assert (held.description, held.identity) == (parts["description"], parts["identity"])
        assert run(imports.palace(WHO, Palace(first, **{second: parts[second]}))).result == "known"
        assert run(imports.palace(WHO, Palace(first, **{**parts, second: "another"}))).result == "left_out"


def test_a_palace_is_known_by_what_is_kept_of_it(subject: Subject, run: Any) -> None:
    """Neither a secret that was taken out nor what a rule masks makes it another."""
    rules = [{"name": "names", "when": {"content": "Alice"}, "action": "redact"}]
    run(subject.engine.policies.replace(WHO, rules))
    told = Palace("library", f"its key is ghp_{'a1B2' * 9} ", "I am Alice's library")
    assert run(subject.engine.imports.palace(WHO, told)).result == "written"
    head = run(subject.store.audit_head("local"))
    assert run(subject.engine.imports.palace(WHO, told)).result == "known"
    assert run(subject.store.audit_head("local")) == head


def test_a_later_version_leaves_the_demotion_here_as_it_is(subject: Subject, run: Any) -> None:
    imports = subject.engine.imports
    low = replace(OLD, confidence=0.2)
    run(imports.memories(WHO, [[low]]))
    assert run(subject.expire("demote", confidence_below=0.5)) == [OLD.id]
    demoted = run(subject.get(OLD.id)).demotion
    run(imports.memories(WHO, [[low, replace(low, content="changed", updated_at=8)]]))
    assert (run(subject.get(OLD.id)).content, run(subject.get(OLD.id)).demotion) == ("changed", demoted)
    assert demoted < 1.0
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_an_import_is_one_entry_of_the_ledger_a_memory(subject: Subject, run: Any) -> None:
    second = replace(OLD, content="changed", updated_at=8)
    run(subject.engine.imports.memories(WHO, [[OLD, second]]))
    (entry,) = run(subject.engine.ledger.entries(WHO))
    assert (entry.operation, len(entry.parts)) == ("import", 2)
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_nothing_is_found_as_it_was_before_it_came() -> None:
    clock = FakeClock()
    with open_subject(InMemory(clock), clock) as (subject, run):
        run(subject.remember("here before"))
        before = clock()
        clock.advance(1000)
        run(subject.engine.imports.memories(WHO, [[OLD]]))
        assert [m.content for m in run(subject.recall("before elsewhere", as_of=before))] == ["here before"]


def test_a_statement_of_another_tenant_or_agent_stays_as_it_is(subject: Subject, run: Any) -> None:
    made = run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives_in", object="Bern"))
    theirs = replace(made.triple, valid_to=made.triple.valid_from)
    for who, agent in ((Principal("eve", tenant="other"), "agent"), (WHO, "neighbour")):
        done = run(subject.engine.imports.statement(who, replace(theirs, agent_id=agent)))
        assert done.result == "left_out"
        assert "exists already" in done.reason or "is here and differs" in done.reason
        again = run(subject.engine.imports.statement(who, replace(theirs, agent_id=agent), same_id_is_known=True))
        assert again.result == "left_out"
    assert run(subject.engine.graph.history(WHO, "agent", "Alice")) == [made.triple]
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_what_became_part_of_another_agents_memory_is_left_out(subject: Subject, run: Any) -> None:
    theirs = run(subject.remember("precious of the neighbour", agent="neighbour"))
    mine = run(subject.remember("mine"))
    pointing = [replace(OLD, status="archived"), replace(OLD, status="archived", merged_into=theirs)]
    for versions in (pointing, [pointing[1], replace(OLD, content="on its own again")]):
        for dry_run in (True, False):
            (done,) = run(subject.engine.imports.memories(WHO, [versions], dry_run=dry_run))
            assert (done.result, "another agent's" in done.reason) == ("left_out", True)
    (done,) = run(subject.engine.imports.memories(WHO, [[replace(pointing[1], merged_into=mine)]]))
    assert done.result == "written"


# an id in a file names what the file brings, and nothing that is here

NEIGHBOUR = Principal("eve", agents=("neighbour",))
STRANGER = Principal("mallory", tenant="other")


def statement(id: str, agent: str = "neighbour") -> Triple:
    return Triple(id, agent, "A", "is", "B", 1000)


def memory(id: str) -> Memory:
    return replace(OLD, id=id, agent_id="neighbour")


def healthy(subject: Subject, run: Any) -> bool:
    """As far as the doctor can tell of a store that has one."""
    if subject.store.name == "memory":
        return True
    return all(check.ok for check in run(subject.engine.upkeep.doctor(WHO)))


def test_a_statement_under_the_id_of_anothers_memory_is_left_out(subject: Subject, run: Any) -> None:
    """Erasing the statement would erase what the ledger says of the memory."""
    id = run(subject.engine.remember(WHO, Draft("agent", "semantic", "precious"), idempotency_key="key")).id
    for dry_run in (True, False):
        done = run(subject.engine.imports.statement(NEIGHBOUR, statement(id), dry_run=dry_run))
        assert (done.result, "has this id" in done.reason) == ("left_out", True)
    run(subject.engine.graph.erase(NEIGHBOUR, "neighbour", "A"))
    assert run(subject.engine.ledger.verify(WHO)).problem is None
    assert healthy(subject, run)
    again = run(subject.engine.remember(WHO, Draft("agent", "semantic", "precious"), idempotency_key="key"))
    assert again.id == id


def test_a_memory_under_the_id_of_anothers_statement_is_left_out(subject: Subject, run: Any) -> None:
    made = run(subject.engine.graph.assert_fact(WHO, "agent", subject="A", predicate="is", object="B")).triple
    for dry_run in (True, False):
        (done,) = run(subject.engine.imports.memories(NEIGHBOUR, [[memory(made.id)]], dry_run=dry_run))
        assert (done.result, "has this id" in done.reason) == ("left_out", True)
    run(subject.engine.forget(NEIGHBOUR, Forget("neighbour", [made.id], hard_delete=True)))
    assert run(subject.engine.graph.history(WHO, "agent", "A")) == [made]
    assert run(subject.engine.ledger.verify(WHO)).problem is None
    assert healthy(subject, run)


def test_what_waits_for_a_reviewer_has_its_id_already(subject: Subject, run: Any) -> None:
    staged = run(subject.engine.remember(WHO, Draft("agent", "semantic", "precious"), approval={"content": "precious"}))
    done = run(subject.engine.imports.statement(NEIGHBOUR, statement(staged.id)))
    (also,) = run(subject.engine.imports.memories(NEIGHBOUR, [[memory(staged.id)]]))
    assert done.result == also.result == "left_out"
    run(subject.engine.graph.erase(NEIGHBOUR, "neighbour", "A"))
    (review,) = run(subject.engine.reviews.list(WHO, "pending"))
    assert "erased" not in repr(review)


def test_what_another_tenant_erases_under_an_id_of_ours_leaves_our_ledger_alone(subject: Subject, run: Any) -> None:
    id = run(subject.remember("precious"))
    made = run(subject.engine.graph.assert_fact(WHO, "agent", subject="A", predicate="is", object="B")).triple
    run(subject.engine.imports.statement(STRANGER, statement(id)))
    run(subject.engine.graph.erase(STRANGER, "neighbour", "A"))
    run(subject.engine.imports.memories(STRANGER, [[memory(made.id)]]))
    run(subject.engine.forget(STRANGER, Forget("neighbour", [made.id], hard_delete=True)))
    assert run(subject.engine.ledger.verify(WHO)).problem is None
    assert healthy(subject, run)


@pytest.mark.parametrize("id", ["x", "../../x\n", OLD.id.upper(), f"{OLD.id} "])
def test_the_id_of_a_statement_is_a_uuid(subject: Subject, run: Any, id: str) -> None:
    done = run(subject.engine.imports.statement(WHO, statement(id, "agent")))
    assert (done.result, done.reason) == ("left_out", "its id must be a UUID")


# what was erased here and is restored


def test_what_is_restored_is_no_longer_erased(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Zanzibar in May"))
    versions = run(subject.engine.history(WHO, "agent", id))
    made = run(
        subject.engine.graph.assert_fact(WHO, "agent", subject="A", predicate="is", object="B", provenance=id)
    ).triple
    imports = subject.engine.imports
    for _ in range(2):  # it may be erased again, and restored again
        run(subject.forget(id, hard_delete=True))
        erased, restored = run(imports.erasures(WHO)), run(imports.erasures(WHO, restore=True))
        assert run(imports.memories(WHO, [versions], erased))[0].reason == "it was erased here"
        assert run(imports.statement(WHO, made, erased)).reason == "it was erased here"
        assert run(imports.memories(WHO, [versions], restored))[0].result == "written"
        assert run(imports.statement(WHO, made, restored)).result == "written"
        erased = run(imports.erasures(WHO))
        assert run(imports.memories(WHO, [versions], erased))[0].result == "known"
        assert run(imports.statement(WHO, made, erased)).result == "known"
        assert healthy(subject, run)
    later = replace(versions[-1], content="Zanzibar in June", updated_at=versions[-1].updated_at + 1)
    assert run(imports.memories(WHO, [[*versions, later]]))[0].result == "written"
    assert healthy(subject, run)
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_a_ledger_that_was_cut_off_keeps_nobody_waiting(subject: Subject, run: Any) -> None:
    """The note of the last erasure may speak of an entry that is not there any more."""
    run(subject.store.transact("local", lambda tx: tx.put_record(Record("erasures", "last", {"n": 1000}))))
    assert run(subject.engine.imports.memories(WHO, [[OLD]]))[0].result == "written"


def test_a_ledger_that_cannot_be_read_as_far_as_it_goes_ends_in_words(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(subject.forget(run(subject.remember("gone")), hard_delete=True))

    async def nothing_yet(*args: Any, **options: Any) -> list[Any]:
        return []

    monkeypatch.setattr(subject.store, "audit", nothing_yet)
    with pytest.raises(Unavailable, match="cannot be read that far"):
        run(subject.engine.imports.memories(WHO, [[OLD]]))
