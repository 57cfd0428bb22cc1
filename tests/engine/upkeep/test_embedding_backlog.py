"""A long document is kept at once, found by its words at once, and by its meaning once its vectors are made."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace.embedders import text_queue
from commonplace.embedders.base import Vectors
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.embedders.text_queue import Lane
from commonplace.engine import BatchItem, Draft, Engine, Query, Receipt, Settings
from commonplace.engine.core import EMBEDDED_AT_ONCE_CHARS
from commonplace.engine.upkeep.embedding_backlog import round_robin
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import RateLimited
from commonplace.wire.record import MAX_CONTENT_CHARS, Memory

LONG = ("The heron stood in the reeds. " * 9_000)[:MAX_CONTENT_CHARS]
SHORT_CHARS = 200


class Gated(HashingEmbedder):
    """Lets short texts through at once, and long ones when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.begun = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if any(len(text) > SHORT_CHARS for text in texts):
            self.begun.set()
            assert self.gate.wait(30)
        return super().embed(texts)


async def opened(path: Path, clock: FakeClock, embedder: HashingEmbedder | None = None) -> Engine:
    """Vectors are filled in behind when `resume_embedding` says so, and not before."""
    settings = Settings(embeds_behind=True)
    engine = await Engine.open(SqliteStore(path, clock), embedder or HashingEmbedder(), clock=clock, settings=settings)
    engine._core.fill_vectors = lambda: None
    return engine


async def found(engine: Engine, text: str, **query: object) -> dict[str, float | None]:
    """What a recall finds, with the cosine of each."""
    result = await engine.recall(WHO, Query(("agent",), text, explain=True, **query))  # type: ignore[arg-type]
    return {hit.memory.id: (hit.explain or {})["dense"] for hit in result.hits}


async def lacking(engine: Engine) -> int:
    count: int = (await engine.upkeep.status(WHO))["without_vectors"]
    return count


def test_the_longest_document_is_kept_before_it_is_embedded(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        engine = await opened(tmp_path / "x.db", clock)
        kept = await engine.remember(WHO, Draft("agent", "semantic", LONG))
        assert await found(engine, "heron") == {kept.id: None}  # by its words
        assert await lacking(engine) == 1
        assert "1 memory waits for its vectors" in (await engine.upkeep.status(WHO))["note"]
        vectors = [f for f in await engine.upkeep.doctor(WHO) if f.check == "vectors"]
        assert [(f.ok, "1 memory waits" in f.detail) for f in vectors] == [(True, True)]
        before = (await engine.get(WHO, "agent", kept.id)).seq
        engine.resume_embedding()
        await engine.wait_for_vectors()
        assert await lacking(engine) == 0
        assert (await found(engine, "heron"))[kept.id] is not None
        now = await engine.get(WHO, "agent", kept.id)
        assert (now.version, now.seq) == (1, before)  # nothing about the memory has changed
        assert len(await engine.history(WHO, "agent", kept.id)) == 1
        assert (await engine.ledger.verify(WHO)).first_bad is None
        assert all(finding.ok for finding in await engine.upkeep.doctor(WHO, repair=False))
        await engine.close()

    asyncio.run(run())


def test_what_waited_is_taken_up_by_the_next_process(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        engine = await opened(tmp_path / "x.db", clock)
        kept = await engine.remember(WHO, Draft("agent", "semantic", LONG))
        await engine.close()
        engine = await opened(tmp_path / "x.db", clock)
        assert await lacking(engine) == 1
        assert await found(engine, "heron") == {kept.id: None}
        engine.resume_embedding()
        await engine.wait_for_vectors()
        assert await lacking(engine) == 0
        assert (await found(engine, "heron"))[kept.id] is not None
        await engine.close()

    asyncio.run(run())


@pytest.mark.slow
def test_vectors_reach_segments_on_disk_and_other_processes(tmp_path: Path, clock: FakeClock) -> None:
    """More rows than a tail holds, so that the row without a vector lies in a segment already."""

    async def run() -> None:
        engine = await opened(tmp_path / "x.db", clock)
        kept = await engine.remember(WHO, Draft("agent", "semantic", LONG))
        for start in range(0, 1200, 600):
            items = [BatchItem(Draft("agent", "semantic", f"note number {start + i}")) for i in range(600)]
            assert all(isinstance(r, Receipt) for r in await engine.remember_many(WHO, items))
        await engine.warm_indexes()
        other = await opened(tmp_path / "x.db", clock)
        assert (await found(other, "heron"))[kept.id] is None
        engine.resume_embedding()
        await engine.wait_for_vectors()
        for each in (engine, other):
            assert (await found(each, "heron"))[kept.id] is not None
            assert all(finding.ok for finding in await each.upkeep.doctor(WHO, repair=False))
        await other.close()
        await engine.warm_indexes()
        await engine.close()
        again = await opened(tmp_path / "x.db", clock)
        assert (await found(again, "heron"))[kept.id] is not None
        await again.close()

    asyncio.run(run())


@pytest.mark.parametrize("change", ["update", "erase", "forget"])
def test_what_changed_meanwhile_is_not_undone(tmp_path: Path, clock: FakeClock, change: str) -> None:
    from commonplace.engine import Forget

    async def run() -> None:
        embedder = Gated()
        engine = await opened(tmp_path / "x.db", clock, embedder)
        kept = await engine.remember(WHO, Draft("agent", "semantic", LONG))
        engine.resume_embedding()
        await asyncio.to_thread(embedder.begun.wait, 30)
        if change == "update":
            update = engine.update_with(WHO, "agent", kept.id, lambda m: replace(m, content="a kingfisher"))
            embedder.gate.set()  # its vector comes after the text in hand
            await update
        else:
            await engine.forget(WHO, Forget("agent", (kept.id,), hard_delete=change == "erase"))
        embedder.gate.set()
        await engine.wait_for_vectors()
        assert list(await found(engine, "kingfisher")) == ([kept.id] if change == "update" else [])
        assert all(finding.ok for finding in await engine.upkeep.doctor(WHO, repair=False))
        await engine.close()

    asyncio.run(run())


def test_the_past_is_as_it_was(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        engine = await opened(tmp_path / "x.db", clock)
        kept = await engine.remember(WHO, Draft("agent", "semantic", LONG))
        then = clock()
        clock.advance(1000)
        engine.resume_embedding()
        await engine.wait_for_vectors()
        assert list(await found(engine, "heron", as_of=then)) == [kept.id]
        await engine.close()

    asyncio.run(run())


def test_a_batch_of_long_texts_is_kept_at_once(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        engine = await opened(tmp_path / "x.db", clock)
        items = [BatchItem(Draft("agent", "semantic", f"{i:03} " + LONG[:3_900])) for i in range(100)]
        done = await engine.remember_many(WHO, items)
        assert all(isinstance(receipt, Receipt) for receipt in done)
        assert await lacking(engine) >= 96  # all but what was short enough to wait for
        engine.resume_embedding()
        await engine.wait_for_vectors()
        assert await lacking(engine) == 0
        await engine.close()

    asyncio.run(run())


def test_vectors_follow_by_themselves(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        settings = Settings(embeds_behind=True)
        store = SqliteStore(tmp_path / "x.db", clock)
        engine = await Engine.open(store, HashingEmbedder(), clock=clock, settings=settings)
        await engine.remember(WHO, Draft("agent", "semantic", LONG))
        await engine.wait_for_vectors()
        assert await lacking(engine) == 0
        await engine.close()

    asyncio.run(run())


def test_what_is_short_still_waits_for_its_vector(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        engine = await opened(tmp_path / "x.db", clock)
        await engine.remember(WHO, Draft("agent", "semantic", "Alice likes tea"))
        assert await lacking(engine) == 0
        await engine.close()

    asyncio.run(run())


def test_a_process_that_ends_soon_waits_for_every_vector(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        engine = await Engine.open(SqliteStore(tmp_path / "x.db", clock), HashingEmbedder(), clock=clock)
        await engine.remember(WHO, Draft("agent", "semantic", LONG))
        assert await lacking(engine) == 0
        await engine.close()

    asyncio.run(run())


def test_a_full_queue_keeps_a_memory_and_refuses_a_question(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(text_queue.MAX_WAITING, Lane.WRITE, (0, 0))
    monkeypatch.setitem(text_queue.MAX_WAITING, Lane.QUERY, (0, 0))

    async def run() -> None:
        engine = await opened(tmp_path / "x.db", clock)
        kept = await engine.remember(WHO, Draft("agent", "semantic", "Alice likes tea"))
        assert (await engine.get(WHO, "agent", kept.id)).content == "Alice likes tea"
        with pytest.raises(RateLimited, match="try again in 1 s"):
            await engine.recall(WHO, Query(("agent",), "what does Alice drink?"))
        with pytest.raises(RateLimited):
            await engine.embed(WHO, ["one", "two"])
        engine.resume_embedding()
        await engine.wait_for_vectors()
        assert await lacking(engine) == 0
        await engine.close()

    asyncio.run(run())


def test_tenants_are_served_in_turn() -> None:
    def version(number: int, tenant: str) -> tuple[int, Memory]:
        return number, Memory(f"m{number}", tenant, "agent", "semantic", "fact", "x")

    given = [version(i, "a") for i in range(4)] + [version(9, "b")]
    assert [number for number, _ in round_robin(given)] == [0, 9, 1, 2, 3]


def test_the_longest_document_is_longer_than_what_is_embedded_at_once() -> None:
    assert len(LONG) == MAX_CONTENT_CHARS > EMBEDDED_AT_ONCE_CHARS
