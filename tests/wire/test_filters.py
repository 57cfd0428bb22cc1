"""What a filter means: the table of every operator, and the same meaning in SQL on anything at all."""

from __future__ import annotations

from typing import Any

import apsw
import pytest
from filter_cases import BEYOND_64_BITS, MEANING, MEMORY, NOW, conditions, documents, memories, operands
from hypothesis import given, settings, strategies as st

from commonplace.stores.base import Entry, Reach
from commonplace.stores.sqlite import schema
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.stores.sqlite.transaction import SqliteTransaction, TenantState
from commonplace.wire import filters
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import COLUMNS, OPERATORS, Condition, Where, any_of, matches
from commonplace.wire.record import Memory


class Table:
    """Memories in a real database, read back through the SQL of the store."""

    def __init__(self) -> None:
        self._db = apsw.Connection(":memory:")
        for step in schema.MIGRATIONS:
            step(self._db)
        self._db.execute("INSERT INTO tenants(id, name) VALUES(1, 't')")
        self._tx = SqliteTransaction(self._db, TenantState(1, 0, 0, 0, ""), NOW, [1], 0, {}, False)
        self._count = 0

    def put(self, memory: Memory, recalls: int = 0) -> None:
        self._count += 1
        memory.id = f"{self._count:03}"
        self._tx.put(Entry(memory, None, b""))
        for i in range(recalls):
            self._tx.count_recalls([memory.id], NOW + i)

    def everything(self) -> list[Memory]:
        return self._tx.find(Reach("t", ("agent",)))

    def found(self, where: Where) -> list[str]:
        return [m.id for m in self._tx.find(Reach("t", ("agent",), where))]


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(memories(), st.integers(0, 2)), min_size=1, max_size=4),
    st.lists(conditions() | st.lists(conditions(), max_size=3).map(lambda c: any_of(*c)), min_size=1, max_size=40),
)
def test_sql_finds_what_matches_says(rows: list[tuple[Memory, int]], wheres: list[Condition]) -> None:
    table = Table()
    for memory, recalls in rows:
        table.put(memory, recalls)
    everything = table.everything()
    assert len(everything) == len(rows)
    for condition in wheres:
        expected = [m.id for m in everything if matches(m, (condition,))]
        assert table.found((condition,)) == expected, condition


@settings(max_examples=100, deadline=None)
@given(documents, st.data())
def test_a_memory_is_found_by_each_of_its_own_scalars(metadata: dict[str, Any], data: st.DataObject) -> None:
    """The other direction: conditions taken from the document itself always hit."""
    table = Table()
    table.put(Memory("", "t", "agent", "semantic", "x", metadata=metadata))
    for key, value in metadata.items():
        if isinstance(value, (dict, list)) or value in BEYOND_64_BITS:
            continue
        where = filters.parse({key if key != "metadata" else "metadata.metadata": value})
        assert table.found(where) == ["001"], (key, value)


def test_conditions_are_all_required() -> None:
    table = Table()
    table.put(Memory("", "t", "agent", "semantic", "x", metadata={"a": 1, "b": 2}))
    assert table.found(filters.parse({"a": 1, "b": {"$gt": 1}})) == ["001"]
    assert table.found(filters.parse({"a": 1, "b": {"$gt": 2}})) == []


@pytest.mark.parametrize(("key", "operator", "operand", "holds"), MEANING)
def test_each_operator(key: str, operator: str, operand: Any, holds: bool) -> None:
    where = filters.parse({key: {operator: operand}})
    assert matches(MEMORY, where) is holds
    table = Table()
    table.put(MEMORY)
    assert bool(table.found(where)) is holds


def test_a_scalar_is_equality_and_a_list_is_any_of() -> None:
    assert filters.parse({"n": 3}) == (Condition(("metadata", "n"), "eq", 3),)
    assert filters.parse({"n": [1, 3]}) == (Condition(("metadata", "n"), "in", [1, 3]),)
    assert filters.parse({"user_id": "alice"}) == (Condition(("user_id",), "eq", "alice"),)
    assert filters.parse({}) == filters.parse(None) == ()


def test_the_longest_lists_are_searched() -> None:
    """A thousand values in every one of several conditions is within what SQLite takes."""
    table = Table()
    table.put(Memory("", "t", "agent", "semantic", "x", user_id="u999", tags=["999"], metadata={"n": 999, "s": "999"}))
    many = list(range(1000))
    words = [str(i) for i in many]
    document = {"n": many, "s": words, "tags": words, "user_id": [f"u{i}" for i in many], "m": {"$nin": many}}
    assert table.found(filters.parse(document)) == ["001"]
    widest = {f"k{i}": {"$nin": words} for i in range(64)}
    assert table.found(filters.parse(widest)) == ["001"]


REFUSED = [
    ({"n": {"$near": 3}}, "filter on 'n': unknown operator '$near'; use one of $contains, "),
    ({"n": {"gt": 3}}, "filter on 'n': 'gt' is not an operator; use one of "),
    ({"n": {}}, "filter on 'n': is an empty object"),
    ({"n": {"$in": 3}}, "filter on 'n': $in takes a list"),
    ({"n": {"$exists": 1}}, "filter on 'n': $exists takes true or false"),
    ({"n": {"$gt": True}}, "filter on 'n': $gt takes a number or a string"),
    ({"n": {"$gt": None}}, "filter on 'n': $gt takes a number or a string"),
    ({"n": {"$eq": {"x": 1}}}, "filter on 'n': must be compared with strings, numbers, true, false or null"),
    ({"n": [[1]]}, "filter on 'n': must be compared with strings, numbers, true, false or null"),
    ({"n": 2**63}, "filter on 'n': must be a number of at most 64 bits"),
    ({"n": float("inf")}, "filter on 'n': must be a finite number"),
    ({"n": list(range(1001))}, "filter on 'n': lists 1001 values; at most 1000 are allowed"),
    ({"$or": [1]}, "filter on '$or': is not a field name"),
    ({"a..b": 1}, "filter on 'a..b': is not a field name"),
    ({"": 1}, "filter on '': is not a field name"),
    ({'a"b': 1}, "is not a field name"),
    *(
        ({field: condition}, f"filter on {field!r}: is a time: write epoch milliseconds such as ")
        for field in ("created_at", "updated_at", "expires_at", "event_time", "last_recalled_at")
        for condition in ("2026-03-01", ["2026-03-01"], {"$gt": "2026-03-01"}, {"$nin": ["1h"]}, {"$ne": "1h"})
    ),
    ({f"k{i}": 1 for i in range(65)}, "filter has 65 conditions; at most 64 are allowed"),
]


@pytest.mark.parametrize(("document", "sentence"), REFUSED)
def test_a_filter_that_cannot_be_meant_is_refused_in_words(document: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        filters.parse(document)
    assert sentence in refused.value.message


operators = st.dictionaries(st.sampled_from(("$gt", "$in", "$x")), operands)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=4), st.one_of(operands, st.lists(operands, max_size=2), operators)))
def test_parsing_gives_conditions_or_a_refusal_and_nothing_else(document: dict[str, Any]) -> None:
    try:
        where = filters.parse(document)
    except ValidationError:
        return
    assert all(c.op in OPERATORS and (c.path[0] in COLUMNS or c.path[0] == "metadata") for c in where)
    matches(MEMORY, where)


def test_what_is_shared_is_found_by_an_index() -> None:
    db = apsw.Connection(":memory:")
    for migration in schema.MIGRATIONS:
        migration(db)
    for more in ((), (any_of(Condition(("project",), "eq", "x"), Condition(("tags",), "contains", "x")),)):
        where = (Condition(("privacy", "share_with"), "in", ["*", "bob"]), *more)
        condition, values = reach_sql(Reach("t", ("a",), where, now=1))
        sql = f"EXPLAIN QUERY PLAN SELECT m.mid FROM memories m WHERE m.scope_id IN (1, 2) AND {condition}"
        assert any("memories_shared" in row[3] for row in db.execute(sql, values)), more


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ({"status": "live"}, ["tagged", "plain", "task"]),
        ({"status": "archived"}, ["archived"]),
        ({"status": ["live", "archived"]}, ["tagged", "plain", "task", "archived"]),
        ({"status": {"$ne": "live"}}, ["archived"]),
        ({"status": {"$nin": ["archived"]}}, ["tagged", "plain", "task"]),
        ({"status": "open"}, ["task"]),
        ({"metadata.status": "open"}, ["task"]),
        ({"metadata.status": "live"}, []),
        ({"status": {"$exists": True}}, ["task"]),
        ({"tags": {"$exists": True}}, ["tagged"]),
        ({"tags": {"$exists": False}}, ["plain", "task", "archived"]),
        ({"aliases": {"$exists": True}}, ["tagged"]),
        ({"aliases": "n"}, ["tagged"]),
        ({"supersedes": {"$exists": False}}, ["tagged", "plain", "task", "archived"]),
        ({"agent_id": "agent"}, ["tagged", "plain", "task", "archived"]),
        ({"agent_id": {"$ne": "agent"}}, []),
    ],
    ids=str,
)
def test_fields_of_the_record_filter_alike_in_every_store(over: Any, filter: dict[str, Any], found: list[str]) -> None:
    subject, run = over
    run(subject.remember("tagged", tags=["x"], aliases=["n"]))
    run(subject.remember("plain"))
    run(subject.remember("task", metadata={"status": "open"}))
    run(subject.remember("archived", confidence=0.1))
    run(subject.expire("archive", confidence_below=0.5))
    assert {m.content for m in run(subject.list(filter=filter))} == set(found)
    live = set(found) - {"archived"}
    assert {m.content for m in run(subject.recall("tagged plain task archived", filter=filter, min_score=0))} == live
    gone = run(subject.forget(filter=filter))
    assert len(gone.ids) == len(found)
