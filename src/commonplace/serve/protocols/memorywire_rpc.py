"""memorywire as JSON-RPC 2.0: the same operations behind one address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.serve.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_ID_CHARS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SECRET_ID,
)
from commonplace.serve.protocols import memorywire
from commonplace.serve.query import parse_query
from commonplace.serve.routes import Call, MalformedBody, ProtocolRoutes, Reply, Route
from commonplace.wire import strict_json
from commonplace.wire.errors import Fault, ValidationError

POSITION = 1
MAX_CALLS = 1000
_MAX_ID = 3.4e38  # what the schema says, so that an id given back is one that could be given
_METHODS: dict[str, Route] = {f"memory.{route.operation}": route for route in memorywire.ROUTES}

#: -32000 to -32099 are for servers to give meaning to; the last two digits are those of HTTP where they can be.
_CODES = {
    "unauthenticated": -32001,
    "forbidden": -32003,
    "not_found": -32004,
    "conflict": -32009,
    "payload_too_large": -32013,
    "secret_leakage": -32022,
    "rate_limited": -32029,
    "unavailable": -32053,
}


async def rpc(call: Call) -> Reply:
    """One call or a batch; a notification is carried out and not answered."""
    requests = call.document
    if not isinstance(requests, list):
        answer = await _answer(call, requests)
        return Reply(answer, 200 if answer is not None else 204)
    if not 1 <= len(requests) <= MAX_CALLS:
        return Reply(_error(None, INVALID_REQUEST, ValidationError(f"a batch holds 1 to {MAX_CALLS} calls")))
    # The request itself has paid for its first call.
    answers = [await _answer(call, request, paid=i == 0) for i, request in enumerate(requests)]
    answered = [answer for answer in answers if answer is not None]
    return Reply(answered) if answered else Reply(None, 204)


async def _answer(call: Call, request: Any, paid: bool = True) -> dict[str, Any] | None:
    """None for a notification."""
    redactor = call.engine.redactor

    def shown(text: str) -> str:
        return redactor.shown(text, 80)

    id = request.get("id") if isinstance(request, dict) and _is_id(request.get("id")) else None
    if id is not None and redactor.holds_secret(str(id)):
        return _refusal(call, None, INVALID_REQUEST, ValidationError(SECRET_ID))
    if (problem := _problem(request, shown)) is not None:
        return _refusal(call, id, INVALID_REQUEST, ValidationError(problem))
    method = request["method"]
    try:
        if method not in _METHODS:
            fault = ValidationError(f"there is no method {shown(method)!r}; there are {', '.join(_METHODS)}")
            answer = _refusal(call, id, METHOD_NOT_FOUND, fault)
        else:
            if not paid:
                call.spend()
            result = await _perform(call, _METHODS[method], dict(request.get("params", {})))
            answer = {"jsonrpc": "2.0", "id": id, "result": result}
    except Fault as fault:
        answer = _refusal(call, id, _code(fault), fault)
    return answer if "id" in request else None


def _problem(request: Any, shown: Callable[[str], str]) -> str | None:
    if not isinstance(request, dict):
        return "a call is an object {jsonrpc, id, method, params}"
    if request.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(request.get("method"), str) or not request["method"]:
        return "method must be a name such as memory.recall"
    if not isinstance(request.get("params", {}), dict):
        return "params must be an object: parameters have names here"
    if not _is_id(request.get("id")):
        return f"id must be a string of at most {MAX_ID_CHARS:,} characters, a number or null"
    unknown = sorted(request.keys() - {"jsonrpc", "id", "method", "params"})
    return f"unknown field {shown(unknown[0])!r} in a call" if unknown else None


def _is_id(value: Any) -> bool:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return abs(value) <= _MAX_ID
    return value is None or (isinstance(value, str) and len(value) <= MAX_ID_CHARS)


async def _perform(call: Call, route: Route, params: dict[str, Any]) -> Any:
    """As over HTTP: `params` hold what would be in the path, and in the query string or the body."""
    from commonplace.engine import require_role  # here, as in every protocol: not when the file is imported
    from commonplace.wire.models import Message, dump

    if route.role is not None:
        require_role(call.who, route.role)
    path: dict[str, str] = {}
    if "{id" in route.path:
        path["id"] = params.pop("id", None)
        if not isinstance(path["id"], str) or not path["id"]:
            raise ValidationError("id is required: the id of the one that is meant", field="id")
    query: dict[str, Any] = {}
    if not route.has_body:
        texts = {name: _text(name, value) for name, value in params.items()}
        query = parse_query(route.operation, route.parameters, texts)
    document = params if route.has_body else {**query, **path}
    answer = (await route.handler(call._replace(document=document, path=path, query=query, accept=""))).document
    return dump(answer) if isinstance(answer, Message) else answer


def _text(name: str, value: Any) -> str:
    """A parameter that HTTP carries in the query string."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, dict):
        return strict_json.encode(value).decode()
    raise ValidationError(f"{name[:80]} must be text, a whole number or an object", field=name[:80])


def _code(fault: Fault) -> int:
    return _CODES.get(fault.code, INVALID_PARAMS)


def _refusal(call: Call, id: Any, code: int, fault: Fault) -> dict[str, Any]:
    call.engine.redactor.redact_fault(fault, call.who)
    return _error(id, code, fault)


def _error(id: Any, code: int, fault: Fault) -> dict[str, Any]:
    data = {"code": fault.code, **({"details": fault.details} if fault.details else {})}
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": fault.message, "data": data}}


def _error_of_no_call(fault: Fault) -> dict[str, Any]:
    """What goes wrong before a call is looked at."""
    return _error(None, PARSE_ERROR if isinstance(fault, MalformedBody) else _code(fault), fault)


_SUMMARY = "The same operations as JSON-RPC 2.0, singly or in a batch."
_ROUTE = Route(
    "POST",
    "/v0/rpc",
    rpc,
    "rpc",
    _SUMMARY,
    "memorywire",
    request="memorywire/rpc",
    response="memorywire/rpc.response",
    batch=MAX_CALLS,
)
PROTOCOLS = (ProtocolRoutes("/v0/rpc", (_ROUTE,), _error_of_no_call),)
