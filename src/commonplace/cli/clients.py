"""Where each MCP client keeps its list of servers, and how an entry of it looks. Pure but for asking the platform."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from commonplace.wire.errors import Conflict, NotFound, ValidationError

Scope = Literal["user", "project"]


@dataclass(slots=True, frozen=True)
class Server:
    """What a client is told: a command to start, or an address to call."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    url: str | None = None


@dataclass(slots=True, frozen=True)
class Client:
    title: str
    user: tuple[str, ...] | None  # parts of the path below the home or settings folder; None where there is none
    project: tuple[str, ...] | None  # below the folder of a project
    key: str = "mcpServers"  # of the object that holds the servers
    style: Literal["plain", "typed", "opencode", "zed", "toml"] = "plain"
    settings: bool = False  # whether `user` is below the platform's folder for settings, not below the home
    remote: str | None = "url"  # the key for an address; None where the client only starts commands
    windows: tuple[str, ...] | None = None  # below the platform's folder for settings, where Windows has another place
    variable: str = ""  # of the environment: the folder its settings of the user are in instead


CLIENTS: dict[str, Client] = {
    "claude-code": Client(
        "Claude Code", (".claude.json",), (".mcp.json",), style="typed", variable="CLAUDE_CONFIG_DIR"
    ),
    "claude-desktop": Client(
        "Claude Desktop", ("Claude", "claude_desktop_config.json"), None, settings=True, remote=None
    ),
    "cursor": Client("Cursor", (".cursor", "mcp.json"), (".cursor", "mcp.json")),
    "vscode": Client(
        "VS Code", ("Code", "User", "mcp.json"), (".vscode", "mcp.json"), "servers", "typed", settings=True
    ),
    "windsurf": Client("Windsurf", (".codeium", "windsurf", "mcp_config.json"), None, remote="serverUrl"),
    "gemini": Client("Gemini CLI", (".gemini", "settings.json"), (".gemini", "settings.json"), remote="httpUrl"),
    "codex": Client(
        "Codex", (".codex", "config.toml"), (".codex", "config.toml"), "mcp_servers", "toml", variable="CODEX_HOME"
    ),
    "zed": Client(
        "Zed", (".config", "zed", "settings.json"), (".zed", "settings.json"), "context_servers", "zed",
        windows=("Zed", "settings.json"),
    ),
    "opencode": Client("opencode", (".config", "opencode", "opencode.json"), ("opencode.json",), "mcp", "opencode"),
}  # fmt: skip


def executable() -> str:
    """How a client can start this very program, wherever the client itself was started."""
    beside = Path(sys.executable).with_name("commonplace.exe" if sys.platform == "win32" else "commonplace")
    return str(beside) if beside.exists() else shutil.which("commonplace") or "commonplace"


def place(
    client: Client, scope: Scope, home: Path, folder: Path, platform: str = sys.platform,
    environment: Mapping[str, str] | None = None,
) -> Path:  # fmt: skip
    if scope == "project":
        if client.project is None:
            raise ValidationError(f"{client.title} has no settings of one project; use --scope user", field="scope")
        return folder.joinpath(*client.project)
    if client.user is None:
        raise ValidationError(f"{client.title} has settings of a project only; use --scope project", field="scope")
    said = environment or {}
    if moved := said.get(client.variable):
        return Path(moved).expanduser() / client.user[-1]
    parts = client.user
    if platform == "win32" and (client.settings or client.windows):
        return home.joinpath("AppData", "Roaming", *(client.windows or parts))
    if client.settings:
        parts = ("Library", "Application Support", *parts) if platform == "darwin" else (".config", *parts)
    if parts[0] == ".config" and (moved := said.get("XDG_CONFIG_HOME")):
        return Path(moved).joinpath(*parts[1:])
    return home.joinpath(*parts)


def entry(client: Client, server: Server) -> dict[str, Any]:
    if server.url is not None:
        if client.remote is None:
            raise ValidationError(f"{client.title} only starts commands; leave --url out", field="url")
        kind = {"typed": {"type": "http"}, "opencode": {"type": "remote"}}.get(client.style, {})
        return {**kind, client.remote: server.url}
    if client.style == "opencode":
        return {"type": "local", "command": [server.command, *server.args]}
    kind = {"typed": {"type": "stdio"}, "zed": {"source": "custom"}}.get(client.style, {})
    return {**kind, "command": server.command, "args": list(server.args)}


def snippet(client: Client, server: Server) -> str:
    """What to put into the client's settings, for someone who does it by hand."""
    if client.style == "toml":
        return _table(client, server)
    return json.dumps({client.key: {server.name: entry(client, server)}}, indent=2, ensure_ascii=False) + "\n"


def with_server(client: Client, server: Server, text: str, path: Path) -> str:
    """The settings with this server in them, everything else as it was."""
    if client.style == "toml":
        kept = _without_table(client, server.name, text, path)
        return f"{kept.rstrip()}\n\n{_table(client, server)}" if kept.strip() else _table(client, server)
    settings = _parsed(text, path)
    servers = settings.setdefault(client.key, {})
    if not isinstance(servers, dict):
        raise ValidationError(f"{path}: {client.key} is not an object; mend it first, or use --print")
    wanted = entry(client, server)
    if servers.get(server.name) == wanted:
        return text
    servers[server.name] = wanted
    return _written(settings, text)


def without_server(client: Client, name: str, text: str, path: Path) -> str:
    if client.style == "toml":
        kept = _without_table(client, name, text, path)
        if kept == text:
            raise NotFound(f"{path} has no server called {name}")
        return kept
    settings = _parsed(text, path)
    servers = settings.get(client.key)
    if not isinstance(servers, dict) or name not in servers:
        raise NotFound(f"{path} has no server called {name}")
    del servers[name]
    if not servers:
        del settings[client.key]
    return _written(settings, text)


def _parsed(text: str, path: Path) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        settings = json.loads(text)
    except ValueError:
        # Comments and trailing commas are allowed in some clients' settings, and writing JSON back would lose them.
        raise Conflict(
            f"{path} is not plain JSON (comments, perhaps), and rewriting it would lose something: "
            "add the server by hand, `--print` shows how"
        ) from None
    if not isinstance(settings, dict):
        raise Conflict(f"{path} does not hold a JSON object; add the server by hand, `--print` shows how")
    return settings


def _written(settings: dict[str, Any], before: str) -> str:
    """As the file is indented already."""
    indented = re.search(r"^\{\r?\n([ \t]+)\"", before)
    indent = indented.group(1) if indented else "  "
    return json.dumps(settings, indent=indent, ensure_ascii=False) + "\n"


def _table(client: Client, server: Server) -> str:
    # JSON's strings and lists of strings are TOML's, too.
    values = entry(client, server)
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join([f"[{client.key}.{_bare(server.name)}]", *lines, ""])


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _without_table(client: Client, name: str, text: str, path: Path) -> str:
    try:
        known = tomllib.loads(text).get(client.key, {})
    except tomllib.TOMLDecodeError as error:
        raise Conflict(f"{path} is not valid TOML ({error}); mend it first, or use --print") from None
    if not isinstance(known, dict) or name not in known:
        return text
    head = f"[{client.key}.{_bare(name)}]"
    lines = text.splitlines(keepends=True)
    at = next((n for n, line in enumerate(lines) if line.split("#")[0].strip() == head), None)
    if at is None:
        raise Conflict(f"{path} has {name} written in another way; change it by hand, `--print` shows how")
    after = next((n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    kept = "".join(lines[:at]).rstrip("\n") + "\n" + ("\n" if lines[after:] else "") + "".join(lines[after:])
    return kept if kept.strip() else ""


def arguments(flags: Sequence[tuple[str, str | None]]) -> tuple[str, ...]:
    return ("mcp", *(word for flag, value in flags if value is not None for word in (flag, value)))
