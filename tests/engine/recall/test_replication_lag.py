"""What a store cannot have yet, or is not to have, is no vote against it."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from replica_house import AGENT, Flaky, House, house, run

from commonplace.engine import Forget, Query, Update
from commonplace.engine.core import SYSTEM
from commonplace.engine.outbox.deliveries import kind_of
from commonplace.engine.outbox.resync_notices import STORE_NAME
from commonplace.engine.recall import replication_lag
from commonplace.stores.base import Candidate, Record
from commonplace.testing.subject import WHO, FakeClock

ANSWER = "the wifi password of the office is on the fridge"


async def ask(h: House, **query: Any) -> Any:
    return await h.engine.recall(WHO, Query((AGENT,), ANSWER, min_score=0.0, **query))


async def crowd(h: House) -> None:
    for n in range(30):
        await h.remember(f"office note number {n} about the fridge")
    await h.settled()


@pytest.mark.parametrize("fusion", ["rrf", "weighted", "max"])
@pytest.mark.parametrize("why", ["waits", "type"])
@run
async def test_what_a_store_cannot_have_is_found_where_the_primary_has_it(why: str, fusion: str) -> None:
    async with house(copies=2, types=frozenset({"semantic"})) as h:
        await crowd(h)
        if why == "waits":
            for copy in h.copies:
                copy.refuses = "wifi"
        await h.remember(ANSWER, type="episodic" if why == "type" else "semantic")
        found = await ask(h, k=5, fusion=fusion, explain=True)
        assert found.hits[0].memory.content == ANSWER
        assert found.hits[0].source_store == h.primary.name
        assert found.hits[0].explain["stores"]["copy"]["assumed"] is True
        assert "assumed" not in found.hits[1].explain["stores"]["copy"]
        assert [hit.memory.content for hit in (await ask(h, k=5, quorum=3)).hits][:1] == [ANSWER]


@run
async def test_what_is_older_than_a_store_that_was_never_resynced_is_found_where_the_primary_has_it() -> None:
    """It was never told of it; what was written since it has to name itself."""
    async with house() as h:
        await h.primary.transact(SYSTEM, lambda tx: tx.put_record(Record(STORE_NAME, "copy", {"address": "", "at": 0})))
        old = await h.remember(ANSWER)
        h.clock.advance(1_000)
        await crowd(h)
        await h.settled()
        await h.copies[0].delete("local", [old])
        assert old not in {hit.memory.id for hit in (await ask(h, k=5, quorum=2)).hits}
        value = {"address": "", "at": h.clock(), "incomplete": True}
        await h.primary.transact(SYSTEM, lambda tx: tx.put_record(Record(STORE_NAME, "copy", value)))
        h.clock.advance(1_000)
        new = await h.remember(f"{ANSWER}, says Bob")
        await h.settled()
        await h.copies[0].delete("local", [new])
    async with house(primary=h.primary, clock=h.clock, stores=h.copies) as h:
        found = (await ask(h, k=5, quorum=2, explain=True)).hits
        assert (found[0].memory.id, found[0].explain["stores"]["copy"]["assumed"]) == (old, True)
        assert new not in {hit.memory.id for hit in found}
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        await h.copies[0].delete("local", [old])
        assert old not in {hit.memory.id for hit in (await ask(h, k=5, quorum=2)).hits}, "as soon as it was told"


@run
async def test_what_a_process_wrote_without_a_store_is_found_where_the_primary_has_it() -> None:
    """It was never told of it; what it was told before has to be named."""
    async with house() as h:
        await h.primary.transact(SYSTEM, lambda tx: tx.put_record(Record(STORE_NAME, "copy", {"address": "", "at": 0})))
        old = await h.remember(f"{ANSWER}, says Bob")
        await crowd(h)
        await h.copies[0].delete("local", [old])
        h.clock.advance(1_000)
        async with house(0, h.primary, h.clock) as without:
            left_out = await without.remember(ANSWER)
        found = (await ask(h, k=5, quorum=2, explain=True)).hits
        assert (found[0].memory.id, found[0].explain["stores"]["copy"]["assumed"]) == (left_out, True)
        assert old not in {hit.memory.id for hit in found}
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        await h.copies[0].delete("local", [left_out])
        assert left_out not in {hit.memory.id for hit in (await ask(h, k=5, quorum=2)).hits}, "as soon as it was told"


@run
async def test_what_a_store_has_and_does_not_name_gets_no_vote_of_it() -> None:
    async with house() as h:
        await crowd(h)
        answer = await h.remember(ANSWER)
        await h.settled()
        search = h.copies[0].search

        async def silent(wanted: Any) -> Any:
            return [each for each in await search(wanted) if each.memory.id != answer]

        h.copies[0].search = silent  # type: ignore[method-assign]
        assert answer not in {hit.memory.id for hit in (await ask(h, k=5, quorum=2)).hits}
        # Also where something else waits for it: a record of one memory says nothing of another.
        h.copies[0].refuses = "unrelated"
        await h.remember("an unrelated remark")
        await h.settled()
        assert answer not in {hit.memory.id for hit in (await ask(h, k=5, quorum=2)).hits}


@run
async def test_an_older_text_there_counts_as_what_it_was_not_told_yet() -> None:
    async with house() as h:
        await crowd(h)
        id = await h.remember("something about the fridge")
        h.copies[0].refuses = "wifi"
        await h.engine.update(WHO, Update(AGENT, id, content=ANSWER))
        found = await ask(h, k=5, explain=True)
        assert (found.hits[0].memory.id, found.errors) == (id, {})


@run
async def test_what_is_delivered_only_after_the_store_has_looked_is_no_vote_against_it() -> None:
    clock = FakeClock()

    class LooksFirst(Flaky):
        delivers = False

        async def search(self, search: Any) -> Any:
            found = await super().search(search)
            if self.delivers:
                self.refuses = ""
                clock.advance(400_000)
                await h.outbox.run_due()
            return found

    async with house(clock=clock, stores=[LooksFirst(clock)]) as h:
        await crowd(h)
        h.copies[0].refuses = "wifi"
        await h.remember(ANSWER)
        await h.settled()
        h.copies[0].delivers = True  # type: ignore[attr-defined]
        found = await ask(h, k=5)
        await h.settled()
        assert await h.waiting() == {}
        assert found.hits[0].memory.content == ANSWER


@run
async def test_what_is_written_and_delivered_after_the_store_has_looked_is_no_vote_against_it() -> None:
    clock, has_looked = FakeClock(), asyncio.Event()

    class WritesThen(Flaky):
        async def search(self, search: Any) -> Any:
            found = await super().search(search)
            if not has_looked.is_set():
                clock.advance(1_000)
                await h.remember(ANSWER)
                await h.settled()
                has_looked.set()
            return found

    async with house(clock=clock, stores=[WritesThen(clock)], timeout=60.0) as h:
        await crowd(h)
        search = h.primary.search

        async def later(wanted: Any) -> Any:
            await asyncio.wait_for(has_looked.wait(), 60)
            return await search(wanted)

        h.primary.search = later
        found = await ask(h, k=5, quorum=2, explain=True)
        assert await h.waiting() == {}
        assert found.hits[0].memory.content == ANSWER
        assert found.hits[0].explain["stores"]["copy"]["assumed"] is True


@run
async def test_where_more_waits_than_is_read_each_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replication_lag, "_MOST_READ", 2)
    async with house() as h:
        await crowd(h)
        h.copies[0].refuses = "o"
        for n in range(4):
            await h.remember(f"another, unrelated remark {n}")
        await h.remember(ANSWER)
        found = await ask(h, k=5)
        assert found.hits[0].memory.content == ANSWER


@run
async def test_nothing_is_looked_up_where_nothing_waits() -> None:
    async with house() as h:
        await crowd(h)
        await h.remember(ANSWER)
        await h.settled()

        record, records = h.primary.record, h.primary.records

        def elsewhere(read: Any) -> Any:
            async def checked(tenant: str, kind: str, *args: Any) -> Any:
                assert not kind.startswith(kind_of("")), "nothing waits"
                return await read(tenant, kind, *args)  # policies are read again after a while

            return checked

        h.primary.record, h.primary.records = elsewhere(record), elsewhere(records)
        reads = []

        async def counted(*args: Any, **options: Any) -> Any:
            reads.append(args[1])
            return []

        h.primary.records_page = counted
        assert (await ask(h, k=5)).hits[0].memory.content == ANSWER
        assert reads == ["outbox/copy"]


class LikePrimary(Flaky):
    """Ranks and scores exactly as the primary does, what it has of it."""

    order: tuple[tuple[str, float], ...] = ()

    async def search(self, search: Any) -> Any:
        held = {m.id: m for m in await self.get("local", [id for id, _ in self.order])}
        return [Candidate(held[id], score=score) for id, score in self.order if id in held][: search.limit]


WORDS = ANSWER.split()


@pytest.mark.parametrize("seed", range(6))
@run
async def test_with_honest_stores_the_order_is_the_one_in_which_they_have_all(seed: int) -> None:
    """Whatever is missing, because it waits or by its type; a store that has nothing at all included."""
    dice = random.Random(seed)
    clock = FakeClock()
    copies = [LikePrimary(clock, f"copy{n}") for n in range(2)]
    types = frozenset({"semantic"}) if seed % 2 else None
    async with house(clock=clock, stores=copies, types=types) as h:
        for n in range(24):
            said = " ".join(dice.sample(WORDS, dice.randint(2, 6)))
            for copy in copies:
                copy.refuses = "note" if dice.random() < (0.4 if seed else 1.0) else ""
            await h.remember(f"note {n}: {said}", type=dice.choice(["semantic", "episodic"]))
        gone = await h.remember("note 99: fridge")
        await h.engine.forget(WHO, Forget(AGENT, [gone]))
        alone = await ask(h, k=24, explain=True, fusion="max")
        order = tuple((hit.memory.id, hit.explain["blend"]) for hit in alone.hits)
        for copy in copies:
            copy.order = order
            h.outbox.replicas.named(copy.name).breaker.succeeded()  # refusals are no reason not to ask it here
        for fusion in ("rrf", "weighted", "max"):
            for quorum in (1, 3):
                found = await ask(h, k=24, fusion=fusion, quorum=quorum)
                assert [hit.memory.id for hit in found.hits] == [id for id, _ in order], (fusion, quorum)
