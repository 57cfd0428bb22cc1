"""`commonplace forget`. What would be forgotten can be seen first with --dry-run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from commonplace.cli import FAILURE, MISTAKE, OK
from commonplace.cli.support import options, values
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, confirm, label, plural, waiting
from commonplace.cli.support.tables import memories_table
from commonplace.wire.errors import Conflict, Fault, NotFound, ValidationError

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
    cascade: Annotated[
        bool, option("--cascade", "With --hard: erase what it was merged into and what was merged into it, too.")
    ] = False,
    all_agents: Annotated[
        bool, option("--all-agents", "Of every agent you may write to; what --user alone means without --agent.")
    ] = False,
    undo: Annotated[
        bool, option("--undo", "Bring back what was forgotten or archived, and not erased, by its whole id.")
    ] = False,
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
      commonplace forget --user alice --hard --dry-run
      commonplace forget --user alice --hard --reason "asked to be forgotten" --yes
      commonplace forget --undo 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    if undo:
        if not ids or filter or where or user or hard or cascade or all_agents or approval or dry_run:
            raise ValidationError(
                "--undo takes ids, and --reason, alone; `commonplace audit list --operation forget` shows the ids",
                field="ids",
            )
        return _undo(run, ids, reason)
    conditions = values.conditions(filter, where)
    if user is not None and not ids and not conditions:
        # A person is meant, wherever something is kept about them.
        conditions, all_agents = {"user_id": user}, all_agents or run.agent is None
    if not ids and not conditions:
        raise ValidationError(
            "say what to forget: ids (`commonplace list` shows them), --user NAME, --where FIELD=VALUE or --filter "
            "JSON",
            field="ids",
        )
    asks = not (yes or dry_run or approval)
    if asks and hard and conditions and not run.interactive:
        raise ValidationError(
            "erasing by a condition cannot be undone: look with --dry-run first, then add --yes", field="filter"
        )
    chosen = [run.id(ref) for ref in ids or ()] or None
    which: dict[str, Any] = {"filter": conditions, "user_id": user, "hard_delete": hard or None}
    which |= {"cascade": cascade or None, "reason": reason, "approval_required": approval or None}
    which |= {"reasoning": reasoning, "all_agents": all_agents or None}
    if dry_run or (asks and run.interactive):
        found = run(run.memory.preview_forget(chosen, **which))
        covered = _covered(Counter(memory["agent_id"] for memory in found)) if all_agents else ""
        if dry_run:
            preview = Answer.preview("erase" if hard else "forget", found)
            return replace(preview, notes=[covered.strip()] if covered else ())
        if found and (hard or len(found) > 1):
            memories_table(found).print()
            these = f"{'these' if len(found) > 1 else 'this'} {plural(len(found), 'memory')}{covered}"
            confirm(f"Erase {these} for good?" if hard else f"Forget {these}?")
    answer = run(run.memory.forget(chosen, **which))
    if answer.pending_approval:
        return Answer(answer, waiting(answer.review_id, answer.approval_url))
    if chosen and not answer.forgotten_ids:
        whose = run.memory.agent_id
        raise NotFound(
            f"no memory {', '.join(chosen)} for agent {whose}; `commonplace list --agent {whose}` shows what there is"
        )
    missed = [ref for ref in chosen or () if ref not in answer.forgotten_ids]
    if len(answer.forgotten_ids) >= len(set(chosen or ())):
        missed = []  # an alias went under the id that it stands for
    remarks = [f"not found: {', '.join(missed)}"] if missed and not answer.remaining_ids else []
    if answer.erased is not None:
        remarks += remains(answer.erased.model_dump())
    done = f"{'erased' if hard else 'forgot'} {plural(len(answer.forgotten_ids), 'memory')}"
    done += _covered({each.agent_id: each.count for each in answer.agents or ()})
    failed = [f"{outcome.store}: {outcome.error}" for outcome in answer.stores if outcome.error is not None]
    if answer.remaining_ids:
        done += f"; {plural(len(answer.remaining_ids), 'memory')} of what was meant could not be"
    nothing = not (answer.forgotten_ids or all_agents)
    return Answer(answer, done, remarks, FAILURE if failed else MISTAKE if missed else OK, failed, nothing)


def _undo(run: Session, ids: list[str], reason: str | None) -> Answer:
    """Each its own outcome, as in forgetting."""
    restored: list[str] = []
    faults: list[Fault] = []
    for id in dict.fromkeys(ids):
        try:
            restored.append(run(run.engine.undelete(OPERATOR, run.memory.agent_id, id, reason=reason)).id)
        except (NotFound, Conflict) as fault:
            faults.append(fault)
    if not restored:
        raise faults[0]
    done = f"brought back {plural(len(restored), 'memory')}"
    return Answer({"restored_ids": restored}, done, [f.message for f in faults], MISTAKE if faults else OK)


def remains(erased: Document) -> list[str]:
    """Where else the text of what was erased may be, a sentence each."""
    merged = [f"{id} was merged from what was erased; --cascade erases it, too" for id in erased["descendants"]]
    merged += [f"{id} was merged into what was erased; --cascade erases it, too" for id in erased.get("sources") or ()]
    return merged + [f"the backup {path} may still hold it" for path in erased["backups"]]


def _covered(counts: Mapping[str, int]) -> str:
    """Of which agents, those of whom there was something."""
    having = [f"{label(agent)} ({count:,})" for agent, count in sorted(counts.items()) if count]
    return f" of {plural(len(having), 'agent')}: {', '.join(having)}" if having else ""
