"""The paper's protocol: who has it, as a type checker and as a running program see it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_process import run_server

import commonplace
from commonplace import Memory, MemoryStore, RemoteMemory
from commonplace.wire import (
    ExpireRequest,
    ForgetRequest,
    MergeRequest,
    MergeResponse,
    RecallRequest,
    RememberRequest,
    RememberResponse,
)
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import CAPABILITIES

TYPED = """
from commonplace import Memory, MemoryStore, RemoteMemory
from commonplace.wire import RecallRequest, RecallResponse

def stores() -> list[MemoryStore]:
    return [Memory("a"), RemoteMemory("http://127.0.0.1:1")]

async def ask(store: MemoryStore) -> RecallResponse:
    return await store.recall(RecallRequest(agent_id="a", query="tea"))
"""
WRONG = """
from commonplace import MemoryStore

class Half:
    async def remember(self, request: str) -> None: ...

store: MemoryStore = Half()
"""


@pytest.mark.slow
@pytest.mark.process
def test_a_type_checker_takes_both_memories_for_one(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(WRONG)
    source = Path(commonplace.__file__).parents[1]

    def check(name: str) -> subprocess.CompletedProcess[str]:
        run = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "c")]
        return subprocess.run([*run, name], cwd=tmp_path, capture_output=True, text=True, env={"MYPYPATH": str(source)})

    right = check("right.py")
    assert right.returncode == 0, right.stdout + right.stderr
    assert "Incompatible types" in check("wrong.py").stdout


def test_both_memories_are_stores_while_they_run(tmp_path: Path) -> None:
    local, remote = Memory("a", data=tmp_path), RemoteMemory("http://127.0.0.1:1")
    for store in (local, remote):
        assert isinstance(store, MemoryStore)
        assert store.capabilities <= CAPABILITIES
    assert not isinstance(object(), MemoryStore)
    assert not (tmp_path / "commonplace.db").exists()  # asking opens nothing


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    return Memory("a", data=tmp_path, embedder="hashing")


async def _five(store: MemoryStore) -> None:
    one = await store.remember(RememberRequest(agent_id="b", type="semantic", content="Alice drinks tea"))
    assert isinstance(one, RememberResponse)
    two = await store.remember(RememberRequest(agent_id="b", type="episodic", content="Alice drank tea", user_id="u"))
    found = await store.recall(RecallRequest(agent_id="b", query="tea", user_id="u"))
    assert [(hit.id, hit.type) for hit in found.results] == [(two.id, "episodic")]
    assert found.stores_queried == one.stores
    merged = await store.merge(MergeRequest(agent_id="b", canonical=one.id, duplicates=[two.id]))
    assert isinstance(merged, MergeResponse)
    assert (merged.merged_count, merged.stores) == (1, one.stores)
    expired = await store.expire(ExpireRequest(agent_id="b", policy={"type": "semantic"}, action="archive"))
    assert (expired.matched_count, expired.stores, expired.errors) == (1, one.stores, None)
    gone = await store.forget(ForgetRequest(agent_id="b", ids=[one.id]))
    assert gone.forgotten_ids == [one.id]
    assert [each.store for each in gone.stores] == one.stores
    assert (await store.health())["status"] == "ok"


def test_each_operation_takes_its_request(memory: Memory) -> None:
    async def run() -> None:
        async with memory:
            await _five(memory)

    asyncio.run(run())


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    with run_server(tmp_path / "server") as server:
        yield server.url


@pytest.mark.process
def test_so_it_does_on_a_server(served: str) -> None:
    async def run() -> None:
        async with RemoteMemory(served) as remote:
            await _five(remote)

    asyncio.run(run())


def test_a_memory_over_several_stores_is_one_and_can_be_a_store_of_another(tmp_path: Path) -> None:
    async def run() -> None:
        urls = [f"sqlite://{tmp_path}/{name}.db?name={name}" for name in ("one", "two")]
        urls[0] = urls[0].partition("?")[0]
        async with Memory("theirs", stores=urls, data=tmp_path / "theirs", embedder="hashing") as router:
            assert isinstance(router, MemoryStore)
            outer = Memory("a", stores=[f"sqlite://{tmp_path}/outer.db", router], data=tmp_path, embedder="hashing")
            async with outer:
                await _five(outer)
                kept = await outer.remember("Alice keeps bees", agent_id="c")
                found = await router.recall(RecallRequest(agent_id="c", query="bees"))
                assert [hit.content for hit in found.results] == ["Alice keeps bees"]
                assert found.stores_queried == ["sqlite", "two"]
                await outer.forget([kept.id], hard_delete=True, agent_id="c")
                assert (await router.recall(RecallRequest(agent_id="c", query="bees"))).results == []
            await _five(router)

    asyncio.run(run())


def test_nothing_is_said_beside_a_request(memory: Memory) -> None:
    request = RecallRequest(agent_id="b", query="tea")
    with pytest.raises(ValidationError, match="k was given beside a RecallRequest"):
        asyncio.run(memory.recall(request, k=3))
    with pytest.raises(ValidationError, match="user_id was given beside a ForgetRequest"):
        asyncio.run(memory.forget(ForgetRequest(agent_id="b", ids=["x"]), user_id="u"))
