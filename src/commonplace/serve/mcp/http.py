"""MCP over HTTP: one address for each set of tools, checked like every other protocol.

A POST is one message and its answer one JSON document, in every version: nothing is streamed and no session kept, so
who asks is told by its token alone. What the message says is answered by the handler that answers on stdio.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from commonplace.serve.context import RECORD, AppContext
from commonplace.serve.http_io import CLIENT_GONE, read_body, send_reply, while_connected
from commonplace.serve.json_rpc import INTERNAL_ERROR, INVALID_REQUEST, SECRET_ID, JsonRpcError
from commonplace.serve.mcp.handler import McpHandler, may_repeat
from commonplace.serve.mcp.http_headers import (
    accepts_json,
    check_stateless,
    handshake_version,
    is_json,
    stateless_version,
    status_of,
)
from commonplace.serve.mcp.messages import decode, is_answer
from commonplace.serve.mcp.sessions import RequestSession
from commonplace.serve.mcp.tools import Document
from commonplace.serve.protocols import DEFAULT_TOOLS, load_tool_set, tool_set_names
from commonplace.serve.routes import ProtocolRoutes, Reply
from commonplace.serve.telemetry import log_bug
from commonplace.wire.errors import Fault, Unavailable, ValidationError

_PARAMETERS = ("agent", "palace")
_MAX_CHARS = 256
_ACCEPTED = Reply(None, 202)  # of what nothing is answered to


def _error(fault: Fault) -> Any:
    """What goes wrong before a message is looked at: a JSON-RPC error of no request."""
    return JsonRpcError(INVALID_REQUEST, fault.message, {"code": fault.code}).response()


#: It has no routes: the body is a message of a protocol of its own.
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
        self._loaded: McpHandler | None = None

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
                reply = await self._reply(scope, headers, receive)
                ended(reply.status)
        except ClientDisconnect:
            record.status = CLIENT_GONE
            return
        await send_reply(scope, send, reply)

    async def _reply(self, scope: Scope, headers: Headers, receive: Receive) -> Reply:
        context = self._context
        try:
            async with asyncio.timeout(context.config.request_timeout):
                session = await self._session(scope, headers)
                body = await read_body(headers, receive, context.config.max_body)
            if not is_json(headers):
                fault = ValidationError("a message is sent with Content-Type: application/json")
                return context.refusal(scope, fault, 415)
            if not accepts_json(headers):
                return context.refusal(scope, ValidationError("answers are JSON: accept application/json"), 406)
            message = decode(body)
            if not await may_repeat(session, message.get("id")):
                raise JsonRpcError(INVALID_REQUEST, SECRET_ID)
            return await self._answer(session, headers, message, receive)
        except JsonRpcError as error:
            return Reply(error.response(), 400)
        except Fault as fault:
            return context.refusal(scope, fault)
        except TimeoutError:
            late = Unavailable(f"the body did not arrive within {context.config.request_timeout} s")
            return context.refusal(scope, late, Connection="close")

    async def _answer(self, session: RequestSession, headers: Headers, message: Document, receive: Receive) -> Reply:
        version = handshake_version(headers)
        if is_answer(message):
            if version is None:
                raise JsonRpcError(INVALID_REQUEST, "nothing was asked here, so there is nothing to answer")
            return _ACCEPTED
        if "id" not in message:
            if version is None:
                self._handler.check_version(stateless_version(headers))
            return _ACCEPTED  # there is nothing here for a notification to change
        try:
            if version is None:
                check_stateless(headers, message)
                # Closing the request is how a client of such a version cancels it.
                result = await while_connected(self._result(session, message, version), receive)
            else:
                result = await self._result(session, message, version)
        except JsonRpcError as error:
            return Reply(error.response(message["id"]), 200 if version else status_of(error))
        return Reply({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _result(self, session: RequestSession, message: Document, version: str | None) -> Document:
        handler, method, params = self._handler, message["method"], message.get("params")
        try:
            async with asyncio.timeout(self._context.config.request_timeout):
                if method != "initialize" or version is None:
                    version = handler.version_of(method, params, version or "")
                return await handler.answer(session, version, method, params)
        except TimeoutError:
            raise JsonRpcError(INTERNAL_ERROR, self._context.timed_out().message) from None

    @property
    def _handler(self) -> McpHandler:
        if self._loaded is None:
            self._loaded = McpHandler(load_tool_set(self._name), self._report)
        return self._loaded

    async def _session(self, scope: Scope, headers: Headers) -> RequestSession:
        context = self._context
        who, _ = await context.authenticator.admit(headers.get("authorization"))
        scope[RECORD].who = who
        context.authenticator.spend(who)
        given = dict(QueryParams(scope["query_string"]))
        for name, value in given.items():
            if name not in _PARAMETERS or not 1 <= len(value) <= _MAX_CHARS:
                raise ValidationError(f"an address ends in ?agent=NAME or ?palace=NAME, not in {name[:80]!r}")
        agent, palace = given.get("agent", context.config.agent), given.get("palace")
        return RequestSession(context.engine, who, agent, palace, named="agent" in given)

    def _report(self, operation: str, error: Exception) -> None:
        log_bug(f"mcp_{self._name}:{operation}", error)
