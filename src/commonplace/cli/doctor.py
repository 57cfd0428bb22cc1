"""`commonplace doctor`. Short, as one command is one file."""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli import FAILURE, OK
from commonplace.cli.support.command import WHOLE_STORE, Answer, Commands, Session, option
from commonplace.cli.support.output import plural
from commonplace.cli.support.progress import ProgressBar
from commonplace.cli.support.tables import Table

commands = Commands()


@commands.add("doctor", unused=WHOLE_STORE)
def doctor(
    run: Session,
    repair: Annotated[bool, option("--repair/--no-repair", "Rebuild what can be rebuilt, or only look.")] = True,
) -> Answer:
    """Check everything and repair what can be repaired.

    \b
    Example:
      commonplace doctor
      commonplace doctor --no-repair --json
    """
    with ProgressBar("checking") as progress:
        checks = [dict(check) for check in run(run.memory.doctor(repair=repair, progress=progress))]
    wrong = [check for check in checks if not check["ok"] and not check["repaired"]]
    summary = f"{plural(len(wrong), 'check')} failed" if wrong else "everything is in order"
    rows = [[check["check"], _verdict(check), check["detail"]] for check in checks]
    table = Table(["check", "result", "detail"], rows, more=summary)
    return Answer({"ok": not wrong, "checks": checks}, table, exit_code=FAILURE if wrong else OK)


def _verdict(check: dict[str, Any]) -> str:
    return "repaired" if check["repaired"] else "ok" if check["ok"] else "WRONG"
