"""OpenAPI 3.1, made from the protocol tables and the same schema files that requests are checked against."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from commonplace.__about__ import __version__
from commonplace.serve.routes import ProtocolRoutes, Route
from commonplace.wire.validate import rewrite_schema, schema, schema_names

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_NAMED = re.compile(r"(\w+)/\{(\w+)")
#: What a path of ours names, by the word before it.
_PATH_NAMES = {
    "agents": "The agent's name.",
    "learned": "The id of the rule, as the list of those that were learned gives it.",
    "lifecycle": "The job's name, as GET /v0/lifecycle gives it.",
    "memories": "The memory's id, as recall, list or remember gave it.",
    "memory": "The entry's id, as the list or the write gave it.",
    "procedures": "The id of the memory that the procedure is.",
    "records": "The record's id, as store, search or list gave it.",
    "reviews": "The review's id, as the staged write or the list of reviews gave it.",
    "runs": "The run's id, as its start or the list of runs gave it.",
}
_WORDS = re.compile(r"[./_-]")
_FOLDERS = ("operations", "types")  # which say nothing that a name needs
_REFUSALS = {
    "400": ("BadRequest", "The request is wrong; the message says what is allowed."),
    "401": ("Unauthorized", "A token is needed, or this one is not good."),
    "403": ("Forbidden", "The token may not do this."),
    "404": ("NotFound", "There is no such thing, or it is not the caller's."),
    "405": ("MethodNotAllowed", "Another method is needed."),
    "409": ("Conflict", "The store has moved on."),
    "413": ("ContentTooLarge", "The body is too large."),
    "422": ("SecretLeakage", "It holds a secret that must not be kept."),
    "429": ("TooManyRequests", "Too many requests; Retry-After says when to come again."),
    "503": ("Unavailable", "A backend could not do it."),
}
#: What HTTP says in headers beside them.
_REFUSAL_HEADERS = {
    "401": {"WWW-Authenticate": "How to say who is calling, and where tokens are made."},
    "429": {"Retry-After": "Seconds after which to come again."},
}


def document(protocols: Iterable[ProtocolRoutes]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    refusals: dict[str, Any] = {}
    for protocol in protocols:
        for route in protocol.routes:
            path = _PARAMETER.sub(r"{\1}", route.path)
            paths.setdefault(path, {})[route.method.lower()] = _operation(route, used, refusals)
    info = {"title": "Commonplace", "version": __version__, "summary": "One memory for every agent."}
    optional = "Not needed while the server is open (loopback, no tokens)."
    token = {"type": "http", "scheme": "bearer", "description": optional}
    return {
        "openapi": "3.1.0",
        "info": info | {"license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": _components(used),
            "responses": dict(sorted(refusals.items())),
            "securitySchemes": {"token": token},
        },
    }


def _operation(route: Route, used: set[str], refusals: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": route.summary}
    if route.response_file:
        answer["content"] = _file(route.response_file)
    elif route.response is not None:
        answer["content"] = _json(route.response, used, route.batch)
        if route.operation == "recall":
            answer["content"]["application/x-ndjson"] = {"schema": {"type": "string"}}
    responses: dict[str, Any] = {str(route.status): answer}
    error = f"{route.tag.lower()}/error"
    error = error if error in schema_names() else "memorywire/error"
    if route.operation == "rpc":
        responses["204"] = {"description": "Nothing but notifications."}
        error = "memorywire/rpc.response"
    for status in _REFUSALS:
        responses[status] = {"$ref": f"#/components/responses/{_refusal(status, error, used, refusals)}"}
    operation: dict[str, Any] = {"operationId": route.operation, "summary": route.summary, "tags": [route.tag]}
    operation["responses"] = responses
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "description": _PATH_NAMES.get(kind, f"The {name} in question.")}
        | {"schema": {"type": "string", "minLength": 1}}
        for kind, name in _NAMED.findall(route.path)
    ]
    for name, parameter in route.parameters.items():
        rules = {key: value for key, value in parameter.rules.items() if key != "description"}
        given = {"name": name, "in": "query", "required": parameter.required, "schema": rules}
        parameters.append(given | {"description": parameter.rules["description"]})
    if parameters:
        operation["parameters"] = parameters
    if route.request_file:
        operation["requestBody"] = {"required": True, "content": _file(route.request_file)}
    elif route.request is not None:
        operation["requestBody"] = {"required": True, "content": _json(route.request, used, route.batch)}
    if route.role is not None:
        operation["security"] = [{"token": []}, {}]
        operation["x-role"] = route.role
    return operation


def _refusal(status: str, error: str, used: set[str], refusals: dict[str, Any]) -> str:
    """The name under which a protocol's answer of this status is kept, once for all operations."""
    name, why = _REFUSALS[status]
    key = re.sub("(Error)?Response$", "", _key(error)) + name
    if key not in refusals:
        refusals[key] = {"description": why, "content": _json(error, used)}
        if told := _REFUSAL_HEADERS.get(status):
            headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in told.items()}
            refusals[key]["headers"] = headers
    return key


def _json(name: str, used: set[str], batch: int = 0) -> dict[str, Any]:
    used.add(name)
    rules: dict[str, Any] = {"$ref": f"#/components/schemas/{_key(name)}"}
    if batch:
        rules = {"oneOf": [rules, {"type": "array", "items": rules, "minItems": 1, "maxItems": batch}]}
    return {"application/json": {"schema": rules}}


def _file(type: str) -> dict[str, Any]:
    return {type: {"schema": {"type": "string"}}}


def _key(name: str) -> str:
    """As a type is called: `memorywire/operations/recall.response` is RecallResponse, `amp/types/record` AmpRecord."""
    protocol, *parts = name.split("/")
    own = [] if protocol == "memorywire" else [protocol]
    words = [word for part in (*own, *parts) if part not in _FOLDERS for word in _WORDS.split(part)]
    if "operations" in parts and words[-1] != "response":
        words.append("request")
    elif words[-1] == "error":
        words.append("response")  # languages have an Error of their own
    return "".join(word[:1].upper() + word[1:] for word in words)


def _components(used: set[str]) -> dict[str, Any]:
    """The schemas named, and those they refer to, with references that stay inside this document."""
    by_id = {schema(name)["$id"]: name for name in schema_names()}
    found: dict[str, Any] = {}
    todo = sorted(used)
    while todo:
        name = todo.pop()
        whole, _, pointer = name.partition("#")
        key = _key(whole) + _pointed(pointer)
        if key not in found:
            rules = {k: v for k, v in _part(schema(whole), pointer).items() if k not in ("$schema", "$id")}
            found[key] = rewrite_schema(rules, _reference_mover(by_id | {"": whole}, todo))
    return dict(sorted(found.items()))


def _part(rules: dict[str, Any], pointer: str) -> dict[str, Any]:
    for step in filter(None, pointer.split("/")):
        rules = rules[step]
    return rules


def _pointed(pointer: str) -> str:
    """`/properties/diff` is a schema of its own, with a name of its own: few generators follow a path into another."""
    return "".join(step[:1].upper() + step[1:] for step in pointer.split("/") if step not in ("", "properties"))


def _reference_mover(by_id: dict[str, str], todo: list[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def move(node: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(node.get("$ref"), str):
            return node
        address, _, pointer = node["$ref"].partition("#")
        todo.append(f"{by_id[address]}#{pointer}")
        return node | {"$ref": f"#/components/schemas/{_key(by_id[address])}{_pointed(pointer)}"}

    return move
