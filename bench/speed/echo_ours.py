"""A server of one trivial tool on our stdio loop."""

from __future__ import annotations

import sys
from typing import Any

from commonplace import config
from commonplace.serve.mcp import stdio
from commonplace.serve.mcp.tools import Hints, Tool, ToolSet


async def echo(session: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"said": arguments["text"]}


TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
HINTS = Hints(read_only=True, destructive=False, idempotent=True)
SET = ToolSet("echo", (Tool("echo", "Says it again.", TEXT, HINTS, echo),), lambda _: {"name": "echo", "version": "1"})

if __name__ == "__main__":
    stdio.run(config.load(data=sys.argv[1]), SET)
