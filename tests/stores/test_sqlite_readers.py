"""Readers are fair: whoever looks at every row of one tenant keeps nobody else from reading."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from commonplace.stores.base import Reach, Search
from commonplace.stores.sqlite import SqliteStore, queries
from commonplace.stores.worker_threads import WorkerThreads
from commonplace.testing.subject import FakeClock
from commonplace.wire.errors import Unavailable

CROWD = 20


class Held:
    """The scans of tenant `busy` wait in their threads until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        real = queries.versions_in_reach

        def waiting(db: Any, reach: Reach) -> Any:
            if reach.tenant == "busy":
                self.begun.release()
                assert self.gate.wait(30)
            return real(db, reach)

        monkeypatch.setattr(queries, "versions_in_reach", waiting)


def scans(store: SqliteStore, reach: Reach) -> list[Coroutine[Any, Any, Any]]:
    """Each way to look at every row."""
    past = Reach(reach.tenant, reach.agents, as_of=1)
    archived = Reach(reach.tenant, reach.agents, statuses=("archived",))
    return [
        store.scan(reach),
        store.scan(past),
        store.count(reach),
        store.search(Search(past, "tea")),
        store.search(Search(archived, "tea")),
    ]


def test_the_scans_of_one_tenant_hold_up_nobody_else(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        store = SqliteStore(tmp_path / "x.db", clock)
        held = Held(monkeypatch)
        busy = Reach("busy", ("agent",))
        crowd = [asyncio.create_task(scan) for _ in range(CROWD // 5) for scan in scans(store, busy)]
        await asyncio.to_thread(held.begun.acquire)
        other = Reach("other", ("agent",))
        async with asyncio.timeout(20):
            for scan in scans(store, other):  # another tenant's scans
                await scan
            for tenant in ("busy", "other"):  # and every other read, of the same tenant too
                await store.search(Search(Reach(tenant, ("agent",)), "tea"))
                await store.get(tenant, ["x"])
                await store.context(tenant, ["agent"])
                await store.records(tenant, "review")
            await store.health()
        assert not any(task.done() for task in crowd)
        held.gate.set()
        await asyncio.gather(*crowd)
        await store.close()

    asyncio.run(run())


def test_work_never_waits_for_a_thread_that_another_holds() -> None:
    async def run() -> None:
        threads = WorkerThreads(3, "test")
        held = threading.Event()
        begun = threading.Semaphore(0)

        def wait() -> bool:
            begun.release()
            return held.wait(30)

        async with asyncio.timeout(20):
            assert await threads.run(lambda: 1) == 1  # one thread is free again
            slow = [asyncio.create_task(threads.run(wait)) for _ in range(2)]
            for _ in slow:
                await asyncio.to_thread(begun.acquire)
            assert await threads.run(lambda: 2) == 2
            held.set()
            assert await asyncio.gather(*slow) == [True, True]
            threads.close()

    asyncio.run(run())


def test_what_was_asked_is_answered_before_the_threads_stop_and_nothing_after() -> None:
    async def run() -> None:
        threads = WorkerThreads(2, "test")
        asked = [asyncio.create_task(threads.run(lambda n=n: n)) for n in range(CROWD)]
        failed = asyncio.create_task(threads.run(lambda: {}["nothing"]))
        given_up = asyncio.create_task(threads.run(lambda: None))
        await asyncio.sleep(0)
        given_up.cancel()
        threads.close()
        async with asyncio.timeout(20):
            assert await asyncio.gather(*asked) == list(range(CROWD))
            with pytest.raises(KeyError):
                await failed
        with pytest.raises(Unavailable, match="closed"):
            await threads.run(lambda: None)

    asyncio.run(run())
