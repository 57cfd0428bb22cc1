"""`commonplace expire`."""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli import FAILURE, OK
from commonplace.cli.support import options
from commonplace.cli.support.command import Answer, Commands, Session, option
from commonplace.cli.support.options import TYPES
from commonplace.cli.support.output import confirm, plural, store_problems
from commonplace.cli.support.tables import memories_table
from commonplace.wire.errors import ValidationError

_DONE = {"forget": "forgot", "archive": "archived", "demote": "demoted"}

commands = Commands()


@commands.add("expire")
def expire(
    run: Session,
    older_than_days: Annotated[int | None, option("--older-than-days N", "Written more than N days ago.")] = None,
    type: Annotated[str | None, option("--type TYPE", "Of this type.", *TYPES)] = None,
    confidence_below: Annotated[float | None, option("--confidence-below 0–1", "Less sure than this.")] = None,
    no_recall_in_days: Annotated[
        int | None, option("--no-recall-in-days N", "Not recalled in the last N days.")
    ] = None,
    action: Annotated[
        str | None,
        option(
            "--action WHAT", "forget (the default), archive (out of recall) or demote (a quarter of the score).", *_DONE
        ),
    ] = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
) -> Answer:
    """Forget, archive or demote what meets all conditions.

    \b
    Example:
      commonplace expire --type episodic --older-than-days 90 --dry-run
      commonplace expire --no-recall-in-days 180 --confidence-below 0.5 --action archive
    """
    policy: dict[str, Any] = {"older_than_days": older_than_days, "type": type, "confidence_below": confidence_below}
    policy["no_recall_in_days"] = no_recall_in_days
    policy = {name: value for name, value in policy.items() if value is not None}
    if not policy:
        raise ValidationError(
            "say what to expire: --older-than-days, --type, --confidence-below or --no-recall-in-days", field="policy"
        )
    action = action or "forget"
    if dry_run or (run.interactive and not yes):
        found = run(run.memory.preview_expire(policy, action=action))
        if dry_run:
            return Answer.preview(action, found, action=action)
        if found:
            memories_table(found).print()
            confirm(f"{action.capitalize()} {'these' if len(found) > 1 else 'this'} {plural(len(found), 'memory')}?")
    answer = run(run.memory.expire(policy, action=action))
    done = answer.matched_count - (answer.remaining_count or 0)
    failed = store_problems(answer.model_dump())
    said = f"{_DONE[answer.action_taken]} {plural(done, 'memory')}"
    if done < answer.matched_count:
        said += f" of {answer.matched_count:,}"
    return Answer(answer, said, exit_code=FAILURE if failed else OK, notes=failed, nothing=not answer.matched_count)
