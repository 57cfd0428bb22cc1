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
    key: str = "mcpServers"  # of the object that holds the servers
    style: Literal["plain", "typed", "opencode", "zed", "toml"] = "plain"
    settings: bool = False  # whether `user` is below the platform's folder for settings, not below the home
    remote: str | None = "url"  # the key for an address; None where the client only starts commands
    windows: tuple[str, ...] | None = None  # below the platform's folder for settings, where Windows has another place
    variable: str = ""  # of the environment: the folder its settings of the user are in instead
    expands: str | None = None  # how it takes a variable of the environment in a header; None where it does not


CLIENTS: dict[str, McpClient] = {
    "claude-code": McpClient(
        "Claude Code", (".claude.json",), (".mcp.json",), style="typed", variable="CLAUDE_CONFIG_DIR", expands="${%s}",
    ),
    "claude-desktop": McpClient(
        "Claude Desktop", ("Claude", "claude_desktop_config.json"), None, settings=True, remote=None
    ),
    "cursor": McpClient("Cursor", (".cursor", "mcp.json"), (".cursor", "mcp.json"), expands="${env:%s}"),
    "vscode": McpClient(
        "VS Code", ("Code", "User", "mcp.json"), (".vscode", "mcp.json"), "servers", "typed", settings=True,
        expands="${env:%s}",
    ),
    "windsurf": McpClient(
        "Windsurf", (".codeium", "windsurf", "mcp_config.json"), None, remote="serverUrl", expands="${env:%s}"
    ),
    "gemini": McpClient(
        "Gemini CLI", (".gemini", "settings.json"), (".gemini", "settings.json"), remote="httpUrl", expands="${%s}"
    ),
    "codex": McpClient(
        "Codex", (".codex", "config.toml"), (".codex", "config.toml"), "mcp_servers", "toml", variable="CODEX_HOME"
    ),
    "zed": McpClient(
        "Zed", (".config", "zed", "settings.json"), (".zed", "settings.json"), "context_servers", "zed",
        windows=("Zed", "settings.json"),
    ),
    "opencode": McpClient(
        "opencode", (".config", "opencode", "opencode.json"), ("opencode.json",), "mcp", "opencode", expands="{env:%s}"
    ),
}  # fmt: skip


def executable() -> str:
    """How a client can start this very program, wherever the client itself was started."""
    beside = Path(sys.executable).with_name("commonplace.exe" if sys.platform == "win32" else "commonplace")
    return str(beside) if beside.exists() else shutil.which("commonplace") or "commonplace"


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
        return folder.joinpath(*client.project)
    variables = environment or {}
    if moved := variables.get(client.variable):
        return Path(moved).expanduser() / client.user[-1]
    parts = client.user
    if platform == "win32" and (client.settings or client.windows):
        return home.joinpath("AppData", "Roaming", *(client.windows or parts))
    if client.settings:
        parts = ("Library", "Application Support", *parts) if platform == "darwin" else (".config", *parts)
    if parts[0] == ".config" and (moved := variables.get("XDG_CONFIG_HOME")):
        return Path(moved).joinpath(*parts[1:])
    return home.joinpath(*parts)


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
        return _with_member(client, server.name, entry(client, server), text)
    except ValueError as error:
        raise Conflict(
            f"{path} was left alone: {error}. Fix that, or add this by hand (what is inside {client.key} goes "
            f"into the {client.key} that is there, if there is one):\n{snippet(client, server)}".rstrip()
        ) from None


def without_server(client: McpClient, name: str, text: str, path: Path) -> str:
    try:
        if client.style == "toml":
            after = _checked_toml(client, name, text, _without_table(client, name, text, path), None)
        else:
            after = _without_member(client, name, text)
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
        servers = jsonc.parse(text).value[client.key]
        if original.strip() and name in jsonc.parse(original).value.get(client.key, {}):
            return False
        return _with_member(client, name, servers[name], original) == text
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _with_member(client: McpClient, name: str, wanted: dict[str, Any], text: str) -> str:
    if not text.strip():
        return json.dumps({client.key: {name: wanted}}, indent=2, ensure_ascii=False) + "\n"
    root = _object(text)
    servers = _member(root, client.key)
    if servers is None:
        key, value, node = client.key, {name: wanted}, root
    elif not isinstance(servers.node.value, dict):
        raise ValueError(f"{client.key} in it is not an object")
    else:
        key, value, node = name, wanted, servers.node
        known = _member(node, name)
        if known is not None and known.node.value == wanted:
            return text
    expected = {**root.value, client.key: {**root.value.get(client.key, {}), name: wanted}}
    return _checked(jsonc.put(text, node, key, value), expected)


def _without_member(client: McpClient, name: str, text: str) -> str:
    root = _object(text) if text.strip() else None
    servers = _member(root, client.key) if root else None
    known = _member(servers.node, name) if servers and isinstance(servers.node.value, dict) else None
    if root is None or servers is None or known is None:
        return text
    rest = {key: value for key, value in servers.node.value.items() if key != name}
    after = jsonc.drop(text, servers.node, known)
    again = _object(after)
    emptied = _member(again, client.key)
    if rest or emptied is None or after[emptied.node.start + 1 : emptied.node.end - 1].strip():  # a comment is in it
        return _checked(after, {**root.value, client.key: rest})
    others = {key: value for key, value in root.value.items() if key != client.key}
    return _checked(jsonc.drop(after, again, emptied), others)


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
        known = tomllib.loads(text).get(client.key, {})
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
