"""Where each MCP client keeps its list of servers, and how an entry of it looks. Pure but for asking the platform."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from commonplace.wire.errors import ValidationError

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
