"""Hops in a recall: only what was found raises, agents are walls, and nothing is looked at unasked."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.recall import hops
from commonplace.engine.types import Query
from commonplace.testing.subject import WHO, Subject


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
