"""`commonplace compact`. Short, as one command is one file."""

from __future__ import annotations

from commonplace.cli.support.command import WHOLE_STORE, Answer, Commands, Session
from commonplace.cli.support.output import plural, size
from commonplace.cli.support.progress import ProgressBar

commands = Commands()


@commands.add("compact", unused=WHOLE_STORE)
def compact(run: Session) -> Answer:
    """Give back disk space; leave no byte of what was erased.

    \b
    Example:
      commonplace compact
    """
    with ProgressBar("compacting") as progress:
        done = run(run.memory.compact(progress=progress))
    said = f"{size(done['before_bytes'])} → {size(done['after_bytes'])}"
    if done.get("erased_purged"):
        said += f"\ntook erased content out of {plural(done['erased_purged'], 'index')}"
    return Answer(done, said)
