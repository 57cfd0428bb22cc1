"""All tools at once. No two sets share a name, so each keeps its own."""

from __future__ import annotations

from commonplace.serve.mcp.sets import amp, ours, trusty
from commonplace.serve.mcp.table import ToolSet

SET = ToolSet(
    "all", (*ours.TOOLS, *amp.TOOLS, *trusty.SET.tools), ours.server_info, ours.CAPABILITIES, ours.INSTRUCTIONS,
    resources=ours.RESOURCES, prompts=ours.PROMPTS, completer=ours.COMPLETER,
)  # fmt: skip
