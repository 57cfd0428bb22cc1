"""`commonplace forget`. What would be forgotten can be seen first with --dry-run."""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli.support import options, values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import confirm, memories_table, plural
from commonplace.wire.errors import NotFound, ValidationError

commands = Commands()


@commands.add("forget")
def forget(
    run: Session,
    ids: Annotated[list[str] | None, argument("IDS", "The ids of what to forget.")] = None,
    filter: options.Filter = None,
    where: options.Where = None,
    user: options.User = None,
    hard: Annotated[
        bool, option("--hard", "Erase: content, versions, vectors and audit payloads are gone for good.")
    ] = False,
    reason: Annotated[str | None, option("--reason TEXT", "Why, for the audit log.")] = None,
    cascade: Annotated[bool, option("--cascade", "With --hard: erase what it was merged into, too.")] = False,
    approval: options.Approval = False,
    reasoning: options.Reasoning = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
) -> Answer:
    """Forget memories by id or condition; --hard erases them.

    \b
    Example:
      commonplace forget 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
      commonplace forget --where project=atlas --dry-run
      commonplace forget --where user_id=alice --hard --reason "asked to be forgotten" --yes
    """
    conditions = values.conditions(filter, where)
    if not ids and not conditions:
        raise ValidationError(
            "say what to forget: ids (`commonplace list` shows them), --where FIELD=VALUE or --filter JSON", field="ids"
        )
    asks = not (yes or dry_run or approval)
    if asks and hard and conditions and not run.interactive:
        raise ValidationError(
            "erasing by a condition cannot be undone: look with --dry-run first, then add --yes", field="filter"
        )
    chosen = [run.id(ref) for ref in ids or ()] or None
    which: dict[str, Any] = {"filter": conditions, "user_id": user, "hard_delete": hard or None}
    which |= {"cascade": cascade or None, "reason": reason, "approval_required": approval or None}
    which["reasoning"] = reasoning
    if dry_run or (asks and run.interactive):
        found = run(run.memory.preview_forget(chosen, **which))
        if dry_run:
            return Answer.preview("erase" if hard else "forget", found)
        if found and (hard or len(found) > 1):
            memories_table(found).print()
            these = f"{'these' if len(found) > 1 else 'this'} {plural(len(found), 'memory')}"
            confirm(f"Erase {these} for good?" if hard else f"Forget {these}?")
    answer = run(run.memory.forget(chosen, **which))
    if answer.pending_approval:
        return Answer(answer, "waits for approval: commonplace reviews list")
    if chosen and not answer.forgotten_ids:
        whose = run.memory.agent_id
        raise NotFound(
            f"no memory {', '.join(chosen)} for agent {whose}; `commonplace list --agent {whose}` shows what there is"
        )
    missed = [ref for ref in chosen or () if ref not in answer.forgotten_ids]
    remarks = [f"not found: {', '.join(missed)}"] if missed else []
    if answer.erased is not None:
        merged = answer.erased.descendants
        remarks += [f"{id} was merged from what was erased; --cascade erases it, too" for id in merged]
        remarks += [f"the backup {path} may still hold it" for path in answer.erased.backups]
    return Answer(answer, f"{'erased' if hard else 'forgot'} {plural(len(answer.forgotten_ids), 'memory')}", remarks)
