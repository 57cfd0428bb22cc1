"""What Ctrl-C leaves, said in one sentence: how far it is, and how to go on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from commonplace.cli.support import output

RUN_AGAIN = "run the same command again"


@contextmanager
def report_interrupt(said: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C within says this on stderr, and then ends the command as everywhere."""
    try:
        yield
    except KeyboardInterrupt:
        if sys.stderr.isatty():  # which shows ^C, and stays on that line
            print(file=sys.stderr)
        output.note(f"stopped{said()}")
        raise
