"""RemoteMemory: the methods of Memory, with the same answers, over HTTP."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from conftest import TokenServer
from server_process import ServerProcess

from commonplace import Memory, RemoteMemory, SyncRemoteMemory
from commonplace.wire.errors import Conflict, Fault, Forbidden, NotFound, Unauthenticated, Unavailable, ValidationError


def public(kind: type) -> dict[str, Any]:
    found = inspect.getmembers(kind, inspect.iscoroutinefunction)
    return {name: method for name, method in found if not name.startswith("_") and name != "engine"}


def test_it_has_every_method_with_the_same_parameters() -> None:
    here, there = public(Memory), public(RemoteMemory)
    assert set(here) == set(there)
    for name, method in here.items():
        ours = {p.name: (p.kind, p.default) for p in inspect.signature(method).parameters.values()}
        theirs = {p.name: (p.kind, p.default) for p in inspect.signature(there[name]).parameters.values()}
        assert ours.items() <= theirs.items(), name


async def _story(memory: Any, agent: str) -> list[Any]:
    """The same calls against either; ids and times are left out of what is compared."""
    one = await memory.remember("Alice drinks green tea", user_id="alice", metadata={"tags": ["tea"]}, agent_id=agent)
    two, bad = await memory.remember_batch([
        {"content": "Alice drinks tea", "agent_id": agent}, {"content": "x", "type": "fact", "agent_id": agent},
    ])  # fmt: skip
    found = await memory.recall("green tea", k=1, agent_id=agent)
    page = await memory.list(tag="tea", limit=1, agent_id=agent)
    changed = await memory.update(one.id, agent_id=agent, confidence=0.5)
    would = await memory.preview_merge(one.id, [two.id], agent_id=agent)
    merged = await memory.merge(one.id, [two.id], agent_id=agent)
    waiting = await memory.remember("Alice drinks cocoa", approval_required=True, agent_id=agent)
    (review,) = [r for r in await memory.reviews() if r["agent_id"] == agent]
    decided = await memory.approve(review["id"], reviewer="bob", reason="seen")
    history = await memory.history(one.id, agent_id=agent)
    due = await memory.preview_expire({"confidence_below": 0.9}, agent_id=agent)
    expired = await memory.expire({"confidence_below": 0.9}, action="archive", agent_id=agent)
    trail = await memory.audit(agent_id=agent, operation="remember")
    would_go = await memory.preview_forget(waiting.id, agent_id=agent)
    gone = await memory.forget([waiting.id], agent_id=agent)
    with pytest.raises(NotFound) as lost:
        await memory.get(waiting.id, agent_id=agent)
    verified = await memory.verify_audit()
    assert isinstance(bad, ValidationError)
    assert decided["outcome"]["id"] == waiting.id
    assert lost.value.message.startswith(f"no memory {waiting.id}")
    return [
        found.results[0].content, [m["content"] for m in page["memories"]], changed["confidence"], set(changed),
        would["survivor"]["content"], merged.merged_count, bad.message, set(review), decided["decision"]["reviewer"],
        set(decided), [v["version"] for v in history], [m["content"] for m in due], expired.matched_count,
        len(trail["entries"]), set(trail["entries"][0]), [m["content"] for m in would_go],
        len(gone.forgotten_ids), verified["ok"],
    ]  # fmt: skip


def test_it_tells_the_same_story(open_server: ServerProcess, tmp_path: Any) -> None:
    async def tell() -> None:
        async with Memory(data=tmp_path, embedder="hashing") as here, RemoteMemory(open_server.url) as there:
            assert await _story(there, "story") == await _story(here, "story")
            assert (await there.health())["status"] == "ok"
            assert (await there.status())["agents"]["story"] == 0
            with pytest.raises(Unavailable, match="where the data is"):
                await there.compact()

    asyncio.run(tell())


def test_many_calls_at_once_share_a_few_connections(open_server: ServerProcess) -> None:
    async def crowd() -> None:
        async with RemoteMemory(open_server.url, agent_id="crowd", connections=4) as memory:
            kept = await asyncio.gather(*(memory.remember(f"crowd fact {i}") for i in range(100)))
            assert len({receipt.id for receipt in kept}) == 100

    asyncio.run(crowd())


def test_faults_are_the_same_classes(guarded: TokenServer) -> None:
    async def fail(token: str | None, kind: type[Fault], **fields: Any) -> None:
        async with RemoteMemory(guarded.server.url, token, agent_id="ada") as memory:
            with pytest.raises(kind) as caught:
                await memory.remember("x", **fields)
            assert caught.value.message

    acme = guarded.tokens["acme/ada"]
    asyncio.run(fail("cp_no_no", Unauthenticated))
    asyncio.run(fail(guarded.tokens["acme/reader"], Forbidden))
    asyncio.run(fail(acme, Forbidden, agent_id="bea"))
    asyncio.run(fail(acme, ValidationError, confidence=2))

    async def reuse() -> None:
        async with RemoteMemory(guarded.server.url, acme, agent_id="ada") as memory:
            await memory.remember("one", idempotency_key="remote")
            with pytest.raises(Conflict) as caught:
                await memory.remember("two", idempotency_key="remote")
            assert caught.value.details == {"field": "idempotency_key"}

    asyncio.run(reuse())


def test_an_address_that_leads_nowhere_is_said(tmp_path: Any) -> None:
    async def ask(url: str) -> None:
        async with RemoteMemory(url) as memory:
            await memory.health()

    for url in ("127.0.0.1:8420", "http://127.0.0.1:99999", "http://[", "http://127.0.0.1/a b", "http://127.0.0.1/é"):
        with pytest.raises(ValidationError, match="is not a server's address"):
            asyncio.run(ask(url))
    with pytest.raises(ValidationError, match="no token has"):
        RemoteMemory("http://127.0.0.1:1", "two\nlines")
    with pytest.raises(Unavailable, match=r"could not be reached: .*; is a server running there\?"):
        asyncio.run(ask("http://127.0.0.1:1"))


def test_it_is_there_without_async(open_server: ServerProcess) -> None:
    with SyncRemoteMemory(open_server.url, agent_id="sync") as memory:
        kept = memory.remember("Alice drinks green tea")
        assert [hit.id for hit in memory.recall("green tea")] == [kept.id]
        with pytest.raises(NotFound):
            memory.get("nobody's")
