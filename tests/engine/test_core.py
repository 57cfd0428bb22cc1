"""What every operation works with: who may do what, vectors as they were given, work done again when the store has
moved on, and an embedder that is replaced elsewhere, or missing, while the engine runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tampering import raw_database

from commonplace.embedders.base import Embedder, Vectors
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.checks import RANK
from commonplace.engine.core import Core, StaleRead
from commonplace.engine.memory.passages import indexed_text, passages
from commonplace.engine.recall import relevance
from commonplace.engine.types import Draft, Query, RecallResult
from commonplace.stores.base import Reach, Search, StaleGeneration
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.text import terms
from commonplace.stores.vector_cells import vectors_of
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Forbidden, Unavailable, ValidationError
from commonplace.wire.record import Memory, Principal

FACTS = ["Alice plays the cello", "Bob repairs bicycles", "the kettle is in the attic"]


class UnregisteredEmbedder(HashingEmbedder):
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
        await other.upkeep.reindex(WHO, HashingEmbedder(64))
        if dimension == 512:
            await other.upkeep.reindex(WHO, HashingEmbedder(512))
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
        running, other = await two_engines(path, HashingEmbedder(128))
        await other.upkeep.reindex(WHO, UnregisteredEmbedder())
        found = await recall_explained(running)
        assert found.hits[0].memory.content == FACTS[0]
        assert cosines(found) == [None] * len(found.hits)
        assert "homemade" in (found.note or "")
        await other.upkeep.reindex(WHO, HashingEmbedder(128))
        found = await recall_explained(running)
        assert found.note is None
        assert None not in cosines(found)
        await running.close()
        await other.close()

    asyncio.run(scenario())


def test_many_that_ask_at_once_follow_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.engine import core

    async def scenario() -> None:
        running, other = await two_engines(path, HashingEmbedder(128))
        await other.upkeep.reindex(WHO, HashingEmbedder(64))
        opening: list[str] = []
        really = core.open_recorded
        monkeypatch.setattr(core, "open_recorded", lambda name: opening.append(name) or really(name))  # type: ignore
        found = await asyncio.gather(*(recall_explained(running) for _ in range(12)))
        assert opening == ["hashing-64"]
        assert all(cosines(one) == pytest.approx(cosines(found[0])) for one in found)
        await running.close()
        await other.close()

    asyncio.run(scenario())


def test_relevance_is_told_the_embedder_that_was_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str | None] = []
    really = relevance.gather_signals

    async def gather(*args: Any, **options: Any) -> Any:
        names.append(signature(really).bind(*args, **options).arguments["fit_name"])
        return await really(*args, **options)

    monkeypatch.setattr(relevance, "gather_signals", gather)

    async def scenario() -> None:
        running, other = await two_engines(path, HashingEmbedder(128))
        await recall_explained(running)
        await other.upkeep.reindex(WHO, HashingEmbedder(64))
        await recall_explained(running)
        await other.upkeep.reindex(WHO, UnregisteredEmbedder())
        await recall_explained(running)
        await running.close()
        await other.close()

    asyncio.run(scenario())
    assert names == ["hashing-128", "hashing-64", None]


def test_a_store_refuses_a_question_put_to_another_generation(path: Path) -> None:
    async def scenario() -> None:
        engine, other = await two_engines(path, HashingEmbedder(64))
        await other.close()
        vector = HashingEmbedder(64).embed(["cello"])[0]
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
        assert held._workers[0].pool._shutdown
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
        with raw_database(path) as db:
            rows = db.rows(
                f"SELECT v.data FROM memories m JOIN vectors_{info.generation} v ON v.vid = m.vid ORDER BY m.mid"
            )
        assert len(rows) == 2
        for (data,), fact in zip(rows, FACTS, strict=False):
            assert vectors_of(data, 64) == pytest.approx(second.embed([fact]), abs=1e-4)
        await engine.close()

    asyncio.run(scenario())


def test_a_question_of_many_batches_survives_the_closing_of_its_embedder(path: Path) -> None:
    async def scenario() -> None:
        first, second = HookedEmbedder("first"), UnregisteredEmbedder("first")
        engine = await open_engine(path, first)
        held, loop = engine._core.embedding, asyncio.get_running_loop()
        assert held is not None
        closing = threading.Event()
        shut = held._workers[0].pool.shutdown

        def shutdown() -> None:
            shut(wait=False)
            closing.set()
            shut()

        def switch() -> None:
            first.between = None
            under_way.append(asyncio.run_coroutine_threadsafe(engine._core.use_embedder(second), loop))
            assert closing.wait(20)

        under_way: list[Any] = []
        held._workers[0].pool.shutdown = shutdown  # type: ignore[method-assign, assignment]
        first.batches, first.between = 1, switch
        texts = [f"text {i}" for i in range(100)]
        encoded, info = await asyncio.wait_for(engine._core.encode_with_info(texts, "local"), 20)
        assert encoded is not None
        assert np.stack([each.vector for each in encoded]) == pytest.approx(second.embed(texts))
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
    await store.fill_vectors(generation, [(number, embedder.embed([m.content]), None) for number, m in lacking])
    assert await store.switch_generation(generation)
    replacing = asyncio.ensure_future(engine._core.use_embedder(embedder))
    while engine._core.embedding is None or engine._core.embedding.embedder is not embedder:
        await asyncio.sleep(0)
    return replacing


class FlakyEmbedder(HashingEmbedder):
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


# authority


@pytest.mark.parametrize("needed", RANK)
@pytest.mark.parametrize("role", RANK)
def test_a_role_holds_for_the_agents_one_may_use(role: Any, needed: Any) -> None:
    core, who = Core(InMemory(FakeClock())), Principal("alice", role=role, agents=("ada",))
    if RANK[role] >= RANK[needed]:
        core.require(who, "ada", needed)
        with pytest.raises(Forbidden, match="alice may not use agent 'bea'"):
            core.require(who, "bea", needed)
    else:
        with pytest.raises(Forbidden, match=f"alice is a {role}; this needs the role {needed}"):
            core.require(who, "ada", needed)


# vectors


def test_a_vector_that_is_given_is_made_one_long(subject: Subject) -> None:
    core = subject.engine._core
    for scale in (1e-30, 1.0, 3e38):
        vectors = core.given_vector([0.0] * 254 + [3.0 * scale, 4.0 * scale])
        assert vectors.shape == (1, 256)
        assert vectors.dtype == np.float32
        assert vectors[0, -2:] == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("wrong", [[], [1.0], [1.0] * 255, [1.0] * 257, [0.0] * 256, [float("nan")] * 256])
def test_a_vector_that_cannot_be_compared_is_refused(subject: Subject, wrong: list[float]) -> None:
    with pytest.raises(ValidationError, match="embedding must be 256 numbers, not all zero") as refused:
        subject.engine._core.given_vector(wrong)
    assert refused.value.details == {"field": "embedding"}


def test_without_an_embedder_no_vector_can_be_given() -> None:
    with pytest.raises(ValidationError, match="this store has no embedder to compare it with"):
        Core(InMemory(FakeClock())).given_vector([1.0])


def test_an_entry_has_a_vector_for_each_passage_or_the_one_given(subject: Subject, run: Any) -> None:
    core = subject.engine._core
    long = Memory("a", "local", "agent", "semantic", "One sentence. " * 300)
    short = Memory("b", "local", "agent", "semantic", "short", tags=["tag"])
    given = [1.0] + [0.0] * 255
    one, two, three = run(core.make_entries([long, short, short], [None, given, None]))
    assert one.vectors == pytest.approx(HashingEmbedder().embed(passages(long)))
    assert two.vectors == pytest.approx(np.array([given]))
    assert three.vectors == pytest.approx(HashingEmbedder().embed(["short"]))
    assert [entry.terms for entry in (one, two, three)] == [terms(indexed_text(m)) for m in (long, short, short)]
    assert {entry.generation for entry in (one, two, three)} == {core.embedder_info.generation}


def test_without_an_embedder_an_entry_has_words_alone() -> None:
    memory = Memory("a", "local", "agent", "semantic", "short")
    (entry,) = asyncio.run(Core(InMemory(FakeClock())).make_entries([memory]))
    assert (entry.vectors, entry.terms, entry.generation) == (None, terms("short"), 0)


# work done again


@pytest.mark.parametrize(("failures", "done"), [(0, True), (1, True), (127, True), (128, False)])
def test_what_has_moved_on_is_tried_again(subject: Subject, run: Any, failures: int, done: bool) -> None:
    attempts = 0

    async def attempt() -> str:
        nonlocal attempts
        attempts += 1
        if attempts <= failures:
            raise StaleRead if attempts % 2 else StaleGeneration
        return "done"

    core = subject.engine._core
    if done:
        assert run(core.retry_on_conflict(attempt)) == "done"
        assert attempts == failures + 1
    else:
        with pytest.raises(Unavailable, match="kept changing while this was being done"):
            run(core.retry_on_conflict(attempt))
        assert attempts == 128


def test_any_other_failure_is_not_tried_again(subject: Subject, run: Any) -> None:
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise Unavailable("the disk is full")

    with pytest.raises(Unavailable, match="the disk is full"):
        run(subject.engine._core.retry_on_conflict(attempt))
    assert attempts == 1


def test_work_that_waits_is_counted_until_it_is_answered(subject: Subject, run: Any) -> None:
    core = subject.engine._core
    seen: list[int] = []

    def work(tx: Any) -> None:
        seen.append(core.writing)
        raise Unavailable("undone")

    for _ in range(2):
        with pytest.raises(Unavailable):
            run(core.transact("local", work))
    assert (seen, core.writing) == ([1, 1], 0)


# choosing the embedder


def test_the_first_embedder_is_the_stores_and_another_only_says_so(clock: FakeClock) -> None:
    async def scenario() -> None:
        store = InMemory(clock)
        core = Core(store, clock)
        await core.use_embedder(None)
        assert (core.embedding, core.note) == (None, "no embedder is configured: recall is by keywords only")
        assert await store.embedder() is None
        await core.use_embedder(UnregisteredEmbedder("first"))
        info = await store.embedder()
        assert info is not None
        assert (info.name, info.dimension) == ("first", 64)
        assert (core.embedder_info, core.note) == (info, None)
        late = Core(store, clock)
        await late.use_embedder(UnregisteredEmbedder("second"))
        assert (late.embedding, late.embedder_info) == (None, info)
        assert late.note is not None
        assert late.note.startswith(
            "this store's vectors were made by first, which cannot be used here: recall is by keywords only"
        )
        assert (await late.encode_with_info(["x"], "local"))[0] is None

    asyncio.run(scenario())
