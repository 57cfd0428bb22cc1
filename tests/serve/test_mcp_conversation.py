"""One client's conversation on stdio: order, cancelling, ids used twice, and failures nobody foresaw."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from server_process import SECONDS

from commonplace.config import load as configure
from commonplace.serve import shared_embedder
from commonplace.serve.json_rpc import JsonRpcError
from commonplace.serve.mcp import sessions
from commonplace.serve.mcp.handler import McpHandler
from commonplace.serve.mcp.sessions import StdioSession
from commonplace.serve.mcp.stdio import Connection
from commonplace.serve.mcp.tools import Document
from commonplace.serve.mcp.versions import HANDSHAKE_VERSIONS
from commonplace.serve.protocols import load_tool_set
from commonplace.wire.errors import Unavailable, internal_error


class GatedHandler:
    """A speaker whose answers wait until they are let go."""

    def __init__(self, *, in_order: bool) -> None:
        self.tool_set = SimpleNamespace(in_order=in_order, fallback=HANDSHAKE_VERSIONS[-1], tool=lambda name: None)
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    def version_of(self, method: str, params: Any, negotiated: str) -> str:
        return negotiated

    async def answer(self, session: Any, version: str, method: str, params: Document) -> Document:
        self.begun.append(params["name"])
        await self.gates.setdefault(params["name"], asyncio.Event()).wait()
        return {"name": params["name"]}

    def let_go(self, name: str) -> None:
        self.gates.setdefault(name, asyncio.Event()).set()


class RecordedOutput:
    def __init__(self) -> None:
        self.names: list[str] = []

    def send(self, line: bytes) -> None:
        self.names.append(json.loads(line)["result"]["name"])


def conversation(gates: GatedHandler, said: RecordedOutput) -> Connection:
    return Connection(cast(Any, gates), cast(Any, None), cast(Any, said), 1000)


def call(name: str, id: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name}}).encode()


def cancelled(id: Any) -> bytes:
    told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    return json.dumps(told).encode()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_call_that_is_cancelled_lets_none_overtake_the_one_before_it() -> None:
    async def run() -> None:
        gates, said = GatedHandler(in_order=True), RecordedOutput()
        talk = conversation(gates, said)
        for n, name in enumerate(("first", "second", "third")):
            talk.receive(call(name, n))
        await settle()
        talk.receive(cancelled(1))
        await settle()
        assert gates.begun == ["first"]
        gates.let_go("third")
        gates.let_go("first")
        await settle()
        assert said.names == ["first", "third"]
        assert not talk.in_flight

    asyncio.run(run())


@pytest.mark.parametrize("in_order", [False, True])
def test_an_id_used_twice_loses_no_call(in_order: bool) -> None:
    async def run() -> None:
        gates, said = GatedHandler(in_order=in_order), RecordedOutput()
        talk = conversation(gates, said)
        talk.receive(call("one", 7))
        talk.receive(call("other", 7))
        await settle()
        assert len(talk.in_flight) == 2, "both are waited for when the client leaves"
        gates.let_go("one")
        gates.let_go("other")
        await settle()
        assert said.names == ["one", "other"]

    asyncio.run(run())


def test_a_cancelled_call_does_not_stop_the_opening_that_others_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        go, opened = asyncio.Event(), 0
        really = shared_embedder.open_session_engine

        async def slowly(config: Any) -> Any:
            nonlocal opened
            opened += 1
            await go.wait()
            return await really(config)

        monkeypatch.setattr(shared_embedder, "open_session_engine", slowly)
        session = StdioSession(configure(data=tmp_path, embedder="hashing"))
        first, second = asyncio.create_task(session.engine()), asyncio.create_task(session.engine())
        async with asyncio.timeout(SECONDS):
            while not opened:
                await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait([first])
            go.set()
            assert await session.engine() is await second
        assert (first.cancelled(), opened) == (True, 1)
        await session.close()

    asyncio.run(run())


def test_an_opening_that_failed_is_tried_again(tmp_path: Path) -> None:
    async def run() -> None:
        damaged = tmp_path / "commonplace.db"
        damaged.write_bytes(b"no database" * 1000)
        session = StdioSession(configure(data=tmp_path, embedder="hashing"))
        with pytest.raises(Unavailable, match="damaged"):
            await session.engine()
        damaged.unlink()
        assert await session.engine() is await session.engine()
        await session.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "memory://status"}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "memory://{agent}/{id}"},
                "argument": {"name": "agent", "value": ""},
            },
        ),
    ],
)
def test_what_nobody_foresaw_is_reported_and_answered(method: str, params: Document) -> None:
    class Broken(sessions.RequestSession):
        async def engine(self) -> Any:
            raise RuntimeError("Alice's diary")

    reported: list[str] = []
    handler = McpHandler(load_tool_set("commonplace"), lambda operation, error: reported.append(operation))
    session = Broken(cast(Any, None), sessions.Principal(), "default")
    with pytest.raises(JsonRpcError) as problem:
        asyncio.run(handler.answer(session, HANDSHAKE_VERSIONS[-1], method, params))
    assert problem.value.code == -32603
    assert problem.value.message == internal_error().message
    assert reported == [method]
