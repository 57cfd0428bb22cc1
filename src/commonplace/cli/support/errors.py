"""What a failure looks like: one sentence that says what to do, or the wire's error object with --json."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from commonplace.cli import FAILURE, INTERRUPTED, MISTAKE, OK
from commonplace.cli.support.output import emit, styled, visible
from commonplace.wire.errors import Fault
from commonplace.wire.words import shorten

#: Faults that are not the caller's: another try, or another machine, may succeed.
_BACKEND = frozenset({"unavailable", "rate_limited"})
#: Options that are not named like the field that they fill.
_OPTIONS = {"max_results": "--max", "min_trust_level": "--trust", "expires_at": "--expires"}
_MAX_OPTION_CHARS = 40
_MAX_MESSAGE_CHARS = 300
_BUG = (
    "this is a bug in Commonplace; to report it, run the command again with COMMONPLACE_DEBUG=1 and send "
    "what it prints together with the output of `commonplace --version`"
)


def exit_code(fault_code: str) -> int:
    return FAILURE if fault_code in _BACKEND else MISTAKE


# What `Path.expanduser` and platformdirs say, in no class of its own.
_NO_HOME = re.compile("could not determine (the )?home directory", re.IGNORECASE)


def report(error: Exception, *, as_json: bool, program: str = "commonplace", args: Sequence[str] = ()) -> int:
    """Tell the user, and give the exit code."""
    if type(error).__name__ == "Abort":  # typer's word for Ctrl-C and for an input that ended
        return INTERRUPTED
    if type(error).__name__ == "NoArgsIsHelpError":  # a command group alone is a question, not a mistake
        print(getattr(error, "message", "") or error)
        return OK
    if os.environ.get("COMMONPLACE_DEBUG"):
        traceback.print_exception(error)
    code, message, details = describe(error)
    if not as_json:
        message = _by_option(message, str(details.get("field", "")), args)
        print(f"{styled(f'{program}:', 'error', sys.stderr)} {visible(message)}", file=sys.stderr)
    elif program == "amp":  # the envelope of its protocol, which has no details
        emit({"success": False, "error": {"code": code, "message": message}})
    else:
        emit({"error": {"code": code, "message": message} | ({"details": details} if details else {})})
    return exit_code(code)


def _by_option(message: str, field: str, args: Sequence[str]) -> str:
    """A sentence about a field of the wire as one about the option that it was given by."""
    name = re.sub(r"\[\d+\]", "", field).rsplit(".", 1)[-1]
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    given = any(each == option or each.startswith(f"{option}=") for each in args)
    return option + message.removeprefix(field) if field and given and message.startswith(field) else message


def describe(error: Exception) -> tuple[str, str, dict[str, Any]]:
    """Code, sentence and details of anything that can go wrong."""
    if isinstance(error, Fault):
        return error.code, error.message, error.details
    usage = getattr(error, "format_message", None)
    if usage is not None:
        return "validation_error", _usage_sentence(error, usage()), {}
    if isinstance(error, UnicodeEncodeError):  # bytes of the command line that were no text
        return "validation_error", "an argument is not UTF-8 text", {}
    if isinstance(error, RuntimeError) and _NO_HOME.match(str(error)):
        said = "there is no such home folder; name a path without ~, or set HOME where this user has none"
        return "validation_error", said, {}
    if isinstance(error, OSError) and error.strerror:
        about = f"{error.filename!s:.300}: " if error.filename else ""
        if error.errno == errno.ENAMETOOLONG:
            return "validation_error", f"{about}{error.strerror}", {}
        return "unavailable", f"{about}{error.strerror}", {"exception": type(error).__name__}
    kind = type(error).__name__
    first = (str(error).splitlines() or [""])[0]
    return "unavailable", f"unexpected {kind}{f' ({first})' if first else ''}; {_BUG}", {"exception": kind}


def _usage_sentence(error: Exception, message: str) -> str:
    """What is wrong with the arguments. Long ones are not repeated: a text taken for an option may hold a secret."""
    option = str(getattr(error, "option_name", "") or "")
    if len(option) > _MAX_OPTION_CHARS or option.split() not in ([], [option]):
        message = "A text that begins with a dash reads as an option; put `--` before it, or send it on stdin"
    else:
        message = shorten(message, _MAX_MESSAGE_CHARS)
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "commonplace"
    message = message.strip().rstrip(".")
    return f"{message}{'' if message.endswith('?') else '.'} `{where} --help` shows how it is used."
