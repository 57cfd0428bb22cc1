"""The graph: what is stated about entities, as one line in time for each subject and predicate; and what links
memories to each other, how far it is followed, and what is never seen on the way."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commonplace.engine import Decision, Draft, Query, Triple
from commonplace.stores.base import Transaction
from commonplace.stores.traversal import FANOUT, PATH_FANOUT
from commonplace.testing.subject import DAY_MS, START, WHO, Contract, FakeClock, Subject, scenario
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Conflict, NotFound
from commonplace.wire.filters import parse
from commonplace.wire.record import Principal

#: How far the timeline of the random test reaches, in ms.
SPAN = 12
Step = tuple[str, int, int]  # what to do, the instant it is about, the instant at which it is done


async def state(s: Subject, subject: str, predicate: str, object: str, agent: str = "agent", **more: Any) -> Triple:
    graph = s.engine.graph
    return (await graph.assert_fact(WHO, agent, subject=subject, predicate=predicate, object=object, **more)).triple


async def held(s: Subject, subject: str, agent: str = "agent", **options: Any) -> list[str]:
    return [t.object for t in await s.engine.graph.query(WHO, agent, subject, **options)]


async def near(s: Subject, id: str, hops: int = 1, agent: str = "agent") -> dict[str, int]:
    return await s.engine.graph.neighbours(WHO, agent, id, hops)


class Timeline:
    """The oracle: which statement holds at each instant, written down one by one."""

    def __init__(self) -> None:
        self.at: list[int | None] = [None] * (SPAN + 2)

    def state(self, value: int, start: int) -> None:
        later = (i for i in range(start + 1, len(self.at)) if self.at[i] not in (None, self.at[i - 1]))
        for i in range(start, next(later, len(self.at))):
            self.at[i] = value

    def retract(self, now: int) -> bool:
        value = self.at[now]
        if value is None:
            return False
        self.at = [None if i >= now and v == value else v for i, v in enumerate(self.at)]
        return True


class GraphScenarios(Contract):
    @scenario("graph")
    async def test_a_new_statement_ends_the_one_before(self, s: Subject) -> None:
        first = await state(s, "auth-service", "version", "2.4.0", confidence=0.5, provenance="log")
        s.clock.advance(DAY_MS)
        second = await state(s, "auth-service", "version", "2.4.1")
        await state(s, "auth-service", "owner", "Alice")
        assert await held(s, "auth-service") == ["Alice", "2.4.1"]
        assert await held(s, "auth-service", predicate="version") == ["2.4.1"]
        assert await held(s, "auth-service", as_of=s.clock() - 1) == ["2.4.0"]
        assert await held(s, "auth-service", as_of=first.valid_from - 1) == []
        history = await s.engine.graph.history(WHO, "agent", "auth-service", "version")
        line = [(t.id, t.object, t.valid_from, t.valid_to) for t in history]
        assert line == [(first.id, "2.4.0", START, s.clock()), (second.id, "2.4.1", s.clock(), None)]
        assert (history[0].confidence, history[0].provenance, history[0].asserted_by) == (0.5, "log", "local")
        assert await s.engine.graph.counts(WHO, "agent") == {"triples": 3, "active": 2, "subjects": 1}

    @scenario("graph")
    async def test_a_statement_about_the_past_leaves_what_came_after_alone(self, s: Subject) -> None:
        await state(s, "Alice", "lives_in", "Rome", valid_from=START - 10 * DAY_MS)
        await state(s, "Alice", "lives_in", "Oslo", valid_from=START - 2 * DAY_MS)
        between = await state(s, "Alice", "lives_in", "Bern", valid_from=START - 5 * DAY_MS)
        assert (between.valid_from, between.valid_to) == (START - 5 * DAY_MS, START - 2 * DAY_MS)
        places = [await held(s, "Alice", as_of=START - days * DAY_MS) for days in (11, 10, 6, 5, 3, 2, 0)]
        assert places == [[], ["Rome"], ["Rome"], ["Bern"], ["Bern"], ["Oslo"], ["Oslo"]]

    @scenario("graph")
    async def test_of_two_at_the_same_instant_the_later_stands(self, s: Subject) -> None:
        first = await state(s, "Alice", "likes", "tea")
        await state(s, "Alice", "likes", "coffee")
        assert await held(s, "Alice") == await held(s, "Alice", as_of=s.clock()) == ["coffee"]
        history = await s.engine.graph.history(WHO, "agent", "Alice")
        assert [(t.object, t.valid_to) for t in history] == [("tea", first.valid_from), ("coffee", None)]

    @scenario("graph")
    async def test_what_was_just_stated_holds_though_the_clock_was_set_back(self, s: Subject) -> None:
        await s.remember("something", entity_name="Alice")
        s.clock.advance(-DAY_MS)
        made = await state(s, "Alice", "likes", "tea")
        assert made.valid_from == START
        assert await held(s, "Alice") == ["tea"]
        assert await held(s, "Alice", as_of=s.clock()) == []
        assert len(await s.engine.graph.path(WHO, "agent", "Alice", "tea")) == 1
        assert (await s.engine.graph.counts(WHO, "agent"))["active"] == 1
        assert (await s.engine.graph.retract(WHO, "agent", ("Alice", "likes"))).valid_to == START
        assert await held(s, "Alice") == []

    def test_statements_of_one_line_never_overlap(self, tmp_path: Path) -> None:
        """Whatever is stated about whatever instant, and ended: the same as writing it down instant by instant."""
        steps = st.tuples(st.sampled_from(["state", "state", "state", "retract"]), *[st.integers(0, SPAN)] * 2)
        examples = itertools.count(1)
        with self.opened(tmp_path, "graph") as (s, run):

            @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
            @given(st.lists(steps, max_size=12))
            def agrees(done: list[Step]) -> None:
                example = next(examples)
                base = START + example * 1000  # commit times never go back, so each example has a stretch of its own
                run(self._check_timeline(s, base, f"thing {example}", sorted(done, key=lambda step: step[2])))

            agrees()

    async def _check_timeline(self, s: Subject, base: int, subject: str, steps: list[Step]) -> None:
        oracle = Timeline()
        for value, (what, about, at) in enumerate(steps):
            s.clock.now = base + at
            if what == "state":
                oracle.state(value, about)
                await state(s, subject, "is", str(value), valid_from=base + about)
            elif oracle.retract(at):
                await s.engine.graph.retract(WHO, "agent", (subject, "is"))
            else:
                with pytest.raises(NotFound):
                    await s.engine.graph.retract(WHO, "agent", (subject, "is"))
        for instant, holding in enumerate(oracle.at):
            found = await held(s, subject, as_of=base + instant)
            assert found == ([] if holding is None else [str(holding)]), (instant, steps)
        line = [t for t in await s.engine.graph.history(WHO, "agent", subject) if not t.empty]
        assert all(a.valid_to is not None and a.valid_to <= b.valid_from for a, b in itertools.pairwise(line))

    @scenario("graph")
    async def test_of_many_at_once_exactly_one_is_active(self, s: Subject) -> None:
        await asyncio.gather(*(state(s, "Alice", "is_at", f"place {i}") for i in range(100)))
        assert len(await held(s, "Alice")) == 1
        history = await s.engine.graph.history(WHO, "agent", "Alice")
        assert len(history) == 100
        assert sum(t.valid_to is None for t in history) == 1

    @scenario("graph")
    async def test_statements_have_the_same_walls(self, s: Subject) -> None:
        mine = await state(s, "Alice", "knows", "Bob")
        await state(s, "Alice", "knows", "Zoe", "neighbour")
        other = Principal(tenant="other")
        assert await held(s, "Alice") == ["Bob"]
        assert await held(s, "Alice", "neighbour") == ["Zoe"]
        assert list(await s.engine.graph.query(other, "agent", "Alice")) == []
        assert list(await s.engine.graph.path(WHO, "agent", "Bob", "Zoe")) == []
        assert (await s.engine.graph.erase(other, "agent", "Alice")).ids == []
        for who, agent in ((other, "agent"), (WHO, "neighbour")):
            with pytest.raises(NotFound):
                await s.engine.graph.retract(who, agent, mine.id)
            same_id = replace(mine, agent_id=agent, valid_to=mine.valid_from)
            with pytest.raises(Conflict, match=f"a statement with id {mine.id} exists already"):
                await s.store.transact(who.tenant, methodcaller("put_triple", same_id))
        assert await s.engine.graph.history(WHO, "agent", "Alice") == [mine]

    @scenario("graph")
    async def test_what_is_retracted_stays_in_history(self, s: Subject) -> None:
        made = await state(s, "Alice", "knows", "Bob")
        ahead = await state(s, "Alice", "retires", "gladly", valid_from=s.clock() + DAY_MS)
        s.clock.advance(5)
        assert (await s.engine.graph.retract(WHO, "agent", made)).valid_to == s.clock()
        assert (await s.engine.graph.retract(WHO, "agent", ahead.id)).empty
        assert await held(s, "Alice") == await held(s, "Alice", as_of=s.clock() + 2 * DAY_MS) == []
        assert await held(s, "Alice", as_of=made.valid_from) == ["Bob"]
        for gone in (made, ahead):
            with pytest.raises(Conflict):
                await s.engine.graph.retract(WHO, "agent", gone.id)
        await state(s, "Alice", "knows", "Acme")
        assert [t.object for t in await s.engine.graph.history(WHO, "agent", "Alice", "knows")] == ["Bob", "Acme"]

    @scenario("graph")
    async def test_the_shortest_way_in_either_direction(self, s: Subject) -> None:
        for a, b in (("Alice", "acme"), ("Acme", "Oslo"), ("Bob", "Oslo"), ("Bob", "Bern"), ("Alice", "Bern")):
            await state(s, a, f"to {b}", b)
        way = await s.engine.graph.path(WHO, "agent", "alice", "BOB")
        assert [(t.subject, t.object) for t in way] == [("Alice", "Bern"), ("Bob", "Bern")]
        await s.engine.graph.retract(WHO, "agent", ("Alice", "to Bern"))
        way = await s.engine.graph.path(WHO, "agent", "Alice", "Bob")
        assert [(t.subject, t.object) for t in way] == [("Alice", "acme"), ("Acme", "Oslo"), ("Bob", "Oslo")]
        assert list(await s.engine.graph.path(WHO, "agent", "Alice", "Bob", max_hops=2)) == []
        assert list(await s.engine.graph.path(WHO, "agent", "Alice", "Alice")) == []
        assert list(await s.engine.graph.path(WHO, "agent", "Alice", "nowhere", max_hops=6)) == []
        assert len(await s.engine.graph.path(WHO, "agent", "Alice", "Bob", as_of=s.clock() - 1)) == 0

    @scenario("graph")
    async def test_a_way_over_a_hub_is_found(self, s: Subject) -> None:
        for i in range(PATH_FANOUT + 20):
            await state(s, f"person {i}", "lives_in", "Town")
            s.clock.advance(1)
        way = await s.engine.graph.path(WHO, "agent", "Person 0", "person 1", max_hops=2)
        assert [t.subject for t in way] == ["person 0", "person 1"]
        assert len(await s.engine.graph.path(WHO, "agent", "Town", "person 0")) == 1

    @scenario("graph")
    async def test_erasing_a_subject_leaves_nothing_of_it(self, s: Subject) -> None:
        mark = "xyzzy-4711"
        for object in ("one", "two", mark):
            await state(s, mark, "is", object, provenance=f"heard by {mark}")
            s.clock.advance(1)
        await state(s, "Alice", "knows", mark)
        await state(s, "Alice", "likes", "tea")
        await s.engine.graph.retract(WHO, "agent", (mark, "is"))
        would = await s.engine.graph.preview_erase(WHO, "agent", mark)
        assert [t.object for t in would] == ["one", "two", mark]
        assert (await s.engine.graph.erase(WHO, "agent", mark)).ids == [t.id for t in would]
        assert list(await s.engine.graph.history(WHO, "agent", mark)) == []
        assert [t.object for t in await s.engine.graph.preview_erase(WHO, "agent", mark, mentions=True)] == [mark]
        assert len((await s.engine.graph.erase(WHO, "agent", mark, mentions=True)).ids) == 1
        assert mark not in repr(await s.store.audit("local", limit=1000))
        assert await held(s, "Alice") == ["tea"]
        assert (await s.engine.ledger.verify(WHO)).first_bad is None

    @scenario("graph")
    async def test_what_was_derived_from_an_erased_memory_goes_with_it(self, s: Subject) -> None:
        mark = "xyzzy-4711"
        theirs = mint_id(START)  # a caller's own id may look like one of ours
        source = await s.remember(f"{mark} lives here", aliases=["note-1", theirs])
        kept = await s.remember("another")
        by_id = await state(s, "Alice", "lives_at", mark, provenance=source)
        by_alias = await state(s, "Bob", "lives_at", mark, provenance="note-1")
        by_their_id = await state(s, "the office", "lives_at", mark, provenance=theirs)
        other = await state(s, "the depot", "lives_at", "elsewhere", provenance=kept)
        await s.forget(source)
        assert await held(s, "Alice") == [mark]
        await s.forget(source, hard_delete=True)
        assert await held(s, "Alice") == await held(s, "Bob") == await held(s, "the office") == []
        assert await held(s, "the depot") == ["elsewhere"]
        entries = await s.store.audit("local", limit=1000)
        assert mark not in repr(entries)
        assert all(gone.id in repr(entries[-1]) for gone in (by_id, by_alias, by_their_id))
        assert other.id not in repr(entries[-1])
        assert (await s.engine.ledger.verify(WHO)).first_bad is None

    @scenario("graph")
    async def test_statements_of_work_that_raises_are_gone(self, s: Subject) -> None:
        made = await state(s, "Alice", "knows", "Bob")

        def work(tx: Transaction) -> None:
            tx.put_triple(Triple("another", "agent", "Alice", "likes", "tea", tx.now))
            tx.erase_triple(made.id)
            assert tx.triple(made.id) is None
            raise KeyError("on purpose")

        async def fails() -> None:
            with pytest.raises(KeyError):
                await s.store.transact("local", work)

        await fails()
        await asyncio.gather(fails(), state(s, "Alice", "sees", "Oslo"), fails())
        assert await held(s, "Alice") == ["Bob", "Oslo"]

    def test_statements_are_there_after_reopening(self, tmp_path: Path) -> None:
        if not self.durable:
            pytest.skip("this store is gone with its process")
        clock = FakeClock()
        with self.opened(tmp_path, clock=clock) as (s, run):
            run(state(s, "Alice", "knows", "Bob", confidence=0.25, provenance="x"))
            kept = run(s.engine.graph.history(WHO, "agent", "Alice"))
        with self.opened(tmp_path, clock=clock) as (s, run):
            assert run(s.engine.graph.history(WHO, "agent", "Alice")) == kept
            assert run(held(s, "Alice")) == ["Bob"]


class LinkScenarios(Contract):
    @scenario("graph")
    async def test_memories_are_tied_by_what_they_refer_to_and_replace(self, s: Subject) -> None:
        old = await s.remember("the first plan", aliases=["plan-1"])
        new = await s.remember("the second plan", supersedes=[old])
        note = await s.remember("about the plan", metadata={"references": ["plan-1", "nowhere", 7]})
        last = await s.remember("about the note", metadata={"references": note})
        assert await near(s, old) == {note: 1, new: 1}
        assert await near(s, note) == {old: 1, last: 1}
        assert await near(s, last, 2) == {note: 1, old: 2}
        assert await near(s, last, 3) == {note: 1, old: 2, new: 3}
        assert await near(s, "plan-1", 0) == {}
        await s.update(note, metadata={"references": [new]})
        assert await near(s, note) == {new: 1, last: 1}
        assert await near(s, old) == {new: 1}

    @scenario("graph")
    async def test_memories_are_tied_by_what_they_are_about(self, s: Subject) -> None:
        names = ("Alice", "ALICE", " alice ")
        alice = [await s.remember(f"Alice {i}", entity_name=name) for i, name in enumerate(names)]
        acme, oslo = await s.remember("a firm", entity_name="Acme"), await s.remember("a town", entity_name="Oslo")
        assert await near(s, alice[0], 3) == {alice[2]: 1, alice[1]: 1}
        await state(s, "acme", "employs", "alice")
        assert await near(s, alice[0]) == {alice[2]: 1, alice[1]: 1, acme: 1}
        assert set(await near(s, acme)) == set(alice)
        await state(s, "Acme", "located_in", "Norway")
        await state(s, "Oslo", "located_in", "NORWAY")
        assert await near(s, acme, 2) == {**dict.fromkeys(alice, 1), oslo: 2}
        assert (await near(s, alice[1], 3))[oslo] == 3
        assert oslo not in await near(s, alice[1], 2)
        await s.engine.graph.retract(WHO, "agent", ("acme", "employs"))
        assert acme not in await near(s, alice[0], 3)

    @scenario("graph")
    async def test_what_cannot_be_read_is_neither_named_nor_walked_through(self, s: Subject) -> None:
        start = await s.remember("start", entity_name="Thing")
        middle = await s.remember("middle", metadata={"references": [start]}, expires_at=s.clock() + DAY_MS)
        end = await s.remember("end", metadata={"references": [middle]})
        foreign = await s.remember("foreign", "neighbour", entity_name="Thing", metadata={"references": [start]})
        draft = Draft("agent", "semantic", "pending", entity_name="Thing", metadata={"references": [start]})
        staged = await s.engine.remember(WHO, draft, approval={"content": "x"})
        await s.engine.remember(Principal(tenant="other"), Draft("agent", "semantic", "x", entity_name="Thing"))
        await state(s, "Thing", "is", "Other", "neighbour")
        assert await near(s, start, 3) == {middle: 1, end: 2}
        assert await near(s, foreign, 3, "neighbour") == {}
        assert staged.review_id is not None
        await s.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice"))
        assert (await near(s, start))[staged.id] == 1
        await s.forget(staged.id)
        s.clock.advance(DAY_MS)
        assert await near(s, start, 3) == {}
        assert await near(s, end, 3) == {}
        gone = await s.remember("gone", metadata={"references": [end]})
        assert await near(s, end) == {gone: 1}
        await s.forget(gone, hard_delete=True)
        assert await near(s, end) == {}
        s.clock.advance(DAY_MS)
        await s.expire("archive", older_than_days=1)
        assert (await s.get(start)).status == "archived"
        assert start not in await near(s, await s.remember("again", entity_name="Thing"))

    @scenario("graph")
    async def test_recall_raises_what_is_tied_and_names_it(self, s: Subject) -> None:
        far = await s.remember("nothing in common", entity_name="Kiln")
        tied = await s.remember("the glaze recipe of the kiln", entity_name="kiln")
        await s.remember("the glaze recipe of the oven")
        also = await s.remember("a glaze recipe", metadata={"references": [tied]})

        async def found(hops: int, **more: Any) -> dict[str, Any]:
            hits = (await s.engine.recall(WHO, Query(("agent",), "glaze recipe", hops=hops, **more))).hits
            return {hit.memory.id: hit for hit in hits}

        plain, raised = await found(0), await found(1)
        assert set(plain) == set(raised)
        assert all(hit.supporting == [] for hit in plain.values())
        for id, hit in raised.items():
            factor = 1.05 if id in (tied, also, far) else 1.0
            assert abs(hit.score - plain[id].score * factor) < 1e-12
        assert raised[tied].supporting == [also, far]
        assert raised[also].supporting == [tied]
        assert (await found(2))[also].supporting == [tied, far]
        only = await found(2, where=parse({"id": [tied, also]}))
        assert only[also].supporting == [tied]

    @scenario("graph")
    async def test_hops_in_the_past_are_those_of_the_past(self, s: Subject) -> None:
        a, b = await s.remember("a glaze recipe", entity_name="A"), await s.remember("b glaze recipe", entity_name="B")
        await state(s, "A", "is", "B")
        before = s.clock()
        s.clock.advance(DAY_MS)
        await s.update(b, entity_name="C", metadata={"references": []})
        await s.engine.graph.retract(WHO, "agent", ("A", "is"))
        c = await s.remember("c glaze recipe", metadata={"references": [a]})

        async def found(as_of: int | None) -> dict[str, list[str]]:
            query = Query(("agent",), "glaze recipe", hops=1, as_of=as_of)
            return {hit.memory.id: hit.supporting for hit in (await s.engine.recall(WHO, query)).hits}

        assert await found(before) == {a: [b], b: [a]}
        assert await found(None) == await found(s.clock()) == {a: [c], b: [], c: [a]}

    @scenario("graph")
    async def test_a_hub_is_cut_but_what_was_found_is_not(self, s: Subject) -> None:
        first = await s.remember("the zymurgy note", entity_name="Hub")
        crowd = await s.remember_all(
            [Draft("agent", "semantic", f"filler {i}", entity_name="Hub") for i in range(FANOUT + 60)]
        )
        last = await s.remember("another zymurgy note", entity_name="hub")
        assert set(await near(s, first)) == {last, *crowd[-FANOUT + 1 :]}
        found = await s.engine.recall(WHO, Query(("agent",), "zymurgy note", k=2, hops=1, explain=True))
        assert {hit.memory.id for hit in found.hits} == {first, last}
        assert all(hit.explain is not None and hit.explain["hop"] == 1 for hit in found.hits)
        assert first in next(hit.supporting for hit in found.hits if hit.memory.id == last)

    @scenario("graph")
    async def test_what_was_found_is_tied_over_a_thing_that_joins_many(self, s: Subject) -> None:
        ids = [await s.remember(f"zymurgy note {i}", entity_name=f"Person {i}") for i in range(2)]
        for i in range(FANOUT + 10):
            await state(s, f"person {i}", "lives_in", "Town")
            s.clock.advance(1)
        found = await s.engine.recall(WHO, Query(("agent",), "zymurgy note", hops=2, explain=True))
        assert {hit.memory.id: hit.supporting for hit in found.hits} == {ids[0]: [ids[1]], ids[1]: [ids[0]]}
        assert all(hit.explain is not None and hit.explain["hop"] == 2 for hit in found.hits)
