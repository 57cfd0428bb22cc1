"""The `commonplace` command: what it prints, and what its exit code means."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from typing import Any

OK, MISTAKE, FAILURE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


def main(args: Sequence[str] | None = None) -> int:
    """Run one command: 0 it worked, 1 the user's mistake, 2 a backend's failure."""
    given = [*(sys.argv[1:] if args is None else args)]  # once its module is loaded, `list` in here is that command
    if given in (["--version"], ["-V"]):
        from commonplace.__about__ import __version__

        print(f"commonplace {__version__}")
        return OK
    if given[:1] == ["mcp"] and (code := _run_mcp(given[1:])) is not None:
        return code

    def tree() -> Any:
        from commonplace.cli.app import command

        return command(given)

    return invoke(tree, given, "commonplace")


def _run_mcp(args: list[str]) -> int | None:
    """Started by an MCP client, which waits: without the command tree, unless there is something to explain."""
    from commonplace.cli.support import mcp_arguments

    arguments = mcp_arguments.parse(args)
    if arguments is None:
        return None
    try:
        return mcp_arguments.start(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from commonplace.cli.support import errors

        return errors.report(error, as_json=False)


def invoke(tree: Callable[[], Any], args: list[str], program: str) -> int:
    """Run one command of a program's tree, and tell the user what went wrong."""
    from commonplace.cli.support import errors

    collecting = gc.isenabled()
    gc.disable()  # a command is over before a collection pays; imports alone would run dozens
    try:
        code = tree().main(args, prog_name=program, standalone_mode=False)
        return code if isinstance(code, int) else OK
    except SystemExit as stop:  # how completion scripts, and a pipe that closed early, end
        return stop.code if isinstance(stop.code, int) else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        options = args[: args.index("--")] if "--" in args else args
        return errors.report(error, as_json="--json" in options, program=program)
    finally:
        if collecting:
            gc.enable()
