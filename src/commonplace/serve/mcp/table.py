"""What an MCP server offers, as data: tools, the sets they come in, and the session they are called in.

Nothing here loads the engine or checks a schema: a server that was just spawned answers its handshake from these
tables alone.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.wire.errors import Fault
    from commonplace.wire.record import Principal

Document = dict[str, Any]

#: Every version of MCP with a handshake, oldest first; each is a set of fields a client of its time knows.
HANDSHAKE_ERAS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
#: Versions without one: every request says its own version, and `server/discover` says what there is.
STATELESS_ERAS = ("2026-07-28",)
ERAS = HANDSHAKE_ERAS + STATELESS_ERAS


class Session(Protocol):
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


Handler = Callable[[Session, Document], Awaitable[Document]]
#: A schema as it is, or made for a session (what is required may depend on its defaults) when tools are listed.
Schema = Document | Callable[[Session], Document]


def resolved(handler: Any) -> Any:
    """The function that a handler names as "module:function", imported only now."""
    if not isinstance(handler, str):
        return handler
    module, _, name = handler.partition(":")
    return getattr(import_module(module), name)


@dataclass(slots=True, frozen=True)
class Hints:
    """What a client may assume before it calls; all four are always said."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool = False  # our tools touch this memory and nothing else

    def document(self, title: str) -> Document:
        named: Document = {"title": title} if title else {}
        return named | {
            "readOnlyHint": self.read_only, "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent, "openWorldHint": self.open_world,
        }  # fmt: skip


@dataclass(slots=True, frozen=True)
class Tool:
    name: str
    description: str  # for a model: when to use it, what comes back
    input: Schema
    hints: Hints
    handler: str | Handler  # "module:function" is imported at the first call
    output: Schema | None = None
    title: str = ""
    #: A fault is a result with `isError` that the model reads, or a JSON-RPC error (-32603) that the client reads.
    faults: Literal["result", "error"] = "result"
    #: How a fault is said; without it, as the fault's own sentence and what to do next.
    explain: Callable[[Fault], str] | None = None

    async def call(self, session: Session, arguments: Document) -> Document:
        """The answer as a document; raises Fault."""
        handler: Handler = resolved(self.handler)
        return await handler(session, arguments)

    def input_schema(self, session: Session) -> Document:
        return self.input(session) if callable(self.input) else self.input

    def output_schema(self, session: Session) -> Document | None:
        return self.output(session) if callable(self.output) else self.output


@dataclass(slots=True, frozen=True)
class Resource:
    """Something to read by its URI; with braces in it, a template (RFC 6570)."""

    uri: str
    name: str
    title: str
    description: str
    pattern: str  # which URIs it covers, as a regular expression for the whole of them
    handler: str | Callable[[Session, str], Awaitable[Document]]  # (session, uri) → the document

    @property
    def template(self) -> bool:
        return "{" in self.uri

    def covers(self, uri: str) -> bool:
        return re.fullmatch(self.pattern, uri) is not None


@dataclass(slots=True, frozen=True)
class Prompt:
    """A message that a person starts a conversation with."""

    name: str
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]  # name, description, required
    handler: str | Callable[[Session, dict[str, str]], Awaitable[str]]


@dataclass(slots=True, frozen=True)
class ToolSet:
    name: str
    tools: tuple[Tool, ...]
    #: `serverInfo` of a session: at least name and version.
    server_info: Callable[[Session], Document]
    capabilities: Document = field(default_factory=lambda: {"tools": {}})
    instructions: str | None = None
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    #: (session, what is being filled in, its argument's name, what was typed) → what it may be.
    completer: str | Callable[[Session, Document, str, str], Awaitable[list[str]]] | None = None
    eras: tuple[str, ...] = ERAS
    #: The version offered to a client that asks for one we do not know.
    fallback: str = HANDSHAKE_ERAS[-1]
    #: What a call of a tool that is not there is answered with: code, and a sentence about the name.
    unknown_tool: Callable[[str], tuple[int, str]] = lambda name: (-32602, f"Unknown tool: {name}")
    #: The code for parameters that are not what a method takes.
    invalid_params: int = -32602
    #: Whether requests on stdio are done one after the other, each answered before the next is begun.
    in_order: bool = False

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)
