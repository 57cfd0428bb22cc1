"""What a configuration says to the store that is opened reaches it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commonplace import config, plugins
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine_factory import open_engine
from commonplace.stores.base import Entry, Reach, Search, StoreSettings, Transaction
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.sqlite.index.compaction import FLUSH_ROWS
from commonplace.stores.text import terms
from commonplace.testing import FakeClock
from commonplace.wire.canonical import mint_id
from commonplace.wire.record import Memory

DIMENSION = 16
TOKENS = [np.ones((24, 48), np.uint8)]  # so that the segment of one agent is larger than a megabyte
AGENTS = ("one", "two", "three")


async def fill(store: SqliteStore) -> None:
    info = await store.adopt_embedder("test", DIMENSION)
    vectors = np.random.default_rng(1).standard_normal((FLUSH_ROWS, 1, DIMENSION)).astype(np.float32)

    def work(tx: Transaction) -> None:
        for agent in AGENTS:
            for vector in vectors:
                memory = Memory(mint_id(tx.now), "local", agent, "semantic", "a harbour", created_at=tx.now)
                tx.put(Entry(memory, vector, terms(memory.content), info.generation, TOKENS))

    await store.transact("local", work)
    await store.warm()


async def open_scopes(store: SqliteStore) -> int:
    """How many scopes are held in memory once every agent was searched."""
    for agent in AGENTS:
        assert len(await store.search(Search(Reach("local", (agent,)), "harbour", limit=5))) == 5
    return int((await store.sizes())["index"]["scopes_open"])


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite-vec"])
def test_segments_over_the_budget_are_evicted(tmp_path: Path, scheme: str) -> None:
    async def scenario() -> None:
        url = f"{scheme}://{tmp_path}/commonplace.db"
        roomy = _open(url)
        await fill(roomy)
        assert await open_scopes(roomy) == len(AGENTS)
        await roomy.close()
        tight = _open(url, StoreSettings(index_mb=1))
        assert await open_scopes(tight) == 1
        assert (await tight.sizes())["index"]["rebuilds"] == 0
        await tight.close()

    asyncio.run(scenario())


def _open(url: str, settings: StoreSettings | None = None) -> SqliteStore:
    store = plugins.open_store(url, FakeClock(), settings)
    assert isinstance(store, SqliteStore)
    return store


@pytest.mark.parametrize("scheme", ["memorywire+http", "letta"])
def test_the_timeout_and_the_token_reach_whatever_asks_a_server(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("OTHER_TOKEN", "of-a-writer")
    settings = StoreSettings(embed=HashingEmbedder().embed, timeout=7.5)
    store = plugins.open_any(f"{scheme}://127.0.0.1:1?token_env=OTHER_TOKEN", FakeClock(), settings)
    client = getattr(store, "_server", store)._client
    assert (client._timeout, client._headers["Authorization"]) == (7.5, "Bearer of-a-writer")
    asyncio.run(store.close())


def test_the_configuration_reaches_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def budget() -> int:
        engine = await open_engine(config.load(data=tmp_path, embedder="hashing", judge="none"))
        found = await engine._core.primary.sizes()
        await engine.close()
        return int(found["index"]["budget_bytes"])

    assert asyncio.run(budget()) == 512 << 20
    monkeypatch.setenv("COMMONPLACE_INDEX_MB", "3")
    assert asyncio.run(budget()) == 3 << 20


def test_an_opener_may_leave_the_settings_out(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def old(url: str, clock: Any) -> InMemory:
        given.append((url,))
        return InMemory(clock)

    def new(url: str, clock: Any, settings: StoreSettings) -> InMemory:
        given.append((url, settings.index_mb))
        return InMemory(clock)

    for opener in (old, new):
        monkeypatch.setattr(plugins, "_installed", lambda scheme, opener=opener: opener)
        plugins.open_store("theirs://x", FakeClock(), StoreSettings(index_mb=7))
    assert given == [("theirs://x",), ("theirs://x", 7)]


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite-vec"])
@pytest.mark.parametrize("form", ["relative", "absolute", "three slashes", "memory"])
def test_a_url_names_the_file_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    here = {"relative": "./kept.db", "absolute": f"{tmp_path}/kept.db", "three slashes": f"//{tmp_path}/kept.db"}
    store = plugins.open_store(f"{scheme}://{here.get(form, ':memory:')}", FakeClock())
    assert isinstance(store, SqliteStore)
    place = store.files.database
    assert place.is_file()
    assert (tmp_path / "kept.db").exists() is (form != "memory")
    asyncio.run(store.close())
    assert place.exists() is (form != "memory"), "what is in memory goes when it is closed"
