"""Hops in a recall: only what was found raises, agents are walls, and nothing is looked at unasked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commonplace.engine.recall import hops
from commonplace.engine.types import Query, Snapshot
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.filters import parse


@pytest.mark.parametrize(("linked", "nearest"), [
    ({}, {}),
    ({"a": {"x": 1}}, {}),
    ({"a": {"b": 2, "x": 1}, "b": {"a": 2}, "c": {}}, {"a": 2, "b": 2}),
    ({"a": {"b": 3, "c": 1}, "b": {"a": 3}, "c": {"a": 1}}, {"a": 1, "b": 3, "c": 1}),
])  # fmt: skip
def test_only_others_that_were_found_raise(linked: Any, nearest: Any) -> None:
    assert hops.smallest_distances(linked) == nearest


def test_without_hops_no_tie_is_looked_at(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(subject.remember("a glaze recipe", entity_name="Kiln"))

    async def never(*args: Any) -> Any:
        raise AssertionError("nobody asked")

    monkeypatch.setattr(subject.store, "linked", never)
    assert len(run(subject.engine.recall(WHO, Query(("agent",), "glaze"))).hits) == 1


def test_a_store_without_a_graph_says_so(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(subject.remember("a glaze recipe", entity_name="Kiln"))
    monkeypatch.setattr(type(subject.store), "capabilities", subject.store.capabilities - {"graph"})
    found = run(subject.engine.recall(WHO, Query(("agent",), "glaze", hops=1)))
    assert found.hits[0].supporting == []
    assert found.note is not None
    assert "hops was not applied" in found.note


def test_agents_are_walls_to_hops_even_when_both_are_asked(subject: Subject, run: Any) -> None:
    a = run(subject.remember("a glaze recipe", "one", entity_name="Kiln"))
    b = run(subject.remember("b glaze recipe", "two", entity_name="Kiln", metadata={"references": [a]}))
    c = run(subject.remember("c glaze recipe", "two", entity_name="kiln"))
    found = run(subject.engine.recall(WHO, Query(("one", "two"), "glaze recipe", hops=3))).hits
    assert {hit.memory.id: hit.supporting for hit in found} == {a: [], b: [c], c: [b]}


@pytest.mark.parametrize(("near", "hits", "ids"), [
    ({}, {}, []),
    ({"a": 2, "b": 1}, {}, ["b", "a"]),
    ({"a": 1, "b": 1}, {"b": None}, ["b", "a"]),
    ({"a": 2, "b": 3, "c": 2}, {"b": None, "c": None}, ["c", "a", "b"]),
])  # fmt: skip
def test_the_nearest_first_and_hits_before_others(near: Any, hits: Any, ids: list[str]) -> None:
    assert hops.nearest_ids(near, hits) == ids


def test_no_more_than_twenty_support_a_hit() -> None:
    assert hops.nearest_ids({str(i): i for i in range(50)}, {}) == [str(i) for i in range(hops.SUPPORTING)]


def test_a_hit_with_a_neighbour_among_the_hits_is_raised_and_told(subject: Subject, run: Any) -> None:
    a = run(subject.remember("a glaze recipe", entity_name="Kiln"))
    b = run(subject.remember("b glaze recipe", entity_name="Kiln"))
    alone = run(subject.remember("c glaze recipe"))
    query = Query(("agent",), "glaze recipe", explain=True)
    plain = {hit.memory.id: hit for hit in run(subject.engine.recall(WHO, query)).hits}
    raised = {hit.memory.id: hit for hit in run(subject.engine.recall(WHO, replace(query, hops=1))).hits}
    assert {id: hit.explain.get("hop") for id, hit in raised.items()} == {a: 1, b: 1, alone: None}
    for id in (a, b):
        assert raised[id].score == pytest.approx(plain[id].score * 1.05)
    assert raised[alone].score == plain[alone].score
    assert not any("hop" in hit.explain for hit in plain.values())


def test_what_supports_a_hit_need_not_have_been_found(subject: Subject, run: Any) -> None:
    hit = run(subject.remember("a glaze recipe"))
    other = run(subject.remember("zzz", metadata={"references": [hit]}))
    found = run(subject.engine.recall(WHO, Query(("agent",), "glaze recipe", k=1, hops=1))).hits
    assert [(each.memory.id, each.supporting) for each in found] == [(hit, [other])]


def test_what_the_question_filters_out_is_not_walked_through(subject: Subject, run: Any) -> None:
    a = run(subject.remember("a glaze recipe", tags=["x"]))
    middle = run(subject.remember("zzz", metadata={"references": [a]}))
    b = run(subject.remember("b glaze recipe", tags=["x"], metadata={"references": [middle]}))
    free = run(subject.engine.recall(WHO, Query(("agent",), "glaze recipe", k=2, hops=2))).hits
    assert {each.memory.id: set(each.supporting) for each in free} == {a: {middle, b}, b: {middle, a}}
    kept = run(subject.recall("glaze recipe", filter={"tags": "x"}))
    assert {memory.id for memory in kept} == {a, b}
    query = Query(("agent",), "glaze recipe", where=parse({"tags": "x"}), k=2, hops=2)
    walled = run(subject.engine.recall(WHO, query)).hits
    assert {each.memory.id: each.supporting for each in walled} == {a: [], b: []}


def test_statements_join_memories_while_they_hold(subject: Subject, run: Any) -> None:
    a = run(subject.remember("a glaze recipe", entity_name="Kiln"))
    b = run(subject.remember("b glaze recipe", entity_name="Oven"))
    begun = subject.clock.advance(10)
    run(subject.engine.graph.assert_fact(WHO, "agent", subject="kiln", predicate="is_like", object="OVEN"))
    query = Query(("agent",), "glaze recipe", hops=1)
    now = run(subject.engine.recall(WHO, query)).hits
    assert {hit.memory.id: hit.supporting for hit in now} == {a: [b], b: [a]}
    before = run(subject.engine.recall(WHO, replace(query, as_of=begun - 1))).hits
    assert {hit.memory.id: hit.supporting for hit in before} == {a: [], b: []}


def test_whoever_reads_at_a_snapshot_walks_the_statements_of_then(subject: Subject, run: Any) -> None:
    a = run(subject.remember("a glaze recipe", entity_name="Kiln"))
    b = run(subject.remember("b glaze recipe", entity_name="Oven"))
    snapshot = Snapshot(run(subject.store.sequence("local")), subject.clock())
    subject.clock.advance(10)
    run(subject.engine.graph.assert_fact(WHO, "agent", subject="kiln", predicate="is_like", object="OVEN"))
    query = Query(("agent",), "glaze recipe", hops=1, explain=True)
    then = run(subject.engine.recall(WHO, replace(query, snapshot=snapshot))).hits
    assert {hit.memory.id: (hit.supporting, hit.explain.get("hop")) for hit in then} == {a: ([], None), b: ([], None)}
    now = run(subject.engine.recall(WHO, query)).hits
    assert {hit.memory.id: (hit.supporting, hit.explain.get("hop")) for hit in now} == {a: ([b], 1), b: ([a], 1)}
