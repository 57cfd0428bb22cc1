"""What PostgreSQL finds, against the store that has no index and against what a filter means."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from filter_cases import MEANING, MEMORY, NOW, conditions, memories
from hypothesis import HealthCheck, given, settings, strategies as st
from postgres_databases import empty_database
from searched_entries import ASKED, entries, reaches

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft
from commonplace.stores.base import Candidate, Entry, Reach, Search
from commonplace.stores.memory import InMemory
from commonplace.stores.postgres import schema, search as postgres_search
from commonplace.stores.postgres.connections import Session
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.postgres.vector_indexes import build_indexes
from commonplace.stores.text import terms
from commonplace.testing import FakeClock
from commonplace.testing.subject import open_subject
from commonplace.wire import filters
from commonplace.wire.filters import Condition, any_of, matches
from commonplace.wire.record import Memory

pytestmark = [pytest.mark.process, pytest.mark.slow]


@contextmanager
def opened(clock: FakeClock | None = None) -> Iterator[tuple[PostgresStore, Callable[[Any], Any]]]:
    with empty_database() as url, asyncio.Runner() as runner:
        store = PostgresStore(url, clock or FakeClock(1))
        try:
            yield store, runner.run
        finally:
            runner.run(store.close())


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(entries(), min_size=1, max_size=3), st.lists(reaches, min_size=1, max_size=6))
def test_a_search_sees_what_a_scan_of_everything_sees(rounds: list[list[Entry]], asked: list[Reach]) -> None:
    """Same rows, cosines and late interaction as the store without an index, after every round of writes."""
    with opened() as (indexed, run):
        plain = InMemory(FakeClock(1))
        for store in (plain, indexed):
            run(store.adopt_embedder("hashing-16", 16))
        vector = HashingEmbedder(16).embed(["the harbour boat"])[0]
        for made in rounds:
            for store in (plain, indexed):
                run(store.put(made))
            for reach in asked:
                search = Search(reach, "the harbour boat", vector, limit=100, tokens=ASKED)
                expected = {c.memory.id: c for c in run(plain.search(search))}
                found = {c.memory.id: c for c in run(indexed.search(search))}
                assert found.keys() == expected.keys(), reach
                for id, candidate in found.items():
                    assert candidate.late == expected[id].late, reach
                    assert candidate.dense == pytest.approx(expected[id].dense, abs=1e-4), reach
                    assert candidate.matched == expected[id].matched, reach
                for newest in (True, False):
                    pages = [run(s.scan(reach, newest_first=newest)).memories for s in (plain, indexed)]
                    assert [m.id for m in pages[0]] == [m.id for m in pages[1]], reach


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(memories(), st.integers(0, 2)), min_size=1, max_size=4),
    st.lists(conditions() | st.lists(conditions(), max_size=3).map(lambda c: any_of(*c)), min_size=1, max_size=40),
)
def test_sql_finds_what_matches_says(rows: list[tuple[Memory, int]], wheres: list[Condition]) -> None:
    with opened(FakeClock(NOW)) as (store, run):
        for n, (memory, recalls) in enumerate(rows):
            memory.id = f"{n:03}"
            run(store.put([Entry(memory, None, b"")]))
            for i in range(recalls):
                run(store.transact("t", lambda tx, id=memory.id, at=NOW + i: tx.count_recalls([id], at)))
        everything = run(store.scan(Reach("t", ("agent",)), newest_first=False)).memories
        assert len(everything) == len(rows)
        for condition in wheres:
            expected = [m.id for m in everything if matches(m, (condition,))]
            reach = Reach("t", ("agent",), (condition,))
            assert [m.id for m in run(store.scan(reach, newest_first=False)).memories] == expected, condition
            assert run(store.count(reach)) == len(expected), condition


def test_each_operator() -> None:
    with opened() as (store, run):
        run(store.put([Entry(MEMORY, None, b"")]))
        for key, operator, operand, holds in MEANING:
            where = filters.parse({key: {operator: operand}})
            assert bool(run(store.count(Reach("t", ("agent",), where)))) is holds, (key, operator, operand)


def test_a_large_scope_is_searched_by_its_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same best ones as one by one, with and without a filter, and after what was written since."""
    monkeypatch.setattr(postgres_search, "EXACT", 50)
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (s, run):
        words = ("harbour", "boat", "violin", "tax", "garden", "glacier", "lighthouse", "orchard")
        drafts = [
            Draft("agent", "semantic", f"{words[n % 8]} and {words[n // 8 % 8]} number {n}", user_id=f"u{n % 3}")
            for n in range(200)
        ]
        run(s.remember_all(drafts))
        vector = HashingEmbedder().embed(["harbour and violin"])[0]

        def best(*where: Condition, limit: int = 10) -> list[tuple[str, float | None]]:
            found = run(s.store.search(Search(Reach("local", ("agent",), where), None, vector, limit=limit)))
            return sorted(((c.memory.content, c.dense) for c in found), key=lambda pair: (-(pair[1] or 0), pair[0]))

        user = Condition(("user_id",), "eq", "u1")
        few = Condition(("content",), "contains", "number 11")
        before = [best(), best(user), best(few)]
        monkeypatch.setattr("commonplace.stores.postgres.vector_indexes.EXACT", 50)
        session = Session(s.store.address)
        (scope,) = session.one("SELECT id FROM scopes WHERE agent_id = 'agent'")
        assert build_indexes(session, scope) == ["parts_1"]
        assert build_indexes(session, scope) == []
        session.close()
        plans: list[str] = []
        by_graph = postgres_search._Legs._by_graph
        monkeypatch.setattr(postgres_search._Legs, "_by_graph", lambda *args: plans.append("graph") or by_graph(*args))
        for known, found in zip(before, [best(), best(user), best(few)], strict=True):
            # Which of equals are the last is not promised.
            assert [score for _, score in found] == pytest.approx([score for _, score in known])
        assert plans == ["graph", "graph"]  # what a filter leaves few of is compared one by one
        run(s.remember("harbour and violin"))
        assert best(limit=1)[0] == ("harbour and violin", pytest.approx(1.0, abs=1e-3))
        run(s.forget((run(s.recall("harbour and violin", k=1)))[0].id))
        assert best(limit=1)[0] != ("harbour and violin", pytest.approx(1.0, abs=1e-3))


def test_what_a_filter_passes_is_found_however_many_others_are_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_search, "EXACT", 50)
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (s, run):
        drafts = [Draft("agent", "semantic", f"the harbour report number {n}", user_id="bob") for n in range(400)]
        drafts += [Draft("agent", "semantic", f"a remark on boats, {n}", user_id="alice") for n in range(60)]
        run(s.remember_all(drafts))
        monkeypatch.setattr("commonplace.stores.postgres.vector_indexes.EXACT", 50)
        session = Session(s.store.address)
        (scope,) = session.one("SELECT id FROM scopes WHERE agent_id = 'agent'")
        assert build_indexes(session, scope) == ["parts_1"]
        session.close()
        reach = Reach("local", ("agent",), (Condition(("user_id",), "eq", "alice"),))
        vector = HashingEmbedder().embed(["the harbour report"])[0]
        found = run(s.store.search(Search(reach, None, vector, limit=10)))
        assert [c.memory.user_id for c in found] == ["alice"] * 10


def _with_common_words() -> list[Entry]:
    texts = [
        f"harbour {'boat ' * (n % 3)}{'pier mast rope ' * (n % 10 == 1)}item{n} "
        + ("zebra " + "filler " * 60 if n % 40 == 0 else "lantern " if n % 60 == 7 else "filler " * (n % 9))
        for n in range(900)
    ]
    return [
        Entry(Memory(f"m{n:03}", "local", "agent", "semantic", text, created_at=1, updated_at=1), None, terms(text), 0)
        for n, text in enumerate(texts)
    ]


_ASKED = ["harbour zebra", "harbour lantern", "zebra pier mast rope", "harbour boat", "zebra quince"]


@pytest.mark.parametrize("asked", _ASKED)
def test_common_words_of_a_large_scope_change_nothing_about_the_best(
    monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """Also where those who have only common words are better than some who have a rare one."""
    monkeypatch.setattr(postgres_search, "EXACT", 50)
    taken: list[bool] = []
    scored = postgres_search._Legs._scored_by_words
    monkeypatch.setattr(
        postgres_search._Legs,
        "_scored_by_words",
        lambda *args: taken.append(len(args) > 5) or scored(*args),  # type: ignore[func-returns-value]
    )
    with opened() as (indexed, run):
        plain = InMemory(FakeClock(1))
        for store in (plain, indexed):
            run(store.put(_with_common_words()))
        for limit in (1, 5, 30, 200):
            search = Search(Reach("local", ("agent",), now=1), asked, None, limit=limit)
            best = [[(c.memory.id, c.keyword) for c in run(store.search(search))] for store in (plain, indexed)]
            assert best[0] == best[1]
    assert any(taken) == (asked not in ("harbour boat", "zebra quince"))


def test_the_best_of_a_small_scope_are_those_of_a_scan_of_everything() -> None:
    """By words and by meaning, of memories with several vectors, too, whatever else there is."""
    embedder = HashingEmbedder(16)
    made = _with_common_words()
    for n, entry in enumerate(made):
        parts = [entry.memory.content, f"harbour part {n % 7}", f"zebra {n}"][: 1 + n % 3]
        made[n] = Entry(entry.memory, embedder.embed(parts), entry.terms, 1)
    with opened() as (indexed, run):
        plain = InMemory(FakeClock(1))
        for store in (plain, indexed):
            run(store.adopt_embedder("hashing-16", 16))
            run(store.put(made))
        for asked in _ASKED:
            for limit in (1, 5, 30):
                for text, vector in ((asked, None), (None, embedder.embed([asked])[0])):
                    search = Search(Reach("local", ("agent",), now=1), text, vector, limit=limit)
                    found = [run(store.search(search)) for store in (plain, indexed)]
                    best = [[c.keyword if vector is None else c.dense for c in each] for each in found]
                    assert best[0] == pytest.approx(best[1], abs=1e-4), (asked, limit)


def test_many_small_scopes_are_searched_together_and_each_as_if_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own statistics and its own best; what has expired, or a filter keeps out, takes nobody's place."""
    embedder, made = HashingEmbedder(16), _with_common_words()
    for n, entry in enumerate(made):
        memory = entry.memory
        memory.agent_id, memory.user_id = f"agent{(n * n) % 13}", f"u{n % 3}"
        memory.expires_at = 5 if n % 50 == 3 else None
        made[n] = Entry(memory, embedder.embed([memory.content, f"zebra {n}"][: 1 + n % 2]), entry.terms, 1)
    agents = tuple(f"agent{n}" for n in range(13))  # some have nothing
    with opened() as (indexed, run):
        plain = InMemory(FakeClock(1))
        for store in (plain, indexed):
            run(store.adopt_embedder("hashing-16", 16))
            run(store.put(made))
        statements: list[str] = []
        rows = Session.rows
        monkeypatch.setattr(Session, "rows", lambda *args: statements.append(args[1]) or rows(*args))
        user = (Condition(("user_id",), "eq", "u1"),)
        for asked, where, now in itertools.product(_ASKED, ((), user), (1, 5)):
            vector = embedder.embed([asked])[0]
            for text, near in ((asked, None), (None, vector), (asked, vector)):
                together, *alone = [
                    Search(Reach("local", those, where, now=now), text, near, limit=3)
                    for those in (agents, *((agent,) for agent in agents))
                ]
                # A scope's statistics are of all that is in it, also of what has expired or is filtered out.
                oracle = plain if text is None or (now == 1 and not where) else indexed
                expected = _by_agent([each for one in alone for each in run(oracle.search(one))])
                for documents in (1, 200, 2000):
                    monkeypatch.setattr(postgres_search, "GROUP_DOCUMENTS", documents)
                    statements.clear()
                    found = run(indexed.search(together))
                    assert {c.memory.expires_at for c in found} <= ({None, 5} if now == 1 else {None})
                    assert _by_agent(found) == pytest.approx(expected, abs=1e-3), (asked, where, now, documents)
                assert len(statements) <= 9  # of everything, and once more of the scopes in which something had expired


def test_small_scopes_are_not_looked_for_among_all_that_a_large_one_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who shares a partition with a large one, perhaps of another tenant, does not wait for it. The planner knows how
    large each is."""
    monkeypatch.setattr(schema, "PARTITIONS", 1)
    embedder, small, plans, rows = HashingEmbedder(16), ("small", "smaller"), list[str](), Session.rows

    def explained(self: Session, sql: str, values: Any = ()) -> Any:
        if "parts_1" in sql:
            plans.extend(line for (line,) in rows(self, f"EXPLAIN {sql}", values))
        return rows(self, sql, values)

    with opened() as (store, run):
        run(store.adopt_embedder("hashing-16", 16))
        for agent in small:
            own = [Memory(f"{agent}-{n}", "local", agent, "semantic", f"tea {n}") for n in range(5)]
            run(store.put([Entry(memory, embedder.embed(["tea"]), b"", 1) for memory in own]))
        _add_large_scope(store)
        monkeypatch.setattr(Session, "rows", explained)
        found = run(store.search(Search(Reach("local", small), None, embedder.embed(["tea"])[0], limit=3)))
    assert {c.memory.agent_id for c in found} == set(small)
    assert plans
    assert "Seq Scan" not in "\n".join(plans)


def _add_large_scope(store: PostgresStore) -> None:
    with psycopg.connect(**store._readers._address.parameters, autocommit=True) as db:
        db.execute(
            "INSERT INTO parts_1 SELECT 0, n, 0, p.embedding FROM generate_series(1, 30000) n "
            "CROSS JOIN (SELECT embedding FROM parts_1 LIMIT 1) p"
        )
        db.execute("ANALYZE parts_1")


def _by_agent(found: list[Candidate]) -> dict[str, float]:
    """Of each agent's candidates in their order what each leg is worth."""
    worth: dict[str, float] = {}
    for n, c in enumerate(sorted(found, key=lambda c: (c.memory.agent_id, c.dense or 0, c.keyword or 0))):
        for leg, score in (("dense", c.dense), ("keyword", c.keyword)):
            worth[f"{c.memory.agent_id} {n} {leg}"] = -1.0 if score is None else score
    return worth


def test_a_scope_that_grows_large_gets_its_graph_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.stores.postgres.vector_indexes.EXACT", 50)
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (s, run):
        run(s.remember_all([Draft("small", "semantic", f"note {n}") for n in range(20)]))
        run(s.remember_all([Draft("large", "semantic", f"note {n}") for n in range(60)]))
        if (building := s.store._indexer._thread) is not None:
            building.join()
        with psycopg.connect(url) as db:
            db.execute("SET search_path = commonplace")
            found = db.execute("SELECT agent_id FROM vector_indexes i JOIN scopes s ON s.id = i.scope_id WHERE ready")
            assert found.fetchall() == [("large",)]
