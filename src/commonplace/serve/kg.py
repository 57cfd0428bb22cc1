"""The knowledge graph over HTTP: the part of memorywire's table of routes that is about statements and ties."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from commonplace.dialects.memorywire import Memorywire
from commonplace.serve.routes import Call, Reply, Route
from commonplace.wire.knowledge import LAST_INSTANT, MAX_CHARS, AssertRequest, EraseRequest, RetractRequest
from commonplace.wire.validate import parse


def _wire(call: Call) -> Memorywire:
    return Memorywire(call.engine, call.who)


async def kg_assert(call: Call) -> Reply:
    return Reply(await _wire(call).graph_assert(parse(AssertRequest, call.body)))


async def kg_query(call: Call) -> Reply:
    asked = call.query
    found = await _wire(call).graph_query(asked["agent_id"], asked["subject"], predicate=asked.get("predicate"),
        as_of=_number(asked.get("as_of")),
    )  # fmt: skip
    return Reply(found)


async def kg_history(call: Call) -> Reply:
    asked = call.query
    found = await _wire(call).graph_history(asked["agent_id"], asked["subject"], predicate=asked.get("predicate"))
    return Reply(found)


async def kg_path(call: Call) -> Reply:
    asked = call.query
    found = await _wire(call).graph_path(asked["agent_id"], asked["start"], asked["end"],
        max_hops=int(asked.get("max_hops", 3)), as_of=_number(asked.get("as_of")),
    )  # fmt: skip
    return Reply(found)


async def kg_neighbors(call: Call) -> Reply:
    asked = call.query
    found = await _wire(call).neighbors(asked["agent_id"], asked["memory_id"], hops=int(asked.get("hops", 1)))
    return Reply(found)


async def kg_retract(call: Call) -> Reply:
    return Reply(await _wire(call).graph_retract(parse(RetractRequest, call.body)))


async def kg_erase(call: Call) -> Reply:
    return Reply(await _wire(call).graph_erase(parse(EraseRequest, call.body)))


async def preview_kg_erase(call: Call) -> Reply:
    return Reply(await _wire(call).preview_graph_erase(parse(EraseRequest, call.body)))


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


_NAMED = {"type": "string", "minLength": 1, "maxLength": 256, "required": True}
_TERM = {"type": "string", "minLength": 1, "maxLength": MAX_CHARS}
_ASKED = {**_TERM, "required": True}
_TIME = {"type": "integer", "minimum": 0, "maximum": LAST_INSTANT}


def _route(
    method: str, path: str, handler: Callable[[Call], Awaitable[Reply]], summary: str, response: str,
    request: str | None = None, **more: Any,
) -> Route:  # fmt: skip
    asked = None if request is None else f"memorywire/operations/{request}"
    return Route(method, f"/v0/{path}", handler, handler.__name__, summary, "memorywire", request=asked,
                   response=f"memorywire/{response}", **more)  # fmt: skip


ROUTES = (
    _route("POST", "kg/assert", kg_assert, "State something; what held until then ends.",
             "operations/kg.assert.response", "kg.assert", role="writer"),
    _route("GET", "kg", kg_query, "What is stated about a subject, now or at an instant.",
             "operations/kg.response",
             query={"agent_id": _NAMED, "subject": _ASKED, "predicate": _TERM, "as_of": _TIME}),
    _route("GET", "kg/history", kg_history, "Everything ever stated about a subject, oldest first.",
             "operations/kg.response", query={"agent_id": _NAMED, "subject": _ASKED, "predicate": _TERM}),
    _route("GET", "kg/path", kg_path, "The fewest statements that lead from one thing to another.",
             "operations/kg.path.response",
             query={"agent_id": _NAMED, "start": _ASKED, "end": _ASKED, "as_of": _TIME,
                    "max_hops": {"type": "integer", "minimum": 1, "maximum": 6}}),
    _route("GET", "kg/neighbors", kg_neighbors, "The memories tied to one, nearest first.",
             "operations/kg.neighbors.response",
             query={"agent_id": _NAMED, "memory_id": {**_NAMED, "maxLength": MAX_CHARS},
                    "hops": {"type": "integer", "minimum": 0, "maximum": 3}}),
    _route("POST", "kg/retract", kg_retract, "End what holds of a subject and predicate now.", "types/triple",
             "kg.retract", role="writer"),
    _route("POST", "kg/erase", kg_erase, "Erase everything ever stated about a subject.",
             "operations/kg.erase.response", "kg.erase", role="writer"),
    _route("POST", "preview/kg/erase", preview_kg_erase, "What an erasure would remove; nothing is changed.",
             "operations/kg.response", "kg.erase", role="writer"),
)  # fmt: skip
