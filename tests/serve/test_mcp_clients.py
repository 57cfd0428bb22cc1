"""The official SDK's own client, over stdio and over HTTP, in both eras."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from server_process import ServerProcess, command, environment, run_server

mcp = pytest.importorskip("mcp")
from mcp import Client, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

MODES = ["auto", "legacy"]


def over_stdio(data: Path, mode: str, use: Callable[[Any], Awaitable[None]], *args: str) -> None:
    program, *rest = command("mcp", *args)
    assert program == sys.executable
    parameters = StdioServerParameters(command=program, args=rest, env=environment(data))

    async def run() -> None:
        async with Client(stdio_client(parameters), mode=mode) as client:
            await use(client)

    asyncio.run(run())


def over_http(server: ServerProcess, mode: str, use: Callable[[Any], Awaitable[None]], path: str = "/mcp") -> None:
    async def run() -> None:
        async with Client(f"{server.url}{path}", mode=mode) as client:
            await use(client)

    asyncio.run(run())


async def _our_day(client: Any) -> None:
    tools = await client.list_tools()
    assert [tool.name for tool in tools.tools][:3] == ["remember", "recall", "forget"]
    assert all(tool.annotations is not None for tool in tools.tools)
    assert all(tool.output_schema is None for tool in tools.tools), "it costs room, and answers explain themselves"
    kept = await client.call_tool("remember", {"content": "Alice is allergic to peanuts"})
    assert not kept.is_error
    id = kept.structured_content["id"]
    found = await client.call_tool("recall", {"query": "peanuts"})
    assert found.structured_content["results"][0]["id"] == id
    wrong = await client.call_tool("forget", {})
    assert wrong.is_error
    read = await client.read_resource(f"memory://default/{id}")
    assert "peanuts" in read.contents[0].text
    templates = await client.list_resource_templates()
    assert len(templates.resource_templates) == 2
    resources = await client.list_resources()
    assert str(resources.resources[0].uri) == "memory://status"
    prompts = await client.list_prompts()
    assert len(prompts.prompts) == 3
    prompt = await client.get_prompt("recall_about", {"topic": "peanuts"})
    assert "peanuts" in prompt.messages[0].content.text
    with pytest.raises(mcp.MCPError) as refused:
        await client.call_tool("nothing", {})
    assert refused.value.error.code == -32602
    await client.call_tool("forget", {"ids": [id]})
    assert (await client.call_tool("list", {})).structured_content == {"memories": []}


async def _many_at_once(client: Any) -> None:
    await asyncio.gather(*(client.call_tool("remember", {"content": f"note {n}"}) for n in range(20)))
    listed = await client.call_tool("list", {"limit": 100})
    assert {m["content"] for m in listed.structured_content["memories"]} >= {f"note {n}" for n in range(20)}


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_over_stdio(tmp_path: Path, mode: str) -> None:
    over_stdio(tmp_path, mode, _our_day)


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_over_http(tmp_path: Path, mode: str) -> None:
    with run_server(tmp_path) as server:
        over_http(server, mode, _our_day)
        over_http(server, mode, _many_at_once)


def test_the_sdk_client_with_many_calls_at_once(tmp_path: Path) -> None:
    over_stdio(tmp_path, "auto", _many_at_once)


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_with_the_other_sets(tmp_path: Path, mode: str) -> None:
    async def amp(client: Any) -> None:
        record = {"type": "lesson", "title": "Mocks", "content": "Mocked tests hid a bug"}
        assert (await client.call_tool("amp_store", {"record": record})).structured_content["created"] is True
        assert (await client.call_tool("amp_search", {"query": "mocked"})).structured_content["total"] == 1

    async def trusty(client: Any) -> None:
        kept = await client.call_tool("memory_remember", {"text": "The gateway validates tokens"})
        assert '"stored"' in kept.content[0].text
        with pytest.raises(mcp.MCPError) as refused:
            await client.call_tool("nothing", {})
        assert refused.value.error.code == -32603

    over_stdio(tmp_path / "a", mode, amp, "--tools", "amp")
    over_stdio(tmp_path / "b", mode, trusty, "--tools", "trusty", "--palace", "atlas")
