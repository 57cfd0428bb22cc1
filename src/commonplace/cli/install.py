"""`commonplace install`: tell an MCP client about this memory, showing the change before making it."""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from commonplace.cli import MISTAKE
from commonplace.cli.support import client_settings, clients, hooks
from commonplace.cli.support.clients import CLIENTS
from commonplace.cli.support.command import Answer, Commands, Session, option
from commonplace.cli.support.mcp_arguments import TOOL_SETS, McpArguments, client_variables, unwritten_variable_notes
from commonplace.cli.support.output import line, note, raw
from commonplace.cli.support.tables import Table
from commonplace.stores.urls import holds_secret
from commonplace.wire.durable import sync_file
from commonplace.wire.errors import Conflict, ValidationError

_COPY = ".before-commonplace"
_CONTEXT = 3  # lines around a change that is shown
_NAME = "commonplace"  # of the server

commands = Commands()


@commands.add("install", agent="Whose memory the client is given [COMMONPLACE_AGENT, else `default`].")
def install(
    run: Session,
    client: Annotated[str | None, option("--client NAME", f"Which client: {', '.join(CLIENTS)}.", *CLIENTS)] = None,
    scope: Annotated[
        str, option("--scope SCOPE", "Settings of the user, or of the project in this folder.", "user", "project")
    ] = "user",
    only_print: Annotated[bool, option("--print", "Only print what to add; change nothing.")] = False,
    yes: Annotated[bool, option("--yes -y", "Write without asking.")] = False,
    remove: Annotated[bool, option("--remove", "Take the server out again.")] = False,
    name: Annotated[str, option("--name NAME", "What the client calls it.")] = _NAME,
    tools: Annotated[str, option("--tools SET", f"Which tools: {', '.join(TOOL_SETS)}.", *TOOL_SETS)] = "commonplace",
    palace: Annotated[str | None, option("--palace NAME", "The palace meant when a trusty tool names none.")] = None,
    url: Annotated[
        str | None, option("--url URL", "Call a running server, as http://127.0.0.1:8420/mcp; start none.")
    ] = None,
    token_env: Annotated[
        str | None, option("--token-env NAME", "With --url: the variable that holds the server's token.")
    ] = None,
    uvx: Annotated[bool, option("--uvx", "Start it with uvx, so that nobody has to install it.")] = False,
    with_hooks: Annotated[
        bool, option("--hooks", "Of Claude Code: hooks that recall at the start of a session and capture at its end.")
    ] = False,
) -> Answer | None:
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
      commonplace install --client vscode --uvx --scope project
      commonplace install --client claude-code --hooks
    """
    if client is None:
        return _list_clients()
    chosen = CLIENTS.get(client)
    if chosen is None:
        message = f"there is no client {client!r}; there are {', '.join(CLIENTS)}"
        raise ValidationError(f"{message}. Any other can start `commonplace mcp` itself", field="client")
    if tools not in TOOL_SETS:
        raise ValidationError(f"tools must be one of {', '.join(TOOL_SETS)}, not {tools!r}", field="tools")
    arguments = McpArguments(tools, palace, None, run.agent, str(run.data) if run.data else None)
    arguments.check()
    if scope not in ("user", "project"):
        raise ValidationError(f"scope must be user or project, not {scope!r}", field="scope")
    _check(name, url, token_env, uvx, only_print=only_print, remove=remove)
    # Settings of a project are shared: where this machine has the program is nothing to others.
    program = clients.program(shared=scope == "project", uvx=uvx)
    if with_hooks:
        _refuse_server_options(name, arguments, url, token_env)
        return _install_hooks(
            run, client, program, "project" if scope == "project" else "user", only_print, remove, yes
        )
    _note_unwritten(arguments.data if not (remove or url) else None)
    path = _settings_path(chosen, "project" if scope == "project" else "user")
    variables = () if remove or url else client_variables(data=arguments.data)
    words = (*program[1:], *arguments.for_client().words())
    server = clients.McpServer(name, program[0], words, url, token_env, variables)
    if only_print:
        text = client_settings.snippet(chosen, server)
        Answer({"client": client, "snippet": text}, lambda: raw(text)).print(run.as_json)
    else:
        change = _removal(chosen, name, path) if remove else _addition(chosen, server, path)
        reload = f"restart {chosen.title}, or reload its MCP servers, to see the change"
        if not _apply(run, change, reload, yes) or remove:
            return None
    _warn(server, scope)
    return None


def _note_unwritten(data: str | None) -> None:
    for text in unwritten_variable_notes(data):
        note(text)


def _refuse_server_options(name: str, arguments: McpArguments, url: str | None, token_env: str | None) -> None:
    """Whoever gives an address believes that hooks capture there; they write to the store of this machine."""
    given = {
        "--url": url is not None,
        "--token-env": token_env is not None,
        "--tools": arguments.tools != McpArguments().tools,
        "--palace": arguments.palace is not None,
        "--name": name != _NAME,
    }
    if unused := [option for option, is_given in given.items() if is_given]:
        raise ValidationError(
            "hooks are commands on the store that --data, --agent and the settings name, not an MCP server: "
            f"leave {' and '.join(unused)} out",
            field="hooks",
        )


def _install_hooks(
    run: Session, client: str, program: tuple[str, ...], scope: clients.Scope, only_print: bool, remove: bool, yes: bool
) -> Answer | None:
    if client != "claude-code":
        raise ValidationError("--hooks are of claude-code; other clients have none that are known here", field="hooks")
    _note_unwritten(str(run.data) if run.data and not remove else None)
    own = McpArguments(agent=run.agent, data=str(run.data.absolute()) if run.data else None).for_client()
    command = hooks.command(program, own.agent, own.data, () if remove else client_variables(data=str(run.data or "")))
    if only_print:
        text = hooks.with_hooks("", command, Path())
        return Answer({"client": client, "snippet": text}, lambda: raw(text))
    path = hooks.settings_path(scope, Path.home(), Path.cwd(), os.environ)
    before = _read(path)
    if not remove:
        change = _Change(path, before, hooks.with_hooks(before, command, path))
    else:
        change = _hooks_removal(path, before)
    _apply(run, change, "begin a new session of Claude Code, which reads its hooks then", yes)
    return None


def _hooks_removal(path: Path, before: str) -> _Change:
    copies = _copies(path.resolve())
    for copy in reversed(copies):
        if hooks.made_from(before, original := _read(copy), path):
            between = [other for other in copies if hooks.made_from(_read(other), original, path)]
            return _Change(path, before, original, [copy, *between])
    if hooks.made_from(before, "", path):
        return _Change(path, before, None, copies)
    return _Change(path, before, hooks.without_hooks(before, path))


def _check(name: str, url: str | None, token_env: str | None, uvx: bool, *, only_print: bool, remove: bool) -> None:
    if only_print and remove:
        raise ValidationError("--print shows what to add, --remove takes it out: leave one of them out", field="print")
    if not name.strip() or not name.isprintable():
        raise ValidationError("--name must be a name, such as commonplace", field="name")
    if url is not None and holds_secret(url):
        raise ValidationError(
            "--url has a password or a token in it, which does not belong into a client's settings: leave it out of "
            "the address, and name the variable that holds the server's token with --token-env",
            field="url",
        )
    if url is not None and not _is_address(url):
        raise ValidationError(f"--url must be an address such as http://127.0.0.1:8420/mcp, not {url!r}", field="url")
    if uvx and url is not None:
        raise ValidationError("--uvx starts a process and --url none: leave one of them out", field="uvx")
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


def _warn(server: clients.McpServer, scope: str) -> None:
    if server.token_env is not None:
        note(f"the token stays in {server.token_env}: set it where the client is started")
    elif scope == "project" and server.url is None:
        note(f"`{server.command}` must be on the PATH of everyone who uses this project")
        if "--data" in server.args or server.env:
            note("it names a place on this machine, so do not share these settings as they are")


def _settings_path(client: clients.McpClient, scope: clients.Scope) -> Path:
    return clients.settings_path(client, scope, Path.home(), Path.cwd(), environment=os.environ)


def _list_clients() -> Answer:
    found = []
    for name, client in CLIENTS.items():
        path = _settings_path(client, "user")
        found.append({"client": name, "title": client.title, "settings": str(path), "there": path.parent.is_dir()})

    def show() -> None:
        Table(["client", "for", "its settings"], [[f["client"], f["title"], f["settings"]] for f in found]).print()
        line("")
        line("`commonplace install --client NAME` connects one; any other client can start `commonplace mcp` itself.")

    return Answer({"clients": found}, show)


@dataclass(slots=True)
class _Change:
    """Of a client's settings: to what, None for no file at all, and the copies that are of no more use then."""

    path: Path
    before: str
    after: str | None
    obsolete: list[Path] = field(default_factory=list)

    @property
    def restores_original(self) -> bool:
        """Whether everything is then as it was before the server was added."""
        return self.after is None or bool(self.obsolete)

    def diff(self) -> str:
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after or ""))
        # Seconds on settings of megabytes, unless difflib is shown only what differs, with its context.
        head = max(_common(before, after) - _CONTEXT, 0)
        tail = max(_common(before[head:][::-1], after[head:][::-1]) - _CONTEXT, 0)
        before, after = before[head : len(before) - tail], after[head : len(after) - tail]

        def moved(found: re.Match[str]) -> str:
            return found[1] + str(int(found[2]) + head)

        shown = difflib.unified_diff(before, after, str(self.path), str(self.path), n=_CONTEXT)
        return "".join(re.sub(r"( [-+])(\d+)", moved, each) if each.startswith("@@") else each for each in shown)


def _common(these: list[str], those: list[str]) -> int:
    """How many lines are the same before the first that is not."""
    pairs = enumerate(zip(these, those, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(these), len(those)))


def _addition(client: clients.McpClient, server: clients.McpServer, path: Path) -> _Change:
    before = _read(path)
    return _Change(path, before, client_settings.with_server(client, server, before, path))


def _removal(client: clients.McpClient, name: str, path: Path) -> _Change:
    before, copies = _read(path), _copies(path.resolve())
    for copy in reversed(copies):
        if client_settings.made_from(client, name, before, original := _read(copy)):
            between = [other for other in copies if client_settings.made_from(client, name, _read(other), original)]
            return _Change(path, before, original, [copy, *between])
    if all(client_settings.made_from(client, name, text, "") for text in (before, *(_read(copy) for copy in copies))):
        return _Change(path, before, None, copies)
    return _Change(path, before, client_settings.without_server(client, name, before, path))


def _apply(run: Session, change: _Change, then: str, yes: bool) -> bool:
    """Shows the change and makes it, unless it is none or is not wanted; `then` is what is left to do."""
    path, after = change.path, change.after
    if change.before == after:
        Answer({"path": str(path), "changed": False}, f"{path} says so already: nothing to do").print(run.as_json)
        return False
    if not run.as_json:
        shown = change.diff()
        raw(shown if shown.endswith("\n") else f"{shown}\n")
    if not yes:
        if run.as_json or not sys.stdin.isatty():
            raise ValidationError("nothing was written: add --yes to write this, or --print to only see it")
        question = f"Write this to {path}?" if after is not None else f"Delete {path}, which has nothing else in it?"
        if not typer.confirm(question, default=False):
            note("nothing was written")
            raise typer.Exit(MISTAKE)  # as wherever a person says no
    copy = _write(change)
    done = f"written; {f'as it was: {copy}' if copy else 'it did not exist before'}"
    if after is None:
        done = "deleted, as it was not there before"
    elif change.restores_original:
        done = "written, to the letter as it was before"
    document = {"path": str(path), "changed": True, "copy": str(copy) if copy else None}
    Answer(document, f"{done}\n{then}").print(run.as_json)
    return True


def _read(path: Path) -> str:
    """The settings to the letter, line ends included; none are as good as empty ones."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise Conflict(f"{path} is not UTF-8 text: change it by hand, `--print` shows the entry") from None


def _write(change: _Change) -> Path | None:
    """All of it or nothing, with the file's own permissions; through a link, to what it points at. Gives the copy."""
    if _read(change.path) != change.before:  # clients write to it, too, and someone was asked in between
        raise Conflict(f"{change.path} was changed meanwhile, so nothing was written: run this again")
    real = change.path.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    copy = None
    mode = 0o600
    if real.exists():
        mode = real.stat().st_mode & 0o777
        copy = None if change.restores_original else _keep_copy(real, change.before, mode)
    if change.after is None:
        real.unlink(missing_ok=True)
    else:
        _replace(real, change.after, mode)
    for obsolete in change.obsolete:
        obsolete.unlink(missing_ok=True)
    return copy


def _copies(real: Path) -> list[Path]:
    """What was kept of these settings, the oldest first."""
    found = [real.with_name(real.name + _COPY)]
    while found[-1].exists():
        found.append(real.with_name(f"{real.name}{_COPY}.{len(found) + 1}"))
    return found[:-1]


def _keep_copy(real: Path, text: str, mode: int) -> Path:
    """A copy never takes the place of an earlier one: the first has the settings as they were before all this."""
    known = _copies(real)
    for copy in known:
        if copy.read_bytes() == text.encode():
            return copy
    copy = real.with_name(real.name + _COPY + (f".{len(known) + 1}" if known else ""))
    _replace(copy, text, mode)
    return copy


def _replace(path: Path, text: str, mode: int) -> None:
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            sync_file(file.fileno())
        os.chmod(partial, mode)
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
