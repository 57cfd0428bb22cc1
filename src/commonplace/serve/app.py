"""Protocol tables as an ASGI application: every route is authenticated, limited, decoded, called and encoded here."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette import routing
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from commonplace.engine import require_role
from commonplace.serve.auth import NOBODY
from commonplace.serve.context import RECORD, AppContext, RequestRecord
from commonplace.serve.http_io import check_query, decode, read_body, send_reply
from commonplace.serve.logs import log, whereabouts
from commonplace.serve.mcp.places import PATHS, McpEndpoint
from commonplace.serve.mcp.places import PROTOCOL as MCP
from commonplace.serve.middleware import RequestMiddleware
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.wire.errors import Fault, NotFound, Unavailable, ValidationError
from commonplace.wire.record import Principal

_CLIENT_GONE = 499  # what access logs call it; nobody is left to receive it


def application(context: AppContext) -> RequestMiddleware:
    places: dict[str, Endpoint] = {}
    for protocol in context.protocols:
        for route in protocol.routes:
            place = places.setdefault(route.path, Endpoint(context, protocol))
            place.by_method[route.method] = route
    # The more a path says the earlier it is tried: an id may hold slashes, and must not swallow `/history`.
    ordered = sorted(places.items(), key=lambda item: ("{" in item[0], item[0].endswith("}")))
    routes = [routing.Route(path, place) for path, place in ordered]
    if MCP in context.protocols:
        routes += [routing.Route(path, McpEndpoint(context, name)) for path, name in PATHS.items()]
    return RequestMiddleware(context, routing.Router(routes, redirect_slashes=False, default=NotFoundApp(context)))


class NotFoundApp:
    """Every path that is not in a table."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = NotFound(f"there is nothing at {scope['path'][:200]}; {self._context.signpost}")
        await send_reply(scope, send, self._context.refusal(scope, fault))


class Endpoint:
    """One path, with a route for each method."""

    def __init__(self, context: AppContext, protocol: Protocol) -> None:
        self._context = context
        self._protocol = protocol
        self.by_method: dict[str, Route] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        route = self.by_method.get(method)
        if route is None:
            await send_reply(scope, send, self._wrong_method(scope))
            return
        record: RequestRecord = scope[RECORD]
        record.operation = route.operation
        headers = Headers(scope=scope)
        try:
            with self._context.tracer(route.operation, headers) as ended:
                reply = await self._reply(scope, receive, headers, route, record)
                ended(reply.status)
        except ClientDisconnect:
            record.status = _CLIENT_GONE
            return
        await send_reply(scope, send, reply)

    async def _reply(
        self, scope: Scope, receive: Receive, headers: Headers, route: Route, record: RequestRecord
    ) -> Reply:  # fmt: skip
        context = self._context
        try:
            async with asyncio.timeout(context.timeout):
                return await self._answer(scope, receive, headers, route, record)
        except Fault as fault:
            return context.refusal(scope, fault)
        except TimeoutError:
            sentence = f"this took longer than {context.timeout:g} s and was given up; a write may still have been kept"
            reply = context.refusal(scope, Unavailable(sentence))
            reply.headers["Connection"] = "close"  # its body may still be on the way
            return reply
        except ClientDisconnect:
            raise
        except Exception as error:
            fields = {"event": "bug", "id": record.id, "operation": route.operation, **whereabouts(error)}
            log.error("bug", extra={"fields": fields})
            sentence = f"this failed for a reason of our own; the log has it under {record.id}"
            return context.refusal(scope, Unavailable(sentence))

    async def _answer(
        self, scope: Scope, receive: Receive, headers: Headers, route: Route, record: RequestRecord
    ) -> Reply:  # fmt: skip
        context, who, is_open = self._context, NOBODY, False
        stranger: Principal | None = None
        if route.role is not None:
            stranger = route.stranger(context.engine) if route.stranger is not None else None
            who, is_open = await context.authenticator.admit(headers.get("authorization"), stranger)
            record.principal = who.name
            require_role(who, route.role)
            context.authenticator.spend(who)
        body: Any = None
        if route.method not in ("GET", "DELETE"):
            body = decode(await read_body(headers, receive, context.max_body))
        query: dict[str, str] = dict(QueryParams(scope["query_string"])) if scope["query_string"] else {}
        check_query(route.operation, route.query, query)
        call = Call(context.engine, who, scope["path_params"], query, body, headers.get("accept", ""), is_open,
                    lambda: context.authenticator.spend(who), who is stranger)  # fmt: skip
        return await route.handler(call)

    def _wrong_method(self, scope: Scope) -> Reply:
        allowed = sorted(self.by_method.keys() | ({"HEAD"} if "GET" in self.by_method else set()))
        fault = ValidationError(f"{scope['method'][:20]} does not work here; use {' or '.join(allowed)}")
        reply = self._context.refusal(scope, fault)
        reply.status = 405
        reply.headers["Allow"] = ", ".join(allowed)
        return reply
