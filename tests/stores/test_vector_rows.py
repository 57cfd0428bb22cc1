"""Vectors and tokens in rows: what is rounded, what older versions wrote, and what a reindex makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from token_embedder import HashingTokens

from commonplace.embedders.base import Embedder
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Engine, Query
from commonplace.stores.base import Candidate, Entry, Reach, Search
from commonplace.stores.fixed_point import cosines, is_finite, to_fixed, to_floats
from commonplace.stores.sqlite import SqliteStore, schema
from commonplace.stores.sqlite.index import manifest, segment
from commonplace.stores.text import terms
from commonplace.stores.token_vectors import QuestionTokens, quantise
from commonplace.stores.vector_cells import to_cells, tokens_of, vectors_of
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.canonical import mint_id
from commonplace.wire.record import Memory

FACTS = (
    "the boat lies in the harbour",
    "Alice plays the violin",
    "the tax office opens at nine",
    " ".join(f"paragraph {n} of a long report about the harbour." for n in range(60)),
)


def unit(rng: np.random.Generator, count: int, dimension: int) -> NDArray[np.float32]:
    rows = rng.normal(size=(count, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(0, 2**32 - 1), st.sampled_from((8, 384, 1024)))
def test_cosines_of_16_bits_are_those_of_32(seed: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, question = unit(rng, 50, dimension), unit(rng, 1, dimension)[0]
    exact = vectors @ question
    fixed = to_fixed(vectors)
    np.testing.assert_allclose(cosines(fixed, question), exact, atol=1e-4)
    np.testing.assert_allclose(to_floats(fixed) @ question, exact, atol=1e-4)
    rows = rng.permutation(50)[:20]
    assert cosines(fixed, question, rows).tolist() == cosines(fixed, question)[rows].tolist()
    assert to_fixed(to_floats(fixed)).tolist() == fixed.tolist()


def test_a_row_scores_the_same_wherever_it_lies() -> None:
    rng = np.random.default_rng(1)
    fixed, question = to_fixed(unit(rng, 3000, 384)), unit(rng, 1, 384)[0]
    together = cosines(fixed, question)
    for at in (0, 1023, 1024, 2999):
        assert cosines(fixed[at : at + 1], question)[0] == together[at]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_recognisable(value: float) -> None:
    vectors = unit(np.random.default_rng(2), 2, 8)
    assert is_finite(to_fixed(vectors))
    vectors[1, 3] = value
    assert not is_finite(to_fixed(vectors))
    data, _ = to_cells(vectors, None)
    assert vectors_of(data, 8) is None


@given(st.integers(1, 5))
def test_what_was_written_as_float32_is_read_as_what_is_written_today(parts: int) -> None:
    vectors = unit(np.random.default_rng(parts), parts, 16)
    data, _ = to_cells(vectors, None)
    today, before = vectors_of(data, 16), vectors_of(vectors.tobytes(), 16)
    assert today is not None
    assert before is not None
    assert today.tolist() == before.tolist()
    assert today.shape == vectors.shape


@pytest.mark.parametrize("data", [None, b"", b"x", b"xy", b"\0" * 5, b"\0" * 8, b"\0" * 34])
def test_a_cell_of_another_size_has_no_vectors(data: bytes | None) -> None:
    assert vectors_of(data, 16) is None
    assert vectors_of(data, 0) is None


def test_tokens_of_other_parts_than_the_vectors_are_none() -> None:
    vectors, codes = unit(np.random.default_rng(3), 2, 16), np.ones((3, 4), np.uint8)
    for tokens, parts in (([codes, codes], 2), ([codes], 0), ([codes] * 3, 0), ([], 0), (None, 0)):
        data, packed = to_cells(vectors, tokens)
        assert len(tokens_of(packed, vectors_of(data, 16))) == parts
        assert tokens_of(packed, None) == []


# stores of earlier versions


def as_before_tokens(path: Path) -> None:
    """What a store of these contents was before schema 7."""
    db = apsw.Connection(str(path))
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'vectors_[0-9]*'")]
    for table in tables:
        for vid, data in db.execute(f"SELECT vid, data FROM {table} WHERE data IS NOT NULL").fetchall():
            floats = to_floats(np.frombuffer(data[:-1], "<i2"))
            db.execute(f"UPDATE {table} SET data = ? WHERE vid = ?", (floats.tobytes(), vid))
        db.execute(f"ALTER TABLE {table} DROP COLUMN tokens")
    # What later migrations make, or they would find it there already.
    for (trigger,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {trigger}")
    db.execute("DROP INDEX records_by_status")
    db.execute("PRAGMA user_version = 6").fetchall()
    db.close()


async def remember_all(engine: Engine, facts: Sequence[str] = FACTS) -> list[str]:
    return [(await engine.remember(WHO, Draft("agent", "semantic", fact))).id for fact in facts]


async def found(engine: Engine, embedder: Embedder) -> dict[str, Candidate]:
    tokens = None
    if isinstance(embedder, HashingTokens):
        (asked,) = embedder.encode(["a boat in the harbour"])
        tokens = QuestionTokens.of(asked.tokens, asked.weights)
    vector = embedder.embed(["a boat in the harbour"])[0]
    store = engine._core.primary
    candidates = await store.search(Search(Reach("local", ("agent",)), "boat harbour", vector, tokens=tokens))
    return {candidate.memory.content: candidate for candidate in candidates}


def scores(candidates: dict[str, Candidate]) -> dict[str, tuple[float | None, float | None]]:
    return {content: (candidate.dense, candidate.late) for content, candidate in candidates.items()}


async def opened(path: Path, embedder: Embedder) -> Engine:
    return await Engine.open(SqliteStore(path, FakeClock()), embedder, clock=FakeClock())


@pytest.mark.parametrize("segments", [False, True])
def test_a_store_of_the_version_before_opens_recalls_and_reindexes_to_the_same_as_a_fresh_one(
    tmp_path: Path, segments: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.stores.sqlite.index.compaction.FLUSH_ROWS", 2 if segments else 1024)

    async def scenario() -> None:
        path, plain, tokens = tmp_path / "old" / "commonplace.db", HashingEmbedder(64), HashingTokens(32)
        with monkeypatch.context() as earlier:
            for module in (segment, manifest):
                earlier.setattr(module, "FORMAT", 1)
            old = await opened(path, plain)
            ids = await remember_all(old)
            await old.update_with(WHO, "agent", ids[1], lambda m: m)
            before = await found(old, plain)
            await old.warm_indexes()
            await old.close()
        as_before_tokens(path)
        assert bool(list(path.parent.rglob("*.seg"))) is segments

        again = await opened(path, plain)
        assert [f for f in await again.upkeep.doctor(WHO, repair=False) if not f.ok] == []
        assert scores(await found(again, plain)) == scores(before)
        assert again._core.primary._db.pragma("user_version") == schema.VERSION  # type: ignore[attr-defined]
        lacking = await found(again, HashingTokens(64))
        assert [candidate.late for candidate in lacking.values()] == [None] * len(lacking)
        assert [hit.memory.id for hit in (await again.recall(WHO, Query(("agent",), "violin", k=1))).hits] == ids[1:2]
        assert [f for f in await again.upkeep.doctor(WHO, repair=False) if not f.ok] == []
        await again.upkeep.reindex(WHO, tokens)
        reindexed = await found(again, tokens)

        fresh = await opened(tmp_path / "fresh" / "commonplace.db", HashingTokens(32))
        await remember_all(fresh)
        assert scores(reindexed) == scores(await found(fresh, tokens))
        assert all(candidate.late is not None for candidate in reindexed.values())
        assert await cells(again) == await cells(fresh)
        for engine in (again, fresh):
            assert [f for f in await engine.upkeep.doctor(WHO, repair=False) if not f.ok] == []
            await engine.close()

    asyncio.run(scenario())


async def cells(engine: Engine) -> set[tuple[bytes, bytes]]:
    info = await engine._core.primary.embedder()
    assert info is not None
    db: Any = engine._core.primary._db  # type: ignore[attr-defined]
    return set(db.execute(f"SELECT v.data, v.tokens FROM memories m JOIN vectors_{info.generation} v ON v.vid = m.vid"))


def test_a_reindex_by_the_same_embedder_rounds_what_was_float32_and_makes_only_what_is_missing(tmp_path: Path) -> None:
    async def scenario() -> None:
        path, embedder = tmp_path / "commonplace.db", HashingEmbedder(64)
        engine = await opened(path, embedder)
        await remember_all(engine)
        written = await cells(engine)
        await engine.close()
        as_before_tokens(path)
        engine = await opened(path, embedder)
        assert await cells(engine) != written
        await remember_all(engine, ["written since"])
        done = await engine.upkeep.reindex(WHO, HashingEmbedder(64))
        assert done["reindexed"] == 0
        assert written < await cells(engine)
        assert all(len(data) % 2 for data, _ in await cells(engine))
        await engine.close()

    asyncio.run(scenario())


def test_a_reindex_begun_by_the_version_before_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        path, tokens = tmp_path / "commonplace.db", HashingTokens(32)
        engine = await opened(path, HashingEmbedder(64))
        await remember_all(engine)
        store: Any = engine._core.primary
        generation, _ = await store.begin_generation(tokens.name, tokens.dimension)
        ((number, memory),) = await store.without_vectors(generation, 0, 1)
        await store.fill_vectors(generation, [(number, tokens.embed([memory.content]), None)])
        await engine.close()
        as_before_tokens(path)
        engine = await opened(path, HashingEmbedder(64))
        done = await engine.upkeep.reindex(WHO, tokens)
        assert (done["resumed"], done["reindexed"]) == (True, len(FACTS) - 1)
        late = {content: candidate.late for content, candidate in (await found(engine, tokens)).items()}
        assert late.pop(memory.content) is None  # made by a version that knew no tokens
        assert None not in late.values()
        await engine.close()

    asyncio.run(scenario())


def test_a_reindex_by_the_same_embedder_keeps_tokens(tmp_path: Path) -> None:
    async def scenario() -> None:
        engine = await opened(tmp_path / "commonplace.db", HashingTokens(64))
        await remember_all(engine)
        before, asked = await cells(engine), await found(engine, HashingTokens(64))
        done = await engine.upkeep.reindex(WHO, HashingTokens(64))
        assert done["reindexed"] == 0
        assert await cells(engine) == before
        assert scores(await found(engine, HashingTokens(64))) == scores(asked)
        assert None not in {candidate.late for candidate in asked.values()}
        await engine.close()

    asyncio.run(scenario())


def test_tokens_that_come_after_their_memory_are_searched_and_erased_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        path, tokens = tmp_path / "commonplace.db", HashingTokens(64)
        engine = await opened(path, tokens)
        store: Any = engine._core.primary
        memory = Memory(mint_id(1), "local", "agent", "semantic", FACTS[0], created_at=1)
        await store.put([Entry(memory, None, terms(memory.content))])
        assert {c.late for c in (await found(engine, tokens)).values()} == {None}
        ((number, lacking),) = await store.without_vectors(1, 0, 10)
        (encoding,) = tokens.encode([memory.content])
        codes = quantise(encoding.tokens)
        await store.add_vectors(lacking, number, 1, encoding.vector[None], [codes])
        late = (await found(engine, tokens))[FACTS[0]].late
        assert late is not None
        await engine.close()
        assert any(codes.tobytes() in file.read_bytes() for file in path.parent.iterdir() if file.is_file())
        engine = await opened(path, tokens)
        assert (await found(engine, tokens))[FACTS[0]].late == late
        await engine._core.primary.delete("local", [memory.id])
        assert await found(engine, tokens) == {}
        await engine.close()
        assert not any(codes.tobytes() in file.read_bytes() for file in path.parent.rglob("*") if file.is_file())

    asyncio.run(scenario())
