"""MCP over HTTP: one address for each set of tools, checked like every other protocol."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from commonplace.serve.context import RECORD, AppContext, RequestRecord
from commonplace.serve.errors import STATUS
from commonplace.serve.http_io import read_body, send_reply
from commonplace.serve.logs import log, whereabouts
from commonplace.serve.mcp.messages import INVALID_REQUEST, Problem, decode
from commonplace.serve.mcp.sessions import RequestSession
from commonplace.serve.mcp.sets import load
from commonplace.serve.mcp.speaker import Report, Speaker
from commonplace.serve.routes import Protocol, Reply
from commonplace.wire.errors import Fault, Unavailable, ValidationError

#: Where each set is served.
PATHS = {"/mcp": "commonplace", "/mcp/amp": "amp", "/mcp/trusty": "trusty", "/mcp/all": "all"}
SESSION = "commonplace.mcp.session"  # where a request's session lies in its ASGI scope
_ASKED = ("agent", "palace")
_MOST_CHARS = 256
CLIENT_GONE = 499  # what access logs call it


def error_reply(fault: Fault) -> Reply:
    """What goes wrong before a message is looked at: HTTP's status, and a JSON-RPC error of no request."""
    error = {"code": INVALID_REQUEST, "message": fault.message, "data": {"code": fault.code}}
    return Reply({"jsonrpc": "2.0", "id": None, "error": error}, STATUS[fault.code])


#: Its routes are not routes: the body is a conversation of its own, which the SDK reads.
PROTOCOL = Protocol("/mcp", (), error_reply)


class McpEndpoint:
    """One set of tools at one path. The SDK takes a second to load, so it is loaded by the first request."""

    def __init__(self, context: AppContext, name: str) -> None:
        self._context = context
        self._name = name
        self._starting = asyncio.Lock()
        self._manager: Any = None
        self._living: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: RequestRecord = scope[RECORD]
        record.operation = f"mcp_{self._name}"
        headers = Headers(scope=scope)
        try:
            if scope["method"] != "POST":
                await send_reply(scope, send, self._only_post(scope))
                return
            with self._context.tracer(record.operation, headers) as ended:
                async with asyncio.timeout(self._context.timeout):
                    scope[SESSION] = await self._session(scope, headers, record)
                    body = await read_body(headers, receive, self._context.max_body)
                if not _is_json(headers):
                    await send_reply(scope, send, self._only_json(scope))
                    ended(record.status)
                    return
                decode(body)
                # White space around a value is no part of it (RFC 9110), and the SDK compares values.
                scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
                await (await self._started()).handle_request(scope, _again(body, receive), send)
                ended(record.status)
        except Problem as problem:
            await send_reply(scope, send, Reply(problem.response(), 400))
        except Fault as fault:
            await send_reply(scope, send, self._context.refusal(scope, fault))
        except TimeoutError:
            reply = self._context.refusal(
                scope, Unavailable(f"the body did not arrive within {self._context.timeout:g} s")
            )
            reply.headers["Connection"] = "close"
            await send_reply(scope, send, reply)
        except ClientDisconnect:
            record.status = CLIENT_GONE

    async def _session(self, scope: Scope, headers: Headers, record: RequestRecord) -> RequestSession:
        who, _ = await self._context.authenticator.admit(headers.get("authorization"))
        record.principal = who.name
        self._context.authenticator.spend(who)
        asked = dict(QueryParams(scope["query_string"])) if scope["query_string"] else {}
        for name, value in asked.items():
            if name not in _ASKED or not 1 <= len(value) <= _MOST_CHARS:
                raise ValidationError(f"an address ends in ?agent=NAME or ?palace=NAME, not in {name[:80]!r}")
        return RequestSession(
            self._context.engine,
            who,
            asked.get("agent", self._context.agent),
            asked.get("palace"),
            named="agent" in asked,
        )

    async def _started(self) -> Any:
        if self._manager is None:
            async with self._starting:
                if self._manager is None:
                    sdk = await asyncio.to_thread(import_module, "commonplace.serve.mcp.sdk_http")
                    speaker = Speaker(load(self._name), _reporter(self._name))
                    made = sdk.manager(speaker, max_body=self._context.max_body, timeout=self._context.timeout)
                    running = asyncio.Event()
                    self._living = asyncio.create_task(_live(made, running))
                    await running.wait()
                    self._manager = made
        return self._manager

    def _only_post(self, scope: Scope) -> Reply:
        fault = ValidationError(f"{scope['method'][:20]} does not work here: there are no streams to open; use POST")
        reply = self._context.refusal(scope, fault)
        reply.status = 405
        reply.headers["Allow"] = "POST"
        return reply

    def _only_json(self, scope: Scope) -> Reply:
        reply = self._context.refusal(scope, ValidationError("a message is sent with Content-Type: application/json"))
        reply.status = 415
        return reply


def _is_json(headers: Headers) -> bool:
    """As the SDK sees it, which would refuse anything else in plain text."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read once, for the SDK to read; then whatever else the client does."""
    left = [body]

    async def replay() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return replay


async def _live(manager: Any, running: asyncio.Event) -> None:
    """As long as the server: its end cancels this."""
    async with manager.run():
        running.set()
        await asyncio.Event().wait()


def _reporter(name: str) -> Report:
    def report(operation: str, error: Exception) -> None:
        fields = {"event": "bug", "operation": f"mcp_{name}:{operation}", **whereabouts(error)}
        log.error("bug", extra={"fields": fields})

    return report
