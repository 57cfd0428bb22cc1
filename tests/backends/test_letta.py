"""Letta itself: the server of its wheel, on PostgreSQL, with vectors of a server of ours.

Skipped, loudly, where it is not installed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from products import letta_missing, letta_url

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.plugins import open_replica
from commonplace.stores import letta
from commonplace.stores.base import Entry, Reach, Search, Store, StoreSettings
from commonplace.stores.letta import LettaStore, instant_of
from commonplace.stores.mixins import scan_all
from commonplace.testing import FakeClock, ReplicaContract
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import parse
from commonplace.wire.record import Memory

pytestmark = [
    pytest.mark.skipif(letta_missing() is not None, reason=str(letta_missing())),
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.timeout(900),
]
SETTINGS = StoreSettings(embed=HashingEmbedder().embed, timeout=60)


class TestLetta(ReplicaContract):
    durable = True
    writers = 5

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        return open_replica(letta_url(), clock, SETTINGS)


def test_what_is_not_among_the_hundred_nearest_is_found_all_the_same() -> None:
    """Letta gives a hundred at a time and filters afterwards."""
    tenant, embed = f"tenant-{mint_id(1)[-12:]}", HashingEmbedder().embed

    def entry(at: int, content: str, user: str) -> Entry:
        return Entry(Memory(mint_id(at), tenant, "a", "semantic", content, user_id=user, created_at=at), None, b"")

    async def work() -> None:
        store = open_replica(letta_url(), FakeClock(), SETTINGS)
        crowd = [entry(n, "likes green tea", "bob") for n in range(1, 106)]
        alices = [entry(500 + n, f"keeps {word}", "alice") for n, word in enumerate(("bees", "owls"))]
        await store.put([*crowd, *alices])
        ids = {each.memory.id for each in alices}
        everything = Reach(tenant, ("a",))
        assert {m.id for m in await scan_all(store, everything)} == ids | {each.memory.id for each in crowd}
        hers = Reach(tenant, ("a",), parse({"user_id": "alice"}))
        found = await store.search(Search(hers, "green tea", embed(["green tea"])[0], limit=5))
        assert {candidate.memory.id for candidate in found} == ids
        await store.close()

    asyncio.run(work())


def entry_of(id: str, tenant: str, agent: str, content: str) -> Entry:
    return Entry(Memory(id, tenant, agent, "semantic", content, created_at=1), None, b"")


def test_what_two_processes_keep_in_two_archives_of_an_agent_is_erased_and_listed_by_either() -> None:
    """Two that make it at the same time may each find its own alone."""
    tenant, ids = f"tenant-{mint_id(1)[-12:]}", [mint_id(5) for _ in range(4)]

    async def work() -> None:
        one, two = (open_replica(letta_url(), FakeClock(), SETTINGS) for _ in range(2))
        assert isinstance(one, LettaStore)
        assert isinstance(two, LettaStore)
        await one.put([entry_of(id, tenant, "a", "tea") for id in ids[:2]])
        made = await two._client.call(
            "POST", "/v1/archives/", {"name": two._archive_name(tenant, "a"), **two._embedding}
        )
        two._archives[tenant, "a"] = [str(made["id"])]
        await two.put([entry_of(id, tenant, "a", "tea") for id in ids[2:]])
        known = one._archives[tenant, "a"]
        await one.put([entry_of(ids[3], tenant, "a", "tea, changed")])
        one._archives[tenant, "a"] = known
        assert await one.delete_of(tenant, "a", [ids[0], ids[2]]) == 2
        one._archives[tenant, "a"] = known
        for store in (one, two):
            held = await scan_all(store, Reach(tenant, ("a",)))
            assert sorted((m.id, m.content) for m in held) == sorted([(ids[1], "tea"), (ids[3], "tea, changed")])
            await store.close()

    asyncio.run(work())


def test_names_with_slashes_are_not_those_of_another_tenant() -> None:
    name, id = f"acme-{mint_id(1)[-12:]}", mint_id(5)

    async def work() -> None:
        store = open_replica(letta_url(), FakeClock(), SETTINGS)
        assert isinstance(store, LettaStore)
        await store.put([entry_of(id, name, "eu/bot", "a secret")])
        for tenant, agent in ((f"{name}/eu", "bot"), (name, "eu%2Fbot"), (f"{name}%2Feu", "bot")):
            assert await store.get_of(tenant, agent, [id]) == []
            assert await store.delete_of(tenant, agent, [id]) == 0
            await store.put([entry_of(id, tenant, agent, "another's")])
        (kept,) = await store.get_of(name, "eu/bot", [id])
        assert (kept.tenant, kept.content) == (name, "a secret")
        await store.close()

    asyncio.run(work())


@pytest.mark.usefixtures("small_pages")
def test_as_many_requests_delete_an_id_whatever_else_is_in_the_archive() -> None:
    """An erasure of all of an agent's comes in groups: what each of them asks must not grow with what is left."""
    tenant = f"tenant-{mint_id(1)[-12:]}"
    doomed = {agent: [mint_id(5) for _ in range(25)] for agent in ("alone", "among others")}
    others = [mint_id(5) for _ in range(20)]

    async def work() -> None:
        store = open_replica(letta_url(), FakeClock(), SETTINGS)
        assert isinstance(store, LettaStore)
        for agent, ids in doomed.items():
            await store.put([entry_of(id, tenant, agent, "likes tea") for id in ids])
        await store.put([entry_of(id, tenant, "among others", "likes coffee") for id in others])
        exchange, asked = store._client.exchange, Counter[str]()

        def counted(method: str, *what: Any, **how: Any) -> Any:
            asked[method] += 1
            return exchange(method, *what, **how)

        store._client.exchange = counted  # type: ignore[method-assign]
        for agent, ids in doomed.items():
            asked.clear()
            assert await store.delete_of(tenant, agent, ids) == len(ids)
            assert asked == {"GET": 1, "POST": len(ids), "DELETE": len(ids)}, agent
        left = await scan_all(store, Reach(tenant, ("alone", "among others")))
        assert sorted(memory.id for memory in left) == sorted(others)
        await store.close()

    asyncio.run(work())


@pytest.mark.usefixtures("small_pages")
def test_more_copies_than_a_page_are_all_deleted() -> None:
    tenant, id = f"tenant-{mint_id(1)[-12:]}", mint_id(5)

    async def work() -> None:
        store = open_replica(letta_url(), FakeClock(), SETTINGS)
        assert isinstance(store, LettaStore)
        ids = [id, *(mint_id(6) for _ in range(2))]
        await store.put([entry_of(each, tenant, "a", "likes tea") for each in ids])
        await multiply(store, tenant, id)
        assert await store.delete_of(tenant, "a", ids) == len(ids)
        assert await scan_all(store, Reach(tenant, ("a",))) == []
        await store.close()

    asyncio.run(work())


@pytest.mark.usefixtures("small_pages")
def test_more_copies_than_a_page_are_all_replaced() -> None:
    tenant, id = f"tenant-{mint_id(1)[-12:]}", mint_id(5)

    async def work() -> None:
        store = open_replica(letta_url(), FakeClock(), SETTINGS)
        assert isinstance(store, LettaStore)
        await store.put([entry_of(id, tenant, "a", "likes tea")])
        await multiply(store, tenant, id)
        await store.put([entry_of(id, tenant, "a", "likes coffee")])
        (archive,) = await store._archives_of(tenant, "a")
        copies = await store._copies(archive, id)
        assert [passage["text"] for passage in copies] == ["likes coffee"]
        await store.close()

    asyncio.run(work())


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five passages where Letta would give a hundred: it stops at what it is asked for."""
    monkeypatch.setattr(letta, "_PAGE", 5)


async def multiply(store: LettaStore, tenant: str, id: str) -> None:
    """More copies of one memory than a page has."""
    (archive,) = await store._archives_of(tenant, "a")
    (passage,) = await store._copies(archive, id)
    again = {name: passage[name] for name in ("text", "metadata", "created_at")}
    for _ in range(6):
        await store._client.call("POST", f"/v1/archives/{archive}/passages", again)


@pytest.mark.usefixtures("small_pages")
def test_what_may_be_hidden_behind_a_full_page_is_never_said_to_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant, ids = f"tenant-{mint_id(1)[-12:]}", [mint_id(5) for _ in range(6)]
    same = instant_of(ids[0])
    monkeypatch.setattr(letta, "instant_of", lambda id: same)

    async def work() -> None:
        store = open_replica(letta_url(), FakeClock(), SETTINGS)
        assert isinstance(store, LettaStore)
        for id in ids[:5]:
            await store.put([entry_of(id, tenant, "a", "x")])
        for verb in (store.get_of, store.delete_of):
            with pytest.raises(Unavailable, match="more passages of one time"):
                await verb(tenant, "a", ids[5:])
        with pytest.raises(Unavailable, match="more passages of one time"):
            await store.scan(Reach(tenant, ("a",)))
        with pytest.raises(Unavailable, match="more passages of one time"):
            await store.put([entry_of(ids[5], tenant, "a", "x")])
        await store.close()

    asyncio.run(work())


def test_a_time_is_made_up_from_the_id_and_the_same_each_time() -> None:
    assert instant_of("imported/7") == instant_of("imported/7") != instant_of("imported/8")
    within = [f"01a1e5b6-ad30-7087-a1dc-{number:012x}" for number in range(20_000)]  # minted at the same millisecond
    times = {instant_of(id) for id in within}
    assert len(times) == len(within)
    assert datetime(1970, 1, 1, tzinfo=UTC) <= min(times) < datetime(1972, 1, 1, tzinfo=UTC)
    assert datetime(2094, 1, 1, tzinfo=UTC) < max(times) < datetime(2097, 1, 1, tzinfo=UTC)
