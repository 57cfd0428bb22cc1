"""Protocol tables as an ASGI application: every route is authenticated, limited, decoded, called and encoded here."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import time
from contextlib import AsyncExitStack
from logging import INFO
from typing import Any

from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect
from starlette.routing import Route as AsgiRoute, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.engine import require_role
from commonplace.serve import review_stream
from commonplace.serve.auth import NOBODY, as_owner
from commonplace.serve.context import RECORD, AppContext, RequestRecord
from commonplace.serve.http_io import (
    CLIENT_GONE,
    decode_body,
    read_body,
    send_reply,
    send_stream,
    spooled_body,
    while_connected,
)
from commonplace.serve.mcp.http import PROTOCOL as MCP, endpoints as mcp_endpoints
from commonplace.serve.page import PAGE, PREFIX, PageEndpoint
from commonplace.serve.query import parse_query
from commonplace.serve.routes import STATUS, ByteStream, Call, Reply, Route
from commonplace.serve.telemetry import access, log_bug
from commonplace.wire.errors import Fault, NotFound, ValidationError, internal_error

_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_POLICY_VIOLATION = 1008
#: A file that is sent lies on disk, and may have as many times what a body may that is held in memory.
_FILE_BODIES = 64


def application(context: AppContext) -> RequestMiddleware:
    endpoints: dict[str, RouteEndpoint] = {}
    for protocol in context.protocols:
        for route in protocol.routes:
            endpoints.setdefault(route.path, RouteEndpoint(context)).by_method[route.method] = route
    # The more a path says the earlier it is tried: an id may hold slashes, and must not swallow `/history`.
    ordered = sorted(endpoints.items(), key=lambda item: ("{" in item[0], item[0].endswith("}")))
    served = [AsgiRoute(path, endpoint) for path, endpoint in ordered]
    if any(protocol.prefix == "/v0" for protocol in context.protocols):
        served.insert(0, AsgiRoute(review_stream.PATH, review_stream.ReviewStream(context), methods=["GET"]))
    if PAGE in context.protocols:
        page = PageEndpoint(context)
        served += [AsgiRoute(path, page) for path in (PREFIX, f"{PREFIX}/{{path:path}}")]
    if MCP in context.protocols:
        served += [AsgiRoute(path, endpoint) for path, endpoint in mcp_endpoints(context).items()]

    async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
        fault = NotFound(f"there is nothing at {scope['path'][:200]}; {context.signpost}")
        await send_reply(scope, send, context.refusal(scope, fault))

    return RequestMiddleware(context, Router(served, redirect_slashes=False, default=not_found))


class RequestMiddleware:
    """Around every request: its id, its Host and Origin, its log line and its metrics."""

    def __init__(self, context: AppContext, app: ASGIApp) -> None:
        self.context = context
        self._app = app
        # Random once and then counted: asking the system for randomness gives up the interpreter at every request.
        self._prefix = secrets.token_hex(6)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        record = scope[RECORD] = RequestRecord(
            given if self._is_usable(given) else f"{self._prefix}-{next(self._numbers):x}"
        )
        named = (b"x-request-id", record.id.encode())

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message["headers"].append(named)
            await send(message)

        self.context.metrics.in_flight.inc()
        try:
            try:
                self.context.check_address(scope)
            except Fault as fault:
                await send_reply(scope, sending, self.context.refusal(scope, fault))
            else:
                await self._app(scope, receive, sending)
        finally:
            self.context.metrics.in_flight.dec()
            self._log(scope["method"], record)

    def _is_usable(self, given: str) -> bool:
        """Whether the log and the answer may repeat an id that the caller chose."""
        return _GIVEN_ID.match(given) is not None and self.context.engine.redactor.is_name(given)

    def _log(self, method: str, record: RequestRecord) -> None:
        seconds = time.perf_counter() - record.started
        self.context.metrics.answered(record.operation, record.status, seconds)
        if access.isEnabledFor(INFO):
            fields: dict[str, Any] = {"event": "request", "id": record.id, "method": method[:20]}
            fields |= {"operation": record.operation, "status": record.status, "ms": round(seconds * 1000, 2)}
            known = {"principal": record.who and record.who.name, "fault": record.fault}
            fields |= {name: value for name, value in known.items() if value is not None}
            access.info("request", extra={"fields": fields})


class RouteEndpoint:
    """One path, with a route for each method."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self.by_method: dict[str, Route] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.by_method.get("GET" if scope["method"] == "HEAD" else scope["method"])
        if route is None:
            await send_reply(scope, send, self._wrong_method(scope))
            return
        scope[RECORD].operation = route.operation
        try:
            with self._context.tracer(route.operation, Headers(scope=scope)) as ended:
                reply = await self._reply(scope, receive, route)
                if isinstance(reply.document, ByteStream):  # how it ended is known once it is sent
                    await self._send_stream(scope, receive, send, reply)
                    ended(scope[RECORD].status)
                    return
                ended(reply.status)
        except ClientDisconnect:
            scope[RECORD].status = CLIENT_GONE
            return
        await send_reply(scope, send, reply)

    async def _send_stream(self, scope: Scope, receive: Receive, send: Send, reply: Reply) -> None:
        record = scope[RECORD]
        try:
            await send_stream(scope, receive, send, reply)
        except ClientDisconnect:
            record.status = CLIENT_GONE
        except Exception as error:  # too late to refuse it: the answer stays without its end, and the log says why
            fault = error if isinstance(error, Fault) else internal_error()
            if fault is not error:
                log_bug(record.operation, error, id=record.id)
            record.status, record.fault = STATUS[fault.code], fault.code

    async def _reply(self, scope: Scope, receive: Receive, route: Route) -> Reply:
        context, id = self._context, scope[RECORD].id
        # How long a file takes is a matter of its size; how long it may take to arrive the connection's limits say.
        seconds = None if route.request_file else context.config.request_timeout
        try:
            async with asyncio.timeout(seconds), AsyncExitStack() as files:
                call = await self._call(scope, receive, route, files)
                # Only of what changes nothing: a write whose author has left is finished.
                return await (while_connected(route.handler(call), receive) if route.embeds else route.handler(call))
        except Fault as fault:
            return context.refusal(scope, fault)
        except TimeoutError:
            return context.refusal(scope, context.timed_out(), Connection="close")  # its body may still be on the way
        except ClientDisconnect:
            raise
        except Exception as error:
            log_bug(route.operation, error, id=id)
            return context.refusal(scope, internal_error(id=id))

    async def _call(self, scope: Scope, receive: Receive, route: Route, files: AsyncExitStack) -> Call:
        authenticator, engine, headers = self._context.authenticator, self._context.engine, Headers(scope=scope)
        who, anonymous = NOBODY, None
        if route.role is not None:
            anonymous = route.anonymous(engine) if route.anonymous is not None else None
            who, _ = await authenticator.admit(headers.get("authorization"), anonymous)
            who = as_owner(who, route.operation)
            scope[RECORD].who = who
            require_role(who, route.role)
            authenticator.spend(who)
        body: Any = None
        if route.request_file:
            limit, folder = self._context.config.max_body * _FILE_BODIES, self._context.config.data
            body = await files.enter_async_context(spooled_body(headers, receive, limit, folder))
        elif route.has_body:
            body = decode_body(await read_body(headers, receive, self._context.config.max_body))
        path, text = scope["path_params"], scope["query_string"]
        query = parse_query(route.operation, route.parameters, dict(QueryParams(text)) if text else {})
        if body is None and route.needs_body:
            raise ValidationError(route.needs_body)
        document = body if route.has_body else {**query, **path}
        accept, spend = headers.get("accept", ""), lambda: authenticator.spend(who)
        anonymously, prefix = who is anonymous, scope[RECORD].prefix
        return Call(engine, who, document, path, query, accept, spend, anonymously, _address(scope), prefix)

    def _wrong_method(self, scope: Scope) -> Reply:
        allowed = sorted(self.by_method.keys() | ({"HEAD"} if "GET" in self.by_method else set()))
        fault = ValidationError(f"{scope['method'][:20]} does not work here; use {' or '.join(allowed)}")
        return self._context.refusal(scope, fault, 405, Allow=", ".join(allowed))


def _address(scope: Scope) -> tuple[str, int] | None:
    host, port = scope.get("server") or ("", None)
    return (host, port) if port else None  # a Unix socket has no port
