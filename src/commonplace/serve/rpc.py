"""memorywire as JSON-RPC 2.0: the same operations behind one address."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from commonplace.engine import require_role
from commonplace.serve import v0
from commonplace.serve.errors import STATUS
from commonplace.serve.http_io import MalformedBody, check_query, encode
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.models import Message, dump

MAX_CALLS = 1000
_MAX_ID = 3.4e38  # what the schema says, so that an id given back is one that could be given
_METHODS: dict[str, Route] = {f"memory.{route.operation}": route for route in v0.ROUTES}

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
#: -32000 to -32099 are for servers to give meaning to; the last two digits are those of HTTP where they can be.
_NUMBERS = {
    "unauthenticated": -32001, "forbidden": -32003, "not_found": -32004, "conflict": -32009,
    "payload_too_large": -32013, "secret_leakage": -32022, "rate_limited": -32029, "unavailable": -32053,
}  # fmt: skip


async def rpc(call: Call) -> Reply:
    """One call or a batch; a notification is carried out and not answered."""
    if not isinstance(call.body, list):
        answer = await _one(call, call.body)
        return Reply(answer, 200 if answer is not None else 204)
    if not 1 <= len(call.body) <= MAX_CALLS:
        return Reply(_error(None, INVALID_REQUEST, ValidationError(f"a batch holds 1 to {MAX_CALLS} calls")))
    answers = []
    for i, request in enumerate(call.body):
        # The request itself has paid for its first call.
        answer = await _one(call, request, paid=i == 0)
        if answer is not None:
            answers.append(answer)
    return Reply(answers, 200) if answers else Reply(None, 204)


async def _one(call: Call, request: Any, paid: bool = True) -> dict[str, Any] | None:
    problem = _problem(request)
    if problem is not None:
        id = request.get("id") if isinstance(request, dict) and _is_id(request.get("id")) else None
        return _error(id, INVALID_REQUEST, ValidationError(problem))
    id, silent = request.get("id"), "id" not in request
    route = _METHODS.get(request["method"])
    if route is None:
        fault = ValidationError(f"there is no method {request['method'][:80]!r}; there are {', '.join(_METHODS)}")
        return None if silent else _error(id, NO_METHOD, fault)
    try:
        if not paid:
            call.spend()
        result = await _perform(call, route, dict(request.get("params", {})))
    except Fault as fault:
        return None if silent else _error(id, _number(fault), fault)
    return None if silent else {"jsonrpc": "2.0", "id": id, "result": result}


def _problem(request: Any) -> str | None:
    if not isinstance(request, dict):
        return "a call is an object {jsonrpc, id, method, params}"
    if request.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(request.get("method"), str) or not request["method"]:
        return "method must be a name such as memory.recall"
    if not isinstance(request.get("params", {}), dict):
        return "params must be an object: parameters have names here"
    if not _is_id(request.get("id")):
        return "id must be a string, a number or null"
    unknown = sorted(request.keys() - {"jsonrpc", "id", "method", "params"})
    return f"unknown field {unknown[0][:80]!r} in a call" if unknown else None


def _is_id(value: Any) -> bool:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return abs(value) <= _MAX_ID
    return value is None or isinstance(value, str)


async def _perform(call: Call, route: Route, params: dict[str, Any]) -> Any:
    if route.role is not None:
        require_role(call.who, route.role)
    path: dict[str, str] = {}
    if "{id" in route.path:
        id = params.pop("id", None)
        if not isinstance(id, str) or not id:
            raise ValidationError("id is required: the id of the one that is meant", field="id")
        path["id"] = id
    query: dict[str, str] = {}
    if route.request is None:
        query = {name: _text(name, value) for name, value in params.items()}
        check_query(route.operation, route.query, query)
    inner = replace(call, path=path, query=query, body=params if route.request else None, accept="")
    document = (await route.handler(inner)).document
    return dump(document) if isinstance(document, Message) else document


def _text(name: str, value: Any) -> str:
    """A parameter that HTTP carries in the query string."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dict):
        return encode(value).decode()
    raise ValidationError(f"{name[:80]} must be text, a whole number or an object", field=name[:80])


def _number(fault: Fault) -> int:
    return _NUMBERS.get(fault.code, INVALID_PARAMS)


def _error(id: Any, number: int, fault: Fault) -> dict[str, Any]:
    data: dict[str, Any] = {"code": fault.code}
    if fault.details:
        data["details"] = fault.details
    return {"jsonrpc": "2.0", "id": id, "error": {"code": number, "message": fault.message, "data": data}}


def error_reply(fault: Fault) -> Reply:
    """What goes wrong before a call is looked at: HTTP's status, and the same words as an error of no call."""
    number = PARSE_ERROR if isinstance(fault, MalformedBody) else _number(fault)
    return Reply(_error(None, number, fault), STATUS[fault.code])


PROTOCOL = Protocol(
    "/v0/rpc",
    (
        Route("POST", "/v0/rpc", rpc, "rpc", "The same operations as JSON-RPC 2.0, singly or in a batch.", v0.TAG,
                request="memorywire/rpc", response="memorywire/rpc.response"),
    ),
    error_reply,
)  # fmt: skip
