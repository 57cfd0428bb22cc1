"""`commonplace backup`. Short, as one command is one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from commonplace.cli.support.command import WHOLE_STORE, Answer, Commands, Session, argument
from commonplace.cli.support.output import size
from commonplace.cli.support.progress import ProgressBar

commands = Commands()


@commands.add("backup", unused=WHOLE_STORE)
def backup(run: Session, file: Annotated[Path, argument("FILE", "Where the copy goes.")]) -> Answer:
    """Copy everything into one file while others go on.

    \b
    Example:
      commonplace backup ~/commonplace-2026-03-01.db
    """
    with ProgressBar("copying") as progress:
        made = run(run.memory.backup(file.expanduser(), progress=progress))
    return Answer(made, f"backed up to {made['path']} ({size(made['bytes'])})")
