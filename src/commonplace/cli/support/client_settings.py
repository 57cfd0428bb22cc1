"""A server in the settings of a client: added, taken out, and everything else to the letter as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from commonplace.cli.support import client_toml, jsonc
from commonplace.cli.support.clients import McpClient, McpServer, entry
from commonplace.wire.errors import Conflict, NotFound


def snippet(client: McpClient, server: McpServer) -> str:
    """What to put into the client's settings, for someone who does it by hand."""
    return with_server(client, server, "", Path())


def with_server(client: McpClient, server: McpServer, text: str, path: Path) -> str:
    """The settings with this server in them, everything else to the letter as it was."""
    try:
        if client.style == "toml":
            after = client_toml.with_table(
                client_toml.without_table(client, server.name, text, path),
                client_toml.server_table(client, server),
                text,
            )
            return client_toml.checked(client, server.name, text, after, entry(client, server))
        where = _places(client, _settings(text), server.name)[0]
        return _with_member(where, server.name, entry(client, server), text)
    except ValueError as error:
        raise Conflict(
            f"{path} was left alone: {error}. Fix that, or add this by hand (what is inside {client.key} goes "
            f"into the {client.key} that is there, if there is one):\n{snippet(client, server)}".rstrip()
        ) from None


def without_server(client: McpClient, name: str, text: str, path: Path) -> str:
    try:
        after = text
        if client.style == "toml":
            after = client_toml.checked(client, name, text, client_toml.without_table(client, name, text, path), None)
        else:
            for where in _places(client, _settings(text), name):
                after = _without_member(where, name, after)
    except ValueError as error:
        raise Conflict(f"{path} was left alone: {error}. Take {name} out of {client.key} by hand") from None
    if after == text:
        raise NotFound(f"{path} has no server called {name}")
    return after


def made_from(client: McpClient, name: str, text: str, original: str) -> bool:
    """Whether these settings are exactly what adding their server to the original made of it."""
    try:
        if client.style == "toml":
            start, end = client_toml.table_span(client, name, text)
            return client_toml.with_table(original, text[start:end], original) == text
        where = _places(client, before := _settings(original), name)[0]
        if name in (_value_at(before, where) or {}):
            return False
        return _with_member(where, name, _value_at(_settings(text), where)[name], original) == text
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _places(client: McpClient, settings: Any, name: str) -> list[tuple[str, ...]]:
    """The keys of the object that a server of this name goes into, and of another that may hold one.

    opencode 2 has servers under mcp.servers and still reads them directly under mcp, where opencode 1 has them.
    Settings that are written for the first stay so, because both read them."""
    if client.style != "opencode":
        return [client.keys]
    known = settings.get("mcp") if isinstance(settings, dict) else None
    flat = {key: value for key, value in known.items() if isinstance(value, dict)} if isinstance(known, dict) else {}
    nested = flat.get("servers")
    # A server of the name `servers` has fields; the object that holds servers has nothing but objects.
    if nested is not None and all(isinstance(value, dict) for value in nested.values()):
        del flat["servers"]
    else:
        nested = None
    flat = {key: value for key, value in flat.items() if "type" in value or "enabled" in value}
    if flat and nested is None:
        return [("mcp",)]
    return [client.keys, ("mcp",)] if name in flat else [client.keys]


def _with_member(keys: tuple[str, ...], name: str, wanted: dict[str, Any], text: str) -> str:
    if not text.strip():
        return json.dumps(_with_value({}, (*keys, name), wanted), indent=2, ensure_ascii=False) + "\n"
    root = _object(text)
    nodes = _nodes(root, keys)
    *missing, last = (*keys[len(nodes) - 1 :], name)
    key, value = (missing[0], _with_value({}, (*missing[1:], last), wanted)) if missing else (last, wanted)
    if not missing and (known := _member(nodes[-1], name)) is not None and known.node.value == wanted:
        return text
    return _checked(jsonc.put(text, nodes[-1], key, value), _with_value(root.value, (*keys, name), wanted))


def _without_member(keys: tuple[str, ...], name: str, text: str) -> str:
    """Objects that hold nothing any more, not even a comment, go with it."""
    nodes = _nodes(_object(text), keys) if text.strip() else []
    if len(nodes) <= len(keys) or _member(nodes[-1], name) is None:
        return text
    for depth, key in reversed([*enumerate((*keys, name))]):
        nodes = _nodes(_object(text), keys[:depth])
        member = _member(nodes[-1], key)
        assert member is not None
        if depth < len(keys) and text[member.node.start + 1 : member.node.end - 1].strip():
            break
        text = _checked(jsonc.drop(text, nodes[-1], member), _without_value(nodes[0].value, (*keys[:depth], key)))
    return text


def _nodes(root: jsonc.Node, keys: tuple[str, ...]) -> list[jsonc.Node]:
    """The root and the objects under these keys, as far as there are any."""
    nodes = [root]
    for key in keys:
        member = _member(nodes[-1], key)
        if member is None:
            break
        if not isinstance(member.node.value, dict):
            raise ValueError(f"{key} in it is not an object")
        nodes.append(member.node)
    return nodes


def _with_value(document: dict[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = keys
    return {**document, first: _with_value(document.get(first, {}), tuple(rest), value) if rest else value}


def _without_value(document: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    first, *rest = keys
    if rest:
        return {**document, first: _without_value(document[first], tuple(rest))}
    return {key: value for key, value in document.items() if key != first}


def _value_at(document: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _settings(text: str) -> Any:
    return jsonc.parse(text).value if text.strip() else {}


def _object(text: str) -> jsonc.Node:
    root = jsonc.parse(text)
    if not isinstance(root.value, dict):
        raise ValueError("it does not hold a JSON object")
    return root


def _member(node: jsonc.Node, key: str) -> jsonc.Member | None:
    found = [member for member in node.members if member.key == key]
    if len(found) > 1:
        raise ValueError(f"{key} is in it twice, and clients differ in which of the two they read")
    return found[0] if found else None


def _checked(after: str, expected: dict[str, Any]) -> str:
    """Never write settings that say something else than meant, however oddly they were laid out."""
    if jsonc.parse(after).value != expected:
        raise ValueError("it is laid out in a way that is not understood here")
    return after
