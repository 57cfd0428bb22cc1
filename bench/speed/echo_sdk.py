"""A server of one trivial tool on the official SDK's stdio loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def listed(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="echo", description="Says it again.", input_schema=TEXT)])


async def called(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    said = {"said": (params.arguments or {})["text"]}
    text = types.TextContent(type="text", text=json.dumps(said))
    return types.CallToolResult(content=[text], structured_content=said)


async def main() -> None:
    server: Server[Any] = Server("echo", version="1", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
