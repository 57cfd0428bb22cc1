"""Jobs give way to recalls, and not for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from commonplace.engine import recall_priority
from commonplace.engine.lifecycle.consolidator import SETTLED_MS
from commonplace.engine.recall import recall as recalling
from commonplace.engine.recall_priority import RecallPriority
from commonplace.testing.subject import WHO, Subject


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_priority, "GIVE_WAY_SECONDS", 3600.0)


@pytest.mark.usefixtures("patient")
def test_it_waits_for_all_who_are_being_answered_and_for_nobody_else() -> None:
    async def story() -> None:
        priority = RecallPriority()
        await priority.give_way()
        with priority.answering():
            with priority.answering():
                waiting = asyncio.create_task(priority.give_way())
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not waiting.done()
        await waiting
        await priority.give_way()

    asyncio.run(story())


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_priority, "GIVE_WAY_SECONDS", 0)

    async def story() -> None:
        priority = RecallPriority()
        with priority.answering():
            await priority.give_way()

    asyncio.run(story())


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("job", ["consolidate", "dream"])
def test_a_recall_under_way_is_answered_before_the_next_step_of_a_job(
    subject: Subject, run: Any, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("Alice is allergic to peanuts", "Bob keeps bees", "Bob keeps bees."):
        metadata = {"short_term": True, "keep": True} if job == "consolidate" else {}
        run(subject.remember(text, kind="drawer", metadata=metadata))
    subject.clock.advance(SETTLED_MS)
    searching, order = recalling.search, []

    async def slowly(*args: Any, **options: Any) -> Any:
        found = await searching(*args, **options)
        working = asyncio.create_task(subject.engine.lifecycle.run(WHO, job))
        for _ in range(200):
            await asyncio.sleep(0)
        order.append(working.done())
        tasks.append(working)
        return found

    tasks: list[asyncio.Task[Any]] = []
    monkeypatch.setattr(recalling, "search", slowly)

    async def story() -> None:
        await subject.recall("peanuts", min_score=0.0)
        order.append(tasks[0].done())
        report = await tasks[0]
        assert report.error is None
        assert sum(report.counts.values()) > 0

    run(story())
    assert order == [False, False]
