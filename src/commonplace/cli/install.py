"""`commonplace install`: tell an MCP client about this memory, showing the change before making it."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from commonplace.cli import clients, options
from commonplace.cli.plain import emit, line, note
from commonplace.wire.errors import Conflict, ValidationError

_SETS = ("commonplace", "amp", "trusty", "all")
_KEPT = ".before-commonplace"


def register(app: typer.Typer) -> None:
    app.command("install", rich_help_panel="Start here")(install)


def install(
    client: Annotated[
        str | None,
        typer.Option(
            "--client", metavar="NAME", help=f"Which client: {', '.join(clients.CLIENTS)}.",
            autocompletion=options.offering(*clients.CLIENTS),
        ),
    ] = None,
    scope: Annotated[
        str,
        typer.Option("--scope", metavar="SCOPE", help="Settings of the user, or of the project in this folder.",
                     autocompletion=options.offering("user", "project")),
    ] = "user",
    only_print: Annotated[bool, typer.Option("--print", help="Only print what to add; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the server out again.")] = False,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the client calls it.")] = "commonplace",
    tools: Annotated[
        str, typer.Option("--tools", metavar="SET", help=f"Which tools: {', '.join(_SETS)}.",
                          autocompletion=options.offering(*_SETS)),
    ] = "commonplace",
    palace: Annotated[
        str | None, typer.Option("--palace", metavar="NAME", help="The palace meant when a trusty tool names none."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Call a running server, as http://127.0.0.1:8420/mcp; start none."),
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:  # fmt: skip
    """Connect an MCP client, such as Claude Code, Cursor or VS Code, to this memory.

    Shows the change to the client's settings and asks before writing it; the settings as they were stay beside them.

    \b
    Example:
      commonplace install --client claude-code
      commonplace install --client vscode --scope project --agent reviewer
      commonplace install --client cursor --print
      commonplace install --client cursor --remove
    """
    if client is None:
        _offer(as_json)
        return
    chosen = clients.CLIENTS.get(client)
    if chosen is None:
        raise ValidationError(
            f"there is no client {client!r}; there are {', '.join(clients.CLIENTS)}. "
            "Any other can start `commonplace mcp` itself",
            field="client",
        )
    if tools not in _SETS:
        raise ValidationError(f"tools must be one of {', '.join(_SETS)}, not {tools!r}", field="tools")
    if scope not in ("user", "project"):
        raise ValidationError(f"scope must be user or project, not {scope!r}", field="scope")
    kept_in = None if data is None else str(data.expanduser().absolute())
    args = clients.arguments([("--tools", None if tools == "commonplace" else tools), ("--palace", palace),
                              ("--agent", agent), ("--data", kept_in)])  # fmt: skip
    server = clients.Server(name, clients.executable(), args, url)
    if only_print:
        text = clients.snippet(chosen, server)
        emit({"client": client, "snippet": text}) if as_json else print(text, end="")
        return
    path = _place(chosen, "project" if scope == "project" else "user")
    before = _text(path)
    plain = before.replace("\r\n", "\n")
    change = clients.without_server(chosen, name, plain, path) if remove else clients.with_server(
        chosen, server, plain, path
    )  # fmt: skip
    after = change.replace("\n", "\r\n") if "\r\n" in before else change
    _apply(chosen, path, before, after, yes=yes, as_json=as_json)


def _place(client: clients.Client, scope: clients.Scope) -> Path:
    return clients.place(client, scope, Path.home(), Path.cwd(), environment=os.environ)


def _text(path: Path) -> str:
    """The settings to the letter, line ends included; none are as good as empty ones."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise Conflict(f"{path} is not UTF-8 text; add the server by hand, `--print` shows how") from None


def _offer(as_json: bool) -> None:
    found: list[dict[str, Any]] = []
    for name, client in clients.CLIENTS.items():
        path = _place(client, "user")
        found.append({"client": name, "title": client.title, "settings": str(path), "there": path.parent.is_dir()})
    if as_json:
        emit({"clients": found})
        return
    from commonplace.cli import show

    show.table(["client", "for", "its settings"], [[f["client"], f["title"], f["settings"]] for f in found])
    line("")
    line("`commonplace install --client NAME` connects one; any other client can start `commonplace mcp` itself.")


def _apply(client: clients.Client, path: Path, before: str, after: str, *, yes: bool, as_json: bool) -> None:
    if before == after:
        emit({"path": str(path), "changed": False}) if as_json else line(f"{path} says so already: nothing to do")
        return
    shown = "".join(
        difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), str(path), str(path))
    )
    if not as_json:
        print(shown, end="" if shown.endswith("\n") else "\n")
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise ValidationError("nothing was written: add --yes to write this, or --print to only see it")
        if not typer.confirm(f"Write this to {path}?", default=False):
            note("nothing was written")
            return
    copy = _write(path, before, after)
    if as_json:
        emit({"path": str(path), "changed": True, "copy": str(copy) if copy else None})
        return
    line(f"written; {'as it was: ' + str(copy) if copy else 'it did not exist before'}")
    line(f"restart {client.title}, or reload its MCP servers, to see the change")


def _write(path: Path, before: str, after: str) -> Path | None:
    """All of it or nothing, with the file's own permissions; through a link, to what it points at."""
    if _text(path) != before:  # clients write to it, too, and someone was asked in between
        raise Conflict(f"{path} was changed meanwhile, so nothing was written: run this again")
    real = path.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    copy = None
    mode = 0o600
    if real.exists():
        mode = real.stat().st_mode & 0o777
        copy = real.with_name(real.name + _KEPT)
        _replace(copy, before, mode)
    _replace(real, after, mode)
    return copy


def _replace(path: Path, text: str, mode: int) -> None:
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, mode)
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
