"""MCP over HTTP: one address for each set of tools, checked like every other protocol.

The official SDK carries the messages (streamable HTTP); what they say is said by our own handler. It takes a second to
load, so the first request loads it.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from commonplace.__about__ import __version__
from commonplace.serve.context import RECORD, AppContext
from commonplace.serve.http_io import CLIENT_GONE, read_body, send_reply
from commonplace.serve.json_rpc import INTERNAL_ERROR, INVALID_REQUEST, SECRET_ID, JsonRpcError
from commonplace.serve.mcp.handler import McpHandler, may_repeat
from commonplace.serve.mcp.messages import decode
from commonplace.serve.mcp.sessions import RequestSession
from commonplace.serve.protocols import DEFAULT_TOOLS, load_tool_set, tool_set_names
from commonplace.serve.routes import ProtocolRoutes, Reply
from commonplace.serve.telemetry import log_bug
from commonplace.wire.errors import Fault, Unavailable, ValidationError

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

SESSION = "commonplace.mcp.session"  # where a request's session lies in its ASGI scope
_PARAMETERS = ("agent", "palace")
_MAX_CHARS = 256


def _error(fault: Fault) -> Any:
    """What goes wrong before a message is looked at: a JSON-RPC error of no request."""
    return JsonRpcError(INVALID_REQUEST, fault.message, {"code": fault.code}).response()


#: It has no routes: the body is a conversation of its own, which the SDK reads.
PROTOCOL = ProtocolRoutes("/mcp", (), _error)


def endpoints(context: AppContext) -> dict[str, McpEndpoint]:
    return {
        PROTOCOL.prefix if name == DEFAULT_TOOLS else f"{PROTOCOL.prefix}/{name}": McpEndpoint(context, name)
        for name in tool_set_names()
    }


class McpEndpoint:
    """One set of tools at one path."""

    def __init__(self, context: AppContext, name: str) -> None:
        self._context = context
        self._name = name
        self._starting = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context, record, headers = self._context, scope[RECORD], Headers(scope=scope)
        record.operation = f"mcp_{self._name}"
        try:
            if scope["method"] != "POST":
                method = scope["method"][:20]
                fault = ValidationError(f"{method} does not work here: there are no streams to open; use POST")
                await send_reply(scope, send, context.refusal(scope, fault, 405, Allow="POST"))
                return
            with context.tracer(record.operation, headers) as ended:
                async with asyncio.timeout(context.config.request_timeout):
                    scope[SESSION] = await self._session(scope, headers)
                    body = await read_body(headers, receive, context.config.max_body)
                if _is_json(headers):
                    if not await may_repeat(scope[SESSION], decode(body).get("id")):
                        raise JsonRpcError(INVALID_REQUEST, SECRET_ID)
                    # White space around a value is no part of it (RFC 9110), and the SDK compares values.
                    scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
                    await (await self._started()).handle_request(scope, _replay(body, receive), send)
                else:
                    fault = ValidationError("a message is sent with Content-Type: application/json")
                    await send_reply(scope, send, context.refusal(scope, fault, 415))
                ended(record.status)
        except JsonRpcError as error:
            await send_reply(scope, send, Reply(error.response(), 400))
        except Fault as fault:
            await send_reply(scope, send, context.refusal(scope, fault))
        except TimeoutError:
            late = Unavailable(f"the body did not arrive within {context.config.request_timeout} s")
            await send_reply(scope, send, context.refusal(scope, late, Connection="close"))
        except ClientDisconnect:
            record.status = CLIENT_GONE

    async def _session(self, scope: Scope, headers: Headers) -> RequestSession:
        context = self._context
        who, _ = await context.authenticator.admit(headers.get("authorization"))
        scope[RECORD].principal = who.name
        context.authenticator.spend(who)
        given = dict(QueryParams(scope["query_string"]))
        for name, value in given.items():
            if name not in _PARAMETERS or not 1 <= len(value) <= _MAX_CHARS:
                raise ValidationError(f"an address ends in ?agent=NAME or ?palace=NAME, not in {name[:80]!r}")
        agent, palace = given.get("agent", context.config.agent), given.get("palace")
        return RequestSession(context.engine, who, agent, palace, named="agent" in given)

    async def _started(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                await asyncio.to_thread(import_module, "mcp.server.streamable_http_manager")
                manager = _manager(McpHandler(load_tool_set(self._name), self._report), self._context)
                started = asyncio.Event()
                self._running = asyncio.create_task(_run(manager, started))
                await started.wait()
                self._manager = manager
        return self._manager

    def _report(self, operation: str, error: Exception) -> None:
        log_bug(f"mcp_{self._name}:{operation}", error)


def _manager(handler: McpHandler, context: AppContext) -> StreamableHTTPSessionManager:
    """Every request stands alone, in every version: who asks is told by its token, not by a session id."""
    from mcp import MCPError
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    server: Server[Any] = Server("commonplace", version=__version__)

    async def answer(ctx: Any, call_next: Any) -> Any:
        if ctx.request_id is None:
            return None  # a notification: there is nothing here for it to change
        try:
            async with asyncio.timeout(context.config.request_timeout):
                session, version = ctx.request.scope[SESSION], ctx.protocol_version
                params = dict(ctx.params) if ctx.params is not None else None
                if ctx.method != "initialize":
                    version = handler.version_of(ctx.method, params, version)
                return await handler.answer(session, version, ctx.method, params)
        except JsonRpcError as error:
            raise MCPError(code=error.code, message=error.message, data=error.data) from None
        except TimeoutError:
            raise MCPError(code=INTERNAL_ERROR, message=context.timed_out().message) from None

    server.middleware[:] = [answer]
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=context.config.max_body
    )


async def _run(manager: StreamableHTTPSessionManager, started: asyncio.Event) -> None:
    """As long as the server: its end cancels this."""
    async with manager.run():
        started.set()
        await asyncio.Event().wait()


def _is_json(headers: Headers) -> bool:
    """As the SDK sees it, which would refuse anything else in plain text."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read once, for the SDK to read; then whatever else the client does."""
    left = [body]

    async def replay() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return replay
