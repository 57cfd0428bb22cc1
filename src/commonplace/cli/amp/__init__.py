"""The `amp` command: the Agent Memory Protocol's verbs, on the local store or a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commonplace.cli import INTERRUPTED, OK

if TYPE_CHECKING:
    import typer


def _root() -> None:
    """Memory for agents, in the Agent Memory Protocol's words.

    \b
    Example:
      amp store --type lesson --title "PostgreSQL connection pooling" --content "Always pool connections."
      amp search "database connection issues production" --type lesson
      amp list --type checkpoint --agent radarr --limit 1
    """


def application() -> typer.Typer:
    import typer

    from commonplace.cli.amp import reading, storing
    from commonplace.cli.app import Commands

    class Verbs(Commands):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

    app = typer.Typer(
        name="amp", cls=Verbs, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )  # fmt: skip
    app.callback()(_root)
    app.command("store")(storing.store)
    app.command("search")(reading.search)
    app.command("get")(reading.get)
    app.command("delete")(reading.delete)
    app.command("list")(reading.listing)
    app.command("status")(reading.status)
    app.command("agent-status")(reading.agent_status)
    return app


def main(args: Sequence[str] | None = None) -> int:
    """Run one verb: 0 it worked, 1 the user's mistake or a missing id, 2 a backend's failure."""
    given = list(sys.argv[1:] if args is None else args) or ["--help"]
    if given in (["--version"], ["-V"]):
        from commonplace.__about__ import __version__

        print(f"amp {__version__}")
        return OK
    try:
        import typer

        code = typer.main.get_command(application()).main(given, prog_name="amp", standalone_mode=False)
        return code if isinstance(code, int) else OK
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _report(error, as_json="--json" in (given[: given.index("--")] if "--" in given else given))


def _report(error: Exception, *, as_json: bool) -> int:
    """One sentence on stderr, or AMP's error envelope on stdout."""
    if type(error).__name__ == "Abort":  # typer's word for Ctrl-C and for an input that ended
        return INTERRUPTED
    from commonplace.cli.support.errors import described, exit_code
    from commonplace.cli.support.output import emit, visible

    if os.environ.get("COMMONPLACE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    code, message, _ = described(error)
    if as_json:
        emit({"success": False, "error": {"code": code, "message": message}})
    else:
        print(f"amp: {visible(message)}", file=sys.stderr)
    return exit_code(code)
