"""The doctor, compaction and sizes of a PostgreSQL store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_databases import empty_database

from commonplace.stores.optional import Finding
from commonplace.stores.postgres.store import PostgresStore
from commonplace.testing import FakeClock
from commonplace.testing.subject import WHO, Subject, open_subject
from commonplace.wire.errors import OperatorActionRequired

pytestmark = pytest.mark.process


@pytest.fixture
def over() -> Iterator[tuple[Subject, Any, str]]:
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (subject, run):
        for n in range(5):
            run(subject.remember(f"the harbour report {n}"))
        run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="knows", object="Bob"))
        yield subject, run, url


def wrong(findings: list[Finding]) -> list[str]:
    return [finding.check for finding in findings if not finding.ok]


@pytest.mark.parametrize(
    ("damage", "check", "repaired"),
    [
        ("DELETE FROM postings WHERE mid = (SELECT min(mid) FROM memories)", "indexes", True),
        ("DELETE FROM parts_1 WHERE mid = (SELECT min(mid) FROM memories)", "indexes", True),
        ("UPDATE scopes SET documents = 4", "indexes", True),
        ("UPDATE scopes SET words = words + 1", "indexes", True),
        ("INSERT INTO parts_1 SELECT scope_id, 0, 1, embedding FROM parts_1 LIMIT 1", "indexes", True),
        ("UPDATE memories SET content = 'forged' WHERE version = 1", "contents", False),
        ("UPDATE tenants SET seq = 2", "sequence", False),
        ("DROP TRIGGER audit_never_changed ON audit", "guards", False),
        ("INSERT INTO recalls VALUES(0, 1, 1)", "recalls", False),
        ("UPDATE triples SET subject_key = 'bob'", "names", False),
    ],
)
def test_the_doctor_finds_it(over: tuple[Subject, Any, str], damage: str, check: str, repaired: bool) -> None:
    subject, run, url = over
    assert wrong(run(subject.store.examine(False))) == []
    with psycopg.connect(url) as db:
        db.execute("SET search_path = commonplace, public")
        db.execute(damage)
    assert wrong(run(subject.store.examine(False))) == [check]
    after = run(subject.store.examine(True))
    assert wrong(after) == ([] if repaired else [check])
    assert wrong(run(subject.store.examine(False))) == ([] if repaired else [check])
    if repaired:
        assert len(run(subject.recall("harbour report", k=10))) == 5


def test_the_guards_of_another_store_in_the_database_are_none_of_this_one(over: tuple[Subject, Any, str]) -> None:
    subject, run, url = over
    run(PostgresStore(f"{url}?schema=other", FakeClock()).close())
    with psycopg.connect(url) as db:
        db.execute("DROP TRIGGER audit_never_changed ON commonplace.audit")
    assert wrong(run(subject.store.examine(False))) == ["guards"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET hash = 'x'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "DELETE FROM audit_parts",
        "UPDATE audit_parts SET payload = 'x'",
        "UPDATE audit_parts SET hash = 'x', memory_id = NULL, payload = NULL, salt = NULL",
    ],
)
def test_no_statement_changes_the_ledger(over: tuple[Subject, Any, str], statement: str) -> None:
    _, _, url = over
    with psycopg.connect(url) as db:
        db.execute("SET search_path = commonplace")
        with pytest.raises(psycopg.errors.RaiseException, match="the ledger is append-only"):
            db.execute(statement)


def test_compacting_leaves_no_erased_byte_in_a_table(over: tuple[Subject, Any, str]) -> None:
    subject, run, url = over
    mark = "xyzzy-4711"
    id = run(subject.remember(f"the word is {mark}", metadata={"k": mark}))
    run(subject.forget(id, hard_delete=True))
    assert run(subject.store.compact()) == 1
    with psycopg.connect(url) as db:
        files = db.execute(
            "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relnamespace = 'commonplace'::regnamespace "
            "AND relkind IN ('r', 'i')"
        ).fetchall()
        db.execute("CHECKPOINT")
        found = [
            path
            for (path,) in files
            if mark.encode() in db.execute("SELECT pg_read_binary_file(%s)", (path,)).fetchone()[0]
        ]  # type: ignore[index]
    assert found == []
    assert len(run(subject.recall("harbour report", k=10))) == 5


def test_tables_of_others_in_the_same_schema_are_neither_compacted_nor_counted() -> None:
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(f"{url}?schema=public", clock), clock) as (subject, run):
        run(subject.remember("the harbour report"))
        before = run(subject.store.sizes())
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("""CREATE TABLE public."User"(n integer)""")  # a name that has to be quoted
            db.execute("""INSERT INTO public."User" SELECT generate_series(1, 10000)""")
            where = """SELECT pg_relation_filepath('public."User"')"""
            there = db.execute(where).fetchone()
            assert run(subject.store.sizes()) == before
            run(subject.store.compact())
            assert db.execute(where).fetchone() == there


def test_what_the_server_backs_up_is_said_so(over: tuple[Subject, Any, str], tmp_path: Path) -> None:
    subject, run, _ = over
    with pytest.raises(OperatorActionRequired, match="pg_dump"):
        run(subject.store.backup(tmp_path / "copy"))
    sizes = run(subject.store.sizes())
    assert sizes["size_bytes"] > sizes["index"]["bytes"] > 0
    assert "PostgreSQL at 127.0.0.1" in sizes["database"]
