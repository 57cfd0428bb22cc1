"""Where each MCP client keeps its list of servers, and how an entry of it looks. Pure but for asking the platform."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from commonplace.cli.support import jsonc
from commonplace.wire.errors import Conflict, NotFound, ValidationError

Scope = Literal["user", "project"]


@dataclass(slots=True, frozen=True)
class McpServer:
    """What a client is told: a command to start, or an address to call."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    url: str | None = None
    token_env: str | None = None  # the variable that holds the token for the address
    env: tuple[tuple[str, str], ...] = ()  # for the command


@dataclass(slots=True, frozen=True)
class McpClient:
    title: str
    user: tuple[str, ...]  # parts of the path below the home or settings folder
    project: tuple[str, ...] | None  # below the folder of a project; None where a project has no settings
    keys: tuple[str, ...] = ("mcpServers",)  # of the object that holds the servers, from the outermost in
    style: Literal["plain", "typed", "opencode", "zed", "toml"] = "plain"
    settings: bool = False  # whether `user` is below the platform's folder for settings, not below the home
    remote: str | None = "url"  # the key for an address; None where the client only starts commands
    windows: tuple[str, ...] | None = None  # below the platform's folder for settings, where Windows has another place
    variable: str = ""  # of the environment: the folder its settings of the user are in instead
    expands: str | None = None  # how it takes a variable of the environment in a header; None where it does not
    also: str | None = None  # another name of its settings, which are these where such a file is there

    @property
    def key(self) -> str:
        """As people write it."""
        return ".".join(self.keys)


CLIENTS: dict[str, McpClient] = {
    "claude-code": McpClient(
        "Claude Code", (".claude.json",), (".mcp.json",), style="typed", variable="CLAUDE_CONFIG_DIR", expands="${%s}",
    ),
    "claude-desktop": McpClient(
        "Claude Desktop", ("Claude", "claude_desktop_config.json"), None, settings=True, remote=None
    ),
    "cursor": McpClient("Cursor", (".cursor", "mcp.json"), (".cursor", "mcp.json"), expands="${env:%s}"),
    "vscode": McpClient(
        "VS Code", ("Code", "User", "mcp.json"), (".vscode", "mcp.json"), ("servers",), "typed", settings=True,
        expands="${env:%s}",
    ),
    "windsurf": McpClient(
        "Windsurf", (".codeium", "windsurf", "mcp_config.json"), None, remote="serverUrl", expands="${env:%s}"
    ),
    "gemini": McpClient(
        "Gemini CLI", (".gemini", "settings.json"), (".gemini", "settings.json"), remote="httpUrl", expands="${%s}"
    ),
    "antigravity": McpClient("Antigravity", (".gemini", "config", "mcp_config.json"), None, remote="serverUrl"),
    "codex": McpClient(
        "Codex", (".codex", "config.toml"), (".codex", "config.toml"), ("mcp_servers",), "toml", variable="CODEX_HOME"
    ),
    "zed": McpClient(
        "Zed", (".config", "zed", "settings.json"), (".zed", "settings.json"), ("context_servers",), "zed",
        windows=("Zed", "settings.json"),
    ),
    "opencode": McpClient(
        "opencode", (".config", "opencode", "opencode.json"), ("opencode.json",), ("mcp", "servers"), "opencode",
        expands="{env:%s}", also="opencode.jsonc",
    ),
}  # fmt: skip


def program(*, shared: bool = False, uvx: bool = False) -> tuple[str, ...]:
    """The words with which a client can start this very program, wherever the client itself was started. Settings that
    are `shared` name no place of this machine."""
    if uvx or runs_in_uv_cache():
        return ("uvx" if shared else shutil.which("uvx") or "uvx", "commonplace-memory")
    if shared:
        return ("commonplace",)
    beside = Path(sys.executable).with_name("commonplace.exe" if sys.platform == "win32" else "commonplace")
    return (str(beside) if beside.exists() else shutil.which("commonplace") or "commonplace",)


def runs_in_uv_cache(prefix: str = sys.prefix) -> bool:
    """Whether uvx started this: its environments are in uv's cache, and a client that was told of a place there would
    find nothing once the cache is pruned."""
    return any(re.fullmatch(r"(archive|environments)-v\d+", part) for part in Path(prefix).parts)


def settings_path(
    client: McpClient,
    scope: Scope,
    home: Path,
    folder: Path,
    platform: str = sys.platform,
    environment: Mapping[str, str] | None = None,
) -> Path:
    if scope == "project":
        if client.project is None:
            raise ValidationError(f"{client.title} has no settings of one project; use --scope user", field="scope")
        return _existing(client, folder.joinpath(*client.project))
    variables = environment or {}
    if moved := variables.get(client.variable):
        return Path(moved).expanduser() / client.user[-1]
    parts = client.user
    if platform == "win32" and (client.settings or client.windows):
        return home.joinpath("AppData", "Roaming", *(client.windows or parts))
    if client.settings:
        parts = ("Library", "Application Support", *parts) if platform == "darwin" else (".config", *parts)
    if parts[0] == ".config" and (moved := variables.get("XDG_CONFIG_HOME")):
        return _existing(client, Path(moved).joinpath(*parts[1:]))
    return _existing(client, home.joinpath(*parts))


def _existing(client: McpClient, path: Path) -> Path:
    other = path.with_name(client.also) if client.also else path
    return other if other.exists() else path


def entry(client: McpClient, server: McpServer) -> dict[str, Any]:
    if server.url is not None:
        if client.remote is None:
            raise ValidationError(f"{client.title} only starts commands; leave --url out", field="url")
        kind = {"typed": {"type": "http"}, "opencode": {"type": "remote"}}.get(client.style, {})
        return {**kind, client.remote: server.url, **_authorization(client, server.token_env)}
    env = dict(server.env)
    if client.style == "opencode":
        return {"type": "local", "command": [server.command, *server.args], **({"environment": env} if env else {})}
    kind = {"typed": {"type": "stdio"}, "zed": {"source": "custom"}}.get(client.style, {})
    return {**kind, "command": server.command, "args": list(server.args), **({"env": env} if env else {})}


def _authorization(client: McpClient, variable: str | None) -> dict[str, Any]:
    if variable is None:
        return {}
    if client.style == "toml":
        return {"bearer_token_env_var": variable}
    if client.expands is None:
        raise ValidationError(
            f"{client.title} takes no variables of the environment in headers; leave --url and --token-env out, "
            "and it starts a process of its own",
            field="token_env",
        )
    return {"headers": {"Authorization": f"Bearer {client.expands % variable}"}}


def snippet(client: McpClient, server: McpServer) -> str:
    """What to put into the client's settings, for someone who does it by hand."""
    return with_server(client, server, "", Path())


def with_server(client: McpClient, server: McpServer, text: str, path: Path) -> str:
    """The settings with this server in them, everything else to the letter as it was."""
    try:
        if client.style == "toml":
            after = _with_table(_without_table(client, server.name, text, path), _toml_table(client, server), text)
            return _checked_toml(client, server.name, text, after, entry(client, server))
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
            after = _checked_toml(client, name, text, _without_table(client, name, text, path), None)
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
            at, after = _table_lines(client, name, text)
            return _with_table(original, "".join(text.splitlines(keepends=True)[at:after]), original) == text
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


def _checked_toml(client: McpClient, name: str, text: str, after: str, wanted: dict[str, Any] | None) -> str:
    """The same of TOML, where a list over several lines or a table on one is not told from a heading by its line."""
    before = tomllib.loads(text)
    if not isinstance(before.get(client.key, {}), dict):
        raise ValueError(f"{client.key} in it is not a table")
    servers = {key: value for key, value in before.get(client.key, {}).items() if key != name}
    if wanted is not None:
        servers[name] = wanted
    expected = {**before, client.key: servers}
    try:
        found = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found = {}
    # A table that only named its servers goes with the last of them.
    if found != expected and (servers or found != {key: value for key, value in before.items() if key != client.key}):
        raise ValueError("it is laid out in a way that is not understood here")
    return after


def _with_table(text: str, table: str, original: str) -> str:
    """The table at the end, with line ends as the original has them."""
    line_end = "\r\n" if "\r\n" in original else "\n"
    table = re.sub("\r?\n", line_end, table)
    return f"{text.rstrip()}{line_end * 2}{table}" if text.strip() else table


def _toml_table(client: McpClient, server: McpServer) -> str:
    lines = [f"{key} = {_toml(value)}" for key, value in entry(client, server).items()]
    return "\n".join([f"[{client.key}.{_toml_key(server.name)}]", *lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml_key(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)  # JSON's strings and lists of strings are TOML's, too


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _without_table(client: McpClient, name: str, text: str, path: Path) -> str:
    try:
        known = _value_at(tomllib.loads(text), client.keys)
    except tomllib.TOMLDecodeError as error:
        raise Conflict(f"{path} is not valid TOML ({error}); fix it first, or use --print") from None
    if not isinstance(known, dict) or name not in known:
        return text
    lines = text.splitlines(keepends=True)
    try:
        at, after = _table_lines(client, name, text)
    except ValueError:
        raise Conflict(f"{path} has {name} written in another way; change it by hand, `--print` shows how") from None
    before, rest = "".join(lines[:at]).rstrip("\r\n"), "".join(lines[after:])
    line_end = "\r\n" if "\r\n" in text else "\n"
    return before + line_end * (2 if rest else 1) + rest if (before + rest).strip() else ""


def _table_lines(client: McpClient, name: str, text: str) -> tuple[int, int]:
    """The first line of the server's table, and the one after its last."""
    head = f"[{client.key}.{_toml_key(name)}]"
    lines = text.splitlines(keepends=True)
    at = next((n for n, line in enumerate(lines) if line.split("#")[0].strip() == head), None)
    if at is None:
        raise ValueError("there is no such table")
    within = head.removesuffix("]") + "."  # its own tables, such as that of its variables
    others = (n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("[") and within not in lines[n])
    return at, next(others, len(lines))
