"""What stores beside the primary may do to an answer, and what they may not."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from jumping_loop import JumpingLoop
from replica_house import AGENT, Flaky, House, house, run

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Forget, Query, Update
from commonplace.engine.peers import asking
from commonplace.engine.recall import replication_lag
from commonplace.engine.recall.fan_out import rank
from commonplace.stores.base import Candidate, Entry
from commonplace.testing.subject import DAY_MS, WHO, FakeClock
from commonplace.wire.filters import parse
from commonplace.wire.record import Memory, Principal


def _candidate(id: str, content: str = "words", **scores: Any) -> Candidate:
    return Candidate(Memory(id, "local", AGENT, "semantic", content, created_at=1), **scores)


# one store's list


def test_a_list_without_scores_keeps_its_order() -> None:
    assert [id for id, _ in rank([_candidate(x) for x in "cab"], 10)] == ["c", "a", "b"]


def test_two_legs_are_one_list_by_their_ranks() -> None:
    found = [
        _candidate("a", dense=0.9, keyword=0.0),
        _candidate("b", dense=0.8, keyword=5.0),
        _candidate("c", dense=0.1),
    ]
    assert [id for id, _ in rank(found, 10)] == ["b", "a", "c"]


def test_nothing_is_twice_in_a_list_and_no_score_shouts() -> None:
    found = [
        _candidate("a", score=math.inf),
        _candidate("a", score=5.0),
        _candidate("b", score=-3.0),
        _candidate("c", score=math.nan),
    ]
    ranked = rank(found, 10)
    assert [id for id, _ in ranked] == ["a", "b", "c"]
    assert all(0.0 <= score <= 1.0 for _, score in ranked)


# the whole answer


async def ask(h: House, text: str = "tea", **query: Any) -> Any:
    where = parse(query.pop("filter", None))
    return await h.engine.recall(query.pop("who", WHO), Query((AGENT,), text, where=where, **query))


@run
async def test_what_every_store_has_is_answered_once() -> None:
    async with house(copies=2) as h:
        ids = {await h.remember(f"tea number {n}") for n in range(5)}
        found = await ask(h, k=10, explain=True)
        assert found.stores_queried == [h.primary.name, "copy", "copy1"]
        assert len(found.hits) == len({hit.memory.id for hit in found.hits}) == 5
        assert {hit.memory.id for hit in found.hits} == ids
        assert set(found.hits[0].explain["stores"]) == {h.primary.name, "copy", "copy1"}
        assert found.errors == {}


@pytest.mark.parametrize("fusion", ["rrf", "max", "weighted"])
@run
async def test_each_fusion_gives_every_memory_once(fusion: str) -> None:
    async with house(copies=2) as h:
        await h.remember("green tea")
        await h.remember("black coffee")
        found = await ask(h, "green tea", fusion=fusion)
        assert found.hits[0].memory.content == "green tea"
        assert len(found.hits) == 2


@pytest.mark.parametrize(("fusion", "first"), [("weighted", "heavy"), ("max", "light")])
@run
async def test_scores_count_by_their_stores_weight_where_fusion_is_weighted(fusion: str, first: str) -> None:
    clock = FakeClock()
    stores = {name: Rogue(clock, name) for name in ("light", "heavy")}
    async with house(clock=clock, stores=list(stores.values())) as h:
        h.outbox.replicas.named("heavy").weight = 50.0
        ids = {name: await h.remember(f"tea that the {name} one names") for name in stores}
        for name, score in (("light", 1.0), ("heavy", 0.9)):
            stores[name].lies = [_candidate(ids[name], f"tea that the {name} one names", score=score)]
        found = await ask(h, fusion=fusion, min_score=0.0)
        assert found.hits[0].memory.id == ids[first]


@run
async def test_a_quorum_leaves_out_what_too_few_stores_found() -> None:
    async with house(copies=2) as h:
        both = await h.remember("tea for two")
        one = await h.remember("tea for one")
        await h.outbox.join()
        for copy in h.copies:
            await copy.delete("local", [one])  # lost there, and not for us to know of
        assert {hit.memory.content for hit in (await ask(h)).hits} == {"tea for two", "tea for one"}
        assert [hit.memory.id for hit in (await ask(h, quorum=2)).hits] == [both]
        assert [hit.memory.id for hit in (await ask(h, quorum=3)).hits] == [both]
        assert (await ask(h, quorum=4)).hits == []


@pytest.mark.parametrize("quorum", [1, 2])
@pytest.mark.parametrize("fusion", ["rrf", "max", "weighted"])
@run
async def test_hops_raise_what_several_stores_found_once_and_by_nothing_that_a_quorum_left_out(
    fusion: str, quorum: int
) -> None:
    async with house(copies=2) as h:
        one = await h.remember("a glaze recipe")
        other = await h.remember("another glaze recipe", metadata={"references": [one]})
        tied = await h.remember("one more glaze recipe")
        lost = await h.remember("the last glaze recipe", metadata={"references": [tied]})
        await h.settled()
        for copy in h.copies:
            await copy.delete("local", [lost])  # lost there, and not for us to know of
        scores = []
        for hops in (0, 1):
            found = await ask(h, "glaze recipe", fusion=fusion, quorum=quorum, hops=hops, k=4, min_score=0.0)
            scores.append({hit.memory.id: hit.score for hit in found.hits})
            assert list(scores[-1].values()) == sorted(scores[-1].values(), reverse=True)
        plain, raised = scores
        by = {one: 1.05, other: 1.05, **({tied: 1.05, lost: 1.05} if quorum == 1 else {tied: 1.0})}
        assert raised == pytest.approx({id: score * by[id] for id, score in plain.items()})
        assert raised.keys() == by.keys()


@run
async def test_a_quorum_counts_also_where_a_filter_asks_of_what_copies_do_not_have() -> None:
    async with house(copies=2) as h:
        known = await h.remember("tea for two")
        await h.remember("tea for one")
        await h.outbox.join()
        await h.primary.transact("local", lambda tx: tx.count_recalls([known], h.clock()))
        found = await ask(h, quorum=3, filter={"recalls": {"$gte": 1}})
        assert [hit.memory.id for hit in found.hits] == [known]


@run
async def test_a_quorum_counts_also_where_a_filter_asks_of_what_copies_have_otherwise() -> None:
    """A copy has the time when it arrived, the versions that did, and no aliases, which two of them may share."""
    async with house() as h:
        h.copies[0].down = "gone"
        known = await h.remember("tea for two", aliases=["TEA-2"])
        await h.engine.update(WHO, Update(AGENT, known, tags=["x"]))
        written = h.clock()
        await h.settled()
        h.copies[0].down = None
        h.clock.advance(600_000)
        await h.outbox.run_due()
        assert await h.equal()
        for filter in (
            {"updated_at": written},
            {"updated_at": {"$lte": written}},
            {"updated_at": {"$gte": written}},
            {"version": 2},
            {"aliases": "TEA-2"},
            {"aliases": {"$exists": True}},
        ):
            found = await ask(h, quorum=2, filter=filter)
            assert [hit.memory.id for hit in found.hits] == [known], filter
        assert (await ask(h, quorum=2, filter={"updated_at": {"$gt": written}})).hits == []


class Rogue(Flaky):
    """A store that says what it likes."""

    lies: Sequence[Candidate] = ()

    async def search(self, search: Any) -> Any:
        return list(self.lies)


@run
async def test_nothing_is_invented_altered_or_shown_to_others() -> None:
    clock = FakeClock()
    rogue = Rogue(clock, "rogue")
    async with house(clock=clock, stores=[rogue]) as h:
        mine = await h.remember("Alice drinks tea")
        neighbours = (await h.engine.remember(WHO, Draft("neighbour", "semantic", "a neighbour's secret tea"))).id
        foreign = Principal(tenant="elsewhere")
        other = (await h.engine.remember(foreign, Draft(AGENT, "semantic", "another tenant's tea"))).id
        pending = (await h.engine.remember(WHO, Draft(AGENT, "semantic", "pending tea"), approval={"x": 1})).id
        gone = await h.remember("forgotten tea")
        await h.engine.forget(WHO, Forget(AGENT, [gone]))
        brief = await h.remember("brief tea", expires_at=clock() + 1000)
        clock.advance(DAY_MS)
        rogue.lies = [
            _candidate("0199-invented", "an invented tea", score=99.0),
            _candidate(neighbours, "a neighbour's secret tea", score=98.0),
            _candidate(other, "another tenant's tea", score=97.0),
            _candidate(pending, "pending tea", score=96.0),
            _candidate(gone, "forgotten tea", score=95.0),
            _candidate(brief, "brief tea", score=94.0),
            _candidate(mine, "Alice drinks poison", score=93.0),
        ]  # fmt: skip
        for fusion in ("rrf", "max", "weighted"):
            found = await ask(h, k=50, fusion=fusion, explain=True, min_score=0.0)
            assert [hit.memory.content for hit in found.hits] == ["Alice drinks tea"]
            assert "another text for 1 of the memories" in found.errors["rogue"]
            assert "memory.resync('rogue')" in found.errors["rogue"]
            assert found.explain["stores"]["rogue"] == {"found": 7, "unknown": 6, "behind": 0, "altered": 1}
        assert (await h.engine.stores.list(WHO))[1]["altered"] == 3
        theirs = await h.engine.stores.list(Principal(tenant="elsewhere", role="admin"))
        assert theirs[1]["altered"] == 0, "as what waits, it is each tenant's own"
        assert (await ask(h, quorum=2)).hits == []  # whose text it has altered it has not found
        rogue.lies = [_candidate(mine, "Alice drinks tea")]
        assert len((await ask(h, quorum=2)).hits) == 1


@run
async def test_filters_hold_for_what_a_replica_names() -> None:
    clock = FakeClock()
    rogue = Rogue(clock, "rogue")
    async with house(clock=clock, stores=[rogue]) as h:
        mine = await h.remember("tea", user_id="alice")
        bobs = await h.remember("tea", user_id="bob")
        rogue.lies = [_candidate(bobs, "tea"), _candidate(mine, "tea")]
        found = await ask(h, filter={"user_id": "alice"})
        assert [hit.memory.id for hit in found.hits] == [mine]


@run
async def test_what_only_a_replica_found_is_the_primarys_row() -> None:
    clock = FakeClock()
    rogue = Rogue(clock, "rogue")
    async with house(clock=clock, stores=[rogue]) as h:
        for n in range(60):
            await h.remember(f"tea number {n} with lemon")
        far = await h.remember("an unrelated remark", metadata={"n": 1})
        rogue.lies = [_candidate(far, "an unrelated remark")]
        found = await ask(h, "tea with lemon", k=3, min_score=0.0, explain=True)
        hit = next(hit for hit in found.hits if hit.memory.id == far)
        assert (hit.source_store, hit.memory.metadata) == ("rogue", {"n": 1})


@run
async def test_of_each_list_four_times_as_many_count_as_are_wanted() -> None:
    clock = FakeClock()
    rogue = Rogue(clock, "rogue")
    async with house(clock=clock, stores=[rogue]) as h:
        mine = await h.remember("Alice drinks tea")
        others = [_candidate(await h.remember(f"remark number {n}"), f"remark number {n}") for n in range(4)]
        h.outbox.replicas.named("rogue").weight = 0.0  # the order is the primary's
        for place, counts in ((3, True), (4, False)):
            rogue.lies = [*others[:place], _candidate(mine, "Alice drinks tea")]
            found = await ask(h, "Alice drinks tea", k=1, min_score=0.0, fusion="weighted", explain=True)
            assert found.hits[0].memory.id == mine
            assert ("rogue" in found.hits[0].explain["stores"]) is counts


async def crowded(h: House) -> tuple[list[str], list[Candidate]]:
    """Two memories that answer, and what stands next to them in every honest list."""
    gold = [await h.remember(f"Alice drinks tea with lemon {n}") for n in range(2)]
    near = [await h.remember(f"Alice drinks tea, and a remark on it {n}") for n in range(8)]
    await h.outbox.join()
    return gold, [_candidate(id, f"Alice drinks tea, and a remark on it {n}") for n, id in enumerate(near)]


@pytest.mark.parametrize("rogues", [1, 2])
@pytest.mark.parametrize(("recall", "holds"), [("fan_out", False), ("rerank", True)])
@run
async def test_only_where_the_primary_ranks_can_nobody_push_what_is_next_best(
    recall: str, holds: bool, rogues: int
) -> None:
    clock = FakeClock()
    stores = [Rogue(clock, f"rogue{n}") if n < rogues else Flaky(clock, f"copy{n}") for n in range(2)]
    async with house(clock=clock, stores=stores) as h:
        h.engine.settings.routing = replace(h.engine.settings.routing, recall=recall)
        gold, near = await crowded(h)
        for rogue in stores[:rogues]:
            rogue.lies = near
        found = await ask(h, "Alice drinks tea with lemon", k=5, min_score=0.0)
        assert len(found.hits) == 5
        assert ({hit.memory.id for hit in found.hits[:2]} == set(gold)) is holds


@run
async def test_what_only_a_replica_found_is_ranked_by_the_primary() -> None:
    clock = FakeClock()
    rogue = Rogue(clock, "rogue")
    async with house(clock=clock, stores=[rogue]) as h:
        h.engine.settings.routing = replace(h.engine.settings.routing, recall="rerank")
        near = [await h.remember(f"tea number {n} with lemon") for n in range(60)]
        far = await h.remember("an unrelated remark")
        rogue.lies = [_candidate(far, "an unrelated remark"), _candidate(near[-1], "tea number 59 with lemon")]
        found = await ask(h, "tea with lemon", k=100, min_score=0.0)
        assert found.hits[-1].memory.id == far
        assert found.stores_queried == [h.primary.name, "rogue"]
        agreed = await ask(h, "tea with lemon", k=100, min_score=0.0, quorum=2)
        assert near[-1] in {hit.memory.id for hit in agreed.hits} <= {near[-1], far}


@pytest.mark.parametrize("most_read", [200, 1], ids=["", "more waits than is read"])
@run
async def test_an_older_text_that_waits_to_be_told_is_no_lie(most_read: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replication_lag, "_MOST_READ", most_read)
    async with house() as h:
        id = await h.remember("tea at four")
        await h.outbox.join()
        h.copies[0].down = "a moment"
        await h.remember("something else that waits")
        await h.engine.update_with(WHO, AGENT, id, lambda m: replace(m, content="tea at five"))
        h.copies[0].down = None
        h.clock.advance(1000)  # it was not changed while somebody asked
        found = await ask(h, explain=True)
        assert found.hits[0].memory.content == "tea at five"
        assert found.errors == {}
        assert found.explain["stores"]["copy"]["behind"] == 1
        assert not h.outbox.replicas.named("copy").altered


@pytest.mark.parametrize("hanging", [1, 2])
def test_a_store_that_hangs_delays_an_answer_by_no_more_than_its_timeout(hanging: int) -> None:
    async def work() -> None:
        async with house(copies=3, timeout=5.0) as h:
            await h.remember("tea")
            for copy in h.copies[:hanging]:
                copy.hangs = True
            loop = asyncio.get_running_loop()
            before = loop.time()
            found = await ask(h)
            assert loop.time() - before == pytest.approx(5.0)
            assert [hit.memory.content for hit in found.hits] == ["tea"]
            assert found.errors == {copy.name: "it did not answer within 5 s" for copy in h.copies[:hanging]}
            assert found.stores_queried == [h.primary.name, "copy", "copy1", "copy2"]

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@pytest.mark.parametrize("agents", [1, 6], ids=["", "of more than its breaker counts"])
@pytest.mark.parametrize("way", ["counted", "asked by a peer"])
def test_a_store_that_hangs_is_asked_once_for_one_question_however_far_it_looks(
    way: str, agents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting what is relevant enough searches ever wider, and what a peer is told may be counted twice."""
    monkeypatch.setattr(asking, "least_relevance", lambda hits: 0.001)
    everyone = (AGENT, *(f"agent{n}" for n in range(agents - 1)))

    async def work() -> None:
        async with house(timeout=5.0, embedder=None) as h:
            for n in range(100):
                await h.remember(f"tea number {n}")
            await h.settled()
            h.copies[0].hangs = True
            loop, calls = asyncio.get_running_loop(), h.copies[0].calls
            before = loop.time()
            if way == "counted":
                found = await h.engine.search(WHO, Query(everyone, "tea"), limit=2, at_least=0.001)
                assert "copy: it did not answer within 5 s" in (found.note or "")
            else:
                found = await asking.ask(h.engine._core, WHO, asking.PeerQuery(everyone, "tea"), 2)
            assert found.total == 100
            assert loop.time() - before < 10
            assert h.copies[0].calls == calls + 1
            await ask(h)
            assert h.copies[0].calls == calls + 2, "another question asks it again"

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


def test_many_who_ask_at_once_when_it_hangs_make_its_pause_no_longer() -> None:
    """With a quorum nothing at all is found as long as it lasts."""

    async def work() -> None:
        async with house(timeout=5.0) as h:
            await h.remember("tea")
            await h.settled()
            h.copies[0].hangs = True
            await asyncio.gather(*(ask(h) for _ in range(20)))
            assert "not asked for 5 s more: it failed 20 times" in (await ask(h)).errors["copy"]
            calls = h.copies[0].calls
            h.clock.advance(5_000)
            await ask(h)
            assert h.copies[0].calls == calls + 1

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


@pytest.mark.parametrize(("agents", "counts"), [(4, True), (5, False), (100, False)])
@run
async def test_only_who_is_slow_for_a_few_agents_is_left_alone(agents: int, counts: bool) -> None:
    """Many products are asked agent after agent: a search over all of them must not keep everyone's writes away."""
    async with house(timeout=0.05) as h:
        await h.remember("tea")
        h.copies[0].hangs = True
        everyone = (AGENT, *(f"agent{n}" for n in range(agents - 1)))
        for _ in range(3):
            found = await h.engine.recall(WHO, Query(everyone, "tea"))
            assert [hit.memory.content for hit in found.hits] == ["tea"]
            within = "it did not answer within 0.05 s"
            assert found.errors["copy"] == (
                within
                if counts
                else f"{within} for all of {agents} agents, so what it would find is missing; ask of fewer"
            )
        breaker = h.outbox.replicas.named("copy").search_breaker
        assert (breaker.failures, breaker.is_open) == ((3, True) if counts else (0, False))


@run
async def test_a_store_that_fails_is_left_alone_however_many_agents_are_asked_of() -> None:
    async with house() as h:
        await h.remember("tea")
        h.copies[0].down = "gone"
        everyone = (AGENT, *(f"agent{n}" for n in range(20)))
        for _ in range(3):
            assert (await h.engine.recall(WHO, Query(everyone, "tea"))).errors == {"copy": "gone"}
        assert h.outbox.replicas.named("copy").search_breaker.is_open
        assert "not asked for" in (await h.engine.recall(WHO, Query(everyone, "tea"))).errors["copy"]


@run
async def test_a_store_that_is_left_alone_was_not_asked_and_is_named_as_failing() -> None:
    async with house(copies=2) as h:
        await h.remember("tea")
        await h.settled()
        h.copies[0].down = "gone"
        for _ in range(3):
            assert (await ask(h)).stores_queried == [h.primary.name, "copy", "copy1"]
        calls = h.copies[0].calls
        found = await ask(h)
        assert (found.stores_queried, h.copies[0].calls) == ([h.primary.name, "copy1"], calls)
        assert [*found.errors] == ["copy"]
        assert "not asked for 5 s more" in found.errors["copy"]


@pytest.mark.parametrize("agents", [1, 20])
@run
async def test_a_store_that_takes_no_deliveries_is_asked_nothing_for_however_many_agents(agents: int) -> None:
    async with house() as h:
        h.copies[0].down = "gone"
        for n in range(3):
            await h.remember(f"tea number {n}")
        await h.settled()
        calls = h.copies[0].calls
        everyone = (AGENT, *(f"agent{n}" for n in range(agents - 1)))
        found = await h.engine.recall(WHO, Query(everyone, "tea"))
        assert (len(found.hits), h.copies[0].calls) == (3, calls)
        assert "not asked for" in found.errors["copy"]


@pytest.mark.parametrize("type", ["emotional", ["emotional"], {"$in": ["emotional"]}])
@run
async def test_a_store_that_cannot_is_skipped_and_named(type: Any) -> None:
    clock = FakeClock()
    copy = Flaky(clock)
    copy.capabilities = copy.capabilities - {"emotional"}
    async with house(clock=clock, stores=[copy]) as h:
        await h.remember("glad of tea", type="emotional")
        calls = copy.calls
        found = await ask(h, filter={"type": type})
        assert [hit.memory.content for hit in found.hits] == ["glad of tea"]
        assert (found.stores_queried, copy.calls) == ([h.primary.name], calls)
        assert "copy was not asked: it does not keep emotional memories" in (found.note or "")
        then = await ask(h, as_of=clock())
        assert "copy was not asked: it has the present only" in (then.note or "")


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize(("embedder", "text"), [(None, "tea?!"), (HashingEmbedder(), "?!")])
@run
async def test_a_store_that_finds_by_meaning_only_is_skipped_where_the_question_has_no_vector(
    embedder: HashingEmbedder | None, text: str, words: bool
) -> None:
    clock = FakeClock()
    copy = Flaky(clock)
    copy.capabilities = copy.capabilities if words else copy.capabilities - {"fts"}
    async with house(clock=clock, stores=[copy], embedder=embedder) as h:
        await h.remember("tea?!")
        found = await ask(h, text)
        assert [hit.memory.content for hit in found.hits] == (["tea?!"] if embedder is None else [])
        assert found.stores_queried == [h.primary.name, *(["copy"] if words else [])]
        said = "copy was not asked: it finds by meaning only, and this question has no vector"
        assert (said in (found.note or "")) is not words


@run
async def test_the_primary_alone_answers_where_that_is_the_policy() -> None:
    async with house() as h:
        await h.remember("tea")
        h.engine.settings.routing = replace(h.engine.settings.routing, recall="primary_only")
        calls = h.copies[0].calls
        found = await ask(h)
        assert (found.stores_queried, h.copies[0].calls, len(found.hits)) == ([h.primary.name], calls, 1)


@pytest.mark.parametrize("others", ["answer", "have nothing", "fail"])
@run
async def test_that_the_primary_fails_is_an_error_whatever_others_say(others: str) -> None:
    async with house() as h:
        id = await h.remember("tea")
        await h.settled()
        h.copies[0].down = "gone" if others == "fail" else None
        if others == "have nothing":
            await h.copies[0].delete("local", [id])

        async def broken(search: Any) -> Any:
            from commonplace.wire.errors import Unavailable

            raise Unavailable("the disk is gone")

        h.primary.search = broken
        with pytest.raises(Exception, match="the disk is gone"):
            await ask(h)


@run
async def test_no_copy_is_left_of_what_is_forgotten_everywhere_at_once() -> None:
    async with house(copies=3) as h:
        id = await h.remember("a secret")
        await h.remember("no secret")
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        for copy in h.copies:
            assert await copy.get("local", [id]) == []
            assert await copy.contents() == {"no secret"}
        assert isinstance(Entry, type)


@run
async def test_each_store_is_asked_for_four_times_as_many_as_are_wanted() -> None:
    limits: list[int] = []

    class LimitCounter(Flaky):
        async def search(self, search: Any) -> Any:
            limits.append(search.limit)
            return await super().search(search)

    clock = FakeClock()
    async with house(clock=clock, stores=[LimitCounter(clock)]) as h:
        await h.remember("tea")
        await ask(h, k=3)
        assert limits == [12]


@run
async def test_who_names_thousands_takes_no_place_of_what_others_found() -> None:
    clock = FakeClock()
    flood, honest = Rogue(clock, "flood"), Rogue(clock, "honest")
    async with house(clock=clock, stores=[flood, honest]) as h:
        for n in range(60):
            await h.remember(f"tea number {n} with lemon")
        far = await h.remember("an unrelated remark")
        honest.lies = [_candidate(far, "an unrelated remark")]
        flood.lies = [_candidate(f"0000-{n:05d}", "a lie", score=1.0) for n in range(5000)]
        found = await ask(h, "tea with lemon", k=3, min_score=0.0, explain=True)
        assert far in {hit.memory.id for hit in found.hits}
        assert found.explain["stores"]["flood"] == {"found": 5000, "unknown": 24, "behind": 0, "altered": 0}


@run
async def test_a_quorum_of_more_than_answered_is_told() -> None:
    async with house(copies=2) as h:
        await h.remember("tea")
        assert len((await ask(h, quorum=3)).hits) == 1
        h.copies[0].down = "gone"
        found = await ask(h, quorum=3)
        assert (found.hits, found.errors) == ([], {"copy": "gone"})
        assert "quorum_k 3 leaves nothing, because only 2 stores answered; ask for at most 2" in (found.note or "")
        assert len((await ask(h, quorum=2)).hits) == 1


@run
async def test_an_altered_text_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Not every protocol has a place for it in its answer."""
    clock = FakeClock()
    rogue = Rogue(clock, "rogue")
    async with house(clock=clock, stores=[rogue]) as h:
        mine = await h.remember("Alice drinks tea")
        await h.settled()
        rogue.lies = [_candidate(mine, "Alice drinks poison")]
        for _ in range(3):
            await ask(h)
    said = [each.getMessage() for each in caplog.records if "another text" in each.getMessage()]
    assert [each.partition(";")[0] for each in said] == ["rogue has another text for memories than the first store"]


@run
async def test_one_place_for_a_note_has_the_errors_too() -> None:
    async with house() as h:
        await h.remember("tea")
        h.copies[0].down = "gone"
        found = await h.engine.search(WHO, Query((AGENT,), "tea"), limit=3)
        assert "copy: gone" in (found.note or "")


@run
async def test_a_look_at_a_store_whose_search_failed_asks_the_same_agents_and_not_the_question() -> None:
    """It is kept in the process as long as the store fails, and may have been the reason."""

    class Picky(Flaky):
        asked: list[Any]

        async def search(self, search: Any) -> Any:
            self.asked.append(search)
            if "peanuts" in search.text:
                raise ValueError("peanuts")
            return await super().search(search)

    clock = FakeClock()
    copy = Picky(clock)
    copy.asked = []
    async with house(clock=clock, stores=[copy]) as h:
        await h.remember("Alice is allergic to peanuts")
        assert "ValueError" in (await ask(h, "who may not eat peanuts?", filter={"source": "peanuts"})).errors["copy"]
        assert h.engine.stores.failing(WHO)
        assert await h.outbox.replicas.named("copy").look()
        assert list(h.engine.stores.failing(WHO)) == []
    failed, probe = copy.asked
    assert (probe.reach.tenant, probe.reach.agents) == (failed.reach.tenant, failed.reach.agents)
    assert (probe.limit, len(probe.vector)) == (1, len(failed.vector))
    assert "peanuts" in repr(failed)
    assert "peanuts" not in repr(probe)
