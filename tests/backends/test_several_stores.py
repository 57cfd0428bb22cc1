"""SQLite, PostgreSQL and mem0 under one memory: nothing is left behind, nothing comes twice, and all end equal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from postgres_server import FAST, PostgresServer, kill_server

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Attachment, Draft, Engine, Forget, Query
from commonplace.engine.outbox.resync import digest
from commonplace.plugins import open_replica
from commonplace.stores.base import Reach, Store, StoreSettings
from commonplace.stores.mixins import scan_all
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.record import EVERY_STATUS

pytestmark = [
    pytest.mark.skipif(find_spec("mem0") is None, reason="mem0ai is not installed: `make test-backends` installs it"),
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore"),
]
AGENT = "agent"
EVERYTHING = Reach("local", (AGENT,), statuses=EVERY_STATUS)


@dataclass
class Several:
    engine: Engine
    primary: SqliteStore
    copies: dict[str, Store]
    clock: FakeClock
    postgres: PostgresServer

    async def remember(self, content: str) -> str:
        return (await self.engine.remember(WHO, Draft(AGENT, "semantic", content))).id

    async def digests(self) -> set[str]:
        live = Reach("local", (AGENT,), now=self.clock())
        held = [await scan_all(store, EVERYTHING) for store in self.copies.values()]
        return {digest(await scan_all(self.primary, live)), *map(digest, held)}

    async def waiting(self) -> int:
        return sum(each["waiting"] for each in await self.engine.stores.list(WHO))


@asynccontextmanager
async def several(folder: Path) -> AsyncIterator[Several]:
    """Each with a server or a folder of its own; the outbox is worked on when a test says so."""
    # What it acknowledges is in its log: a kill takes no more than it would take from a server in earnest.
    server = PostgresServer([each for each in FAST if not each.startswith("synchronous_commit")]).start()
    clock, embedder = FakeClock(), HashingEmbedder()
    settings = StoreSettings(folder=folder, embed=embedder.embed)
    urls = {"postgresql": server.url(server.create_database()), "mem0": f"mem0://{folder}/mem0"}
    copies = {name: open_replica(url, clock, settings) for name, url in urls.items()}
    attached = [Attachment(name, lambda store=store: store, 30.0) for name, store in copies.items()]  # type: ignore[misc]
    primary = SqliteStore(folder / "p.db", clock)
    engine = await Engine.open(primary, embedder, clock=clock, replicas=attached)
    await engine.stores.wait_until_open(30)
    if engine._core.outbox._loop is not None:
        engine._core.outbox._loop.cancel()
    try:
        yield Several(engine, primary, copies, clock, server)
    finally:
        await engine.close()
        server.remove()


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def call(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return call


@run
async def test_forgetting_by_id_leaves_no_copy_in_any_of_them(tmp_path: Path) -> None:
    async with several(tmp_path) as s:
        gone, kept = await s.remember("Alice's diagnosis"), await s.remember("Alice's address")
        assert len(await s.digests()) == 1
        for store in s.copies.values():
            assert {m.id for m in await scan_all(store, EVERYTHING)} == {gone, kept}
        with s.engine.reporting() as report:
            assert (await s.engine.forget(WHO, Forget(AGENT, [gone], hard_delete=True))).ids == [gone]
        assert report.outcomes[gone] == {"postgresql": None, "mem0": None}
        for store in s.copies.values():
            assert [m.id for m in await scan_all(store, EVERYTHING)] == [kept]
            assert await store.get("local", [gone]) == []
        assert await s.primary.get("local", [gone]) == []
        assert len(await s.digests()) == 1
        assert await s.waiting() == 0


@run
async def test_what_all_of_them_find_comes_once(tmp_path: Path) -> None:
    async with several(tmp_path) as s:
        ids = [await s.remember(f"tea number {n}") for n in range(4)]
        for _ in range(2):  # also what was delivered twice
            found = await s.engine.recall(WHO, Query((AGENT,), "tea", k=10, explain=True))
            assert sorted(hit.memory.id for hit in found.hits) == sorted(ids)
            assert found.errors == {}
            assert {len((hit.explain or {})["stores"]) for hit in found.hits} == {3}
            for store in s.copies.values():
                memories = await s.primary.get("local", ids)
                entries = await s.engine._core.make_entries(memories)
                await store.put(entries)


@run
async def test_a_store_that_is_killed_while_it_is_written_to_catches_up_and_is_equal(tmp_path: Path) -> None:
    async with several(tmp_path) as s:
        ids = [await s.remember(f"before {n}") for n in range(3)]
        writing = asyncio.gather(*(s.remember(f"during {n}") for n in range(20)))
        await asyncio.sleep(0)
        await asyncio.to_thread(kill_server, s.postgres.data)
        written = await writing  # acknowledged by the primary, whatever became of the copies
        with s.engine.reporting() as report:
            await s.engine.forget(WHO, Forget(AGENT, [ids[0]], hard_delete=True))
        assert report.outcomes[ids[0]]["postgresql"] is not None
        assert report.outcomes[ids[0]]["mem0"] is None
        assert await s.waiting() > 0
        await asyncio.to_thread(s.postgres.start)
        for _ in range(10):
            s.clock.advance(10 * 60_000)
            await s.engine._core.outbox.run_due()
        assert await s.waiting() == 0
        assert len(await s.digests()) == 1
        for store in s.copies.values():
            assert {m.id for m in await scan_all(store, EVERYTHING)} == {*ids[1:], *written}


FULL = Draft(
    AGENT, "episodic", "Alice takes the ferry ⛴ at seven", user_id="alice", project="harbour", title="a title",
    entity_name="the ferry", tags=["a", "b"], metadata={"nested": {"list": [1, 2.5, None, True]}, "text": "ü"},
    confidence=0.3, importance=0.7, source="log.md", privacy={"share_with": ["*"]}, event_time=1_700_000_000_000,
    session_id="s", speaker="Bob", expires_at=4_000_000_000_000,
)  # fmt: skip


@run
async def test_a_resync_tells_each_product_what_differs_and_nothing_else(tmp_path: Path) -> None:
    async with several(tmp_path) as s:
        full = (await s.engine.remember(WHO, FULL)).id
        gone, changed = await s.remember("erased meanwhile"), await s.remember("changed meanwhile")
        for name, store in s.copies.items():
            assert (await s.engine.stores.resync(WHO, name))["sent"] == 0, name
            stale = await s.engine._core.make_entries(await s.primary.get("local", [full, gone, changed]))
            await store.delete("local", [full])
            stale[2].memory = replace(stale[2].memory, content="another text", metadata={"a": 1})
            await store.put(stale[2:])
        await s.engine.forget(WHO, Forget(AGENT, [gone], hard_delete=True))
        for name, store in s.copies.items():
            await store.put(stale[1:2])  # as a copy that was away has it
            done = await s.engine.stores.resync(WHO, name)
            assert (done["equal"], done["sent"], done["deleted"], done["copies"]) == (True, 2, 1, 2), name
            again = await s.engine.stores.resync(WHO, name)
            assert (again["equal"], again["sent"], again["deleted"]) == (True, 0, 0), name
        assert await s.waiting() == 0
        assert len(await s.digests()) == 1
