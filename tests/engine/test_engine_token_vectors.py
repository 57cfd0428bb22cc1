"""Late interaction's vectors: every way to write a memory keeps those of its tokens, every question has its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from token_embedder import HashingTokens

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Draft, Engine, Merge, Query, Settings, Update
from commonplace.engine.core import EMBEDDED_AT_ONCE_CHARS
from commonplace.engine.governance.reviews import Decision
from commonplace.engine.memory.passages import passages
from commonplace.stores.base import Entry, Search, Transaction
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.token_vectors import Codes, QuestionTokens, quantise
from commonplace.testing.subject import DAY_MS, WHO, FakeClock
from commonplace.wire.record import Memory

LONG = "The heron stood in the reeds. " * 100
DAY = 1_700_000_000_000  # 2023-11-14


async def remember(engine: Engine) -> str:
    return (await engine.remember(WHO, Draft("agent", "semantic", "The lake is deep", title="On lakes"))).id


async def remember_long(engine: Engine) -> str:
    return (await engine.remember(WHO, Draft("agent", "semantic", LONG))).id


async def remember_turn(engine: Engine) -> str:
    return (await engine.remember(WHO, Draft("agent", "episodic", "I like tea", speaker="Alice", event_time=DAY))).id


async def remember_many(engine: Engine) -> str:
    kept = await engine.remember_many(WHO, [BatchItem(Draft("agent", "semantic", text)) for text in ("one", LONG)])
    return kept[1].id  # type: ignore[union-attr]


async def approve(engine: Engine) -> str:
    staged = await engine.remember(WHO, Draft("agent", "semantic", "the river"), approval={})
    assert staged.review_id is not None
    await engine.reviews.decide(WHO, staged.review_id, Decision(True))
    return staged.id


async def upsert(engine: Engine) -> str:
    await engine.upsert(WHO, Draft("agent", "semantic", "one"), "ref", "agent")
    return (await engine.upsert(WHO, Draft("agent", "semantic", "two of the"), "ref", "agent")).receipt.id


async def update(engine: Engine) -> str:
    id = await remember(engine)
    await engine.update(WHO, Update("agent", id, content="The lake is frozen"))
    return id


async def change_speaker(engine: Engine) -> str:
    id = await remember_turn(engine)
    await engine.update_with(WHO, "agent", id, lambda m: replace(m, speaker="Bob"))
    return id


async def change_event_time(engine: Engine) -> str:
    id = await remember_turn(engine)
    await engine.update_with(WHO, "agent", id, lambda m: replace(m, event_time=DAY + 3 * DAY_MS))
    return id


async def merge(engine: Engine) -> str:
    kept, other = await remember(engine), await remember_turn(engine)
    await engine.merge(WHO, Merge("agent", kept, [other], strategy="merge_content"))
    return kept


async def undelete(engine: Engine) -> str:
    id = await remember(engine)
    assert await engine.delete(WHO, id)
    await engine.undelete(WHO, "agent", id)
    return id


WAYS = [
    remember, remember_long, remember_turn, remember_many, approve, upsert, update, change_speaker, change_event_time,
    merge, undelete,
]  # fmt: skip


def expected(memory: Memory) -> tuple[np.ndarray, list[Codes]]:
    encoded = HashingTokens().encode(passages(memory, speakers=True))
    return np.stack([each.vector for each in encoded]), [quantise(each.tokens[each.kept]) for each in encoded]


def same(tokens: Sequence[Codes] | None, wanted: Sequence[Codes]) -> bool:
    return tokens is not None and list(map(bytes, tokens)) == list(map(bytes, wanted))


class RecordingTransaction:
    """A transaction that records what is put."""

    def __init__(self, tx: Transaction, written: dict[str, Entry]) -> None:
        self._tx, self._written = tx, written

    def put(self, entry: Entry) -> Memory:
        self._written[entry.memory.id] = entry
        return self._tx.put(entry)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


def entries_of(store: Any) -> dict[str, Entry]:
    """What is written from now on, by id, as the store is given it."""
    written: dict[str, Entry] = {}
    transact = store.transact
    store.transact = lambda tenant, work: transact(tenant, lambda tx: work(RecordingTransaction(tx, written)))
    return written


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_memory_is_written_with_the_vectors_of_its_tokens(
    way: Callable[[Engine], Coroutine[Any, Any, str]], clock: FakeClock
) -> None:
    async def run() -> None:
        store = InMemory(clock)
        written = entries_of(store)
        engine = await Engine.open(store, HashingTokens(), clock=clock)
        id = await way(engine)
        entry = written[id]
        vectors, tokens = expected(entry.memory)
        assert entry.vectors is not None
        np.testing.assert_array_equal(entry.vectors, vectors)
        assert same(entry.tokens, tokens)
        await engine.close()

    asyncio.run(run())


def test_one_pass_makes_vector_and_tokens_and_a_repeated_question_none(clock: FakeClock) -> None:
    async def run() -> None:
        embedder = HashingTokens()
        engine = await Engine.open(InMemory(clock), embedder, clock=clock)
        await remember(engine)
        for _ in range(2):
            await engine.recall(WHO, Query(("agent",), "how deep is the lake?"))
        assert [len(texts) for texts in embedder.passes] == [1, 1]
        await engine.close()

    asyncio.run(run())


def test_a_vector_that_was_given_has_no_tokens(clock: FakeClock) -> None:
    async def run() -> None:
        store = InMemory(clock)
        written = entries_of(store)
        engine = await Engine.open(store, HashingTokens(), clock=clock)
        given = HashingEmbedder().embed(["x"])[0].tolist()
        id = (await engine.remember(WHO, Draft("agent", "semantic", "The lake", embedding=given))).id
        assert written[id].tokens is None
        await engine.close()

    asyncio.run(run())


@pytest.mark.parametrize("embedder", [HashingEmbedder, HashingTokens])
def test_a_question_is_searched_with_its_tokens_where_there_are_any(
    embedder: type[HashingEmbedder], clock: FakeClock
) -> None:
    class Watched(InMemory):
        asked: list[Search]

        async def search(self, wanted: Search) -> Any:
            self.asked.append(wanted)
            return await super().search(wanted)

    async def run() -> None:
        store = Watched(clock)
        store.asked = []
        engine = await Engine.open(store, embedder(), clock=clock)
        await remember(engine)
        await engine.recall(WHO, Query(("agent",), "how deep is the lake?"))
        found = [wanted.tokens for wanted in store.asked]
        if embedder is HashingEmbedder:
            assert found == [None]
        else:
            (encoded,) = HashingTokens().encode([store.asked[0].text or ""])
            wanted = QuestionTokens.of(encoded.tokens, encoded.weights)
            (tokens,) = found
            assert tokens is not None
            np.testing.assert_array_equal(tokens.levels, wanted.levels)
            np.testing.assert_array_equal(tokens.shares, wanted.shares)
        await engine.close()

    asyncio.run(run())


class WatchedStore(SqliteStore):
    """Notes the vectors that come after their memories."""

    def __init__(self, path: Path, clock: FakeClock) -> None:
        super().__init__(path, clock)
        self.late: dict[int, Sequence[Codes] | None] = {}

    async def add_vectors(self, memory: Memory, number: int, generation: int, vectors: Any, tokens: Any = None) -> None:
        self.late[number] = tokens
        await super().add_vectors(memory, number, generation, vectors, tokens)

    async def fill_vectors(self, generation: int, vectors: Any) -> None:
        self.late |= {number: tokens for number, _, tokens in vectors}
        await super().fill_vectors(generation, vectors)


def test_vectors_that_are_made_behind_come_with_tokens(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        store = WatchedStore(tmp_path / "x.db", clock)
        engine = await Engine.open(store, HashingTokens(), clock=clock, settings=Settings(embeds_behind=True))
        content = (LONG * 30)[: EMBEDDED_AT_ONCE_CHARS + 1]
        id = (await engine.remember(WHO, Draft("agent", "episodic", content, speaker="Alice"))).id
        await engine.wait_for_vectors()
        (tokens,) = store.late.values()
        assert same(tokens, expected(await engine.get(WHO, "agent", id))[1])
        await engine.close()

    asyncio.run(run())


def test_a_reindex_makes_tokens_and_reads_what_its_embedder_reads(tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        store = WatchedStore(tmp_path / "x.db", clock)
        engine = await Engine.open(store, HashingEmbedder(), clock=clock)
        id = await remember_turn(engine)
        await engine.upkeep.reindex(WHO, HashingTokens(64))
        (tokens,) = store.late.values()
        assert same(tokens, expected(await engine.get(WHO, "agent", id))[1])
        store.late.clear()
        await engine.upkeep.reindex(WHO, HashingEmbedder(32))
        assert list(store.late.values()) == [None]
        found = await engine.recall(WHO, Query(("agent",), "I like tea", explain=True))
        assert (found.hits[0].explain or {})["dense"] == pytest.approx(1), "this one reads the text alone"
        await engine.close()

    asyncio.run(run())
