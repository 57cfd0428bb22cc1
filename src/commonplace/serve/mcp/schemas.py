"""Tool schemas that deployed clients accept: an object at the root, no unions, nothing that only we could fill in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from commonplace.serve.mcp.table import Document, Session
from commonplace.wire.validate import portable_schema

#: A memory's id, for tools over requests that carry it in their path.
MEMORY_ID: Document = {
    "description": "The memory's id, as recall, list or remember gave it.", "type": "string", "minLength": 1,
}  # fmt: skip
_AGENT = "Whose memory: an agent's name. Leave it out to use this session's own agent, which is nearly always right."


def request(
    name: str, *, hidden: tuple[str, ...] = (), defaults: Mapping[str, Any] | None = None, agent: bool = True,
    also: Mapping[str, Document] | None = None,
) -> Callable[[Session], Document]:  # fmt: skip
    """The request as a tool's arguments: naming the agent becomes optional, and what a path says is `also` asked."""

    def made(session: Session) -> Document:
        document = _plain(portable_schema(name))
        properties: Document = document["properties"]
        for field in hidden:
            properties.pop(field, None)
        optional = set(defaults or ())
        for field, value in (defaults or {}).items():
            properties[field] = {**properties[field], "default": value}
        if agent:
            properties["agent_id"] = {**properties["agent_id"], "description": _AGENT}
            optional.add("agent_id")
        document["properties"] = {**(also or {}), **properties}
        required = [field for field in (*(also or ()), *document.get("required", ())) if field not in optional]
        return _requiring(document, required)

    return made


def answer(name: str, *, nulls: bool = True) -> Callable[[Session], Document]:
    """The response as a tool's output. What may be null there may be left out here; without `nulls` it always is."""

    def made(session: Session) -> Document:
        portable = _plain(portable_schema(name, nulls=nulls))
        document: Document = _lenient(portable) if nulls else portable
        return _requiring(document, document.get("required", []))

    return made


def _requiring(document: Document, required: list[str]) -> Document:
    for key in ("title", "description", "required"):
        document.pop(key, None)
    return document | {"required": required} if required else document


def _lenient(node: Any) -> Any:
    """Nothing is required whose type is left open: that is how a portable schema shows what may be null."""
    if isinstance(node, list):
        return [_lenient(item) for item in node]
    if not isinstance(node, dict):
        return node
    properties = node.get("properties")
    if not isinstance(properties, dict):
        return {key: _lenient(value) for key, value in node.items()}
    inner = {field: _lenient(rules) for field, rules in properties.items()}
    kept = [field for field in node.get("required", ()) if "type" in inner.get(field, {})]
    others = {key: _lenient(value) for key, value in node.items() if key not in ("properties", "required")}
    return others | {"properties": inner} | ({"required": kept} if kept else {})


def _plain(node: Any) -> Any:
    """Every choice of words says that it is text: several clients refuse a property without a type."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    words = node.get("enum") or ([node["const"]] if "const" in node else [])
    typed = {"type": "string"} if words and "type" not in node and all(isinstance(w, str) for w in words) else {}
    return {
        key: {field: _plain(rules) for field, rules in value.items()} if key == "properties" else _plain(value)
        for key, value in (node | typed).items()
    }
