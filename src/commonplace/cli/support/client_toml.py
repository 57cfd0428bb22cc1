"""A server as a table of a client's TOML, for Codex: added, taken out, and everything else to the letter as it was."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from commonplace.cli.support.clients import McpClient, McpServer, entry
from commonplace.wire.errors import Conflict

# A string of several lines may end in quotes of its own. The others are here so that no quote in them begins one.
_STRING_OR_COMMENT = re.compile(
    r""""{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*""", re.DOTALL
)


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
    try:
        start, end = table_span(client, name, text)
    except ValueError:
        raise Conflict(f"{path} has {name} written in another way; change it by hand, `--print` shows how") from None
    before, rest = text[:start].rstrip("\r\n"), text[end:]
    line_end = "\r\n" if "\r\n" in text else "\n"
    return before + line_end * (2 if rest else 1) + rest if (before + rest).strip() else ""


def table_span(client: McpClient, name: str, text: str) -> tuple[int, int]:
    """Where the server's table starts, and where it ends."""
    head = f"[{client.key}.{_key(name)}]"
    within = head.removesuffix("]") + "."  # its own tables, such as that of its variables
    start = None
    # What stands in a string of several lines is no heading, however much it looks like one.
    for line in re.finditer(r"[^\n]*\n|[^\n]+", _STRING_OR_COMMENT.sub(_blank, text)):
        if start is None and line[0].split("#")[0].strip() == head:
            start = line.start()
        elif start is not None and line[0].lstrip().startswith("[") and within not in line[0]:
            return start, line.start()
    if start is None:
        raise ValueError("there is no such table")
    return start, len(text)


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "x", found[0]) if found[0].startswith(('"""', "'''")) else found[0]
