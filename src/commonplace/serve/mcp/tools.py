"""What an MCP server offers, as data: tools, the sets they come in, and the session they are called in.

Nothing here loads the engine or checks a schema: a server that was just spawned answers its handshake from these
tables alone. They are named tuples because a client waits while their classes are made: a frozen dataclass takes nine
times as long.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from commonplace.serve.json_rpc import INVALID_PARAMS
from commonplace.serve.mcp.versions import HANDSHAKE_VERSIONS, VERSIONS
from commonplace.wire.validate import portable_schema, rewrite_schema

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.wire.errors import Fault
    from commonplace.wire.record import Principal

Document = dict[str, Any]


class McpSession(Protocol):
    """What a tool is called in: who asks, and what is meant when a call names no agent or palace."""

    @property
    def who(self) -> Principal: ...

    @property
    def agent(self) -> str: ...

    @property
    def palace(self) -> str | None: ...

    async def engine(self) -> Engine:
        """Opened at the first call, or in the background before it; always the same one."""
        ...


Handler = Callable[[McpSession, Document], Awaitable[Document]]
#: Made when tools are listed, for a session: what is required may depend on its defaults.
Schema = Callable[[McpSession], Document]


class Hints(NamedTuple):
    """What a client may assume before it calls; all four are always said."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool = False  # our tools touch this memory and nothing else

    def document(self, title: str) -> Document:
        named: Document = {"title": title} if title else {}
        named |= {"readOnlyHint": self.read_only, "destructiveHint": self.destructive}
        return named | {"idempotentHint": self.idempotent, "openWorldHint": self.open_world}


READS = Hints(read_only=True, destructive=False, idempotent=True)
ADDS = Hints(read_only=False, destructive=False, idempotent=False)
ENSURES = Hints(read_only=False, destructive=False, idempotent=True)
CHANGES = Hints(read_only=False, destructive=True, idempotent=True)
REPLACES = Hints(read_only=False, destructive=True, idempotent=False)


class Tool(NamedTuple):
    name: str
    description: str  # for a model: when to use it, what comes back
    input_schema: Schema
    hints: Hints
    handler: Handler
    output_schema: Schema | None = lambda session: {"type": "object"}  # which any answer is; None: not told
    title: str = ""
    #: A fault is a result with `isError` that the model reads, or a JSON-RPC error (-32603) that the client reads.
    faults: Literal["result", "error"] = "result"
    #: How a fault is said; without it, as the fault's own sentence and what to do next.
    explain: Callable[[Fault], str] | None = None


class Resource(NamedTuple):
    """Something to read by its URI; with braces in it, a template (RFC 6570)."""

    uri: str
    name: str
    title: str
    description: str
    pattern: str  # which URIs it covers, as a regular expression for the whole of them
    handler: Callable[[McpSession, str], Awaitable[Document]]  # (session, uri) → the document

    @property
    def is_template(self) -> bool:
        return "{" in self.uri

    def covers(self, uri: str) -> bool:
        return re.fullmatch(self.pattern, uri) is not None


class Prompt(NamedTuple):
    """A message that a person starts a conversation with."""

    name: str
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]  # name, description, required
    text: Callable[[Mapping[str, str]], str]


_TOOLS_ONLY: Document = {"tools": {}}


class ToolSet(NamedTuple):
    name: str
    tools: tuple[Tool, ...]
    #: `serverInfo` of a session: at least name and version.
    server_info: Callable[[McpSession], Document]
    capabilities: Document = _TOOLS_ONLY
    instructions: str | None = None
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    #: (session, what is being filled in, its argument's name, what was typed) → what it may be.
    completer: Callable[[McpSession, Document, str, str], Awaitable[list[str]]] | None = None
    versions: tuple[str, ...] = VERSIONS
    #: The version offered to a client that asks for one we do not know.
    fallback: str = HANDSHAKE_VERSIONS[-1]
    #: What a call of a tool that is not there is answered with: code, and a sentence about the name.
    unknown_tool: Callable[[str], tuple[int, str]] = lambda name: (INVALID_PARAMS, f"Unknown tool: {name}")
    #: The code for parameters that are not what a method takes.
    invalid_params: int = INVALID_PARAMS
    #: Whether requests on stdio are done one after the other, each answered before the next is begun.
    in_order: bool = False
    #: How long requests on stdio may take once stdin has ended; None: as long as after a signal.
    finish_seconds: float | None = 10.0

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


def without_nulls(document: Mapping[str, Any]) -> Document:
    """Models say null for what they leave out; an answer leaves out what would be null."""
    return {name: value for name, value in document.items() if value is not None}


# Schemas that deployed clients accept: an object at the root, no unions, nothing that only we could fill in.

_AGENT = "Whose memory: an agent's name. Leave it out to use this session's own agent, which is nearly always right."


def arguments_schema(
    request: str,
    *,
    hidden: tuple[str, ...] = (),
    defaults: Mapping[str, Any] | None = None,
    agent: bool = True,
    also: Mapping[str, Document] | None = None,
) -> Schema:
    """A request as a tool's arguments: naming the agent becomes optional, and what a path says is `also` asked."""

    def make(session: McpSession) -> Document:
        document = rewrite_schema(portable_schema(request, nulls=False), _typed)
        properties: Document = {field: rules for field, rules in document["properties"].items() if field not in hidden}
        optional = set(defaults or ())
        for field_name, value in (defaults or {}).items():
            properties[field_name] = {**properties[field_name], "default": value}
        if agent:
            properties["agent_id"] = {**properties["agent_id"], "description": _AGENT}
            optional.add("agent_id")
        document["properties"] = {**(also or {}), **properties}
        asked = [name for name, rules in (also or {}).items() if "default" not in rules]
        required = (*asked, *document.get("required", ()))
        return _requiring(document, [name for name in required if name not in optional])

    return make


def result_schema(response: str, *, nulls: bool = True) -> Schema:
    """A response as a tool's output. What may be null there may be left out here; without `nulls` it always is."""

    def make(session: McpSession) -> Document:
        document = rewrite_schema(portable_schema(response, nulls=nulls), _typed)
        if nulls:
            document = rewrite_schema(document, _lenient)
        return _requiring(document, document.get("required", []))

    return make


def _requiring(document: Document, required: list[str]) -> Document:
    kept = {key: value for key, value in document.items() if key not in ("title", "description", "required")}
    return kept | {"required": required} if required else kept


def _lenient(node: Document) -> Document:
    """Nothing is required whose type is left open: that is how a portable schema shows what may be null."""
    properties = node.get("properties")
    if not isinstance(properties, dict):
        return node
    kept = [field for field in node.get("required", ()) if "type" in properties.get(field, {})]
    others = {key: value for key, value in node.items() if key not in ("properties", "required")}
    return others | {"properties": properties} | ({"required": kept} if kept else {})


def _typed(node: Document) -> Document:
    """Every choice of words says that it is text: several clients refuse a property without a type."""
    words = node.get("enum") or ([node["const"]] if "const" in node else [])
    is_text = words and "type" not in node and all(isinstance(word, str) for word in words)
    return node | {"type": "string"} if is_text else node
