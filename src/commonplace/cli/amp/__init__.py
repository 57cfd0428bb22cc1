"""The `amp` command: the Agent Memory Protocol's verbs, on the local store or a server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from commonplace.cli import OK, open_closed_streams, run_command

COMMANDS = dict.fromkeys(("store", "search", "get", "delete", "list", "status", "agent-status"), "Commands")


def _root() -> None:
    """Memory for agents, in the Agent Memory Protocol's words.

    \b
    Example:
      amp store --type lesson --title "PostgreSQL connection pooling" --content "Always pool connections."
      amp search "database connection issues production" --type lesson
      amp list --type checkpoint --agent radarr --limit 1
    """


def command(args: Sequence[str] = ()) -> Any:
    from commonplace.cli.app import tree

    return tree(_root, "commonplace.cli.amp", COMMANDS, args, "amp")


def main(args: Sequence[str] | None = None) -> int:
    """Run one verb: 0 it worked, 1 the user's mistake or a missing id, 2 a backend's failure."""
    open_closed_streams()
    given = [*(sys.argv[1:] if args is None else args)] or ["--help"]  # `list` in here may be the module of that verb
    if given in (["--version"], ["-V"]):
        from commonplace.__about__ import __version__

        print(f"amp {__version__}")
        return OK
    return run_command(lambda: command(given).main(given, prog_name="amp", standalone_mode=False), given, "amp")
