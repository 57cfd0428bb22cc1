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
from commonplace.serve.exchange import check_query, decode, read_body, send_reply
from commonplace.serve.front import Front
from commonplace.serve.logs import log, whereabouts
from commonplace.serve.mcp.places import PATHS, McpPlace
from commonplace.serve.mcp.places import PROTOCOL as MCP
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.serve.site import NOTE, Note, Site
from commonplace.wire.errors import Fault, NotFound, Unavailable, ValidationError
from commonplace.wire.record import Principal

_CLIENT_GONE = 499  # what access logs call it; nobody is left to receive it


def application(site: Site) -> Front:
    places: dict[str, Place] = {}
    for protocol in site.protocols:
        for route in protocol.routes:
            place = places.setdefault(route.path, Place(site, protocol))
            place.by_method[route.method] = route
    # The more a path says the earlier it is tried: an id may hold slashes, and must not swallow `/history`.
    ordered = sorted(places.items(), key=lambda item: ("{" in item[0], item[0].endswith("}")))
    routes = [routing.Route(path, place) for path, place in ordered]
    if MCP in site.protocols:
        routes += [routing.Route(path, McpPlace(site, name)) for path, name in PATHS.items()]
    return Front(site, routing.Router(routes, redirect_slashes=False, default=Nowhere(site)))


class Nowhere:
    """Every path that is not in a table."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = NotFound(f"there is nothing at {scope['path'][:200]}; {self._site.signpost}")
        await send_reply(scope, send, self._site.refusal(scope, fault))


class Place:
    """One path, with a route for each method."""

    def __init__(self, site: Site, protocol: Protocol) -> None:
        self._site = site
        self._protocol = protocol
        self.by_method: dict[str, Route] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        route = self.by_method.get(method)
        if route is None:
            await send_reply(scope, send, self._wrong_method(scope))
            return
        note: Note = scope[NOTE]
        note.operation = route.operation
        headers = Headers(scope=scope)
        try:
            with self._site.tracer(route.operation, headers) as ended:
                reply = await self._reply(scope, receive, headers, route, note)
                ended(reply.status)
        except ClientDisconnect:
            note.status = _CLIENT_GONE
            return
        await send_reply(scope, send, reply)

    async def _reply(
        self, scope: Scope, receive: Receive, headers: Headers, route: Route, note: Note
    ) -> Reply:  # fmt: skip
        site = self._site
        try:
            async with asyncio.timeout(site.timeout):
                return await self._answer(scope, receive, headers, route, note)
        except Fault as fault:
            return site.refusal(scope, fault)
        except TimeoutError:
            sentence = f"this took longer than {site.timeout:g} s and was given up; a write may still have been kept"
            reply = site.refusal(scope, Unavailable(sentence))
            reply.headers["Connection"] = "close"  # its body may still be on the way
            return reply
        except ClientDisconnect:
            raise
        except Exception as error:
            fields = {"event": "bug", "id": note.id, "operation": route.operation, **whereabouts(error)}
            log.error("bug", extra={"fields": fields})
            sentence = f"this failed for a reason of our own; the log has it under {note.id}"
            return site.refusal(scope, Unavailable(sentence))

    async def _answer(
        self, scope: Scope, receive: Receive, headers: Headers, route: Route, note: Note
    ) -> Reply:  # fmt: skip
        site, who, is_open = self._site, NOBODY, False
        stranger: Principal | None = None
        if route.role is not None:
            stranger = route.stranger(site.engine) if route.stranger is not None else None
            who, is_open = await site.gate.admit(headers.get("authorization"), stranger)
            note.principal = who.name
            require_role(who, route.role)
            site.gate.spend(who)
        body: Any = None
        if route.method not in ("GET", "DELETE"):
            body = decode(await read_body(headers, receive, site.max_body))
        query: dict[str, str] = dict(QueryParams(scope["query_string"])) if scope["query_string"] else {}
        check_query(route.operation, route.query, query)
        call = Call(site.engine, who, scope["path_params"], query, body, headers.get("accept", ""), is_open,
                    lambda: site.gate.spend(who), who is stranger)  # fmt: skip
        return await route.handler(call)

    def _wrong_method(self, scope: Scope) -> Reply:
        allowed = sorted(self.by_method.keys() | ({"HEAD"} if "GET" in self.by_method else set()))
        fault = ValidationError(f"{scope['method'][:20]} does not work here; use {' or '.join(allowed)}")
        reply = self._site.refusal(scope, fault)
        reply.status = 405
        reply.headers["Allow"] = ", ".join(allowed)
        return reply
