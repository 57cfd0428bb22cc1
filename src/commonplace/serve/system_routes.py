"""The server about itself: is it alive, is it ready, what does it count, what does it speak."""

from __future__ import annotations

import time
from functools import cached_property
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from commonplace.serve import openapi
from commonplace.serve.context import AppContext
from commonplace.serve.http_io import encode
from commonplace.serve.oidc import METADATA_PATH
from commonplace.serve.page import PREFIX
from commonplace.serve.routes import Call, Handler, ProtocolRoutes, Reply, Route
from commonplace.serve.telemetry import METRICS_CONTENT_TYPE
from commonplace.wire.errors import Forbidden, NotFound
from commonplace.wire.record import Role
from commonplace.wire.validate import schema, schema_names

#: Anyone may ask whether the server is ready, and asking the store costs a scan: once in this many seconds is enough.
_HEALTH_SECONDS = 1.0
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
#: The files beside the page at /docs, and what they are.
_API_FILES = {"api.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8"}


class _Handlers:
    """They answer about the server as a whole, so they have its context instead of a dialect."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._health: dict[str, Any] = {}
        self._health_at = float("-inf")

    async def healthz(self, call: Call) -> Reply:
        return Reply({"status": "ok"})

    async def readyz(self, call: Call) -> Reply:
        state = self._context.readiness
        if time.monotonic() - self._health_at > _HEALTH_SECONDS:
            self._health, self._health_at = await self._context.engine.health(), time.monotonic()
        checks = {"store": self._health["status"], "indexes": "ok" if state.indexes else "being verified"}
        embedder = "ok" if self._context.engine.embeds else "none: recall is by keywords only"
        checks["embedder"] = embedder if state.embedder else "loading"
        # With copies that are away it serves nevertheless, from its own store.
        ready = state.ready and checks["store"] != "down"
        answer = {"status": "ready" if ready else "starting", "checks": checks}
        if state.problem is not None:
            answer |= {"status": "failing", "problem": state.problem}
        return Reply(answer, 200 if ready else 503)

    async def metrics_page(self, call: Call) -> Reply:
        if not call.who.is_operator:
            raise Forbidden(f"{call.who.name} may not see what the whole server does; an admin of `local` may")
        return Reply(await self._context.metrics.page(), headers={"Content-Type": METRICS_CONTENT_TYPE})

    @cached_property
    def _openapi(self) -> dict[str, Any]:
        return openapi.document([protocol for protocol in self._context.protocols if protocol.prefix])

    @cached_property
    def _openapi_bytes(self) -> bytes:
        return encode(self._openapi)

    async def openapi_page(self, call: Call) -> Reply:
        moved = {"servers": [{"url": call.prefix}]}
        body = encode(self._openapi | moved) if call.prefix else self._openapi_bytes
        return Reply(body, headers={"Content-Type": "application/json"})

    async def docs(self, call: Call) -> Reply:
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": _POLICY}
        return Reply(_api_file("index.html"), headers=headers)

    async def docs_file(self, call: Call) -> Reply:
        name = call.path["name"]
        if name not in _API_FILES:
            raise NotFound(f"there is nothing at /docs/{name}; the page is at /docs")
        return Reply(_api_file(name), headers={"Content-Type": _API_FILES[name]})

    async def home(self, call: Call) -> Reply:
        """Browsers are led to the page, programs to what they can call."""
        where = f"{PREFIX}/" if "text/html" in call.accept else "/docs"
        return Reply(None, 307, {"Location": f"{call.prefix}{where}", "Vary": "Accept"})

    async def resource_metadata(self, call: Call) -> Reply:
        """Also where RFC 9728 puts it: before the path of the address that tokens are for."""
        verifier = self._context.authenticator.verifier
        assert verifier is not None
        document = verifier.metadata()
        path = urlsplit(document["resource"]).path.strip("/")
        if call.path.get("path", path).strip("/") != path:
            raise NotFound(f"tokens here are for {document['resource']}")
        return Reply(document)

    async def schemas(self, call: Call) -> Reply:
        return Reply({"schemas": [f"{call.prefix}/schemas/{name}.json" for name in schema_names()]})

    async def one_schema(self, call: Call) -> Reply:
        if not call.path["name"]:
            return await self.schemas(call)
        document = schema(call.path["name"].removesuffix(".json"))
        return Reply(encode(document), headers={"Content-Type": "application/schema+json"})


def _api_file(name: str) -> bytes:
    return (files("commonplace.serve") / "api_page" / name).read_bytes()


def system_protocol(context: AppContext) -> ProtocolRoutes:
    handlers = _Handlers(context)
    context.has_metadata = context.authenticator.verifier is not None

    def route(path: str, handler: Handler, summary: str, role: Role | None = None) -> Route:
        return Route("GET", path, handler, handler.__name__, summary, "about", role)

    routes: tuple[Route, ...] = (
        route("/healthz", handlers.healthz, "Alive."),
        route("/readyz", handlers.readyz, "Store open, indexes verified, embedder loaded."),
        route("/metrics", handlers.metrics_page, "Prometheus.", "admin"),
        route("/openapi.json", handlers.openapi_page, "This API as OpenAPI 3.1."),
        route("/docs", handlers.docs, "This API, to read and to try."),
        route("/docs/{name}", handlers.docs_file, "What the page is drawn with."),
        route("/schemas", handlers.schemas, "The names of all JSON Schemas."),
        route("/schemas/{name:path}", handlers.one_schema, "One JSON Schema."),
        route("/", handlers.home, "Where to begin."),
    )
    if context.has_metadata:
        paths = (METADATA_PATH, f"{METADATA_PATH}/{{path:path}}")
        routes += tuple(route(path, handlers.resource_metadata, "Whose tokens are taken here.") for path in paths)
    return ProtocolRoutes("", routes)
