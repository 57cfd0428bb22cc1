"""`commonplace get`. Short, as one command is one file."""

from __future__ import annotations

from commonplace.cli.support import options, output, values
from commonplace.cli.support.command import Answer, Commands, Session

commands = Commands()


@commands.add("get")
def get(run: Session, id: options.MemoryId, as_of: options.AsOf = None) -> Answer:
    """Show one memory in full.

    \b
    Example:
      commonplace get 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
      commonplace get 1d2e3f --as-of 2h
    """
    at = values.past(as_of, "--as-of")
    found = run(run.memory.get(run.id(id), as_of=at))
    return Answer(found, lambda: output.print_record(found))
