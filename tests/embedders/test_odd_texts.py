"""Odd texts, kept and asked for with the encoder: each is found again, or answered sensibly."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from commonplace.embedders.encoder import DIMENSION, NAME, Encoder
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Engine, Query
from commonplace.sdk import Memory
from commonplace.stores.base import Primary
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import ValidationError

ODD = {
    "one character": "x",
    "one digit": "7",
    "30k characters": "The heron stood in the reeds beside the boathouse. " * 600,
    "30k without a space": "a" * 30_000,
    "only emoji": "😀🎉🦩",
    "only punctuation": "?!…",
    "only articles": "the a an",
    "control characters": "tea\x00\x01time",
    "another script": "会議は三時です",
    "combining marks": "e\u0301" * 200,
}
#: As a question these have no word to look for.
SAYS_NOTHING = {"only emoji", "only punctuation"}


def test_an_odd_text_is_kept_and_found_again_among_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with Memory("agent", data=tmp_path, embedder="encoder") as memory:
            kept = {name: (await memory.remember(text)).id for name, text in ODD.items()}
            for name, text in ODD.items():
                found = await memory.recall(text[:8_000], k=len(ODD), min_score=0.0)
                assert found.note is None, name
                ids = [hit.id for hit in found.results]
                assert kept[name] in ids or (name in SAYS_NOTHING and not ids), name

    asyncio.run(run())


def test_half_a_character_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async def run() -> None:
        async with Memory("agent", data=tmp_path, embedder="encoder") as memory:
            with pytest.raises(ValidationError, match="content holds half of a surrogate pair, which is not text"):
                await memory.remember("tea \ud800 time")
            with pytest.raises(ValidationError, match="query holds half of a surrogate pair, which is not text"):
                await memory.recall("tea \ud800 time")

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_store_of_another_dimension_says_so_and_can_be_reindexed(kind: str, tmp_path: Path, clock: FakeClock) -> None:
    async def run() -> None:
        store: Primary = InMemory(clock) if kind == "memory" else SqliteStore(tmp_path / "x.db", clock)
        other = HashingEmbedder(DIMENSION - 128)
        other.name = NAME
        first = await Engine.open(store, other, clock=clock)
        await first.remember(WHO, Draft("agent", "semantic", "Bob keeps bees"))
        engine = await Engine.open(store, Encoder(), clock=clock)
        assert engine.note == (
            f"this store's vectors were made by {NAME} with 256 dimensions, which cannot be used here: recall is by "
            f"keywords only until `commonplace reindex` has made them anew with {NAME}"
        )
        await engine.remember(WHO, Draft("agent", "semantic", "Alice drinks green tea"))
        found = await engine.recall(WHO, Query(("agent",), "green tea", min_score=0.0))
        assert [hit.memory.content for hit in found.hits] == ["Alice drinks green tea"]
        if kind == "sqlite":
            await engine.upkeep.reindex(WHO, Encoder())
            found = await engine.recall(WHO, Query(("agent",), "what does she drink?", min_score=0.0, explain=True))
            assert found.note is None
            assert {(hit.explain or {})["dense"] is None for hit in found.hits} == {False}
            assert len(found.hits) == 2
        await engine.close()

    asyncio.run(run())
