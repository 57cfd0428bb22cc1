"""The audit trail: who reads it, in which pages, and that a change behind our back is found out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import apsw
import pytest
from tampering import drop_guards

from commonplace.engine.ledger import audit
from commonplace.engine.types import Draft, Query
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Forbidden, ValidationError
from commonplace.wire.record import Principal


def test_a_chain_survives_erasure_through_the_engine(subject: Subject, run: Any) -> None:
    ids = [run(subject.remember(f"fact {i}")) for i in range(3)]
    run(subject.forget(ids[1], hard_delete=True))
    verified = run(subject.engine.ledger.verify(WHO))
    assert (verified.first_bad, verified.entries) == (None, 4)
    assert [e.parts[0].payload is None for e in run(subject.engine.ledger.entries(WHO))] == [False, True, False, False]


@pytest.mark.parametrize(
    ("damage", "bad"),
    [
        ("UPDATE audit SET principal = 'nobody' WHERE n = 2", 2),
        ("UPDATE audit_parts SET payload = x'7b7d' WHERE n = 3", 3),
        ("UPDATE audit_parts SET memory_id = 'x' WHERE n = 3", 3),
        ("DELETE FROM audit_parts WHERE n = 1", 1),
        ("DELETE FROM audit WHERE n = 2", 3),
        ("DELETE FROM audit WHERE n >= 4", 4),
        ("DELETE FROM audit", 1),
    ],
)
def test_a_file_changed_behind_our_back_is_found_out(tmp_path: Any, clock: FakeClock, damage: str, bad: int) -> None:
    path = tmp_path / "commonplace.db"
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        for i in range(5):
            run(subject.remember(f"fact {i}"))
    db = apsw.Connection(str(path))
    drop_guards(db)
    db.execute(damage)
    db.close()
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        assert run(subject.engine.ledger.verify(WHO)).first_bad == bad


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_the_audit_trail_is_for_reviewers(subject: Subject, run: Any, role: Any) -> None:
    who = Principal("a", role=role)
    for work in (
        subject.engine.ledger.entries(who),
        subject.engine.ledger.entries(who, agent_id="agent"),
        subject.engine.ledger.verify(who),
    ):
        with pytest.raises(Forbidden):
            run(work)
    some = Principal("a", role="reviewer", agents=("ada",))
    with pytest.raises(Forbidden):
        run(subject.engine.ledger.entries(some, agent_id="bea"))


def test_a_short_page_of_few_entries_reads_many_at_a_time(subject: Subject, run: Any) -> None:
    run(subject.remember("x", "ada"))
    run(subject.remember_all([Draft("bea", "semantic", str(i)) for i in range(40)]))
    run(subject.remember("y", "ada"))
    calls, plain = [], subject.store.audit

    async def counted(*args: Any, **options: Any) -> Any:
        calls.append(options)
        return await plain(*args, **options)

    subject.store.audit = counted  # type: ignore[method-assign]
    some = Principal("a", role="reviewer", agents=("ada",))
    assert [e.agent_id for e in run(subject.engine.ledger.entries(some, limit=2))] == ["ada", "ada"]
    assert len(calls) == 1


def test_entries_come_in_pages_and_by_what_they_are(subject: Subject, run: Any) -> None:
    ids = [run(subject.remember(f"fact {n}", agent)) for n, agent in enumerate(("ada", "bea", "ada"))]
    began = subject.clock.advance(100)
    run(subject.forget(ids[0], agent="ada"))
    ledger = subject.engine.ledger

    def numbers(**options: Any) -> list[int]:
        return [entry.n for entry in run(ledger.entries(WHO, **options))]

    assert numbers() == [1, 2, 3, 4]
    assert (numbers(limit=2), numbers(limit=2, after=2), numbers(after=4)) == ([1, 2], [3, 4], [])
    assert (numbers(agent_id="ada"), numbers(operation="forget")) == ([1, 3, 4], [4])
    assert (numbers(since=began), numbers(until=began - 1), numbers(since=began + 1)) == ([4], [1, 2, 3], [])


def test_a_page_says_where_the_next_begins(subject: Subject, run: Any) -> None:
    for n in range(5):
        run(subject.remember(f"fact {n}"))
    cursor, seen = None, []
    for _ in range(3):
        entries, cursor = run(subject.engine.ledger.page(WHO, limit=2, cursor=cursor))
        seen.append(([entry.n for entry in entries], cursor))
    assert seen == [([1, 2], "2"), ([3, 4], "4"), ([5], None)]
    assert run(subject.engine.ledger.page(WHO, limit=5))[1] is None, "there is nothing after it"


@pytest.mark.parametrize("limit", [-1, 0, 1001])
def test_a_page_has_1_to_1000_entries(subject: Subject, run: Any, limit: int) -> None:
    with pytest.raises(ValidationError, match=f"limit must be a whole number from 1 to 1000, not {limit}"):
        run(subject.engine.ledger.page(WHO, limit=limit))


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "٣", "9" * 19])
def test_a_cursor_that_was_never_given_is_refused(subject: Subject, run: Any, cursor: str) -> None:
    with pytest.raises(ValidationError, match="pass back next_cursor as it came"):
        run(subject.engine.ledger.page(WHO, cursor=cursor))


@pytest.mark.parametrize("newest_first", [False, True])
def test_an_operation_that_nothing_is_called_is_refused_with_those_there_are(
    subject: Subject, run: Any, newest_first: bool
) -> None:
    run(subject.remember("tea"))
    with pytest.raises(ValidationError, match=r"no operation 'remembr'; there are remember, .*rotate_identity"):
        run(subject.engine.ledger.page(WHO, operation="remembr", newest_first=newest_first))
    assert run(subject.engine.ledger.page(WHO, operation="merge", newest_first=newest_first)) == ([], None)
    written = replace(WHO, name="old")
    run(subject.store.transact("local", lambda tx: audit.append(tx, written, "of_old", "agent", [])))
    found, _ = run(subject.engine.ledger.page(WHO, operation="of_old", newest_first=newest_first))
    assert [entry.operation for entry in found] == ["of_old"], "what an earlier version wrote is found"


def test_an_entry_about_several_agents_is_for_who_may_use_all(subject: Subject, run: Any) -> None:
    run(subject.engine.recall(WHO, Query(("ada", "bea"), "x")))
    run(subject.engine.recall(WHO, Query(("ada",), "x")))
    some = Principal("a", role="reviewer", agents=("ada", "bea"))
    assert [entry.agent_id for entry in run(subject.engine.ledger.entries(some))] == ["ada"]
    assert [entry.agent_id for entry in run(subject.engine.ledger.entries(WHO))] == ["*", "ada"]


def test_a_recall_of_a_moment_ago_is_in_the_ledger(subject: Subject, run: Any) -> None:
    run(subject.recall("anything"))
    assert [entry.operation for entry in run(subject.engine.ledger.entries(WHO))] == ["recall"]
    run(subject.recall("anything"))
    assert run(subject.engine.ledger.verify(WHO)).entries == 1, "verifying writes nothing"
    run(subject.engine.flush())
    assert run(subject.engine.ledger.verify(WHO)).entries == 2


def test_the_whole_chain_is_for_who_may_use_every_agent(subject: Subject, run: Any) -> None:
    run(subject.remember("x"))
    with pytest.raises(Forbidden, match="the audit chain is about all of them"):
        run(subject.engine.ledger.verify(Principal("a", role="admin", agents=("agent",))))
    verified = run(subject.engine.ledger.verify(Principal("a", role="reviewer")))
    assert (verified.entries, verified.first_bad) == (1, None)


def test_each_tenant_has_a_chain_of_its_own(subject: Subject, run: Any) -> None:
    other = Principal("eve", "acme")
    for who, count in ((WHO, 2), (other, 3)):
        for n in range(count):
            run(subject.engine.remember(who, Draft("agent", "semantic", str(n))))
    assert [run(subject.engine.ledger.verify(who)).entries for who in (WHO, other)] == [2, 3]
    assert run(subject.engine.ledger.verify_tenant("nobody")).entries == 0


def test_verifying_walks_in_steps_and_tells_how_far(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.engine.ledger.ledger._AT_ONCE", 2)
    for n in range(5):
        run(subject.remember(str(n)))
    told: list[tuple[int, int]] = []
    verified = run(subject.engine.ledger.verify(WHO, lambda done, total: told.append((done, total))))
    assert (verified.entries, told) == (5, [(2, 5), (4, 5), (5, 5)])


def test_pages_from_the_newest_on_hold_every_entry_once(subject: Subject, run: Any) -> None:
    for i in range(5):
        run(subject.remember(f"fact {i}", "mine" if i % 2 else "other"))
    page = subject.engine.ledger.page
    numbers, cursor = [], None
    while True:
        entries, cursor = run(page(WHO, limit=2, cursor=cursor, newest_first=True))
        numbers.append([entry.n for entry in entries])
        if cursor is None:
            break
    assert numbers == [[5, 4], [3, 2], [1]]
    mine = Principal("rita", role="reviewer", agents=("mine",))
    entries, cursor = run(page(mine, limit=1, newest_first=True))
    assert ([entry.n for entry in entries], cursor) == ([4], "-4")
    assert [entry.n for entry in run(page(mine, limit=9, newest_first=True, cursor="-4"))[0]] == [2]
    for cursor, backwards in (("4", True), ("-4", False), ("--4", True), ("-", True)):
        with pytest.raises(ValidationError, match="pass back next_cursor as it came"):
            run(page(WHO, cursor=cursor, newest_first=backwards))
    with pytest.raises(Forbidden):
        run(page(Principal("wilma", role="writer"), newest_first=True))
