"""MRP over HTTP: its routes. Through a folder it is spoken by `serve.mrp_files`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.serve.query import Parameter
from commonplace.serve.routes import Call, Handler, ProtocolRoutes, Reply, Route

if TYPE_CHECKING:
    from commonplace.dialects.mrp import Mrp

POSITION = 5


def _mrp(call: Call) -> Mrp:
    from commonplace.dialects.mrp import Mrp  # which loads the engine: not before the first call

    return Mrp(
        call.engine, call.who, agent=call.query.get("agent"), authenticated=not call.anonymous, address=call.address
    )


async def message(call: Call) -> Reply:
    """Both routes take both messages: the document itself says what it is."""
    return Reply(await _mrp(call).handle(call.document))


async def vouch(call: Call) -> Reply:
    return Reply(await _mrp(call).vouch(call.document), 201)


async def vouches(call: Call) -> Reply:
    return Reply(await _mrp(call).vouches(**call.query))


def _parameter(description: str, *, required: bool = False) -> Parameter:
    rules = {"type": "string", "minLength": 1, "maxLength": 256, "description": description}
    return Parameter(rules, required=required)


def _route(method: str, path: str, handler: Handler, operation: str, summary: str, response: str, **more: Any) -> Route:
    if method == "POST":
        more["needs_body"] = "this needs a JSON object as its body"
    # Where peers are let in, a caller without a token is a stranger among them.
    more |= {"response": f"mrp/{response}", "anonymous": lambda engine: engine.peers.stranger()}
    return Route(method, f"/mrp/{path}", handler, operation, summary, "MRP", **more)


_AGENT = {"agent": _parameter("Who answers; otherwise the agent set in [mrp], else the whole server.")}
_VOUCHES = {
    "subject": _parameter("The agent that is vouched for; otherwise all vouches are listed."),
    "limit": Parameter({"type": "integer", "minimum": 1, "maximum": 1000, "description": "How many at most [1000]."}),
    "cursor": _parameter("The next_cursor of the answer before this one."),
}

ROUTES = (
    _route("POST", "request", message, "mrp_request", "Ask for memories.", "response", request="mrp/request",
           query=_AGENT, embeds=True),
    _route("POST", "verify", message, "mrp_verify", "Check a memory that was answered.", "verify-result",
           request="mrp/verify", query=_AGENT),
    _route("POST", "vouches", vouch, "mrp_vouch", "Vouch for an agent.", "vouch.response", request="mrp/vouch",
           status=201),
    _route("GET", "vouches", vouches, "mrp_vouches", "Who vouches for whom.", "vouches.response",
           query=_VOUCHES),
)  # fmt: skip
PROTOCOLS = (ProtocolRoutes("/mrp", ROUTES),)
