"""The `commonplace` command: what it prints, and what its exit code means."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence  # and nothing of typing: it takes a third of `--version`

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    from typing import TextIO

OK, MISTAKE, FAILURE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


def main(args: Sequence[str] | None = None) -> int:
    """Run one command: 0 it worked, 1 the user's mistake, 2 a backend's failure."""
    open_closed_streams()
    given = [*(sys.argv[1:] if args is None else args)]  # once its module is loaded, `list` in here is that command
    if given in (["--version"], ["-V"]):
        from commonplace.__about__ import __version__

        print(f"commonplace {__version__}")
        return OK
    if given[:1] == ["mcp"]:
        from commonplace.cli.support import mcp_arguments

        arguments = mcp_arguments.parse(given[1:])
        if arguments is not None:  # from an MCP client, which waits: nothing to explain, so no command tree
            return guard(lambda: mcp_arguments.start(arguments), given, "commonplace")

    def work() -> object:
        from commonplace.cli.app import command

        return command(given).main(given, prog_name="commonplace", standalone_mode=False)

    return run_command(work, given, "commonplace")


def open_closed_streams() -> None:
    """A standard stream that was closed (`2>&-`) is None in Python; nothing is read from it and nothing written there.

    In this order, so that each takes its own descriptor: a database would be opened on 1 or 2 otherwise."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open as long as the process


def run_command(work: Callable[[], object], args: list[str], program: str) -> int:
    collecting = gc.isenabled()
    gc.disable()  # a command is over before a collection pays; imports alone would run dozens
    try:
        return guard(work, args, program)
    finally:
        if collecting:
            gc.enable()


def guard(work: Callable[[], object], args: list[str], program: str) -> int:
    """The exit code of what a program does; what goes wrong is told to the user."""
    try:
        code = work()
        return code if isinstance(code, int) else OK
    except SystemExit as stop:  # how completion scripts, and a pipe that closed early, end
        return stop.code if isinstance(stop.code, int) else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from commonplace.cli.support import errors

        options = args[: args.index("--")] if "--" in args else args
        as_json = "--json" in options
        try:
            code = errors.report(error, as_json=as_json, program=program, args=options)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            return leave_closed_pipe(sys.stdout if as_json else sys.stderr)


def leave_closed_pipe(stream: TextIO) -> int:
    """The exit code where nobody reads any more. Python flushes the streams once more at exit: that must have somewhere
    to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return PIPE_CLOSED
