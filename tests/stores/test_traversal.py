"""Walking the graph: the same distances from every store as from all shortest paths, within bounds."""

from __future__ import annotations

import asyncio
import math
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commonplace.stores import traversal
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.stores.graph import REFERENCES, Instant, Triple, entity_key, references
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.traversal import FANOUT, PATH_NODES, WALK_NODES, InMemoryGraph, linked_memories, shortest_path
from commonplace.testing.subject import START, FakeClock
from commonplace.wire.record import Memory

NAMES = ("Ann", "ANN", "Bob", "Cid", "Dee", None, None)
Shape = tuple[list[tuple[str | None, list[int]]], list[tuple[str, str]]]
SHAPES: st.SearchStrategy[Shape] = st.tuples(
    st.lists(st.tuples(st.sampled_from(NAMES), st.lists(st.integers(0, 7), max_size=2)), min_size=1, max_size=8),
    st.lists(st.tuples(*[st.sampled_from(("ann", "Bob", "CID", "Dee", "Eve"))] * 2), max_size=4),
)


def remembered(drawn: list[tuple[str | None, list[int]]]) -> list[Memory]:
    return [
        Memory(f"m{i}", "local", "agent", "semantic", "x", entity_name=name, created_at=START + i,
               metadata={"references": [f"m{other}" for other in refers]})
        for i, (name, refers) in enumerate(drawn)
    ]  # fmt: skip


def distances(memories: list[Memory], statements: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Every pair's distance by relaxing all paths: what the walk must find without looking at everything."""
    names = {"ann", "bob", "cid", "dee", "eve"}
    apart = {(a, b): 0 if a == b else math.inf for a, b in product(names, names)}
    for a, b in statements:
        if a.casefold() != b.casefold():
            apart[a.casefold(), b.casefold()] = apart[b.casefold(), a.casefold()] = 1
    for c, a, b in product(names, names, names):
        apart[a, b] = min(apart[a, b], apart[a, c] + apart[c, b])
    ids = [m.id for m in memories]
    between = {(m.id, n.id): math.inf for m, n in product(memories, memories)}
    for m, n in product(memories, memories):
        if n.id in references(m) or m.id in references(n):
            between[m.id, n.id] = 1
        if m.entity_name and n.entity_name:
            steps = max(1, apart[m.entity_name.casefold(), n.entity_name.casefold()])
            between[m.id, n.id] = min(between[m.id, n.id], steps)
    for c, a, b in product(ids, ids, ids):
        between[a, b] = min(between[a, b], between[a, c] + between[c, b])
    return between


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(SHAPES, st.integers(1, 3))
def test_every_store_finds_the_shortest_ways(shape: Shape, steps: int) -> None:
    drawn, statements = shape
    memories = remembered(drawn)

    def work(tx: Transaction) -> None:
        for memory in memories:
            tx.put(Entry(memory, None, b""))
        for i, (subject, object) in enumerate(statements):
            tx.put_triple(Triple(f"t{i}", "agent", subject, f"p{i}", object, START))

    expected = distances(memories, statements)
    ids = [m.id for m in memories]

    async def look(store: Any) -> None:
        await store.transact("local", work)
        seq = await store.sequence("local")
        for as_of in (None, seq):
            found = await store.linked(
                Reach("local", ("agent",), as_of=as_of), ids, steps, Instant(START, given=True), 100
            )
            for a, b in product(ids, ids):
                within = None if a == b or expected[a, b] > steps else expected[a, b]
                assert found[a].get(b) == within, (a, b, as_of)
            assert all(list(near.values()) == sorted(near.values()) for near in found.values())
            few = ids[::2]
            among = await store.linked(
                Reach("local", ("agent",), as_of=as_of), few, steps, Instant(START, given=True), 0
            )
            for a in few:
                others = {b: expected[a, b] for b in few if b != a and expected[a, b] <= steps}
                assert set(among[a].values()) == {min(others.values())} if others else among[a] == {}, (a, as_of)
                assert among[a].items() <= others.items()
        await store.close()

    clock = FakeClock()
    asyncio.run(look(InMemory(clock)))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(look(SqliteStore(Path(folder) / "x.db", clock)))


WIDER: st.SearchStrategy[Shape] = st.tuples(
    st.lists(st.tuples(st.sampled_from(NAMES), st.lists(st.integers(0, 13), max_size=2)), min_size=8, max_size=14),
    st.lists(st.tuples(*[st.sampled_from(("ann", "Bob", "CID", "Dee", "Eve"))] * 2), max_size=5),
)


@settings(max_examples=100, deadline=None)
@given(WIDER, st.lists(st.booleans(), min_size=14, max_size=14), st.integers(1, 3))
def test_the_nearest_of_what_was_found_is_the_nearest(shape: Shape, found: list[bool], steps: int) -> None:
    drawn, statements = shape
    memories = remembered(drawn)
    triples = [Triple(f"t{i}", "agent", a, f"p{i}", b, START) for i, (a, b) in enumerate(statements)]
    expected = distances(memories, statements)
    ids = [m.id for m, chosen in zip(memories, found, strict=False) if chosen]
    nearest = linked_memories(InMemoryGraph(memories, triples), ids, steps, 0)
    for a in ids:
        others = {b: expected[a, b] for b in ids if b != a and expected[a, b] <= steps}
        assert list(nearest[a].values()) == sorted(others.values())[:1]
        assert nearest[a].items() <= others.items()


def test_no_more_is_looked_at_than_allowed() -> None:
    """A graph without end: every memory refers to a hundred others."""

    class EndlessLinks:
        looked = 0

        def of(self, id: str) -> tuple[list[str], Any]:
            self.looked += 1
            return [f"{id}.{i}" for i in range(FANOUT)], None

        def about(self, entity: Any) -> list[str]:
            raise AssertionError

        related = about

    links = EndlessLinks()
    found = linked_memories(links, ["a", "b"], 3, 20)
    assert links.looked == 2, "enough were found one step away"
    assert [len(near) for near in found.values()] == [20, 20]
    assert set(found["a"].values()) == {1}
    found = linked_memories(links, ["a", "b"], 3, 0)
    assert links.looked == 2 + WALK_NODES + 2
    assert found == {"a": {}, "b": {}}


class UniformLinks:
    """Memories that all have the same links."""

    def __init__(self, refers: list[str], thing: Any) -> None:
        self.tied = refers, thing

    def of(self, id: str) -> tuple[list[str], Any]:
        return [other for other in self.tied[0] if other != id], self.tied[1]

    def about(self, entity: Any) -> list[str]:
        return []

    related = about


@pytest.mark.slow
@pytest.mark.parametrize("links", [UniformLinks([], ("agent", "kiln")), UniformLinks(["0"], None)])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_of_thousands_found_together_no_pairs_are_made(
    links: UniformLinks, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals = 0

    def counting(self: Any, *args: Any) -> bool:
        nonlocal arrivals
        arrivals += 1
        return visit(self, *args)

    visit = traversal._MultiSourceSearch.visit
    monkeypatch.setattr(traversal._MultiSourceSearch, "visit", counting)
    found = linked_memories(links, [str(i) for i in range(4000)], steps, 0)
    assert {tuple(near.values()) for near in found.values()} == {(1,)}
    assert arrivals < 12 * 4000


def test_a_path_looks_at_no_more_than_allowed() -> None:
    """Every thing is joined to sixty others, and nothing leads to the end."""

    class EndlessLinks:
        told = 0

        def touching(self, name: str) -> list[Triple]:
            self.told += 60
            ends = [f"{name}.{i}" for i in range(60)] if name.startswith("a") else []
            return [Triple(end, "agent", name, end, end, 0) for end in ends]

    statements = EndlessLinks()
    assert shortest_path(statements, "a", "b", 6) == []
    assert statements.told < 2 * PATH_NODES


def test_what_a_memory_refers_to_is_read_leniently() -> None:
    def of(given: Any, supersedes: list[str] | None = None) -> list[str]:
        return references(Memory("m", "t", "a", "semantic", "x", metadata={"references": given},
                                 supersedes=supersedes or []))  # fmt: skip

    assert of(["a", "b", "a", "", 7, None, {"id": "c"}]) == ["a", "b"]
    assert of("a", ["z", "a"]) == ["z", "a"]
    assert of({"a": 1}) == of(None) == of(3) == []
    assert len(of([str(i) for i in range(1000)])) == REFERENCES
    assert of(["x" * 1025, "x" * 1024]) == ["x" * 1024]
    assert [entity_key(name) for name in (None, "", " \t", " Alice ", "x" * 1025)] == ["", "", "", "alice", ""]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from("ABCDEFGH")] * 2), max_size=14), st.integers(1, 6))
def test_a_path_is_as_short_as_any(statements: list[tuple[str, str]], most: int) -> None:
    """Compared with growing a circle around the start, one statement at a time."""
    triples = [Triple(str(i), "agent", a, "p", b.lower(), i) for i, (a, b) in enumerate(statements)]
    around, steps = {"a"}, 0
    while "b" not in around and steps < most:
        around |= {x for t in triples for x in (t.subject.lower(), t.object) if {t.subject.lower(), t.object} & around}
        steps += 1
    way = shortest_path(InMemoryGraph((), triples), "a", "B", most)
    assert len(way) == (steps if "b" in around else 0)
    at = "a"
    for triple in way:
        ends = {triple.subject.lower(), triple.object}
        assert at in ends
        at = next(iter(ends - {at}), at)
    assert not way or at == "b"
