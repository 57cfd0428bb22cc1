"""AMP over HTTP: its table of routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.dialects import amp
from commonplace.serve.errors import STATUS
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.validate import schema

TAG = "AMP"
_WHOLE = ("limit", "offset")


async def store(call: Call) -> Reply:
    return Reply(await _amp(call).store(_body(call, "store")))


async def search(call: Call) -> Reply:
    return Reply(await _amp(call).search(_body(call, "search")))


async def get(call: Call) -> Reply:
    return Reply(await _amp(call).get({**_asked(call.query), "id": call.path["id"]}))


async def delete(call: Call) -> Reply:
    return Reply(await _amp(call).delete({**_asked(call.query), "id": call.path["id"]}))


async def listing(call: Call) -> Reply:
    return Reply(await _amp(call).list(_asked(call.query)))


async def status(call: Call) -> Reply:
    return Reply(await _amp(call).status(_asked(call.query)))


async def agent_status(call: Call) -> Reply:
    return Reply(await _amp(call).agent_status({**_asked(call.query), "agent": call.path["agent"]}))


def error_reply(fault: Fault) -> Reply:
    return Reply(amp.envelope(fault), STATUS[fault.code])


def _amp(call: Call) -> amp.Amp:
    return amp.Amp(call.engine, call.who)


def _body(call: Call, operation: str) -> Any:
    if call.body is None:
        raise ValidationError(f"{operation} needs a JSON object as its body")
    return call.body


def _asked(query: Mapping[str, str]) -> dict[str, Any]:
    """A query string as the request it stands for: whole numbers as numbers, tags parted by commas."""
    asked: dict[str, Any] = dict(query)
    for name in _WHOLE:
        digits = asked.get(name, "")
        if digits.isascii() and digits.isdigit() and len(digits) <= 16:
            asked[name] = int(digits)
    if "tags" in asked:
        asked["tags"] = [tag for part in asked["tags"].split(",") if (tag := part.strip())]
    return asked


def _parameters(operation: str, *names: str) -> dict[str, dict[str, Any]]:
    properties = schema(f"amp/operations/{operation}")["properties"]
    chosen = {name: dict(properties[name]) for name in names}
    if "tags" in chosen:
        chosen["tags"] = {"description": f"{properties['tags']['description']} Parted by commas.", "type": "string"}
    return chosen


def _route(method: str, path: str, handler: Any, operation: str, summary: str, **more: Any) -> Route:
    named = operation.removeprefix("amp_")
    response = f"amp/operations/{named}.response"
    return Route(method, path, handler, operation, summary, TAG, response=response, **more)


PROTOCOL = Protocol(
    "/amp",
    (
        _route(
            "POST", "/amp/store", store, "amp_store", "Create a record or replace it.", role="writer",
            request="amp/operations/store",
        ),
        _route(
            "POST", "/amp/search", search, "amp_search", "Find records by meaning.", request="amp/operations/search"
        ),
        _route(
            "GET", "/amp/records", listing, "amp_list", "List records by time.",
            query=_parameters("list", "type", "agent", "project", "tags", "limit", "offset", "order"),
        ),
        _route(
            "GET", "/amp/records/{id:path}", get, "amp_get", "Read one record.", query=_parameters("get", "agent")
        ),
        _route(
            "DELETE", "/amp/records/{id:path}", delete, "amp_delete", "Remove a record.", role="writer",
            query=_parameters("delete", "agent"),
        ),
        _route("GET", "/amp/status", status, "amp_status", "Health and statistics."),
        _route(
            "GET", "/amp/agents/{agent:path}/status", agent_status, "amp_agent_status", "What an agent is doing.",
        ),
    ),
    error_reply,
)  # fmt: skip
