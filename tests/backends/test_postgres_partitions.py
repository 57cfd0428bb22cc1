"""What is searched lies in partitions by scope: each search looks into one, and older tables become so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from postgres_databases import empty_database, server

from commonplace.stores.postgres import generations, schema, search, vector_indexes
from commonplace.stores.postgres.connections import Session
from commonplace.stores.postgres.store import PostgresStore
from commonplace.testing import FakeClock
from commonplace.testing.subject import Subject, open_subject

pytestmark = pytest.mark.process


@contextmanager
def opened(url: str) -> Iterator[tuple[Subject, Any]]:
    clock = FakeClock()
    with open_subject(PostgresStore(url, clock), clock) as pair:
        yield pair


@contextmanager
def session_of(store: Any) -> Iterator[Session]:
    session = Session(store.address)
    try:
        yield session
    finally:
        session.close()


def filled(db: Session, table: str) -> list[str]:
    return [name for (name,) in db.rows(f"SELECT DISTINCT tableoid::regclass::text FROM {table}")]


def test_agents_are_spread_and_a_search_looks_into_one_partition() -> None:
    with empty_database() as url, opened(url) as (s, run):
        for n in range(40):
            run(s.remember("the harbour report", agent=f"agent-{n}"))
        with session_of(s.store) as db:
            for table in ("postings", "parts_1"):
                assert len(filled(db, table)) > schema.PARTITIONS // 2
                for scope in (1, 2):
                    plan = db.rows(f"EXPLAIN SELECT * FROM {table} WHERE scope_id = {scope}")
                    assert len(set(re.findall(rf"{table}_p\d+", " ".join(line for (line,) in plan)))) == 1
        assert [m.content for m in run(s.recall("harbour report", agent="agent-7"))] == ["the harbour report"]


def create_whole(db: Session, name: str, dimension: int) -> None:
    """As version 3 made it."""
    db.execute(
        f"CREATE TABLE {name}(scope_id integer, mid bigint, part integer, embedding halfvec({dimension}) NOT NULL, "
        "PRIMARY KEY(scope_id, mid, part))"
    )


def test_tables_of_before_become_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "EXACT", 20)
    monkeypatch.setattr(vector_indexes, "EXACT", 20)
    name = server().create_database()
    url = server().url(name)
    try:
        with monkeypatch.context() as older:
            older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:3])
            older.setattr(schema, "VERSION", 3)
            older.setattr(generations, "create_parts", create_whole)
            with opened(url) as (s, run):
                for n in range(30):
                    run(s.remember(f"the harbour report {n}"))
                before = {m.content for m in run(s.recall("harbour report 7", k=5))}
                with session_of(s.store) as db:
                    assert filled(db, "postings") == ["postings"]
                    kept = {table: db.one(f"SELECT count(*) FROM {table}") for table in ("postings", "parts_1")}
        with opened(url) as (s, run):
            if (building := s.store._indexer._thread) is not None:
                building.join()
            with session_of(s.store) as db:
                for table in ("postings", "parts_1"):
                    (leaf,) = filled(db, table)
                    assert leaf.startswith(f"{table}_p")
                    assert db.one(f"SELECT count(*) FROM {table}") == kept[table]
                assert db.one("SELECT count(*) FROM vector_indexes WHERE ready") == (1,)
            assert {m.content for m in run(s.recall("harbour report 7", k=5))} == before
            assert [f.check for f in run(s.store.examine(False)) if not f.ok] == []
    finally:
        server().drop_database(name)
