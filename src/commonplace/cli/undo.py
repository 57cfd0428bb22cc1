"""`commonplace undo`. Bring back what was forgotten, archived, demoted or merged; what was erased is gone."""

from __future__ import annotations

from typing import Annotated

from commonplace.cli import MISTAKE, OK
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import plural
from commonplace.wire.errors import ValidationError

#: An id says whose it is.
ONLY_OF = "Only memories of this agent; by default of every agent."

commands = Commands()


@commands.add("undo", agent=ONLY_OF)
def undo(
    run: Session,
    ids: Annotated[list[str] | None, argument("IDS", "Whole ids, as the audit or a run names them.")] = None,
    run_id: Annotated[
        str | None, option("--run ID", "Everything that a run of a job did; `lifecycle history` shows runs.")
    ] = None,
    reason: Annotated[str | None, option("--reason TEXT", "Why, for the audit log.")] = None,
) -> Answer:
    """Bring back memories that were forgotten, archived, demoted, merged or promoted.

    \b
    Example:
      commonplace undo 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
      commonplace undo --run 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reason "not what I meant"
    """
    if bool(ids) == (run_id is not None):
        raise ValidationError(
            "say what to take back: ids (`commonplace audit list --operation forget` shows them) or --run ID "
            "(`commonplace lifecycle history`)",
            field="ids",
        )
    if run_id is not None and run.agent is not None:
        raise ValidationError("a run is taken back whole, for every agent; leave --agent out", field="agent")
    done = run(run.memory.undo(ids or None, run_id=run_id, reason=reason, agent_id=run.agent))
    said = f"brought back {plural(len(done['restored_ids']), 'memory')}"
    if kept := len(done["unchanged_ids"]):
        said += f"; {plural(kept, 'memory')} needed nothing"
    errors = [error["message"] for error in done.get("errors", ())]
    return Answer(done, said, errors, MISTAKE if errors else OK)
