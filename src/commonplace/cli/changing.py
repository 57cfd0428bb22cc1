"""What takes memories away: forget, merge, expire. Each can be tried first with --dry-run."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, line, note, plural
from commonplace.cli.support.session import Session
from commonplace.wire.errors import NotFound, ValidationError

PANEL = "Forget, merge, expire"


def register(app: typer.Typer) -> None:
    for function in (forget, merge, expire):
        app.command(function.__name__, rich_help_panel=PANEL)(function)


def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="IDS", help="The ids of what to forget.")] = None,
    filter: options.Filter = None,
    where: options.Where = None,
    user: options.User = None,
    hard: Annotated[
        bool, typer.Option("--hard", help="Erase: content, versions, vectors and audit payloads are gone for good.")
    ] = False,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the audit log.")] = None,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="With --hard: erase what it was merged into, too.")
    ] = False,
    approval: options.Approval = False,
    dry_run: options.DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
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
    interactive = not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    if asks and hard and conditions and not interactive:
        raise ValidationError(
            "erasing by a condition cannot be undone: look with --dry-run first, then add --yes", field="filter"
        )
    with Session(data, agent, existing=True) as run:
        chosen = [run.id(ref) for ref in ids or ()] or None
        which: dict[str, Any] = {"filter": conditions, "user_id": user, "hard_delete": hard or None}
        which |= {"cascade": cascade or None, "reason": reason, "approval_required": approval or None}
        if dry_run or (asks and interactive):
            found = run(run.memory.preview_forget(chosen, **which))
            if dry_run:
                _would(as_json, {"dry_run": True, "memories": found}, found, "erase" if hard else "forget")
                return
            if found and (hard or len(found) > 1):
                show.memories(found)
                _confirm(f"{'Erase' if hard else 'Forget'} {'these' if len(found) > 1 else 'this'} "
                         f"{plural(len(found), 'memory')}{' for good' if hard else ''}?")  # fmt: skip
        answer = run(run.memory.forget(chosen, **which))
        if chosen and not answer.forgotten_ids and not answer.pending_approval:
            raise NotFound(
                f"no memory {', '.join(chosen)} for agent {run.memory.agent_id}; "
                f"`commonplace list --agent {run.memory.agent_id}` shows what there is"
            )
    if as_json:
        from commonplace.wire.models import dump

        emit(dump(answer))
        return
    if answer.pending_approval:
        line("waits for approval: commonplace reviews list")
        return
    line(f"{'erased' if hard else 'forgot'} {plural(len(answer.forgotten_ids), 'memory')}")
    missed = [ref for ref in chosen or () if ref not in answer.forgotten_ids]
    show.remarks([f"not found: {', '.join(missed)}" if missed else None])
    if answer.erased is not None:
        show.remarks(
            [f"{id} was merged from what was erased; --cascade erases it, too" for id in answer.erased.descendants]
        )
        show.remarks([f"the backup {path} may still hold it" for path in answer.erased.backups])


def merge(
    canonical: Annotated[str, typer.Argument(metavar="CANONICAL", help="The memory that stays: an id or entity name.")],
    duplicates: Annotated[list[str], typer.Argument(metavar="DUPES", help="The memories that become part of it.")],
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            metavar="HOW",
            help="keep_canonical (the default), merge_content or keep_highest_confidence.",
            autocompletion=options.offering("keep_canonical", "merge_content", "keep_highest_confidence"),
        ),
    ] = None,
    approval: options.Approval = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Make one memory of several that say the same.

    \b
    Example:
      commonplace merge 1d2e3f 9a8b7c --dry-run
      commonplace merge 1d2e3f 9a8b7c 4f5e6d --strategy merge_content
    """
    with Session(data, agent, existing=True) as run:
        first, rest = run.id(canonical), [run.id(ref) for ref in duplicates]
        if dry_run:
            would = run(run.memory.preview_merge(first, rest, strategy=strategy))
            if as_json:
                emit({"dry_run": True, **would})
                return
            line(f"would keep {would['survivor']['id']}, which would say:")
            line(show.body(would["survivor"]))
            for loser in would["losers"]:
                line(f"would take in {loser['id']}  {show.body(loser)}")
            return
        answer = run(run.memory.merge(first, rest, strategy=strategy, approval_required=approval or None))
    if as_json:
        from commonplace.wire.models import dump

        emit(dump(answer))
    elif answer.pending_approval:
        line("waits for approval: commonplace reviews list")
    else:
        line(f"merged {plural(answer.merged_count, 'memory')} into {answer.canonical}")


def expire(
    older_than_days: Annotated[
        int | None, typer.Option("--older-than-days", metavar="N", help="Written more than N days ago.")
    ] = None,
    type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Of this type.", autocompletion=options.offering(*options.TYPES)),
    ] = None,
    confidence_below: Annotated[
        float | None, typer.Option("--confidence-below", metavar="0–1", help="Less sure than this.")
    ] = None,
    no_recall_in_days: Annotated[
        int | None, typer.Option("--no-recall-in-days", metavar="N", help="Not recalled in the last N days.")
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(
            "--action",
            metavar="WHAT",
            help="forget (the default), archive (out of recall) or demote (a quarter of the score).",
            autocompletion=options.offering("forget", "archive", "demote"),
        ),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Forget, archive or demote what meets all conditions.

    \b
    Example:
      commonplace expire --type episodic --older-than-days 90 --dry-run
      commonplace expire --no-recall-in-days 180 --confidence-below 0.5 --action archive
    """
    given = {
        "older_than_days": older_than_days, "type": type, "confidence_below": confidence_below,
        "no_recall_in_days": no_recall_in_days,
    }  # fmt: skip
    policy = {name: value for name, value in given.items() if value is not None}
    if not policy:
        raise ValidationError(
            "say what to expire: --older-than-days, --type, --confidence-below or --no-recall-in-days", field="policy"
        )
    with Session(data, agent, existing=True) as run:
        if dry_run:
            found = run(run.memory.preview_expire(policy, action=action))
            doing = action or "forget"
            _would(as_json, {"dry_run": True, "action": doing, "memories": found}, found, doing)
            return
        answer = run(run.memory.expire(policy, action=action or "forget"))
    if as_json:
        from commonplace.wire.models import dump

        emit(dump(answer))
    else:
        done = {"forget": "forgot", "archive": "archived", "demote": "demoted"}[answer.action_taken]
        line(f"{done} {plural(answer.matched_count, 'memory')}")


def _would(as_json: bool, document: dict[str, Any], found: list[dict[str, Any]], verb: str) -> None:
    if as_json:
        emit(document)
        return
    if found:
        show.memories(found)
    note(f"would {verb} {plural(len(found), 'memory')}; nothing was changed")


def _confirm(question: str) -> None:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        note("nothing was changed")
        raise typer.Exit(1)
