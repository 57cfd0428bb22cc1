"""What each version of MCP knows: documents are made whole and then cut to the fields of the client's time."""

from __future__ import annotations

from commonplace.serve.mcp.table import ERAS, HANDSHAKE_ERAS, STATELESS_ERAS, Document, Tool, ToolSet

ENVELOPE_VERSION = "io.modelcontextprotocol/protocolVersion"
ENVELOPE_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

#: How long a client of the stateless era may keep a list: what a server offers changes only with its version.
LIST_TTL_MS = 300_000

_ANNOTATIONS = ERAS.index("2025-03-26")
_COMPLETIONS = _ANNOTATIONS
_STRUCTURED = ERAS.index("2025-06-18")  # titles, outputSchema, structuredContent


def stateless(era: str) -> bool:
    return era in STATELESS_ERAS


def chosen(offered: ToolSet, wanted: object) -> str:
    """The version of a handshake: the one asked for if we speak it, else the one we would rather speak."""
    return (
        wanted if isinstance(wanted, str) and wanted in offered.eras and wanted in HANDSHAKE_ERAS else offered.fallback
    )


def titled(document: Document, title: str, era: str) -> Document:
    """With its title directly behind its name, where titles are known."""
    if not title or ERAS.index(era) < _STRUCTURED:
        return document
    named = {"name": document["name"], "title": title}
    return named | document


def tool_document(tool: Tool, inputs: Document, outputs: Document | None, era: str) -> Document:
    age = ERAS.index(era)
    document = titled({"name": tool.name, "description": tool.description, "inputSchema": inputs}, tool.title, era)
    if age >= _STRUCTURED and outputs is not None:
        document["outputSchema"] = outputs
    if age >= _ANNOTATIONS:
        document["annotations"] = tool.hints.document(tool.title)
    return document


def call_result(text: str, structured: Document | None, era: str, *, error: bool = False) -> Document:
    result: Document = {"content": [{"type": "text", "text": text}]}
    if structured is not None and ERAS.index(era) >= _STRUCTURED:
        result["structuredContent"] = structured
    if error:
        result["isError"] = True
    return result


def capabilities(declared: Document, era: str) -> Document:
    known = ERAS.index(era) >= _COMPLETIONS
    return {name: value for name, value in declared.items() if known or name != "completions"}


def server_info(info: Document, era: str) -> Document:
    return info if ERAS.index(era) >= _STRUCTURED else {key: value for key, value in info.items() if key != "title"}


def finished(result: Document, info: Document, era: str, *, ttl_ms: int | None = None) -> Document:
    """The result as its era sends it: stateless ones say that it is whole, how long it keeps, and who answered."""
    if not stateless(era):
        return result
    whole: Document = {"resultType": "complete", **result}
    if ttl_ms is not None:
        whole |= {"ttlMs": ttl_ms, "cacheScope": "private"}
    return whole | {"_meta": {SERVER_INFO: info}}
