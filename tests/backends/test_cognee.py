"""Cognee itself, in a folder of its own, with vectors of a server of ours.

Skipped, loudly, where it is not installed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from products import INSTALL, cognee_url

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.plugins import open_replica
from commonplace.stores import cognee
from commonplace.stores.base import Entry, Reach, Search, Store, StoreSettings
from commonplace.stores.cognee import CogneeStore
from commonplace.stores.documents import DamagedCopy
from commonplace.testing import FakeClock, ReplicaContract
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import OperatorActionRequired, Unavailable
from commonplace.wire.filters import parse
from commonplace.wire.record import Memory

pytestmark = [
    pytest.mark.skipif(find_spec("cognee") is None, reason=f"cognee is not installed: {INSTALL}"),
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(900),
]
SETTINGS = StoreSettings(embed=HashingEmbedder().embed, timeout=60)


class TestCognee(ReplicaContract):
    durable = True
    writers = 4

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        return open_replica(cognee_url(), clock, SETTINGS)


def test_a_text_that_looks_like_a_path_is_a_text(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the key to the safe")
    tenant = f"tenant-{mint_id(1)[-12:]}"
    texts = [str(secret), f"file://{secret}", "https://127.0.0.1:9/page"]
    made = [Memory(mint_id(5 + n), tenant, "a", "semantic", text, created_at=n) for n, text in enumerate(texts)]

    async def work() -> None:
        store = open_replica(cognee_url(), FakeClock(), SETTINGS)
        await store.put([Entry(memory, None, b"") for memory in made])
        found = await store.search(Search(Reach(tenant, ("a",)), "the key to the safe", None, limit=5))
        assert sorted(candidate.memory.content for candidate in found) == sorted(texts)

    asyncio.run(work())


def test_two_tenants_and_two_agents_have_the_same_id() -> None:
    name, id = f"tenant-{mint_id(1)[-12:]}", mint_id(5)
    whose = [(name, "a"), (f"{name}-b", "a"), (name, "b")]

    async def work() -> None:
        store = open_replica(cognee_url(), FakeClock(), SETTINGS)
        assert isinstance(store, CogneeStore)

        async def held() -> list[list[str]]:
            got = [await store.get_of(tenant, agent, [id]) for tenant, agent in whose]
            for (tenant, agent), memories in zip(whose, got, strict=True):
                found = await store.search(Search(Reach(tenant, (agent,)), "secret", None, limit=5))
                assert [candidate.memory.content for candidate in found] == [each.content for each in memories]
            return [[each.content for each in memories] for memories in got]

        for tenant, agent in whose:
            secret = Memory(id, tenant, agent, "semantic", f"the secret of {agent} at {tenant}", created_at=1)
            await store.put([Entry(secret, None, b"")])
        assert await held() == [[f"the secret of {agent} at {tenant}"] for tenant, agent in whose]
        assert await store.delete_of(*whose[1], [id]) == 1
        assert await held() == [[f"the secret of a at {name}"], [], [f"the secret of b at {name}"]]

    asyncio.run(work())


def test_what_is_no_copy_costs_no_other_anything() -> None:
    """As another program on the same folder may leave it in one of our datasets."""
    tenant = f"tenant-{mint_id(1)[-12:]}"
    good = Memory(mint_id(5), tenant, "a", "semantic", "Alice drinks tea", created_at=1)
    odd = [Memory(mint_id(6 + n), tenant, "a", "semantic", f"a note about tea {n}", created_at=1) for n in range(3)]
    documents: list[Any] = [None, "garbage", {"id": odd[2].id}]

    async def work() -> None:
        store = open_replica(cognee_url(), FakeClock(), SETTINGS)
        assert isinstance(store, CogneeStore)
        library, name = store._library, cognee._dataset(tenant, "a")
        for memory, document in zip(odd, documents, strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(cognee, "to_document", lambda _, document=document: document)
                await library.run(partial(library.put, name, [memory]))
        await store.put([Entry(good, None, b"")])
        reach = Reach(tenant, ("a",))
        assert [c.memory for c in await store.search(Search(reach, "tea", None))] == [good]
        assert (await store.scan(reach)).memories == [good]
        assert await store.get_of(tenant, "a", [good.id, odd[0].id, odd[2].id]) == [good]
        assert await store.agent_names(tenant) == ["a"]
        found = [memory async for page in store.copy_pages(tenant, "a") for memory in page]
        assert sorted(memory.id for memory in found) == sorted(["", "", good.id, odd[2].id])
        assert all(memory.store_id for memory in found if isinstance(memory, DamagedCopy))
        assert await store.delete_of(tenant, "a", [odd[2].id]) == 1

    asyncio.run(work())


def test_it_is_not_opened_without_its_access_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_BACKEND_ACCESS_CONTROL", "false")
    with pytest.raises(OperatorActionRequired, match="shows one dataset's texts in another"):
        open_replica(cognee_url(), FakeClock(), SETTINGS)


def test_a_process_has_one_folder(tmp_path: Path) -> None:
    open_replica(cognee_url(), FakeClock(), SETTINGS)
    with pytest.raises(Unavailable, match="one folder only"):
        open_replica(f"cognee://{tmp_path}/other", FakeClock(), SETTINGS)


def test_a_condition_holds_before_any_cut() -> None:
    tenant = f"tenant-{mint_id(1)[-12:]}"
    made = [
        Memory(mint_id(5 + n), tenant, "a", "semantic", f"tea number {n}", created_at=n, tags=["far"][: n // 29])
        for n in range(30)
    ]

    async def work() -> None:
        store = open_replica(cognee_url(), FakeClock(), SETTINGS)
        assert isinstance(store, CogneeStore)
        await store.put([Entry(memory, None, b"") for memory in made])
        reach = Reach(tenant, ("a",), parse({"tags": "far"}))
        # Of the 22 that are asked for at first it need not be one.
        found = await store.search(Search(reach, "tea number 1", None, limit=1))
        assert [candidate.memory.id for candidate in found] == [made[-1].id]
        listed = [memory.id async for page in store.copy_pages(tenant, "a") for memory in page]
        assert sorted(listed) == sorted(memory.id for memory in made)
        assert await store.agent_names(tenant) == ["a"]

    asyncio.run(work())
