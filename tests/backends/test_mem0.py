"""mem0 itself, on a folder of its own. Skipped, loudly, where it is not installed."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from postgres_databases import database_for, server

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores import mem0
from commonplace.stores.base import Entry, Reach, Search, Store, StoreSettings
from commonplace.stores.documents import UnreadableCopy, to_document
from commonplace.stores.mem0 import Mem0Store
from commonplace.testing import FakeClock, ReplicaContract
from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import parse
from commonplace.wire.record import Memory

# Not imported here: it reads at its import whether it may phone home, which the store forbids first.
pytestmark = [
    pytest.mark.skipif(find_spec("mem0") is None, reason="mem0ai is not installed: `make test-backends` installs it"),
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore"),
]


class TestMem0(ReplicaContract):
    durable = True
    writers = 5

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        from commonplace.plugins import open_replica

        return open_replica(f"mem0://{tmp_path}/mem0", clock, StoreSettings(embed=HashingEmbedder().embed))


class TestMem0InDatabase(ReplicaContract):
    """On PostgreSQL with pgvector."""

    durable = True
    writers = 5

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        from commonplace.plugins import open_replica

        url = f"mem0+{database_for(tmp_path)}"
        return open_replica(url, clock, StoreSettings(folder=tmp_path, embed=HashingEmbedder().embed))


def test_what_is_no_copy_costs_no_other_anything(tmp_path: Path) -> None:
    """As another program on the same folder may leave it under our name."""
    embed = HashingEmbedder().embed
    store = Mem0Store(tmp_path / "mem0", embed)
    good = Memory("0199-a", "local", "agent", "semantic", "Alice drinks tea", created_at=1)
    reach = Reach("local", ("agent",))

    async def work() -> None:
        await store.put([Entry(good, embed([good.content]), b"")])
        said = [{"role": "user", "content": "tea"}]
        for document in ("garbage", {"id": "0199-b", "type": "dream"}):
            ours = {"our_tenant": "local", "our_agent": "agent", "our_id": "0199-b", "document": document}
            await store._run(lambda ours=ours: store._mem0.add(said, run_id="commonplace", metadata=ours, infer=False))
        assert [c.memory.id for c in await store.search(Search(reach, "tea", embed(["tea"])[0]))] == [good.id]
        assert await store.get("local", [good.id, "0199-b"]) == [good]
        assert await store.agent_names("local") == ["agent"]
        found = [memory async for page in store.copy_pages("local", "agent") for memory in page]
        assert sorted(memory.id for memory in found) == ["", "0199-a", "0199-b"]
        assert [bool(m.store_id) for m in found if isinstance(m, UnreadableCopy)] == [True]
        assert await store.delete("local", ["0199-b"]) == 1
        assert [m.id async for page in store.copy_pages("local", "agent") for m in page] == [good.id]
        await store.close()

    asyncio.run(work())


@pytest.mark.parametrize("place", ["a folder", "a database"])
@pytest.mark.parametrize(
    "asked",
    [
        {"project": None},
        {"user_id": {"$in": ["alice", None]}},
        {"kind": {"$gt": "a"}},
        {"kind": {"$gt": 5}},
        {"session_id": {"$lte": "2026-03-01"}},
        {"user_id": 5.5},
        {"user_id": {"$in": ["alice", 5]}},
        {"kind": "*"},
        {"created_at": {"$in": [1, 2.5]}},
        {"created_at": {"$gte": 0.5}},
    ],
    ids=str,
)
def test_what_a_filter_compares_that_mem0_cannot_is_compared_here(tmp_path: Path, asked: Any, place: str) -> None:
    """mem0 fails at a null, at texts that are ordered and at numbers that are no integers, and takes * for everything.
    Three such questions, whoever asks them, would have it asked nothing for a while."""
    embed = HashingEmbedder().embed
    store = Mem0Store(tmp_path / "mem0", embed, database_for(tmp_path) if place == "a database" else None)
    common = Memory("0199-a", "local", "agent", "semantic", "Alice drinks tea", created_at=1, user_id="alice")
    memories = [common, replace(common, id="0199-b", kind="zebra", project="home", user_id="bob", session_id="1999")]
    reach = Reach("local", ("agent",), parse(asked))

    async def work() -> None:
        await store.put([Entry(each, embed([each.content]), b"") for each in memories])
        found = await store.search(Search(reach, "tea", embed(["tea"])[0]))
        assert sorted(c.memory.id for c in found) == [each.id for each in memories if reach.admits(each)]
        await store.close()

    asyncio.run(work())


@pytest.mark.parametrize("place", ["a folder", "a database"])
def test_a_tenant_or_an_agent_of_the_name_that_mem0_takes_for_everyone_has_its_own_alone(
    tmp_path: Path, place: str
) -> None:
    """A resync of that tenant would delete the copies of all others, and an erasure there what has the same id here."""
    embed = HashingEmbedder().embed
    store = Mem0Store(tmp_path / "mem0", embed, database_for(tmp_path) if place == "a database" else None)
    whose = [("local", "agent"), ("*", "agent"), ("local", "*")]
    memories = [Memory("0199-a", t, a, "semantic", f"{t} {a} drinks tea", created_at=1) for t, a in whose]

    async def work() -> None:
        for each in memories:
            each.id = f"0199-{each.agent_id}"  # as where two tenants imported the same
            await store.put([Entry(each, embed([each.content]), b"")])
        for each in memories:
            copies = [m async for page in store.copy_pages(each.tenant, each.agent_id) for m in page]
            asked = Search(Reach(each.tenant, (each.agent_id,)), "tea", embed(["tea"])[0])
            assert copies == [each] == [c.memory for c in await store.search(asked)]
        assert await store.agent_names("*") == ["agent"]
        assert await store.delete("*", ["0199-agent"]) == 1
        assert await store.get("local", ["0199-agent"]) == memories[:1]
        await store.close()

    asyncio.run(work())


def test_one_with_the_id_of_a_copy_does_not_hide_it(tmp_path: Path) -> None:
    embed = HashingEmbedder().embed
    store = Mem0Store(tmp_path / "mem0", embed)
    good = Memory("0199-a", "local", "agent", "semantic", "Alice drinks tea", created_at=1)
    ours = {"our_tenant": "local", "our_agent": "agent", "our_id": good.id, "document": {"id": good.id}}
    said = [{"role": "user", "content": "tea"}]

    async def work() -> None:
        for _ in range(3):  # whichever of them comes last
            await store._run(lambda: store._mem0.add(said, run_id="commonplace", metadata=ours, infer=False))
        await store._run(
            lambda: store._mem0.add(
                [{"role": "user", "content": good.content}],
                run_id="commonplace",
                metadata={**ours, "document": to_document(good)},
                infer=False,
            )
        )
        assert await store.get("local", [good.id]) == [good]
        await store.close()

    asyncio.run(work())


def test_a_database_that_refuses_is_said_and_its_password_is_not(tmp_path: Path) -> None:
    from commonplace.plugins import open_replica

    url = "mem0+" + server().url(password="hunter22")
    with pytest.raises(Unavailable, match="mem0's database cannot be opened") as refused:
        open_replica(url, FakeClock(), StoreSettings(folder=tmp_path, embed=HashingEmbedder().embed))
    assert "hunter22" not in refused.value.message


def test_no_model_is_fetched_for_its_keywords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fastembed, which comes with Cognee, downloads one when it is first asked."""
    asked: list[str] = []
    fastembed = ModuleType("fastembed")
    fastembed.SparseTextEmbedding = lambda **given: asked.append(str(given))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", fastembed)
    memory = Memory("0199-a", "local", "agent", "semantic", "Alice drinks tea", created_at=1)

    async def work() -> None:
        store = Mem0Store(tmp_path / "mem0", HashingEmbedder().embed)
        await store.put([Entry(memory, None, b"")])
        found = await store.search(
            Search(Reach("local", ("agent",)), "tea", HashingEmbedder().embed(["tea"])[0], limit=5)
        )
        assert [candidate.memory.id for candidate in found] == [memory.id]
        await store.close()

    asyncio.run(work())
    assert asked == []


def test_no_word_of_what_is_erased_is_left_in_its_folder(tmp_path: Path) -> None:
    """mem0 keeps a history of every text, also of those that are deleted; an older version of ours let it."""
    folder = tmp_path / "mem0"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "history.db")) as older, older:
        older.execute("CREATE TABLE texts AS SELECT 'leukaemia, in the history of an earlier version'")
    memory = Memory("0199-a", "local", "agent", "semantic", "Alice has leukaemia", created_at=1)

    async def work() -> None:
        store = Mem0Store(folder, HashingEmbedder().embed)
        await store.put([Entry(memory, None, b"")])
        await store.put([Entry(replace(memory, content="Alice has leukaemia no more"), None, b"")])
        assert await store.delete("local", [memory.id]) == 1
        assert await store.get("local", [memory.id]) == []
        await store.close()

    asyncio.run(work())
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path.name for path in files if b"leukaemia" in path.read_bytes()] == []


def test_one_whose_files_are_closed_does_not_say_that_it_is_well(tmp_path: Path) -> None:
    from commonplace.plugins import open_replica

    store = open_replica(f"mem0://{tmp_path}/mem0", FakeClock(), StoreSettings(embed=HashingEmbedder().embed))
    assert asyncio.run(store.health()) == {"status": "ok"}
    asyncio.run(store._run(store._mem0.vector_store.client.close))  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(store.health())


@pytest.mark.parametrize("most", [5, 100_000])
def test_more_than_are_asked_for_at_first_are_listed_and_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(mem0, "_MOST", most)
    agents = [*["agent"] * 24, "later"]
    made = [
        Memory(f"0199-{n:02}", "local", agent, "semantic", f"tea number {n}", created_at=n, tags=["last"][: n // 23])
        for n, agent in enumerate(agents)
    ]
    embed = HashingEmbedder().embed

    async def work() -> None:
        store = Mem0Store(tmp_path / "mem0", embed)
        await store.put([Entry(memory, None, b"") for memory in made])
        assert sorted([m.id async for page in store.copy_pages("local", "agent") for m in page]) == [
            memory.id for memory in made[:24]
        ]
        assert await store.agent_names("local") == ["agent", "later"]
        reach = Reach("local", ("agent",), parse({"tags": "last"}))
        found = await store.search(Search(reach, "tea number 1", embed(["tea number 1"])[0], limit=3))
        assert [candidate.memory.id for candidate in found] == ["0199-23"]
        await store.close()

    asyncio.run(work())
