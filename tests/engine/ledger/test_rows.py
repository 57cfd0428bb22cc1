"""Rows against the ledger: whatever is changed, removed or added behind our back is found, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tampering import raw_database

from commonplace.engine.ledger import ledger, rows
from commonplace.engine.types import Draft
from commonplace.stores.base import Entry, Transaction
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.sqlite.schema import VERSION_COLUMNS
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.record import Memory, Principal


def tell_a_life(subject: Subject, run: Callable[[Any], Any]) -> dict[str, str]:
    """Memories of every fate, by name, and statements."""
    draft = Draft(
        "agent", "semantic", "a fact", user_id="alice", title="t", tags=["x"], metadata={"a": 1}, aliases=["n"]
    )
    told = {"plain": run(subject.engine.remember(WHO, draft)).id}
    names = ("changed", "forgotten", "archived", "kept", "merged", "erased", "joined")
    told |= {
        name: run(subject.remember(f"{name} fact", confidence=0.1 if name == "archived" else 1.0)) for name in names
    }
    run(subject.update(told["changed"], content="a changed fact"))
    run(subject.forget(told["forgotten"]))
    run(subject.expire("demote", confidence_below=0.5))
    run(subject.expire("archive", confidence_below=0.5))
    run(subject.merge(told["kept"], told["merged"]))
    run(subject.merge(told["changed"], told["joined"], strategy="merge_content"))
    run(subject.forget(told["erased"], hard_delete=True))
    graph = subject.engine.graph
    stated = run(graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives in", object="Ulm"))
    run(graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives in", object="Graz", provenance="a letter"))
    run(subject.recall("fact"))
    return told | {"triple": stated.triple.id}


def verdict(subject: Subject, run: Callable[[Any], Any]) -> str | None:
    found: str | None = run(subject.engine.ledger.verify(WHO)).problem
    return found


def test_what_we_wrote_ourselves_is_as_the_ledger_says(subject: Subject, run: Any) -> None:
    tell_a_life(subject, run)
    verified = run(subject.engine.ledger.verify(WHO))
    assert (verified.problem, verified.first_bad) == (None, None)


@pytest.fixture
def path(tmp_path: Path, clock: FakeClock) -> Path:
    path = tmp_path / "commonplace.db"
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        tell_a_life(subject, run)
    return path


#: Columns whose change is no lie: numbers of our own, and the terms, which are derived and checked as such.
_NOT_TOLD = {"vid", "terms"}
_OTHER = {
    "tags": "'[\"y\"]'",
    "metadata": "'{\"a\":2}'",
    "provenance": "'{}'",
    "privacy": '\'{"share_with":["*"]}\'',
    "supersedes": "'[\"y\"]'",
    "aliases": "'[\"y\"]'",
    "salt": "SALT",
    "status": "'archived'",
    "type": "'emotional'",
    "scope_id": "(SELECT max(id) FROM scopes)",
}
_TRIPLE = (
    "id, scope_id, subject, predicate, object, subject_key, object_key, valid_from, valid_to, confidence, provenance, "
    "asserted_by, memory_id"
)


def _other(column: str) -> str:
    return _OTHER.get(column, "'7'")


CHANGES = [
    *((f"UPDATE memories SET {column} = {_other(column)} WHERE title = 't'", column)
      for column in VERSION_COLUMNS if column not in _NOT_TOLD),
    *((f"UPDATE versions SET {column} = {_other(column)} WHERE content = 'changed fact'", f"earlier {column}")
      for column in VERSION_COLUMNS if column not in _NOT_TOLD | {"demotion"}),
    ("UPDATE memories SET status = 'live' WHERE content = 'forgotten fact'", "a forgotten one brought back"),
    ("UPDATE memories SET content = content || '!'", "every text"),
    ("DELETE FROM memories WHERE title = 't'", "one removed"),
    ("DELETE FROM memories", "all removed"),
    ("DELETE FROM versions WHERE content = 'changed fact'", "an earlier version removed"),
    ("INSERT INTO memories SELECT 99, 99, scope_id, '00000000-0000-7000-8000-000000000000', " +
     ", ".join(VERSION_COLUMNS[3:]) + " FROM memories WHERE title = 't'", "one added"),
    ("UPDATE triples SET object = 'Rome' WHERE object = 'Ulm'", "a statement changed"),
    ("UPDATE triples SET valid_to = NULL WHERE object = 'Ulm'", "a statement that ended"),
    ("UPDATE triples SET valid_from = 5 WHERE object = 'Graz'", "since when"),
    ("UPDATE triples SET confidence = 0.5 WHERE object = 'Graz'", "how sure"),
    ("UPDATE triples SET provenance = 'hearsay' WHERE object = 'Graz'", "from where"),
    ("DELETE FROM triples WHERE object = 'Ulm'", "a statement removed"),
    (f"INSERT INTO triples({_TRIPLE}) SELECT 'x', {_TRIPLE.removeprefix('id, ').replace('predicate', repr('likes'))} "
     "FROM triples LIMIT 1", "a statement added"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "what"), CHANGES, ids=[what for _, what in CHANGES])
def test_a_row_changed_behind_our_back_is_found(path: Path, clock: FakeClock, sql: str, what: str) -> None:
    with raw_database(path) as db:
        db.change("INSERT INTO scopes(tenant_id, agent_id) SELECT min(id), 'other' FROM tenants WHERE name = 'local'")
        assert db.change(sql.replace("SALT", db.bytes_literal(b"\0"))) > 0, "the damage must be one"
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        verified = run(subject.engine.ledger.verify(WHO))
        assert verified.problem is not None, what
        findings = {f.check: f for f in run(subject.engine.upkeep.doctor(WHO, repair=False))}
        assert not findings["audit of local"].ok
        assert verified.problem in findings["audit of local"].detail


def test_rows_of_an_older_ledger_are_held_to_what_it_says(subject: Subject, run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(rows, "row_hash", lambda memory: None)
    tell_a_life(subject, run)
    monkeypatch.undo()
    assert verdict(subject, run) is None


def test_what_is_erased_while_it_is_compared_is_no_finding(subject: Subject, run: Any) -> None:
    ids = [run(subject.remember(f"fact {n}")) for n in range(3)]
    plain, done = subject.store.get, []

    async def erasing(tenant: str, wanted: Any) -> list[Memory]:
        if not done and ids[1] in wanted:
            done.append(True)
            await subject.forget(ids[1], hard_delete=True)
        return await plain(tenant, wanted)

    subject.store.get = erasing  # type: ignore[method-assign]
    assert verdict(subject, run) is None
    assert done


def test_what_is_written_while_it_is_compared_is_no_finding(subject: Subject, run: Any) -> None:
    first = run(subject.remember("fact"))
    plain, done = subject.store.get, []

    async def writing(tenant: str, wanted: Any) -> list[Memory]:
        if not done:
            done.append(True)
            await subject.update(first, content="another")
            await subject.remember("one more", "somebody new")
        return await plain(tenant, wanted)

    subject.store.get = writing  # type: ignore[method-assign]
    assert verdict(subject, run) is None
    assert done


def test_each_tenant_is_compared_with_its_own_ledger(path: Path, clock: FakeClock) -> None:
    other = Principal("bob", "acme")
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.engine.remember(other, Draft("agent", "semantic", "theirs")))
    with raw_database(path) as db:
        db.change("UPDATE memories SET user_id = 'bob' WHERE content = 'theirs'")
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        assert verdict(subject, run) is None
        assert run(subject.engine.ledger.verify(other)).problem is not None


def test_a_hash_says_nothing_once_the_salt_is_gone() -> None:
    memory = Memory("id", "local", "agent", "semantic", "x", salt=b"1" * 16)
    assert rows.row_hash(memory) != rows.row_hash(replace(memory, salt=b"2" * 16))
    assert rows.row_hash(memory) == rows.row_hash(replace(memory, demotion=0.25, recalls=4, last_recalled_at=5))


def test_a_memory_with_any_text_has_a_hash(subject: Subject, run: Any) -> None:
    odd = {"ключ": "значение", "n": 0.1, "big": 2**60, "deep": [{"a": None}]}
    run(subject.engine.remember(WHO, Draft("agent", "semantic", "x", metadata=odd)))
    assert verdict(subject, run) is None


def test_the_comparison_reads_many_at_a_time(subject: Subject, run: Any) -> None:
    run(subject.remember_all([Draft("agent", "semantic", str(i)) for i in range(40)]))
    calls, plain = [], subject.store.get

    async def counted(*args: Any) -> Any:
        calls.append(args)
        return await plain(*args)

    subject.store.get = counted  # type: ignore[method-assign]
    assert verdict(subject, run) is None
    assert len(calls) == 1
    assert asyncio.iscoroutinefunction(plain)


def _count_histories(subject: Subject) -> list[int]:
    """How many versions each reading of a history came to."""
    read, plain = list[int](), subject.store.history

    async def counted(*args: Any) -> list[Memory]:
        found = await plain(*args)
        read.append(len(found))
        return found

    subject.store.history = counted  # type: ignore[method-assign]
    return read


def test_the_versions_of_a_memory_are_read_once(subject: Subject, run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(ledger, "_AT_ONCE", 7)  # entries, so that its versions are told of in many portions
    first, second = (run(subject.remember(f"fact {n}")) for n in range(2))
    for n in range(20):
        run(subject.update(first, content=f"first {n}"))
        run(subject.update(second, content=f"second {n}"))
    read = _count_histories(subject)
    assert verdict(subject, run) is None
    assert read == [21, 21]
    run(subject.engine.ledger.verify_tenant("local"))  # as `doctor` does
    assert read == [21, 21] * 2


def test_no_more_versions_are_held_than_a_bound_says(subject: Subject, run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(rows, "_HELD_VERSIONS", 10)
    ids = [run(subject.remember(f"fact {n}")) for n in range(6)]
    for n in range(3):
        for id in ids:
            run(subject.update(id, content=f"{id} {n}"))
    histories = rows.Histories(subject.store, "local")
    for id in ids:
        assert [len(found) for found in run(histories.versions(id)).values()] == [1] * 4
        assert histories.held <= 10
    read = _count_histories(subject)
    assert verdict(subject, run) is None
    assert len(read) > len(ids)  # some had to make room, and were read again


def test_a_version_written_after_its_history_was_read_is_looked_for_again(
    subject: Subject, run: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(ledger, "_AT_ONCE", 1)
    id = run(subject.remember("fact"))
    run(subject.update(id, content="fact 2"))
    read, plain, written = _count_histories(subject), subject.store.history, []

    async def writing(*args: Any) -> list[Memory]:
        found = await plain(*args)
        if not written:
            written.append([await subject.update(id, content=f"fact {n}") for n in (3, 4)])
        return found

    subject.store.history = writing  # type: ignore[method-assign]
    assert verdict(subject, run) is None
    assert read == [2, 4]


def test_a_version_that_no_entry_names_is_found(subject: Subject, run: Any) -> None:
    id = run(subject.remember("a fact"))

    def forge(tx: Transaction) -> None:
        memory = tx.get(id)
        assert memory is not None
        tx.put(Entry(replace(memory, confidence=0.1), None, b""))

    run(subject.store.transact("local", forge))
    problem = run(subject.engine.ledger.verify(WHO)).problem
    assert problem == f"version 2 of memory {id} is in no entry of the ledger"
