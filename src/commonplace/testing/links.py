"""What ties memories to each other, how far it is followed, and what is never seen on the way."""

from __future__ import annotations

from typing import Any

from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import Draft, Query
from commonplace.stores.traversal import FANOUT
from commonplace.testing.graph import state
from commonplace.testing.subject import DAY_MS, WHO, Contract, Subject, scenario
from commonplace.wire.filters import parse
from commonplace.wire.record import Principal


async def near(s: Subject, id: str, hops: int = 1, agent: str = "agent") -> dict[str, int]:
    return await s.engine.graph.neighbours(WHO, agent, id, hops)


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
        alice = [
            await s.remember(f"Alice {i}", entity_name=name) for i, name in enumerate(("Alice", "ALICE", " alice "))
        ]
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
