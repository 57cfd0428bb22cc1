"""What every operation works with: an embedder that is replaced elsewhere, or missing, while the engine runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commonplace.embedders.base import Embedder, Vectors
from commonplace.embedders.hashing import Hashing
from commonplace.engine import Engine
from commonplace.engine.recall import relevance
from commonplace.engine.types import Draft, Query, RecallResult
from commonplace.stores.base import Reach, Search, StaleGeneration
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Unavailable

FACTS = ["Alice plays the cello", "Bob repairs bicycles", "the kettle is in the attic"]


class UnregisteredEmbedder(Hashing):
    """The same vectors under a name that no registry knows, and a count of how often its memory was given back."""

    def __init__(self, name: str = "homemade", dimension: int = 64) -> None:
        super().__init__(dimension)
        self.name = name
        self.unloaded = 0

    def unload(self) -> None:
        self.unloaded += 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "commonplace.db"


async def open_engine(path: Path, embedder: Embedder) -> Engine:
    return await Engine.open(SqliteStore(path, FakeClock()), embedder, clock=FakeClock())


async def two_engines(path: Path, embedder: Embedder) -> tuple[Engine, Engine]:
    first = await open_engine(path, embedder)
    for fact in FACTS:
        await first.remember(WHO, Draft("agent", "semantic", fact))
    return first, await open_engine(path, embedder)


async def recall_explained(engine: Engine, text: str = "who plays the cello?") -> RecallResult:
    return await engine.recall(WHO, Query(("agent",), text, explain=True))


def cosines(found: RecallResult) -> list[float]:
    return [(hit.explain or {})["dense"] for hit in found.hits]


@pytest.mark.parametrize("dimension", [64, 512])
def test_recall_uses_the_embedder_another_process_has_changed_to(path: Path, dimension: int) -> None:
    """Also where both have the same size, and the wrong vector would be compared without a word."""

    async def scenario() -> None:
        running, other = await two_engines(path, UnregisteredEmbedder("hashing-512", 512))
        await recall_explained(running)
        await other.upkeep.reindex(WHO, Hashing(64))
        if dimension == 512:
            await other.upkeep.reindex(WHO, Hashing(512))
        found, expected = await recall_explained(running), await recall_explained(other)
        assert found.note is None
        assert cosines(found) == pytest.approx(cosines(expected))
        assert running._core.embedding is not None
        assert running._core.embedding.name == f"hashing-{dimension}"
        await running.remember(WHO, Draft("agent", "semantic", "Carol plays the cello, too"))
        assert await other._core.primary.count_without_vectors(other._core.embedder_info.generation) == 0  # type: ignore
        await running.close()
        await other.close()

    asyncio.run(scenario())


def test_one_that_cannot_be_opened_here_leaves_words_and_says_so_until_it_is_changed_back(path: Path) -> None:
    async def scenario() -> None:
        running, other = await two_engines(path, Hashing(128))
        await other.upkeep.reindex(WHO, UnregisteredEmbedder())
        found = await recall_explained(running)
        assert found.hits[0].memory.content == FACTS[0]
        assert cosines(found) == [None] * len(found.hits)
        assert "homemade" in (found.note or "")
        await other.upkeep.reindex(WHO, Hashing(128))
        found = await recall_explained(running)
        assert found.note is None
        assert None not in cosines(found)
        await running.close()
        await other.close()

    asyncio.run(scenario())


def test_many_that_ask_at_once_follow_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.engine import core

    async def scenario() -> None:
        running, other = await two_engines(path, Hashing(128))
        await other.upkeep.reindex(WHO, Hashing(64))
        opening: list[str] = []
        really = core.open_embedder
        monkeypatch.setattr(core, "open_embedder", lambda name: opening.append(name) or really(name))  # type: ignore
        found = await asyncio.gather(*(recall_explained(running) for _ in range(12)))
        assert opening == ["hashing-64"]
        assert all(cosines(one) == pytest.approx(cosines(found[0])) for one in found)
        await running.close()
        await other.close()

    asyncio.run(scenario())


def test_relevance_is_told_the_embedder_that_was_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str | None] = []
    really = relevance.assess

    async def assess(*args: Any, **options: Any) -> Any:
        names.append(signature(really).bind(*args, **options).arguments["embedder_name"])
        return await really(*args, **options)

    monkeypatch.setattr(relevance, "assess", assess)

    async def scenario() -> None:
        running, other = await two_engines(path, Hashing(128))
        await recall_explained(running)
        await other.upkeep.reindex(WHO, Hashing(64))
        await recall_explained(running)
        await other.upkeep.reindex(WHO, UnregisteredEmbedder())
        await recall_explained(running)
        await running.close()
        await other.close()

    asyncio.run(scenario())
    assert names == ["hashing-128", "hashing-64", None]


def test_a_store_refuses_a_question_put_to_another_generation(path: Path) -> None:
    async def scenario() -> None:
        engine, other = await two_engines(path, Hashing(64))
        await other.close()
        vector = Hashing(64).embed(["cello"])[0]
        reach = Reach("local", ("agent",))
        (id, *_) = [c.memory.id for c in await engine._core.primary.search(Search(reach, "cello", vector, 5, 1))]
        past = Reach("local", ("agent",), as_of=2)
        for search in (Search(reach, "cello", vector, 5, 7), Search(past, "cello", vector, 5, 7)):
            with pytest.raises(StaleGeneration):
                await engine._core.primary.search(search)
            with pytest.raises(StaleGeneration):
                await engine._core.primary.neighbours_in_session(search, [id], 2)
        await engine.close()

    asyncio.run(scenario())


def test_an_embedder_that_was_replaced_is_closed_and_one_that_stays_is_not(path: Path) -> None:
    async def scenario() -> None:
        first, second = UnregisteredEmbedder("first"), UnregisteredEmbedder("second")
        engine = await open_engine(path, first)
        await engine.remember(WHO, Draft("agent", "semantic", FACTS[0]))
        held = engine._core.embedding
        await engine._core.use_embedder(first)
        assert engine._core.embedding is held
        assert first.unloaded == 0
        await engine.upkeep.reindex(WHO, second)
        assert first.unloaded == 1
        assert held is not None
        assert held._worker._shutdown
        assert cosines(await recall_explained(engine)) != [None]
        await engine.close()

    asyncio.run(scenario())


class HookedEmbedder(UnregisteredEmbedder):
    """Embeds one batch at a time, and not before it is let."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.batches = 0
        self.between: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.batches += 1
        if self.batches > 1 and self.between is not None:
            self.between()
        return super().embed(texts)


def test_what_was_embedded_while_the_embedder_was_replaced_is_embedded_again(path: Path) -> None:
    """Vectors of the old one must not be kept as the new one's, nor the memory be left without any."""

    async def scenario() -> None:
        first, second = HookedEmbedder("first"), UnregisteredEmbedder("second", 64)
        engine = await open_engine(path, first)
        await engine.remember(WHO, Draft("agent", "semantic", FACTS[0]))
        loop = asyncio.get_running_loop()
        under_way: list[asyncio.Future[None]] = []

        def switch() -> None:
            first.between = None
            under_way.append(asyncio.run_coroutine_threadsafe(_replace_embedder(engine, second), loop).result(20))

        first.between = switch
        await asyncio.wait_for(engine.remember(WHO, Draft("agent", "semantic", FACTS[1])), 20)
        await asyncio.gather(*under_way)
        info = engine._core.embedder_info
        assert info is not None
        assert info.name == "second"
        assert await engine._core.primary.count_without_vectors(info.generation) == 0  # type: ignore[attr-defined]
        rows = engine._core.primary._db.execute(  # type: ignore[attr-defined]
            f"SELECT v.data FROM memories m JOIN vectors_{info.generation} v ON v.vid = m.vid ORDER BY m.mid"
        ).fetchall()
        assert len(rows) == 2
        for (data,), fact in zip(rows, FACTS, strict=False):
            assert np.frombuffer(data, np.float32) == pytest.approx(second.embed([fact])[0])
        await engine.close()

    asyncio.run(scenario())


def test_a_question_of_many_batches_survives_the_closing_of_its_embedder(path: Path) -> None:
    async def scenario() -> None:
        first, second = HookedEmbedder("first"), UnregisteredEmbedder("first")
        engine = await open_engine(path, first)
        held, loop = engine._core.embedding, asyncio.get_running_loop()
        assert held is not None
        closing = threading.Event()
        shut = held._worker.shutdown

        def shutdown() -> None:
            shut(wait=False)
            closing.set()
            shut()

        def switch() -> None:
            first.between = None
            under_way.append(asyncio.run_coroutine_threadsafe(engine._core.use_embedder(second), loop))
            assert closing.wait(20)

        under_way: list[Any] = []
        held._worker.shutdown = shutdown  # type: ignore[method-assign, assignment]
        first.batches, first.between = 1, switch
        texts = [f"text {i}" for i in range(100)]
        vectors, info = await asyncio.wait_for(engine._core.embed_with_info(texts), 20)
        assert vectors is not None
        assert vectors == pytest.approx(second.embed(texts))
        assert info == engine._core.embedder_info
        assert engine._core.note is None
        await asyncio.wrap_future(under_way[0])
        await engine.close()

    asyncio.run(scenario())


async def _replace_embedder(engine: Engine, embedder: Embedder) -> asyncio.Future[None]:
    """All of a reindex but the wait for the old embedder, which is the one that waits for us."""
    store: Any = engine._core.primary
    generation, _ = await store.begin_generation(embedder.name, embedder.dimension)
    lacking = await store.without_vectors(generation, 0, 100)
    await store.fill_vectors(generation, [(number, embedder.embed([m.content])) for number, m in lacking])
    assert await store.switch_generation(generation)
    replacing = asyncio.ensure_future(engine._core.use_embedder(embedder))
    while engine._core.embedding is None or engine._core.embedding.embedder is not embedder:
        await asyncio.sleep(0)
    return replacing


class FlakyEmbedder(Hashing):
    """An embedder whose model is there only sometimes."""

    there = True

    def embed(self, texts: Any) -> Any:
        if not self.there:
            raise Unavailable("the model is on holiday")
        return super().embed(texts)


def test_a_missing_model_refuses_no_memory_and_is_forgiven(clock: FakeClock) -> None:
    embedder = FlakyEmbedder()

    async def scenario() -> None:
        store = InMemory(clock)
        engine = await Engine.open(store, embedder, clock=clock)
        subject = Subject(engine, store, clock)
        embedder.there = False
        id = await subject.remember("a violin lesson")
        found = await engine.recall(WHO, Query(("agent",), "violin"))
        assert [hit.memory.id for hit in found.hits] == [id]
        assert found.note is not None
        assert "the model is on holiday" in found.note
        embedder.there = True
        again = await engine.recall(WHO, Query(("agent",), "violin lessons"))
        assert again.note is None
        assert "note" not in await engine.health()
        await engine.close()

    asyncio.run(scenario())
