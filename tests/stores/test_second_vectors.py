"""A second vector for every memory: filled beside the first, searched as a leg of its own, and erased everywhere."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commonplace.stores.base import Entry, Reach, Search, StaleGeneration, Vectors
from commonplace.stores.fixed_point import to_fixed
from commonplace.stores.memory import InMemory
from commonplace.stores.optional import SecondVectors
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.sqlite.index import compaction
from commonplace.stores.text import terms
from commonplace.testing import FakeClock
from commonplace.wire.canonical import content_hash
from commonplace.wire.record import Memory

_REACH = Reach("local", ("alice",))
_KINDS = ("memory", "sqlite")


def awaited(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run


def axis(place: int, size: int) -> Vectors:
    vector = np.zeros(size, np.float32)
    vector[place] = 1.0
    return vector


def entry(number: int, content: str, second: Vectors | None = None, generation: int = 1, **fields: Any) -> Entry:
    id = f"00000000-0000-7000-8000-{number:012d}"
    salt = b"0" * 16
    memory = Memory(
        id=id, tenant="local", agent_id="alice", type="semantic", content=content, created_at=number,
        updated_at=number, content_hash=content_hash(content, salt), salt=salt,
    )  # fmt: skip
    memory = replace(memory, **fields)
    vectors = axis(number % 4, 4)[None, :]
    own = None if second is None else second[None, :]
    return Entry(memory, vectors, terms(content), 1, second=own, second_generation=generation)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    clock, held = FakeClock(), []

    def open_store(kind: str) -> Any:
        store = InMemory(clock) if kind == "memory" else SqliteStore(tmp_path / "s.db", clock)
        held.append(store)
        return store

    yield open_store
    for store in held:
        asyncio.run(store.close())


async def put(store: Any, *entries: Entry) -> None:
    await store.transact("local", lambda tx: [tx.put(e) for e in entries])


async def found(store: Any, second: Vectors | None, **how: Any) -> dict[str, float | None]:
    search = Search(_REACH, None, axis(0, 4), limit=2, second=second, **how)
    return {c.memory.content: c.second for c in await store.search(search)}


async def fill(store: Any, name: str = "other", place: Callable[[Memory], int] = lambda m: m.created_at % 3) -> int:
    info = await store.begin_second(name, 3)
    made = [(n, axis(place(m), 3)[None, :]) for n, m in await store.without_second(0, 1000)]
    await store.fill_second(info.generation, made)
    assert await store.finish_second(info.generation)
    return int(info.generation)


@pytest.mark.parametrize("kind", _KINDS)
@awaited
async def test_it_is_a_leg_of_its_own(opened: Callable[[str], Any], kind: str) -> None:
    store = opened(kind)
    assert isinstance(store, SecondVectors)
    await store.adopt_embedder("first", 4)
    await put(store, *(entry(n, f"text {n}") for n in (4, 8, 12, 1, 2)))
    assert await store.second_embedder() is None
    assert await store.count_without_second() == 5
    generation = await fill(store)
    # By the first embedder 4 and 8 are the nearest of those that limit 2 lets through; by the second 2 is.
    hits = await found(store, axis(2, 3), second_generation=generation)
    assert hits["text 2"] == hits["text 8"] == 1.0
    assert hits["text 4"] == 0.0
    assert set(await found(store, None)) == {"text 4", "text 8"}
    both = await store.search(Search(_REACH, "text", axis(0, 4), limit=2, second=axis(2, 3)))
    assert {c.memory.content for c in both if c.dense is None} == set()
    assert next(c for c in both if c.memory.content == "text 2").dense == 0.0


@pytest.mark.parametrize("kind", _KINDS)
@awaited
async def test_it_is_searched_only_when_every_memory_has_one(opened: Callable[[str], Any], kind: str) -> None:
    store = opened(kind)
    await store.adopt_embedder("first", 4)
    await put(store, *(entry(n, f"text {n}") for n in range(4)))
    info = await store.begin_second("other", 3)
    assert (info.ready, info.generation > 0) == (False, True)
    (number, _), *rest = await store.without_second(0, 10)
    await store.fill_second(info.generation, [(number, axis(0, 3)[None, :])])
    assert not await store.finish_second(info.generation)
    with pytest.raises(StaleGeneration):  # whoever thinks it is there asks again
        await found(store, axis(0, 3), second_generation=info.generation)
    assert len(await found(store, None, second_generation=0)) == 2
    again = await store.begin_second("other", 3)
    assert (again, await store.count_without_second()) == (info, 3)
    assert [n for n, _ in await store.without_second(number, 10)] == [n for n, _ in rest]
    await store.fill_second(info.generation, [(n, axis(1, 3)[None, :]) for n, _ in rest])
    assert await store.finish_second(info.generation)
    with pytest.raises(StaleGeneration):  # and so does whoever does not know of it yet
        await found(store, None, second_generation=0)


@pytest.mark.parametrize("kind", _KINDS)
@awaited
async def test_what_is_written_later_has_its_own_or_is_told_apart(opened: Callable[[str], Any], kind: str) -> None:
    store = opened(kind)
    await store.adopt_embedder("first", 4)
    generation = await fill(store)
    await put(store, entry(1, "with", axis(1, 3), generation), entry(2, "without"))
    hits = await found(store, axis(1, 3), second_generation=generation)
    assert hits == {"with": 1.0, "without": None}
    ((number, memory),) = await store.without_second(0, 10)
    await store.add_second(memory, number, generation, axis(1, 3)[None, :])
    assert await found(store, axis(1, 3)) == {"with": 1.0, "without": 1.0}
    assert await store.count_without_second() == 0


@pytest.mark.parametrize("kind", _KINDS)
@awaited
async def test_another_embedder_takes_its_place_and_removing_leaves_nothing(
    opened: Callable[[str], Any], kind: str
) -> None:
    store = opened(kind)
    await store.adopt_embedder("first", 4)
    await put(store, entry(1, "text"))
    first = await fill(store)
    second = await fill(store, "yet another")
    assert second > first
    assert (await store.second_embedder()).name == "yet another"
    assert await store.drop_second() is True
    assert await store.second_embedder() is None
    assert await store.count_without_second() == 1
    assert await store.drop_second() is False
    assert await fill(store) > second or kind == "memory"


@pytest.mark.parametrize("kind", _KINDS)
@awaited
async def test_the_past_is_searched_by_it_too(opened: Callable[[str], Any], kind: str) -> None:
    store = opened(kind)
    await store.adopt_embedder("first", 4)
    generation = await fill(store)
    await put(store, entry(1, "then", axis(1, 3), generation), entry(3, "far", axis(0, 3), generation))
    before = await store.sequence("local")
    await put(store, entry(1, "now", axis(2, 3), generation))
    reach = replace(_REACH, as_of=before)
    hits = await store.search(Search(reach, None, axis(3, 4), limit=1, second=axis(1, 3)))
    assert {c.memory.content: c.second for c in hits} == {"then": 1.0, "far": 0.0}


# what only files have


def marked(seed: int) -> Vectors:
    """A vector whose bytes can be found in a file."""
    vector = np.random.default_rng(seed).standard_normal(3).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def kept(vector: Vectors) -> bytes:
    return to_fixed(vector).tobytes()


def holding(folder: Path, needle: bytes) -> list[str]:
    return [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and needle in p.read_bytes()]


@pytest.mark.parametrize("searched", [True, False])
@pytest.mark.parametrize("rows", [3, compaction.FLUSH_ROWS + 3])
@awaited
async def test_an_erased_memory_leaves_no_second_vector_in_any_file(tmp_path: Path, rows: int, searched: bool) -> None:
    store = SqliteStore(tmp_path / "s.db", FakeClock())
    await store.adopt_embedder("first", 4)
    generation = await fill(store)
    gone = marked(7)
    await put(store, entry(0, "gone", gone, generation))
    await put(store, *(entry(n, f"kept {n}", marked(1000 + n), generation) for n in range(1, rows)))
    await store.warm()
    assert holding(tmp_path, kept(gone))
    search = Search(_REACH, None, axis(0, 4), limit=1, second=gone)
    assert "gone" in {c.memory.content for c in await store.search(search)}
    await store.transact("local", lambda tx: tx.erase(entry(0, "gone").memory.id))
    if searched:
        assert "gone" not in {c.memory.content for c in await store.search(search)}
        assert [f.detail for f in await store.examine(repair=False) if "index" in f.check and not f.ok] == []
    await store.close()
    assert holding(tmp_path, kept(gone)) == []


@awaited
async def test_many_are_searched_in_segments_which_are_checked_and_rebuilt(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", FakeClock())
    await store.adopt_embedder("first", 4)
    generation = await fill(store)
    count = compaction.FLUSH_ROWS + 10
    await put(store, *(entry(n, f"text {n}", marked(n), generation) for n in range(count)))
    await store.warm()
    segments = list((tmp_path / "s.second-segments").rglob("*.seg"))
    assert segments
    assert (await store.sizes())["second_index"]["files"] > 0
    best = await store.search(Search(_REACH, None, None, limit=1, second=marked(77)))
    assert [(c.memory.content, round(c.second or 0, 3)) for c in best] == [("text 77", 1.0)]
    await store.close()
    segments[0].write_bytes(segments[0].read_bytes()[:-64])
    store = SqliteStore(tmp_path / "s.db", FakeClock())
    wrong = {f.check: f.repaired for f in await store.examine(repair=True) if "index" in f.check and f.detail != "ok"}
    assert wrong == {"second index of scope 1": True}
    assert [c.memory.content for c in await store.search(Search(_REACH, limit=1, second=marked(77)))] == ["text 77"]
    await store.drop_second()
    assert not (tmp_path / "s.second-segments").exists()
    assert holding(tmp_path, kept(marked(77))) == [] or await store.compact() == 0
    await store.close()
    assert holding(tmp_path, kept(marked(77))) == []


@awaited
async def test_segments_hear_of_vectors_that_came_later(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", FakeClock())
    await store.adopt_embedder("first", 4)
    generation = await fill(store)
    count = compaction.FLUSH_ROWS + 10
    await put(store, *(entry(n, f"text {n}", marked(n), generation) for n in range(count)), entry(count, "late"))
    await store.warm()
    ((number, memory),) = await store.without_second(0, 10)
    await store.add_second(memory, number, generation, marked(5_000)[None, :])
    best = await store.search(Search(_REACH, None, None, limit=1, second=marked(5_000)))
    assert [c.memory.content for c in best] == ["late"]
    await store.close()


@awaited
async def test_both_indexes_stay_within_one_budget(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", FakeClock())
    await store.adopt_embedder("first", 4)
    generation = await fill(store)
    for agent in ("alice", "bob"):
        start = 0 if agent == "alice" else 10_000
        rows = (entry(start + n, f"text {n}", marked(n), generation, agent_id=agent) for n in range(1200))
        await put(store, *rows)
    await store.warm()
    await store.close()
    store = SqliteStore(tmp_path / "s.db", FakeClock())
    both = Reach("local", ("alice", "bob"))
    await store.search(Search(both, "text", axis(0, 4)))
    budget = store.index.sizes()["bytes_open"]  # what the first index needs for both agents
    await store.close()
    store = SqliteStore(tmp_path / "s.db", FakeClock())
    for index in (store.index, store.second.index):
        index._budget = budget
    await store.search(Search(_REACH, "text", axis(0, 4), second=marked(1)))
    await store.search(Search(Reach("local", ("bob",)), "text", axis(0, 4), second=marked(1)))
    assert store.index.sizes()["scopes_open"] == 1
    await store.close()
