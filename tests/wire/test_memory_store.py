"""The paper's protocol: who has it, as a type checker and as a running program see it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
    merged = await store.merge(MergeRequest(agent_id="b", canonical=one.id, duplicates=[two.id]))
    assert isinstance(merged, MergeResponse)
    assert (merged.merged_count, merged.stores) == (1, one.stores)
    expired = await store.expire(ExpireRequest(agent_id="b", policy={"type": "semantic"}, action="demote"))
    assert (expired.matched_count, expired.stores, expired.errors) == (1, one.stores, None)
    gone = await store.forget(ForgetRequest(agent_id="b", ids=[one.id]))
    assert gone.forgotten_ids == [one.id]
    assert (await store.health())["status"] == "ok"


def test_each_operation_takes_its_request(memory: Memory) -> None:
    import asyncio

    async def run() -> None:
        async with memory:
            await _five(memory)

    asyncio.run(run())


def test_nothing_is_said_beside_a_request(memory: Memory) -> None:
    import asyncio

    request = RecallRequest(agent_id="b", query="tea")
    with pytest.raises(ValidationError, match="k was given beside a RecallRequest"):
        asyncio.run(memory.recall(request, k=3))
    with pytest.raises(ValidationError, match="user_id was given beside a ForgetRequest"):
        asyncio.run(memory.forget(ForgetRequest(agent_id="b", ids=["x"]), user_id="u"))
