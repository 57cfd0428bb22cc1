"""How a protocol is bound to HTTP: a table of routes, each a plain async function from a call to a reply.

A protocol's table (`serve/v0.py`, `serve/amp.py`, …) says everything about a route, so that routing, OpenAPI, metrics
and the tests that walk "every route" all read the same list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from commonplace.engine import Engine
from commonplace.wire.errors import Fault
from commonplace.wire.record import Principal, Role


@dataclass(slots=True, frozen=True)
class Call:
    """One authenticated request, decoded as far as JSON goes."""

    engine: Engine
    who: Principal
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None  # None when the request has no body
    accept: str = ""
    open: bool = False  # nobody had to say who they are: open local mode
    spend: Callable[[], None] = lambda: None  # pays for one more operation than the request itself, or refuses
    stranger: bool = False  # let in without a token, as `Route.stranger` says


@dataclass(slots=True, frozen=True)
class NdjsonLines:
    """Documents sent one to a line (NDJSON), each as soon as it is encoded."""

    documents: Iterable[Any]


@dataclass(slots=True)
class Reply:
    """A document or a message, sent as JSON; or `NdjsonLines`; or bytes with their Content-Type; or None, no body."""

    document: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Route:
    method: str
    path: str  # "/v0/memories/{id}"
    handler: Callable[[Call], Awaitable[Reply]]
    operation: str  # unique name, for metrics and OpenAPI
    summary: str
    tag: str  # the protocol
    role: Role | None = "reader"  # the least role; None is open to everyone, and nobody is asked who they are
    request: str | None = None  # schema name of the body
    response: str | None = None  # schema name of the answer
    status: int = 200
    #: Query parameter → JSON Schema, with `required: true` beside it where the parameter must be given. A parameter
    #: that is not listed is refused, and one that is listed is checked, before the handler is called.
    query: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    #: Who a caller is that sends no token where tokens are asked for; None, here or from it, lets no such caller in.
    stranger: Callable[[Engine], Principal | None] | None = None


@dataclass(slots=True, frozen=True)
class Protocol:
    """A prefix of paths with one way to say what went wrong."""

    prefix: str
    routes: tuple[Route, ...]
    error_reply: Callable[[Fault], Reply]  # its own error document and status for a fault
