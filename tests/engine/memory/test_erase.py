"""Erasing: what was merged with a memory goes with it, and no copy of its text stays anywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_records import stored_records
from tampering import traces

from commonplace.config import GovernanceConfig
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.types import Draft, Forget
from commonplace.stores.base import Entry
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Conflict, Forbidden, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS

YES, NO = Decision(True, "Bob"), Decision(False, "Bob")


def chain(subject: Subject, run: Any) -> list[str]:
    """a ← b ← c, and d beside b: each became part of the one before it."""
    a, b, c, d = (run(subject.remember(text)) for text in "abcd")
    run(subject.merge(b, c, strategy="merge_content"))
    run(subject.merge(a, b, d, strategy="merge_content"))
    return [a, b, c, d]


@pytest.mark.parametrize("start", range(4))
def test_cascade_takes_whatever_was_merged_with_it_in_both_directions(subject: Subject, run: Any, start: int) -> None:
    ids = chain(subject, run)
    bystander = run(subject.remember("e"))
    then = subject.clock()
    request = Forget("agent", [ids[start]], hard_delete=True, cascade=True)
    assert {m.id for m in run(subject.engine.preview_forget(WHO, request))} == set(ids)
    done = run(subject.engine.forget(WHO, request))
    assert (set(done.ids), done.descendants, done.sources) == (set(ids), [], [])
    assert run(subject.store.get("local", ids)) == []
    assert [m.id for m in run(subject.list(as_of=then))] == [bystander]


@pytest.mark.parametrize("size", [1, 64])
@pytest.mark.parametrize("start", range(4))
def test_cascade_from_what_a_filter_finds_takes_as_much(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch, start: int, size: int
) -> None:
    monkeypatch.setattr("commonplace.engine.memory.forget.CHUNK", size)
    users = ["alice" if place == start else "bob" for place in range(4)]
    a, b, c, d = (run(subject.remember(text, user_id=user)) for text, user in zip("abcd", users, strict=True))
    run(subject.merge(b, c, strategy="merge_content"))
    run(subject.merge(a, b, d, strategy="merge_content"))
    done = run(subject.forget(filter={"user_id": "alice"}, hard_delete=True, cascade=True))
    assert (set(done.ids), done.error) == ({a, b, c, d}, None)
    assert run(subject.store.get("local", [a, b, c, d])) == []


def test_without_cascade_the_answer_names_what_still_holds_the_text(subject: Subject, run: Any) -> None:
    a, b, c, d = chain(subject, run)
    done = run(subject.forget(b, hard_delete=True))
    assert (done.ids, done.descendants, set(done.sources)) == ([b], [a], {c, d})
    assert {m.id for m in run(subject.store.get("local", [a, c, d]))} == {a, c, d}


def test_what_was_between_two_may_go_without_cutting_them_apart(subject: Subject, run: Any) -> None:
    a, b, c, d = chain(subject, run)
    run(subject.forget(b, hard_delete=True))
    done = run(subject.forget(a, hard_delete=True, cascade=True))
    assert set(done.ids) == {a, c, d}


def test_a_staged_erasure_shows_and_takes_all_of_it(subject: Subject, run: Any) -> None:
    a, b, c, d = chain(subject, run)
    staged = run(subject.forget(a, hard_delete=True, cascade=True, approval_required=True))
    review = run(subject.engine.reviews.get(WHO, staged.review_id))
    assert {m["id"] for m in review["diff"]["removed"]} == {a, b, c, d}
    assert set(run(subject.engine.reviews.decide(WHO, staged.review_id, YES)).outcome.ids) == {a, b, c, d}


# by person


def alices(subject: Subject, run: Any) -> dict[str, str]:
    """What is kept about Alice, by where it lies."""
    kept = {
        "one": run(subject.remember("MARK likes tea", "one", user_id="alice")),
        "two": run(subject.remember("MARK moved", "two", user_id="alice")),
        "deleted": run(subject.remember("MARK was here", "two", user_id="alice")),
        "bob": run(subject.remember("Bob stays", "two", user_id="bob")),
    }
    run(subject.forget(kept["deleted"], agent="two"))
    for name, agent, decision in (("rejected", "one", NO), ("pending", "quiet", None)):
        draft = Draft(agent, "semantic", f"MARK {name}", user_id="alice")
        staged = run(subject.engine.remember(WHO, draft, approval={"content": draft.content}, reasoning="MARK said so"))
        if decision:
            run(subject.engine.reviews.decide(WHO, staged.review_id, decision))
        kept[name] = staged.id
    return kept


ABOUT_ALICE = Forget("one", filter={"user_id": "alice"}, hard_delete=True, all_agents=True, reason="she asked")


def test_a_person_is_erased_from_every_agent(subject: Subject, run: Any) -> None:
    kept = alices(subject, run)
    mine = {id for name, id in kept.items() if name != "bob"}
    seen = run(subject.engine.preview_forget(WHO, ABOUT_ALICE))
    assert {m.id for m in seen} == mine
    assert "MARK" not in repr([m for m in seen if m.id not in (kept["one"], kept["two"])]), "nobody can read those"
    done = run(subject.engine.forget(WHO, ABOUT_ALICE))
    assert set(done.ids) == mine
    assert done.agents == {"one": 2, "quiet": 1, "two": 2}
    assert "MARK" not in stored_records(subject, run)
    told = run(subject.engine.ledger.entries(WHO, operation="forget"))
    assert {entry.agent_id for entry in told if b"she asked" in (entry.parts[-1].payload or b"")} == set(done.agents)
    assert [m.id for m in run(subject.list("two"))] == [kept["bob"]]
    assert run(subject.engine.reviews.list(WHO)) == [], "nothing about her waits any more"
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None


@pytest.mark.parametrize("by_id", [False, True])
def test_what_a_review_quotes_is_erased_also_when_nobody_decided_in_time(
    subject: Subject, run: Any, by_id: bool
) -> None:
    subject.engine.settings.governance = GovernanceConfig(review_days=1)
    draft = Draft("one", "semantic", "MARK likes tea", user_id="alice")
    staged = run(subject.engine.remember(WHO, draft, approval={"content": draft.content}))
    subject.clock.advance(2 * DAY_MS)
    run(subject.engine.lifecycle.run(WHO, "expire"))
    assert [each["status"] for each in run(subject.engine.reviews.list(WHO, "expired"))] == ["expired"]
    request = Forget("one", [staged.id], hard_delete=True) if by_id else ABOUT_ALICE
    assert list(run(subject.engine.forget(WHO, request)).ids) == [staged.id]
    assert "MARK" not in stored_records(subject, run)


def test_one_agent_is_meant_unless_all_are_asked_for(subject: Subject, run: Any) -> None:
    kept = alices(subject, run)
    done = run(subject.engine.forget(WHO, Forget("two", filter={"user_id": "alice"}, hard_delete=True)))
    assert set(done.ids) == {kept["two"], kept["deleted"]}
    assert "MARK" in stored_records(subject, run)
    assert run(subject.get(kept["one"], "one")).content == "MARK likes tea"


def test_only_agents_that_one_may_write_to_are_reached(subject: Subject, run: Any) -> None:
    kept = alices(subject, run)
    with pytest.raises(Forbidden):
        run(subject.engine.forget(Principal("r", role="reader"), ABOUT_ALICE))
    writer = Principal("w", role="writer", agents=("two", "one-and-a-half"))
    done = run(subject.engine.forget(writer, ABOUT_ALICE))
    assert (set(done.ids), done.agents) == ({kept["two"], kept["deleted"]}, {"two": 2})
    assert run(subject.get(kept["one"], "one"))


def test_softly_everywhere_hides_and_leaves_reviews_alone(subject: Subject, run: Any) -> None:
    kept = alices(subject, run)
    done = run(subject.engine.forget(WHO, Forget("one", filter={"user_id": "alice"}, all_agents=True)))
    assert (set(done.ids), done.agents) == ({kept["one"], kept["two"]}, {"one": 1, "quiet": 0, "two": 1})
    assert "MARK" in stored_records(subject, run)


def test_what_reaches_every_agent_is_not_staged(subject: Subject, run: Any) -> None:
    request = Forget("one", filter={"user_id": "alice"}, all_agents=True, approval_required=True)
    with pytest.raises(ValidationError, match="one agent"):
        run(subject.engine.forget(WHO, request))


def test_a_pending_write_is_not_erased_by_its_id(subject: Subject, run: Any) -> None:
    kept = alices(subject, run)
    assert run(subject.forget(kept["pending"], agent="quiet", hard_delete=True)).ids == []
    assert len(run(subject.engine.reviews.list(WHO))) == 1


def test_what_changed_while_it_was_being_erased_goes_if_it_is_still_meant(subject: Subject, run: Any) -> None:
    id = run(subject.remember("MARK", user_id="alice"))
    plain = subject.store.scan

    async def scan(*args: Any, **options: Any) -> Any:
        page = await plain(*args, **options)
        subject.store.scan = plain  # type: ignore[method-assign]
        await subject.update(id, content="MARK too")
        return page

    subject.store.scan = scan  # type: ignore[method-assign]
    assert run(subject.forget(filter={"user_id": "alice"}, hard_delete=True)).ids == [id]


# copies


def test_a_review_that_quoted_something_erased_can_be_turned_down(subject: Subject, run: Any) -> None:
    id = run(subject.remember("x"))
    staged = run(subject.forget(id, approval_required=True))
    run(subject.forget(id, hard_delete=True))
    with pytest.raises(Conflict):
        run(subject.engine.reviews.decide(WHO, staged.review_id, YES))
    run(subject.engine.reviews.decide(WHO, staged.review_id, NO))
    assert run(subject.engine.reviews.list(WHO)) == []


def test_an_idempotency_key_says_nothing_and_still_refuses(subject: Subject, run: Any) -> None:
    draft = Draft("agent", "semantic", "x")
    kept = run(subject.engine.remember(WHO, draft, idempotency_key="MARK-1"))
    run(subject.forget(kept.id, hard_delete=True))
    assert "MARK" not in stored_records(subject, run)
    with pytest.raises(Conflict, match="has been erased"):
        run(subject.engine.remember(WHO, draft, idempotency_key="MARK-1"))
    with pytest.raises(Conflict, match="has been erased"):
        run(subject.engine.remember(WHO, draft, idempotency_key="MARK-1", approval={"content": "x"}))


def test_no_file_holds_a_byte_of_what_was_erased(tmp_path: Path, clock: FakeClock) -> None:
    """After a clean stop, without `compact`: of memories, versions, merges, reviews, keys, statements and reasons."""
    data = tmp_path / "data"
    with open_subject(SqliteStore(data / "commonplace.db", clock), clock) as (subject, run):
        run(subject.remember_all([Draft("agent", "semantic", f"filler {i} " * 20) for i in range(80)]))
        mark = "MARK-7391"
        fields: dict[str, Any] = {"user_id": f"{mark}-user", "title": f"{mark}-title", "tags": [f"{mark}-tag"]}
        fields |= {"metadata": {"k": f"{mark}-value"}, "source": f"{mark}-source"}
        for agent in ("one", "two"):
            draft = Draft(agent, "semantic", f"{mark} first words", aliases=[f"{mark}-alias"], **fields)
            kept = run(subject.engine.remember(WHO, draft, idempotency_key=f"{mark}-key")).id
            run(subject.engine.update_with(WHO, agent, kept, lambda m: replace(m, content=f"{mark} second words")))
            again = run(subject.remember(f"{mark} others say", agent, **fields))
            run(subject.engine.graph.assert_fact(
                WHO, agent, subject=f"{mark}-her", predicate="is", object="here", provenance=kept
            ))  # fmt: skip
            run(subject.engine.forget(WHO, Forget(agent, [kept], approval_required=True, reasoning=f"{mark} said")))
            run(subject.engine.forget(WHO, Forget(agent, [again], reason=f"{mark} wanted it")))
            for decision in (YES, NO, None):
                staged = run(subject.engine.remember(
                    WHO, Draft(agent, "semantic", f"{mark} staged", **fields), approval={"content": f"{mark} staged"},
                    reasoning=f"{mark} reasons",
                ))  # fmt: skip
                if decision is not None:
                    run(subject.engine.reviews.decide(WHO, staged.review_id, decision))
            run(subject.recall(mark, agent))
        assert traces(data, mark)
        request = Forget("one", filter={"user_id": f"{mark}-user"}, hard_delete=True, all_agents=True, cascade=True)
        assert len(run(subject.engine.forget(WHO, request)).ids) == 10
    assert traces(data, mark) == []


def test_what_stays_tied_after_an_erasure_is_as_the_ledger_says(subject: Subject, run: Any) -> None:
    first, middle, last = (run(subject.remember(text)) for text in ("first", "middle", "last"))
    run(subject.merge(middle, first))
    run(subject.merge(last, middle))
    run(subject.forget(middle, hard_delete=True))
    (source,) = run(subject.store.get("local", [first]))
    assert source.merged_into == last
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def tied_to_a_neighbour(subject: Subject, run: Any) -> tuple[str, str]:
    """A memory that says it became part of another agent's, as a damaged or forged store may have it."""
    theirs = run(subject.remember("their words\nthe code is 4711", agent="neighbour", aliases=["amp-17"]))
    mine = run(subject.remember("mine"))
    (memory,) = run(subject.store.get("local", [mine]))
    tied = replace(memory, status="archived", merged_into=theirs)
    run(subject.store.transact("local", lambda tx: tx.put(Entry(tied, None, b""))))
    return mine, theirs


def test_cascade_ends_at_the_agents_own_memories(subject: Subject, run: Any) -> None:
    mine, theirs = tied_to_a_neighbour(subject, run)
    request = Forget("agent", [mine], hard_delete=True, cascade=True)
    assert [m.id for m in run(subject.engine.preview_forget(WHO, request))] == [mine]
    done = run(subject.engine.forget(WHO, request))
    assert (list(done.ids), done.descendants) == ([mine], [])
    assert run(subject.get(theirs, agent="neighbour")).content.startswith("their words")
