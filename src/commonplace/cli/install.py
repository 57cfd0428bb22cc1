"""`commonplace install`: tell an MCP client about this memory, showing the change before making it."""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from commonplace.cli import carrying
from commonplace.cli.support import clients, options
from commonplace.cli.support.mcp_arguments import McpArguments
from commonplace.cli.support.output import emit, line, note
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
    token_env: Annotated[
        str | None,
        typer.Option("--token-env", metavar="NAME", help="With --url: the variable that holds the server's token."),
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:  # fmt: skip
    """Connect an MCP client, such as Claude Code, Cursor or VS Code, to this memory.

    Shows the change to the client's settings and asks before writing it; the settings as they were stay beside them.
    What this shell's COMMONPLACE_DATA, COMMONPLACE_AGENT and COMMONPLACE_STORE say is written along.

    \b
    Example:
      commonplace install --client claude-code
      commonplace install --client vscode --scope project --agent reviewer
      commonplace install --client cursor --print
      commonplace install --client cursor --url http://127.0.0.1:8420/mcp --token-env COMMONPLACE_TOKEN
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
    McpArguments(tools, palace).check()
    if scope not in ("user", "project"):
        raise ValidationError(f"scope must be user or project, not {scope!r}", field="scope")
    _check(name, url, token_env, only_print=only_print, remove=remove)
    path = _place(chosen, "project" if scope == "project" else "user")
    args = clients.arguments([("--tools", None if tools == "commonplace" else tools), ("--palace", palace),
                              ("--agent", carrying.agent(agent)),
                              ("--data", carrying.data_directory(data))])  # fmt: skip
    # Settings of a project are shared: where this machine has the program is nothing to others.
    command = "commonplace" if scope == "project" else clients.executable()
    server = clients.Server(name, command, args, url, token_env, () if remove or url else carrying.variables())
    if only_print:
        text = clients.snippet(chosen, server)
        emit({"client": client, "snippet": text}) if as_json else print(text, end="")
        _warn(server, scope)
        return
    before = _text(path)
    if remove:
        after, spent = _undone(chosen, name, before, path)
    else:
        after, spent = clients.with_server(chosen, server, before, path), []
    if _apply(chosen, path, before, after, spent, yes=yes, as_json=as_json) and not remove:
        _warn(server, scope)


def _check(name: str, url: str | None, token_env: str | None, *, only_print: bool, remove: bool) -> None:
    if only_print and remove:
        raise ValidationError("--print shows what to add, --remove takes it out: leave one of them out", field="print")
    if not name.strip() or not name.isprintable():
        raise ValidationError("--name must be a name, such as commonplace", field="name")
    if url is not None and not _is_address(url):
        raise ValidationError(f"--url must be an address such as http://127.0.0.1:8420/mcp, not {url!r}", field="url")
    if token_env is None:
        return
    if url is None:
        raise ValidationError("--token-env is for --url; a process of its own needs no token", field="token_env")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", token_env) or token_env.startswith("cp_"):
        raise ValidationError(
            "--token-env takes the name of a variable, such as COMMONPLACE_TOKEN, never the token itself",
            field="token_env",
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        return False


def _warn(server: clients.Server, scope: str) -> None:
    if server.token_env is not None:
        note(f"the token stays in {server.token_env}: set it where the client is started")
    elif scope == "project" and server.url is None:
        note("`commonplace` must be on the PATH of everyone who uses this project")
        if "--data" in server.args or server.env:
            note("it names a place on this machine, so do not share these settings as they are")


def _undone(client: clients.Client, name: str, before: str, path: Path) -> tuple[str | None, list[Path]]:
    """The settings without the server, None for no file at all, and the copies that are of no more use then."""
    kept = _copies(path.resolve())
    for copy in reversed(kept):
        if clients.made_from(client, name, before, original := _text(copy)):
            return original, [copy]
    if clients.made_from(client, name, before, "") and all(clients.made_from(client, name, _text(c), "") for c in kept):
        return None, kept
    return clients.without_server(client, name, before, path), []


def _place(client: clients.Client, scope: clients.Scope) -> Path:
    return clients.place(client, scope, Path.home(), Path.cwd(), environment=os.environ)


def _text(path: Path) -> str:
    """The settings to the letter, line ends included; none are as good as empty ones."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise Conflict(f"{path} is not UTF-8 text: change it by hand, `--print` shows the entry") from None


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


def _apply(
    client: clients.Client, path: Path, before: str, after: str | None, spent: list[Path], *, yes: bool, as_json: bool
) -> bool:
    if before == after:
        emit({"path": str(path), "changed": False}) if as_json else line(f"{path} says so already: nothing to do")
        return False
    lines = (after or "").splitlines(keepends=True)
    shown = "".join(difflib.unified_diff(before.splitlines(keepends=True), lines, str(path), str(path)))
    if not as_json:
        print(shown, end="" if shown.endswith("\n") else "\n")
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise ValidationError("nothing was written: add --yes to write this, or --print to only see it")
        question = f"Write this to {path}?" if after is not None else f"Delete {path}, which has nothing else in it?"
        if not typer.confirm(question, default=False):
            note("nothing was written")
            return False
    undone = after is None or bool(spent)
    copy = _write(path, before, after, keep=not undone)
    for old in spent:
        old.unlink(missing_ok=True)
    if as_json:
        emit({"path": str(path), "changed": True, "copy": str(copy) if copy else None})
        return True
    if after is None:
        line("deleted, as it was not there before")
    elif undone:
        line("written, to the letter as it was before")
    else:
        line(f"written; {'as it was: ' + str(copy) if copy else 'it did not exist before'}")
    line(f"restart {client.title}, or reload its MCP servers, to see the change")
    return True


def _write(path: Path, before: str, after: str | None, *, keep: bool) -> Path | None:
    """All of it or nothing, with the file's own permissions; through a link, to what it points at."""
    if _text(path) != before:  # clients write to it, too, and someone was asked in between
        raise Conflict(f"{path} was changed meanwhile, so nothing was written: run this again")
    real = path.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    copy = None
    mode = 0o600
    if real.exists():
        mode = real.stat().st_mode & 0o777
        copy = _keep(real, before, mode) if keep else None
    if after is None:
        real.unlink(missing_ok=True)
    else:
        _replace(real, after, mode)
    return copy


def _copies(real: Path) -> list[Path]:
    """What was kept of these settings, the oldest first."""
    found = [real.with_name(real.name + _KEPT)]
    while found[-1].exists():
        found.append(real.with_name(f"{real.name}{_KEPT}.{len(found) + 1}"))
    return found[:-1]


def _keep(real: Path, text: str, mode: int) -> Path:
    """A copy never takes the place of an earlier one: the first has the settings as they were before all this."""
    known = _copies(real)
    for copy in known:
        if copy.read_bytes() == text.encode():
            return copy
    copy = real.with_name(real.name + _KEPT + (f".{len(known) + 1}" if known else ""))
    _replace(copy, text, mode)
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
