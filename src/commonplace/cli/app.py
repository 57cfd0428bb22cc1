"""All commands in one tree, grouped in the help as people look for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from commonplace.__about__ import __version__
from commonplace.cli import PIPE_CLOSED

#: Where each command is, in the order of the help; a run loads only the module it needs.
COMMANDS = {
    "demo": "demo", "serve": "serve", "mcp": "mcp", "install": "install",
    "remember": "remembering", "recall": "finding",
    "get": "single", "list": "single", "history": "single", "update": "single",
    "forget": "changing", "merge": "changing", "expire": "changing",
    "kg": "kg",
    "reviews": "reviews", "audit": "audit", "token": "token",
    "ask": "ask", "mrp": "mrp", "trust": "trust", "identity": "identity",
    "status": "upkeep", "doctor": "upkeep", "backup": "upkeep", "compact": "upkeep", "reindex": "upkeep",
    "palace": "palace", "model": "model",
}  # fmt: skip


class Commands(TyperGroup):
    """Lists commands under their headings, and lets a reader of the output leave early."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=list(COMMANDS).index)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        headings: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            found = self.get_command(ctx, name)
            if found is not None and not found.hidden:
                heading = getattr(found, "rich_help_panel", None) or "Commands"
                headings.setdefault(str(heading), []).append((name, found.get_short_help_str(limit=90)))
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # Python flushes stdout once more at exit; that flush must have somewhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(PIPE_CLOSED) from None


def _version(wanted: bool) -> None:
    if wanted:
        print(f"commonplace {__version__}")
        raise typer.Exit()


def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """One memory for every agent: durable, searchable, governed, on your machine.

    \b
    Example:
      commonplace remember "Alice is allergic to peanuts" --tag food
      commonplace recall "what should I not cook for Alice?"
      commonplace demo
    """


def application(modules: Sequence[str]) -> typer.Typer:
    # Help is plain text on purpose: it is piped, grepped and read by agents as often as on a terminal.
    app = typer.Typer(
        name="commonplace", cls=Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )  # fmt: skip
    app.callback()(_root)
    for module in modules:
        import_module(f"commonplace.cli.{module}").register(app)
    return app


def command(args: Sequence[str] = ()) -> Any:
    """The command tree: the whole of it, or as much as these arguments need."""
    known = args and args[0] in COMMANDS and "_COMMONPLACE_COMPLETE" not in os.environ
    modules = [COMMANDS[args[0]]] if known else list(dict.fromkeys(COMMANDS.values()))
    return typer.main.get_command(application(modules))
