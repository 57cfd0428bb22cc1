"""What happens to memories while a store beside the primary takes its time to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from replica_house import AGENT, Flaky, House, house, run

from commonplace.engine import Forget, Query, Update
from commonplace.testing.subject import DAY_MS, WHO, FakeClock
from commonplace.wire.filters import parse


class Slow(Flaky):
    """A store that answers when it is told to, with what it had when it was asked, or then."""

    def __init__(self, clock: FakeClock, *, reads_late: bool = False) -> None:
        super().__init__(clock)
        self.reads_late = reads_late
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def search(self, search: Any) -> Any:
        found = [] if self.reads_late else await super().search(search)
        self.was_asked.set()
        await self.may_answer.wait()
        return await super().search(search) if self.reads_late else found


async def recall_while(h: House, change: Callable[[], Awaitable[Any]], text: str, **query: Any) -> Any:
    """A recall whose replica answers only when the change is made and acknowledged."""
    slow = h.copies[0]
    assert isinstance(slow, Slow)
    asked = asyncio.create_task(h.engine.recall(WHO, Query((AGENT,), text, min_score=0.0, **query)))
    await slow.was_asked.wait()
    await change()
    await h.outbox.join()
    slow.may_answer.set()
    return await asked


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("reads_late", [True, False])
@run
async def test_what_is_forgotten_while_a_store_answers_is_not_shown(hard: bool, reads_late: bool) -> None:
    clock = FakeClock()
    async with house(clock=clock, stores=[Slow(clock, reads_late=reads_late)]) as h:
        id = await h.remember("Alice lives in Rome")
        await h.remember("Bob lives in Oslo")
        forget = Forget(AGENT, [id], hard_delete=hard)
        found = await recall_while(h, lambda: h.engine.forget(WHO, forget), "where does Alice live")
        assert [hit.memory.content for hit in found.hits] == ["Bob lives in Oslo"]
        assert found.errors == {}


@run
async def test_what_expires_while_a_store_answers_is_not_shown() -> None:
    clock = FakeClock()
    async with house(clock=clock, stores=[Slow(clock)]) as h:
        await h.remember("Alice lives in Rome", expires_at=clock() + 1000)

        async def pass_time() -> None:
            clock.advance(DAY_MS)

        assert (await recall_while(h, pass_time, "where does Alice live")).hits == []


@run
async def test_what_leaves_the_filter_while_a_store_answers_is_not_shown() -> None:
    clock = FakeClock()
    async with house(clock=clock, stores=[Slow(clock)]) as h:
        id = await h.remember("Alice lives in Rome", tags=["public"])
        change = Update(AGENT, id, tags=["private"])
        found = await recall_while(
            h, lambda: h.engine.update(WHO, change), "where does Alice live", where=parse({"tags": "public"})
        )
        assert found.hits == []


@pytest.mark.parametrize("reads_late", [True, False])
@run
async def test_what_is_changed_while_a_store_answers_is_shown_as_it_is_now_and_nobody_is_blamed(
    reads_late: bool,
) -> None:
    clock = FakeClock()
    async with house(clock=clock, stores=[Slow(clock, reads_late=reads_late)]) as h:
        id = await h.remember("Alice lives in Rome")
        change = Update(AGENT, id, content="Alice lives in Paris")
        found = await recall_while(h, lambda: h.engine.update(WHO, change), "where does Alice live", explain=True)
        assert [hit.memory.content for hit in found.hits] == ["Alice lives in Paris"]
        assert found.errors == {}
        assert not h.outbox.replicas.named("copy").altered
        assert found.explain["stores"]["copy"]["behind"] == (0 if reads_late else 1)


@run
async def test_what_is_changed_meanwhile_is_scored_by_its_new_words() -> None:
    clock = FakeClock()
    async with house(clock=clock, stores=[Slow(clock)]) as h:
        changed = await h.remember("the harbour opens at nine")
        stays = await h.remember("the harbour is old")
        change = Update(AGENT, changed, content="Alice likes tea")
        found = await recall_while(h, lambda: h.engine.update(WHO, change), "when does the harbour open", fusion="max")
        afterwards = await h.engine.recall(
            WHO, Query((AGENT,), "when does the harbour open", min_score=0.0, fusion="max")
        )
        shown, right = ({hit.memory.id: hit.score for hit in each.hits} for each in (found, afterwards))
        assert list(shown) == list(right) == [stays, changed]
        assert shown == right


@run
async def test_what_only_a_replica_named_and_changed_meanwhile_is_no_lie() -> None:
    """The primary had not found it, so what it said then is in its history alone."""
    clock = FakeClock()
    async with house(clock=clock, stores=[Slow(clock)]) as h:
        id = await h.remember("Alice lives in Rome")
        search = h.primary.search

        async def blind(wanted: Any) -> Any:
            h.primary.search = search
            return []

        clock.advance(1000)
        h.primary.search = blind

        async def change() -> None:
            for city in ("Paris", "Oslo"):
                await h.engine.update(WHO, Update(AGENT, id, content=f"Alice lives in {city}"))

        found = await recall_while(h, change, "where does Alice live")
        assert found.errors == {}
        assert not h.outbox.replicas.named("copy").altered


@run
async def test_a_text_that_was_replaced_before_the_question_is_still_reported() -> None:
    clock = FakeClock()
    async with house(clock=clock, stores=[Slow(clock)]) as h:
        id = await h.remember("Alice lives in Rome")
        old = await h.copies[0].get("local", [id])
        await h.engine.update(WHO, Update(AGENT, id, content="Alice lives in Paris"))
        await h.outbox.join()
        clock.advance(1000)
        h.copies[0].may_answer.set()
        held = h.copies[0].search

        async def stale(wanted: Any) -> Any:
            found = await held(wanted)
            for candidate in found:
                candidate.memory = old[0]
            return found

        h.copies[0].search = stale  # type: ignore[method-assign]
        found = await h.engine.recall(WHO, Query((AGENT,), "where does Alice live"))
        assert [hit.memory.content for hit in found.hits] == ["Alice lives in Paris"]
        assert "another text for 1 of the memories" in found.errors["copy"]
