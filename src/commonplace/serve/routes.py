"""How a protocol is bound to HTTP: a table of routes that says everything about each of them.

Routing, OpenAPI, metrics and the tests that walk "every route" read the same tables. Nothing here loads the engine, a
dialect or a web framework: the tables stand beside the tools that `commonplace mcp` lists before anything is loaded,
and are named tuples for the same reason as those.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.serve.query import Parameters
from commonplace.wire.errors import Fault, ValidationError

if TYPE_CHECKING:
    from commonplace.config import Config
    from commonplace.engine import Engine
    from commonplace.wire.record import Principal, Role

#: (engine, caller, operation, request) → what a dialect answers: a document or a message.
Perform = Callable[["Engine", "Principal", str, Any], Awaitable[Any]]

NOTHING: Mapping[str, Any] = {}
#: The one table of statuses, whatever the protocol.
STATUS = {
    "validation_error": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "payload_too_large": 413,
    "secret_leakage": 422,
    "rate_limited": 429,
    "not_implemented": 501,
    "unavailable": 503,
}


class MalformedBody(ValidationError):
    """The body is not JSON at all."""


class Call(NamedTuple):
    """One authenticated request, decoded as far as JSON and the query string go."""

    engine: Engine
    who: Principal
    document: Any = None  # the body or, where the method has none, the query string and what the path names; or a file
    path: Mapping[str, str] = NOTHING
    query: Mapping[str, Any] = NOTHING
    accept: str = ""
    spend: Callable[[], None] = lambda: None  # pays for one more operation than the request itself, or refuses
    anonymous: bool = False  # let in without a token, as `Route.anonymous` says
    address: tuple[str, int] | None = None  # of the socket it came in at: the server's own word, not the caller's
    prefix: str = ""  # what a caller has to put before our paths


class NdjsonLines(NamedTuple):
    """Documents sent one to a line, each as soon as it is encoded."""

    documents: Iterable[Any]


class ByteStream(NamedTuple):
    """Bytes sent as they are made. The first are there already: what goes wrong before them can still be refused."""

    first: bytes
    rest: AsyncGenerator[bytes, None]


class Reply(NamedTuple):
    """A document or a message, sent as JSON; or `NdjsonLines`; or bytes or a `ByteStream` with their Content-Type; or
    None, no body."""

    document: Any
    status: int = 200
    headers: Mapping[str, str] = NOTHING


Handler = Callable[[Call], Awaitable[Reply]]


def dialect_handler(perform: Perform, operation: str, status: int = 200) -> Handler:
    """The handler of a route that is nothing but one operation of a dialect."""

    async def handle(call: Call) -> Reply:
        return Reply(await perform(call.engine, call.who, operation, call.document), status)

    return handle


class Route(NamedTuple):
    method: str
    path: str  # "/v0/memories/{id}"
    handler: Handler
    operation: str  # unique name, for metrics and OpenAPI
    summary: str
    tag: str  # the protocol
    role: Role | None = "reader"  # the least role; None is open to everyone, and nobody is asked who they are
    request: str | None = None  # schema name of the body
    response: str | None = None  # schema name of the answer
    status: int = 200
    #: A parameter that is not listed is refused, and one that is listed is checked, before the handler is called.
    query: Parameters | Callable[[], Parameters] = NOTHING
    #: How many requests one body may hold as a list, answered by a list; 0 is none but the one.
    batch: int = 0
    #: The type of an answer, or of a body, that is a file and no JSON. Such a body lies on disk while it is handled.
    response_file: str = ""
    request_file: str = ""
    #: What a request without a body is told; "" leaves that to the operation.
    needs_body: str = ""
    #: Who a caller is that sends no token where tokens are asked for; None, here or from it, lets no such caller in.
    anonymous: Callable[[Engine], Principal | None] | None = None
    #: Whether it reads what is asked with the embedder, for which it may have to wait: given up when its client leaves.
    embeds: bool = False

    @property
    def has_body(self) -> bool:
        return self.method not in ("GET", "DELETE")

    @property
    def parameters(self) -> Parameters:
        return self.query() if callable(self.query) else self.query


class ProtocolRoutes(NamedTuple):
    """A prefix of paths with one way to say what went wrong."""

    prefix: str
    routes: tuple[Route, ...]
    error: Callable[[Fault], Any] = Fault.to_wire  # its error document
    enabled: Callable[[Config], bool] = lambda config: True
    #: For people, in the place of that document: HTML of the fault and of what comes before our paths where they are.
    error_page: Callable[[Fault, str], bytes] | None = None


def error_reply(
    protocols: Iterable[ProtocolRoutes], path: str, fault: Fault, status: int = 0, prefix: str = "", **headers: str
) -> Reply:
    """In the words of the protocol that owns the path, which need not be one of its routes; `status` where HTTP has a
    better one than the fault, `prefix` where our paths do not begin at the root."""
    owners = [p for p in protocols if path == p.prefix or path.startswith(f"{p.prefix}/")]
    owner = max(owners, key=lambda p: len(p.prefix)) if owners else None
    if owner is not None and owner.error_page is not None:
        document: Any = owner.error_page(fault, prefix)
        headers["Content-Type"] = "text/html; charset=utf-8"
    else:
        document = (owner.error if owner is not None else Fault.to_wire)(fault)
    match fault.code:  # what HTTP wants said in headers
        case "unauthenticated":
            headers.setdefault("WWW-Authenticate", 'Bearer realm="commonplace"')
        case "rate_limited":
            headers["Retry-After"] = str(fault.details.get("retry_after", 1))
        case "payload_too_large":
            headers["Connection"] = "close"  # what is left of the body is not read
    return Reply(document, status or STATUS[fault.code], headers)
