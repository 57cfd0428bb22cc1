"""All commands in one tree, grouped in the help as people look for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer

from commonplace.__about__ import __version__
from commonplace.cli import leave_closed_pipe
from commonplace.cli.support.command import HeadedGroup, option

_HEADINGS = {
    "Start here": ("demo", "serve", "mcp", "install", "completion"),
    "Remember and recall": ("remember", "recall"),
    "Single memories": ("get", "list", "history", "update", "procedure"),
    "Forget, merge, expire": ("forget", "merge", "expire", "undo"),
    "Knowledge graph": ("kg",),
    "Governance": ("review", "policy", "audit", "recover", "token"),
    "Other agents": ("ask", "mrp", "trust", "identity"),
    "The data": (
        "status",
        "doctor",
        "backup",
        "restore",
        "compact",
        "reindex",
        "lifecycle",
        "palace",
        "model",
        "stores",
        "conformance",
    ),
    "Moving": ("export", "import", "migrate", "capture"),
}
#: Each command, which is a module of this package, with its heading, in the order of the help.
COMMANDS = {name: heading for heading, names in _HEADINGS.items() for name in names}
#: As commands were called at first; scripts use these names.
_ALIASES = {"reviews": "review"}
_DESTRUCTIVE = frozenset({"expire", "forget"})


class RootGroup(HeadedGroup):
    """Knows what a mistyped command was meant to be, and lets a reader of the output leave early."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if message := getattr(error, "message", None):
                error.message = message.rstrip(".") + _suggestion(args[0], self.commands)  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise SystemExit(leave_closed_pipe(sys.stdout)) from None


def _suggestion(typed: str, known: Iterable[str]) -> str:
    """What was probably meant. What takes memories away comes only first: `exp` is not answered with `expire`."""
    close = get_close_matches(typed, known)
    meant = [name for name in close if name == close[0] or name not in _DESTRUCTIVE]
    return f". Did you mean {' or '.join(map(repr, meant))}?" if meant else ""


def tree(root: Callable[..., None], package: str, commands: Mapping[str, str], args: Sequence[str], name: str) -> Any:
    """The command tree of a program: the whole of it, or as much as these arguments need."""
    # Help is plain text on purpose: it is piped, grepped and read by agents as often as on a terminal.
    app = typer.Typer(
        name=name,
        cls=RootGroup,
        add_completion=False,  # typer's options for it: we have a command
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )
    app.callback()(root)
    if f"_{name.upper()}_COMPLETE" in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()  # which typer does only beside its own options
        args = _typed_words()
    first = _ALIASES.get(args[0], args[0]) if args else ""
    wanted = [first] if first in commands else list(commands)
    for command in wanted:
        module = import_module(f"{package}.{command.replace('-', '_')}")
        module.commands.join(app, command, commands[command])
    found: Any = typer.main.get_command(app)
    found.commands = {command: found.commands[command] for command in wanted}  # typer puts groups last
    found.suggest_commands = False  # ours are better: see _suggestion
    return found


def _typed_words() -> list[str]:
    """Those after the program that a shell asks to complete, but for the one that is not finished."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    finished, _, _ = line.rpartition(" ")
    return finished.split()[1:]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"commonplace {__version__}")
        raise typer.Exit()


def _root(
    version: Annotated[
        bool, option("--version -V", "Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """One memory for every agent: durable, searchable, governed, on your machine.

    \b
    Example:
      commonplace remember "Alice is allergic to peanuts" --tag food
      commonplace recall "what should I not cook for Alice?"
      commonplace demo
    """


def command(args: Sequence[str] = ()) -> Any:
    return tree(_root, "commonplace.cli", COMMANDS, args, "commonplace")
