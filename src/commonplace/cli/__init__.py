"""The `commonplace` command: what it prints, and what its exit code means."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

OK, MISTAKE, FAILURE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


def main(args: Sequence[str] | None = None) -> int:
    """Run one command: 0 it worked, 1 the user's mistake, 2 a backend's failure."""
    given = list(sys.argv[1:] if args is None else args)
    if given in (["--version"], ["-V"]):
        from commonplace.__about__ import __version__

        print(f"commonplace {__version__}")
        return OK
    if given[:1] == ["mcp"] and (code := _spawned(given[1:])) is not None:
        return code
    collecting = gc.isenabled()
    gc.disable()  # a command is over before a collection pays; imports alone would run dozens
    try:
        return _run(given)
    finally:
        if collecting:
            gc.enable()


def _spawned(args: list[str]) -> int | None:
    """Started by an MCP client, which waits: without the command tree, unless there is something to explain."""
    from commonplace.cli.support import mcp_arguments

    told = mcp_arguments.read(args)
    if told is None:
        return None
    try:
        return mcp_arguments.start(told)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from commonplace.cli.support import errors

        return errors.report(error, as_json=False)


def _run(args: list[str]) -> int:
    from commonplace.cli.support import errors

    try:
        from commonplace.cli.app import command

        code = command(args).main(args, prog_name="commonplace", standalone_mode=False)
        return code if isinstance(code, int) else OK
    except SystemExit as stop:  # how completion scripts, and a pipe that closed early, end
        return stop.code if isinstance(stop.code, int) else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return errors.report(error, as_json="--json" in _before_dashes(args))


def _before_dashes(args: list[str]) -> list[str]:
    return args[: args.index("--")] if "--" in args else args
