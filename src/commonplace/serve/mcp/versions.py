"""What each version of MCP knows: documents are made whole and then cut to the fields of the client's version."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commonplace.serve.mcp.tools import Document, McpSession, Tool

#: Every version with a handshake, oldest first.
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
#: Versions without one: every request says its own version, and `server/discover` says what there is.
STATELESS_VERSIONS = ("2026-07-28",)
VERSIONS = HANDSHAKE_VERSIONS + STATELESS_VERSIONS

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_SERVER_INFO = "io.modelcontextprotocol/serverInfo"

_ANNOTATIONS = _COMPLETIONS = "2025-03-26"
_STRUCTURED = "2025-06-18"  # titles, outputSchema, structuredContent


def is_stateless(version: str) -> bool:
    return version in STATELESS_VERSIONS


def _knows(version: str, since: str) -> bool:
    return VERSIONS.index(version) >= VERSIONS.index(since)


def titled(document: Document, title: str, version: str) -> Document:
    """With its title directly behind its name, where titles are known."""
    return {"name": document["name"], "title": title} | document if title and _knows(version, _STRUCTURED) else document


def tool_document(tool: Tool, session: McpSession, version: str) -> Document:
    document = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema(session)}
    document = titled(document, tool.title, version)
    if tool.output_schema is not None and _knows(version, _STRUCTURED):
        document["outputSchema"] = tool.output_schema(session)
    if _knows(version, _ANNOTATIONS):
        document["annotations"] = tool.hints.document(tool.title)
    return document


def call_result(text: str, structured: Document | None, version: str, *, error: bool = False) -> Document:
    result: Document = {"content": [{"type": "text", "text": text}]}
    if structured is not None and _knows(version, _STRUCTURED):
        result["structuredContent"] = structured
    if error:
        result["isError"] = True
    return result


def capabilities(declared: Document, version: str) -> Document:
    known = _knows(version, _COMPLETIONS)
    return {name: value for name, value in declared.items() if known or name != "completions"}


def server_info(info: Document, version: str) -> Document:
    return info if _knows(version, _STRUCTURED) else {key: value for key, value in info.items() if key != "title"}


def stateless_result(result: Document, info: Document, ttl_ms: int | None) -> Document:
    """Says that it is complete, how long it may be kept, and who answered, as a stateless version wants it."""
    caching = {} if ttl_ms is None else {"ttlMs": ttl_ms, "cacheScope": "private"}
    return {"resultType": "complete", **result, **caching, "_meta": {META_SERVER_INFO: info}}
