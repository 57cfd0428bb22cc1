"""What a store stands on is taken away, on each real product: it says so, with what to do, and is well again when
it is back. `commonplace stores`, `status` and `/v0/stores` show what `stores.list` and `health` have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from postgres_databases import server as postgres
from products import PRODUCTS, cognee_url, database, letta_url
from replica_house import house, run
from server_process import run_server

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.plugins import open_replica
from commonplace.stores.base import Entry, StoreSettings
from commonplace.stores.cognee import CogneeStore
from commonplace.stores.health_checks import EmbeddingsEndpoint
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]
SETTINGS = StoreSettings(embed=HashingEmbedder().embed, timeout=60)
_MISSING = {product.name: product.missing for product in PRODUCTS}
_NOBODY = "127.0.0.1:9"  # where no server is


@dataclass
class Taken:
    """A store, and how to take away what it stands on."""

    store: Any
    away: Callable[[], AbstractAsyncContextManager[None]]


Case = Callable[[Path], AbstractAsyncContextManager[Taken]]


@asynccontextmanager
async def renamed(path: Path) -> AsyncIterator[None]:
    """Somebody moves it; whoever has it open can go on in it."""
    path.rename(path.with_name("elsewhere"))
    try:
        yield
    finally:
        path.with_name("elsewhere").rename(path)


def of_folder(url: str, what: str) -> Case:
    @asynccontextmanager
    async def case(folder: Path) -> AsyncIterator[Taken]:
        store = open_replica(url.format(folder), FakeClock(), SETTINGS)
        yield Taken(store, lambda: renamed(folder / what))

    return case


def of_database(scheme: str) -> Case:
    @asynccontextmanager
    async def case(folder: Path) -> AsyncIterator[Taken]:
        name = database()
        url = postgres().url(name).replace("postgresql", scheme, 1)
        store = open_replica(url, FakeClock(), StoreSettings(folder=folder, embed=SETTINGS.embed, timeout=60))
        yield Taken(store, lambda: closed_database(name))

    return case


@asynccontextmanager
async def closed_database(name: str) -> AsyncIterator[None]:
    """Nobody is let in, and whoever is in is thrown out, as when it is stopped."""
    postgres().execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    postgres().execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    try:
        yield
    finally:
        postgres().execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@asynccontextmanager
async def another_server(folder: Path) -> AsyncIterator[Taken]:
    with run_server(folder) as process:
        store = open_replica(f"memorywire+{process.url}", FakeClock(), SETTINGS)

        @asynccontextmanager
        async def killed() -> AsyncIterator[None]:
            process.process.kill()
            process.process.wait()
            yield

        yield Taken(store, killed)


@asynccontextmanager
async def letta_server(folder: Path) -> AsyncIterator[Taken]:
    store = open_replica(letta_url(), FakeClock(), SETTINGS)
    yield Taken(store, lambda: other_client(store, f"letta://{_NOBODY}/tests"))


@asynccontextmanager
async def other_client(store: Any, url: str) -> AsyncIterator[None]:
    """The server that the others are tested on stays: this store is led to where there is none."""
    client, store._client = store._client, open_replica(url, FakeClock(), SETTINGS)._client  # type: ignore[attr-defined]
    try:
        yield
    finally:
        store._client.close()
        store._client = client


@asynccontextmanager
async def letta_embeddings(folder: Path) -> AsyncIterator[Taken]:
    """An archive with vectors of an endpoint that its server cannot reach, and one with those of ours."""
    agent = mint_id(1)
    store = open_replica(letta_url(), FakeClock(), SETTINGS)
    await store.put([Entry(Memory(mint_id(2), "local", agent, "semantic", "tea", created_at=1), None, b"")])
    # Under a name of its own, or its archive would be looked at by whoever uses this server later.
    unreached = f"letta://{urlsplit(letta_url()).netloc}/unreached?embeddings=http://{_NOBODY}/v1"

    @asynccontextmanager
    async def away() -> AsyncIterator[None]:
        held: Any = store
        broken: Any = open_replica(unreached, FakeClock(), SETTINGS)
        memory = Memory(mint_id(3), "local", f"{agent}-unreached", "semantic", "tea", created_at=1)
        with pytest.raises(Unavailable):
            await broken.put([Entry(memory, None, b"")])
        archives, held._archives = held._archives, broken._archives
        embedding, held._embedding = held._embedding, broken._embedding
        await broken.close()
        try:
            yield
        finally:
            held._archives, held._embedding = archives, embedding

    yield Taken(store, away)


def of_cognee(what: str) -> Case:
    @asynccontextmanager
    async def case(folder: Path) -> AsyncIterator[Taken]:
        store = open_replica(cognee_url(), FakeClock(), SETTINGS)
        its_folder = Path(cognee_url().removeprefix("cognee://").partition("?")[0])
        yield Taken(store, lambda: renamed(its_folder / what))

    return case


@asynccontextmanager
async def cognee_embeddings(folder: Path) -> AsyncIterator[Taken]:
    store = open_replica(cognee_url(), FakeClock(), SETTINGS)
    assert isinstance(store, CogneeStore)

    @asynccontextmanager
    async def away() -> AsyncIterator[None]:
        ours = store._endpoint
        store._endpoint = EmbeddingsEndpoint(f"http://{_NOBODY}/v1", "any", ours._dimension, 5)
        try:
            yield
        finally:
            store._endpoint.close()
            store._endpoint = ours

    yield Taken(store, away)


#: The product, what is taken away of it, and what is said then. One that is killed does not come back.
CASES: dict[str, tuple[str, Case, str]] = {
    "sqlite: its folder": ("sqlite", of_folder("sqlite://{}/a/m.db", "a"), "is gone"),
    "sqlite-vec: its folder": ("sqlite-vec", of_folder("sqlite-vec://{}/a/m.db", "a"), "is gone"),
    "postgresql: its database": ("postgresql", of_database("postgresql"), "not currently accepting"),
    "mem0: its folder": ("mem0 on qdrant", of_folder("mem0://{}/mem0", "mem0"), "cannot be written"),
    "mem0: its database": ("mem0 on pgvector", of_database("mem0+postgresql"), "not currently accepting"),
    "memorywire: its server": ("memorywire+http", another_server, "could not be reached"),
    "letta: its server": ("letta", letta_server, "could not be reached"),
    "letta: its embeddings": ("letta", letta_embeddings, "can it reach its embeddings at"),
    "cognee: its folder": ("cognee", of_cognee("."), "cannot be written"),
    "cognee: its database": ("cognee", of_cognee("system/databases/cognee_db"), "is gone"),
    "cognee: its embeddings": ("cognee", cognee_embeddings, "no embeddings"),
}


@pytest.mark.parametrize("case", CASES)
@run
async def test_what_is_taken_away_is_said_and_what_is_back_is_well(case: str, tmp_path: Path) -> None:
    product, taken_of, said = CASES[case]
    if missing := _MISSING[product]():
        pytest.skip(missing)
    async with AsyncExitStack() as stack:
        taken = await stack.enter_async_context(taken_of(tmp_path))
        h = await stack.enter_async_context(house(stores=[taken.store], timeout=60))
        name = taken.store.name

        async def state() -> dict[str, Any]:
            return next(each for each in await h.engine.stores.list(WHO) if each["name"] == name)

        found = await state()
        assert (found["status"], found.get("error")) == ("ok", None)
        async with taken.away():
            found = await state()
            assert found["status"] != "ok"
            assert said in found["error"], found["error"]
            health = await h.engine.health(WHO)
            assert (health["status"], name in health["note"]) == ("degraded", True)
        if taken_of is not another_server:
            assert (await taken.store.health())["status"] == "ok"
