"""A server as a table of a client's TOML, for Codex: added, taken out, and everything else to the letter as it was."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from commonplace.cli.support.clients import McpClient, McpServer, entry
from commonplace.wire.errors import Conflict


def checked(client: McpClient, name: str, text: str, after: str, wanted: dict[str, Any] | None) -> str:
    """Never write settings that say something else than meant: a list over several lines or a table on one is not told
    from a heading by its line."""
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


def with_table(text: str, table: str, original: str) -> str:
    """The table at the end, with line ends as the original has them."""
    line_end = "\r\n" if "\r\n" in original else "\n"
    table = re.sub("\r?\n", line_end, table)
    return f"{text.rstrip()}{line_end * 2}{table}" if text.strip() else table


def server_table(client: McpClient, server: McpServer) -> str:
    lines = [f"{key} = {_value(value)}" for key, value in entry(client, server).items()]
    return "\n".join([f"[{client.key}.{_key(server.name)}]", *lines, ""])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)  # JSON's strings and lists of strings are TOML's, too


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def without_table(client: McpClient, name: str, text: str, path: Path) -> str:
    try:
        known = tomllib.loads(text).get(client.key)
    except tomllib.TOMLDecodeError as error:
        raise Conflict(f"{path} is not valid TOML ({error}); fix it first, or use --print") from None
    if not isinstance(known, dict) or name not in known:
        return text
    lines = text.splitlines(keepends=True)
    try:
        at, after = table_lines(client, name, text)
    except ValueError:
        raise Conflict(f"{path} has {name} written in another way; change it by hand, `--print` shows how") from None
    before, rest = "".join(lines[:at]).rstrip("\r\n"), "".join(lines[after:])
    line_end = "\r\n" if "\r\n" in text else "\n"
    return before + line_end * (2 if rest else 1) + rest if (before + rest).strip() else ""


def table_lines(client: McpClient, name: str, text: str) -> tuple[int, int]:
    """The first line of the server's table, and the one after its last."""
    head = f"[{client.key}.{_key(name)}]"
    lines = text.splitlines(keepends=True)
    at = next((n for n, line in enumerate(lines) if line.split("#")[0].strip() == head), None)
    if at is None:
        raise ValueError("there is no such table")
    within = head.removesuffix("]") + "."  # its own tables, such as that of its variables
    others = (n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("[") and within not in lines[n])
    return at, next(others, len(lines))
