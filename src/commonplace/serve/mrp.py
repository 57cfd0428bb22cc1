"""MRP over HTTP: its table of routes."""

from __future__ import annotations

from typing import Any

from commonplace.dialects.mrp import Mrp
from commonplace.engine import Engine
from commonplace.serve.errors import error_reply
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Principal

TAG = "MRP"
_NAME: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 256}
_AGENT = {"agent": {**_NAME, "description": "Who answers; otherwise the agent set in [mrp], else the whole server."}}
_SUBJECT = {"subject": {**_NAME, "description": "The agent that is vouched for.", "required": True}}


async def message(call: Call) -> Reply:
    """Both routes take both messages: the document itself says what it is."""
    return Reply(await _mrp(call).handle(_body(call)))


async def vouch(call: Call) -> Reply:
    return Reply(await _mrp(call).vouch(_body(call)), 201)


async def vouches(call: Call) -> Reply:
    return Reply(await _mrp(call).vouches(call.query["subject"]))


def stranger(engine: Engine) -> Principal | None:
    """Who a caller without a token is, where peers are let in."""
    return engine.peers.stranger()


def _mrp(call: Call) -> Mrp:
    return Mrp(call.engine, call.who, agent=call.query.get("agent"), authenticated=not call.stranger)


def _body(call: Call) -> Any:
    if call.body is None:
        raise ValidationError("this needs a JSON object as its body")
    return call.body


def _route(method: str, path: str, handler: Any, operation: str, summary: str, **more: Any) -> Route:
    return Route(method, path, handler, operation, summary, TAG, stranger=stranger, **more)


PROTOCOL = Protocol(
    "/mrp",
    (
        _route(
            "POST", "/mrp/request", message, "mrp_request", "Ask for memories.", query=_AGENT,
            request="mrp/request", response="mrp/response",
        ),
        _route(
            "POST", "/mrp/verify", message, "mrp_verify", "Check a memory that was answered.", query=_AGENT,
            request="mrp/verify", response="mrp/verify-result",
        ),
        _route(
            "POST", "/mrp/vouches", vouch, "mrp_vouch", "Vouch for an agent.", status=201,
            request="mrp/vouch", response="mrp/vouch.response",
        ),
        _route(
            "GET", "/mrp/vouches", vouches, "mrp_vouches", "Who vouches for an agent.", query=_SUBJECT,
            response="mrp/vouches.response",
        ),
    ),
    error_reply,
)  # fmt: skip
