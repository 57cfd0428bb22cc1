"""A store that the version before made with MiniLM, opened by this one, whose default is the encoder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import old_store
import pytest
from old_store import MINILM, START

from commonplace.config import load
from commonplace.embedders import model_files
from commonplace.embedders.encoder import NAME, Encoder
from commonplace.engine import Draft, Engine, Query
from commonplace.engine_factory import open_engine
from commonplace.sdk import Memory
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable

QUESTIONS = [
    "What does Alice drink?", "Where does Bob's sister live?", "Who keeps bees?", "When is the boathouse open?",
    "When is the meeting?", "What is in Oak Lane?", "Does Alice have a pet?", "disk full", "Who won the cup?",
]  # fmt: skip
KEYWORDS_ONLY = (
    f"this store's vectors were made by {MINILM}, which cannot be used here: recall is by keywords only until "
    f"`commonplace reindex` has made them anew with {NAME}"
)
USED = f"this store's vectors were made by {MINILM}, which is used; `commonplace reindex` changes to {NAME}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return old_store.unpack(tmp_path / "data")


@pytest.fixture
def without_minilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "none here"))


@pytest.fixture
def with_minilm() -> None:
    if model_files.verify():
        pytest.skip("MiniLM is not on this machine: `commonplace model build minilm` puts it there")


def with_engine(data: Path, scenario: Callable[[Engine], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        engine = await open_engine(load(data=data), clock=FakeClock(START))
        try:
            await scenario(engine)
        finally:
            await engine.close()

    asyncio.run(run())


async def picture(engine: Engine) -> list[tuple[str, float | None]]:
    """All that recall says to the questions, with each hit's scores but not its id."""
    seen: list[Any] = []
    for text in QUESTIONS:
        found = await engine.recall(WHO, Query(("alice",), text, k=20, min_score=0.0, explain=True))
        seen.append((text, found.note))
        for hit in sorted(found.hits, key=lambda hit: hit.memory.content):
            seen.append((hit.memory.content, hit.memory.version))
            seen += [(n, v) for n, v in sorted((hit.explain or {}).items()) if isinstance(v, float | None)]
    return seen


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    assert [name for name, _ in found] == [name for name, _ in wanted]
    for (name, one), (_, other) in zip(found, wanted, strict=True):
        assert one == (pytest.approx(other, abs=1e-4) if isinstance(other, float) else other), name


async def fresh_picture(folder: Path) -> list[Any]:
    engine = await open_engine(load(data=folder), clock=FakeClock(START))
    await old_store.fill(engine)
    found = await picture(engine)
    await engine.close()
    return found


@pytest.mark.usefixtures("without_minilm")
def test_without_minilm_it_is_found_by_words_and_says_what_to_do(data: Path) -> None:
    async def scenario(engine: Engine) -> None:
        found = await engine.recall(WHO, Query(("alice",), "who drinks green tea?", explain=True))
        assert found.hits[0].memory.content == "Alice drinks green tea in the morning"
        assert (found.hits[0].explain or {})["dense"] is None
        assert found.note == KEYWORDS_ONLY
        (embedder,) = [f for f in await engine.upkeep.doctor(WHO) if f.check == "embedder"]
        assert (embedder.ok, embedder.detail) == (False, KEYWORDS_ONLY)
        kept = await engine.remember(WHO, Draft("alice", "semantic", "Carol plays the cello"))
        assert (await engine.get(WHO, "alice", kept.id)).content == "Carol plays the cello"

    with_engine(data, scenario)

    async def status() -> None:
        async with Memory("alice", data=data) as memory:
            found = await memory.status()
            assert (found["note"], found["embedder"]["name"]) == (KEYWORDS_ONLY, MINILM)

    asyncio.run(status())


@pytest.mark.usefixtures("with_minilm")
def test_with_minilm_it_works_as_before_and_says_what_would_be_better(data: Path) -> None:
    async def run() -> None:
        async with Memory("alice", data=data) as memory:
            found = await memory.status()
            assert (found["note"], found["embedder"]["name"]) == (USED, MINILM)
            answer = await memory.recall("Does anyone own a cat?", explain=True)
            assert answer.note is None
            assert [check for check in await memory.doctor() if not check["ok"]] == []

    asyncio.run(run())

    async def scenario(engine: Engine) -> None:
        found = await engine.recall(WHO, Query(("alice",), "My sister moved to Lyon", explain=True))
        assert (found.hits[0].explain or {})["dense"] == pytest.approx(1, abs=1e-4), "MiniLM reads the text alone"

    with_engine(data, scenario)


@pytest.mark.parametrize("machine", ["without_minilm", "with_minilm"])
def test_reindexed_it_equals_a_fresh_one(
    data: Path, tmp_path: Path, machine: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(machine)
    progress: list[tuple[int, int]] = []

    async def scenario(engine: Engine) -> None:
        done = await engine.upkeep.reindex(WHO, Encoder(), lambda *told: progress.append(told))
        assert (done["embedder"], done["resumed"]) == (NAME, False)
        assert (engine.note, engine.embeds) == (None, True)

    with_engine(data, scenario)
    count = progress[-1][1]
    assert count >= 11
    assert progress == [(count, count)]

    async def compare(engine: Engine) -> None:
        assert engine.embedder_note is None
        assert_same(await picture(engine), await fresh_picture(tmp_path / "fresh"))
        assert [f.detail for f in await engine.upkeep.doctor(WHO) if not f.ok] == []

    with_engine(data, compare)


class Stops(Encoder):
    """Fails while it reads the long memory."""

    def encode(self, texts: Any) -> Any:
        if any("herons" in text for text in texts):
            raise Unavailable("out of memory")
        return super().encode(texts)


@pytest.mark.parametrize("machine", ["without_minilm", "with_minilm"])
def test_a_half_finished_reindex_leaves_the_old_vectors_in_use_and_goes_on(
    data: Path, tmp_path: Path, machine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue(machine)
    monkeypatch.setattr("commonplace.engine.upkeep.upkeep._AT_ONCE", 4)

    async def stop(engine: Engine) -> None:
        before = await picture(engine)
        with pytest.raises(Unavailable, match="out of memory"):
            await engine.upkeep.reindex(WHO, Stops())
        assert_same(await picture(engine), before)

    async def finish(engine: Engine) -> None:
        assert engine.embedder is not None
        assert engine.embedder.name == MINILM
        done = await engine.upkeep.reindex(WHO, Encoder())
        assert (done["resumed"], done["embedder"]) == (True, NAME)
        assert done["reindexed"] < 11
        assert_same(await picture(engine), await fresh_picture(tmp_path / "fresh"))

    with_engine(data, stop)
    with_engine(data, finish)
