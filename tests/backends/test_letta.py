"""Letta itself: the server of its wheel, on PostgreSQL, with vectors of a server of ours.

Skipped, loudly, where it is not installed.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from products import letta_missing, letta_url

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.plugins import open_replica
from commonplace.stores.base import Entry, Reach, Search, Store, StoreSettings
from commonplace.stores.letta import instant_of
from commonplace.stores.mixins import scan_all
from commonplace.testing import FakeClock, ReplicaContract
from commonplace.wire.canonical import mint_id
from commonplace.wire.filters import parse
from commonplace.wire.record import Memory

pytestmark = [
    pytest.mark.skipif(letta_missing() is not None, reason=str(letta_missing())),
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.xdist_group("letta"),
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


def test_a_time_is_that_of_the_id_or_made_up_and_the_same_each_time() -> None:
    at = instant_of("01977420-dc7b-7000-8000-000000000001")  # minted at 1750000000.123
    assert at.replace(microsecond=at.microsecond // 1000 * 1000) == datetime.fromtimestamp(1_750_000_000.123, UTC)
    assert instant_of("imported/7") == instant_of("imported/7") != instant_of("imported/8")
    assert len({instant_of(mint_id(5)) for _ in range(50)}) > 40
