"""What is stated about things: one line in time for each subject and predicate, and nothing left once erased."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commonplace.engine import Triple
from commonplace.stores.base import Transaction
from commonplace.stores.walking import PATH_FANOUT
from commonplace.testing.subject import DAY_MS, START, WHO, Contract, FakeClock, Subject, drives
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Conflict, NotFound
from commonplace.wire.record import Principal

#: How far the timeline of the random test reaches, in ms.
SPAN = 12
Step = tuple[str, int, int]  # what to do, the instant it is about, the instant at which it is done


async def state(s: Subject, subject: str, predicate: str, object: str, agent: str = "agent", **more: Any) -> Triple:
    return (
        await s.engine.graph.assert_fact(WHO, agent, subject=subject, predicate=predicate, object=object, **more)
    ).triple


async def held(s: Subject, subject: str, agent: str = "agent", **options: Any) -> list[str]:
    return [t.object for t in await s.engine.graph.query(WHO, agent, subject, **options)]


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
    @drives
    async def test_a_new_statement_ends_the_one_before(self, s: Subject) -> None:
        self.needs(s, "graph")
        first = await state(s, "auth-service", "version", "2.4.0", confidence=0.5, provenance="log")
        s.clock.advance(DAY_MS)
        second = await state(s, "auth-service", "version", "2.4.1")
        await state(s, "auth-service", "owner", "Alice")
        assert await held(s, "auth-service") == ["Alice", "2.4.1"]
        assert await held(s, "auth-service", predicate="version") == ["2.4.1"]
        assert await held(s, "auth-service", as_of=s.clock() - 1) == ["2.4.0"]
        assert await held(s, "auth-service", as_of=first.valid_from - 1) == []
        history = await s.engine.graph.history(WHO, "agent", "auth-service", "version")
        assert [(t.id, t.object, t.valid_from, t.valid_to) for t in history] == [
            (first.id, "2.4.0", START, s.clock()), (second.id, "2.4.1", s.clock(), None)]  # fmt: skip
        assert (history[0].confidence, history[0].provenance, history[0].asserted_by) == (0.5, "log", "local")
        assert await s.engine.graph.counts(WHO, "agent") == {"triples": 3, "active": 2, "subjects": 1}

    @drives
    async def test_a_statement_about_the_past_leaves_what_came_after_alone(self, s: Subject) -> None:
        self.needs(s, "graph")
        await state(s, "Alice", "lives_in", "Rome", valid_from=START - 10 * DAY_MS)
        await state(s, "Alice", "lives_in", "Oslo", valid_from=START - 2 * DAY_MS)
        between = await state(s, "Alice", "lives_in", "Bern", valid_from=START - 5 * DAY_MS)
        assert (between.valid_from, between.valid_to) == (START - 5 * DAY_MS, START - 2 * DAY_MS)
        places = [await held(s, "Alice", as_of=START - days * DAY_MS) for days in (11, 10, 6, 5, 3, 2, 0)]
        assert places == [[], ["Rome"], ["Rome"], ["Bern"], ["Bern"], ["Oslo"], ["Oslo"]]

    @drives
    async def test_of_two_at_the_same_instant_the_later_stands(self, s: Subject) -> None:
        self.needs(s, "graph")
        first = await state(s, "Alice", "likes", "tea")
        await state(s, "Alice", "likes", "coffee")
        assert await held(s, "Alice") == await held(s, "Alice", as_of=s.clock()) == ["coffee"]
        history = await s.engine.graph.history(WHO, "agent", "Alice")
        assert [(t.object, t.valid_to) for t in history] == [("tea", first.valid_from), ("coffee", None)]

    @drives
    async def test_what_was_just_stated_holds_though_the_clock_was_set_back(self, s: Subject) -> None:
        self.needs(s, "graph")
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
        with asyncio.Runner() as runner:
            clock = FakeClock()
            s = runner.run(self.subject(tmp_path, clock))
            self.needs(s, "graph")
            count = 0

            @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
            @given(st.lists(steps, max_size=12))
            def agrees(done: list[Step]) -> None:
                nonlocal count
                count += 1
                base = START + count * 1000  # commit times never go back, so each example has a stretch of its own
                runner.run(self._told(s, base, f"thing {count}", sorted(done, key=lambda step: step[2])))

            try:
                agrees()
            finally:
                runner.run(s.engine.close())

    async def _told(self, s: Subject, base: int, subject: str, steps: list[Step]) -> None:
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
            told = await held(s, subject, as_of=base + instant)
            assert told == ([] if holding is None else [str(holding)]), (instant, steps)
        line = [t for t in await s.engine.graph.history(WHO, "agent", subject) if not t.empty]
        assert all(a.valid_to is not None and a.valid_to <= b.valid_from for a, b in pairwise(line))

    @drives
    async def test_of_many_at_once_exactly_one_is_active(self, s: Subject) -> None:
        self.needs(s, "graph")
        await asyncio.gather(*(state(s, "Alice", "is_at", f"place {i}") for i in range(100)))
        assert len(await held(s, "Alice")) == 1
        history = await s.engine.graph.history(WHO, "agent", "Alice")
        assert len(history) == 100
        assert sum(t.valid_to is None for t in history) == 1

    @drives
    async def test_statements_have_the_same_walls(self, s: Subject) -> None:
        self.needs(s, "graph")
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
        assert await held(s, "Alice") == ["Bob"]

    @drives
    async def test_what_is_retracted_stays_in_history(self, s: Subject) -> None:
        self.needs(s, "graph")
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
        await state(s, "Alice", "knows", "Carol")
        assert [t.object for t in await s.engine.graph.history(WHO, "agent", "Alice", "knows")] == ["Bob", "Carol"]

    @drives
    async def test_the_shortest_way_in_either_direction(self, s: Subject) -> None:
        self.needs(s, "graph")
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

    @drives
    async def test_a_way_over_a_hub_is_found(self, s: Subject) -> None:
        self.needs(s, "graph")
        for i in range(PATH_FANOUT + 20):
            await state(s, f"person {i}", "lives_in", "Town")
            s.clock.advance(1)
        way = await s.engine.graph.path(WHO, "agent", "Person 0", "person 1", max_hops=2)
        assert [t.subject for t in way] == ["person 0", "person 1"]
        assert len(await s.engine.graph.path(WHO, "agent", "Town", "person 0")) == 1

    @drives
    async def test_erasing_a_subject_leaves_nothing_of_it(self, s: Subject) -> None:
        self.needs(s, "graph")
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

    @drives
    async def test_what_was_derived_from_an_erased_memory_goes_with_it(self, s: Subject) -> None:
        self.needs(s, "graph")
        mark = "xyzzy-4711"
        theirs = mint_id(START)  # a caller's own id may look like one of ours
        source = await s.remember(f"{mark} lives here", aliases=["note-1", theirs])
        kept = await s.remember("another")
        by_id = await state(s, "Alice", "lives_at", mark, provenance=source)
        by_alias = await state(s, "Bob", "lives_at", mark, provenance="note-1")
        by_their_id = await state(s, "Dan", "lives_at", mark, provenance=theirs)
        other = await state(s, "Carol", "lives_at", "elsewhere", provenance=kept)
        await s.forget(source)
        assert await held(s, "Alice") == [mark]
        await s.forget(source, hard_delete=True)
        assert await held(s, "Alice") == await held(s, "Bob") == await held(s, "Dan") == []
        assert await held(s, "Carol") == ["elsewhere"]
        entries = await s.store.audit("local", limit=1000)
        assert mark not in repr(entries)
        assert all(gone.id in repr(entries[-1]) for gone in (by_id, by_alias, by_their_id))
        assert other.id not in repr(entries[-1])
        assert (await s.engine.ledger.verify(WHO)).first_bad is None

    @drives
    async def test_statements_of_work_that_raises_are_gone(self, s: Subject) -> None:
        self.needs(s, "graph")
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

        async def both() -> None:
            clock = FakeClock()
            subject = await self.subject(tmp_path, clock)
            await state(subject, "Alice", "knows", "Bob", confidence=0.25, provenance="x")
            kept = await subject.engine.graph.history(WHO, "agent", "Alice")
            await subject.engine.close()
            again = await self.subject(tmp_path, clock)
            assert await again.engine.graph.history(WHO, "agent", "Alice") == kept
            assert await held(again, "Alice") == ["Bob"]
            await again.engine.close()

        asyncio.run(both())
