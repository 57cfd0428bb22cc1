"""OpenAPI 3.1, made from the protocol tables and the same schema files that requests are checked against."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from commonplace.__about__ import __version__
from commonplace.serve.routes import ProtocolRoutes, Route
from commonplace.wire.validate import rewrite_schema, schema, schema_names

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_REFUSALS = {
    "400": "The request is wrong; the message says what is allowed.",
    "401": "A token is needed, or this one is not good.",
    "403": "The token may not do this.",
    "404": "There is no such thing, or it is not the caller's.",
    "405": "Another method is needed.",
    "409": "The store has moved on.",
    "413": "The body is too large.",
    "422": "It holds a secret that must not be kept.",
    "429": "Too many requests; Retry-After says when to come again.",
    "503": "A backend could not do it.",
}


def document(protocols: Iterable[ProtocolRoutes]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    for protocol in protocols:
        for route in protocol.routes:
            path = _PARAMETER.sub(r"{\1}", route.path)
            paths.setdefault(path, {})[route.method.lower()] = _operation(route, used)
    info = {"title": "Commonplace", "version": __version__, "summary": "One memory for every agent."}
    optional = "Not needed while the server is open (loopback, no tokens)."
    token = {"type": "http", "scheme": "bearer", "description": optional}
    return {
        "openapi": "3.1.0",
        "info": info | {"license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": _components(used), "securitySchemes": {"token": token}},
    }


def _operation(route: Route, used: set[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": route.summary}
    if route.response is not None:
        answer["content"] = _json(route.response, used, route.batch)
        if route.operation == "recall":
            answer["content"]["application/x-ndjson"] = {"schema": {"type": "string"}}
    responses: dict[str, Any] = {str(route.status): answer}
    error = f"{route.tag.lower()}/error"
    error = error if error in schema_names() else "memorywire/error"
    if route.operation == "rpc":
        responses["204"] = {"description": "Nothing but notifications."}
        error = "memorywire/rpc.response"
    for status, why in _REFUSALS.items():
        responses[status] = {"description": why, "content": _json(error, used)}
    operation: dict[str, Any] = {"operationId": route.operation, "summary": route.summary, "tags": [route.tag]}
    operation["responses"] = responses
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(route.path)
    ]
    for name, parameter in route.parameters.items():
        parameters.append({"name": name, "in": "query", "required": parameter.required, "schema": parameter.rules})
    if parameters:
        operation["parameters"] = parameters
    if route.request is not None:
        operation["requestBody"] = {"required": True, "content": _json(route.request, used, route.batch)}
    if route.role is not None:
        operation["security"] = [{"token": []}, {}]
        operation["x-role"] = route.role
    return operation


def _json(name: str, used: set[str], batch: int = 0) -> dict[str, Any]:
    used.add(name)
    rules: dict[str, Any] = {"$ref": f"#/components/schemas/{_key(name)}"}
    if batch:
        rules = {"oneOf": [rules, {"type": "array", "items": rules, "minItems": 1, "maxItems": batch}]}
    return {"application/json": {"schema": rules}}


def _key(name: str) -> str:
    return name.replace("/", ".")


def _components(used: set[str]) -> dict[str, Any]:
    """The schemas named, and those they refer to, with references that stay inside this document."""
    by_id = {schema(name)["$id"]: name for name in schema_names()}
    found: dict[str, Any] = {}
    todo = sorted(used)
    while todo:
        name = todo.pop()
        if _key(name) not in found:
            rules = {key: value for key, value in schema(name).items() if key not in ("$schema", "$id")}
            found[_key(name)] = rewrite_schema(rules, _reference_mover(by_id | {"": name}, todo))
    return dict(sorted(found.items()))


def _reference_mover(by_id: dict[str, str], todo: list[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def move(node: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(node.get("$ref"), str):
            return node
        address, _, pointer = node["$ref"].partition("#")
        todo.append(by_id[address])
        return node | {"$ref": f"#/components/schemas/{_key(by_id[address])}{pointer}"}

    return move
