"""The server about itself: is it alive, is it ready, what does it count, what does it speak."""

from __future__ import annotations

import time
from functools import cache
from importlib.resources import files
from typing import Any

from commonplace.serve import metrics, openapi
from commonplace.serve.context import AppContext
from commonplace.serve.errors import error_reply
from commonplace.serve.http_io import encode
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.wire.errors import Forbidden
from commonplace.wire.validate import schema, schema_names

#: Anyone may ask whether the server is ready, and asking the store costs a scan: once in this many seconds is enough.
_LOOK_AGAIN = 1.0
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


def protocol(context: AppContext) -> Protocol:
    """Needs the context itself, which is why this table is made and not written down."""

    async def healthz(call: Call) -> Reply:
        return Reply({"status": "ok"})

    looked: dict[str, Any] = {"at": float("-inf"), "health": {}}

    async def readyz(call: Call) -> Reply:
        state = context.readiness
        if time.monotonic() - looked["at"] > _LOOK_AGAIN:
            looked.update(health=await context.engine.health(), at=time.monotonic())
        health = looked["health"]
        checks = {"store": health["status"], "indexes": "ok" if state.indexes else "being verified",
                  "embedder": _embedder(context)}  # fmt: skip
        ready = state.ready and health["status"] == "ok"
        answer = {"status": "ready" if ready else "starting", "checks": checks}
        if state.problem is not None:
            answer |= {"status": "failing", "problem": state.problem}
        return Reply(answer, 200 if ready else 503)

    async def metrics_page(call: Call) -> Reply:
        if not call.who.operates:
            raise Forbidden(f"{call.who.name} may not see what the whole server does; an admin of `local` may")
        return Reply(await context.metrics.page(), headers={"Content-Type": metrics.CONTENT_TYPE})

    @cache
    def described() -> bytes:
        return encode(openapi.document([p for p in context.protocols if p.prefix]))

    async def openapi_page(call: Call) -> Reply:
        return Reply(described(), headers={"Content-Type": "application/json"})

    def route(path: str, handler: object, summary: str, **more: object) -> Route:
        return Route("GET", path, handler, handler.__name__, summary, "about", **{"role": None, **more})  # type: ignore[arg-type,attr-defined]

    table = (
        route("/healthz", healthz, "Alive."),
        route("/readyz", readyz, "Store open, indexes verified, embedder loaded."),
        route("/metrics", metrics_page, "Prometheus.", role="admin"),
        route("/openapi.json", openapi_page, "This API as OpenAPI 3.1."),
        route("/docs", docs, "This API, to read."),
        route("/schemas", schemas, "The names of all JSON Schemas."),
        route("/schemas/{name:path}", one_schema, "One JSON Schema."),
        route("/", home, "Where to begin."),
    )
    return Protocol("", table, error_reply)


def _embedder(context: AppContext) -> str:
    if not context.engine.embeds:
        return "none: recall is by keywords only" if context.readiness.embedder else "loading"
    return "ok" if context.readiness.embedder else "loading"


async def docs(call: Call) -> Reply:
    page = (files("commonplace.serve") / "docs.html").read_bytes()
    return Reply(page, headers={"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": _POLICY})


async def home(call: Call) -> Reply:
    return Reply(None, 307, {"Location": "/docs"})


async def schemas(call: Call) -> Reply:
    return Reply({"schemas": [f"/schemas/{name}.json" for name in schema_names()]})


async def one_schema(call: Call) -> Reply:
    if not call.path["name"]:
        return await schemas(call)
    document = schema(call.path["name"].removesuffix(".json"))
    return Reply(encode(document), headers={"Content-Type": "application/schema+json"})
