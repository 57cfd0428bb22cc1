"""`commonplace recover`: what a bad source wrote, and what was made from it, taken back."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from commonplace.cli.support import options, values
from commonplace.cli.support.command import Answer, Commands, Session, option
from commonplace.cli.support.output import Document, confirm, plural
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import ValidationError

commands = Commands()

_ACTIONS = {
    "quarantine": "hide it everywhere: it never was good",
    "revert": "as it was before",
    "rank": "no longer demoted",
    "never_stated": "as if it had never been stated",
    "reopen": "stated again",
}


@commands.add("recover", agent="Only memories of this agent; by default of every agent.")
def recover(
    run: Session,
    source: Annotated[str | None, option("--source SOURCE", "What memories say they come from.")] = None,
    principal: Annotated[str | None, option("--principal NAME", "Who wrote, as `audit list` names them.")] = None,
    since: Annotated[
        str | None, option("--since TIME", "From then on: an ISO time (UTC), epoch ms, or an age.")
    ] = None,
    undo: Annotated[str | None, option("--undo RECOVERY", "Undo a recovery, by the id it was given.")] = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
) -> Answer:
    """Take back what came from a bad source, and everything that was made from it.

    What was good before is that version again; what never was is hidden everywhere and kept. Merges, promotions and
    statements that it took part in are undone, too. It is one entry of the ledger, and --undo undoes all of it.

    \b
    Example:
      commonplace recover --source https://evil.example --since 7d --dry-run
      commonplace recover --principal mallory --yes
    """
    if undo is not None:
        if source or principal or since or run.agent:
            raise ValidationError("--undo takes the id of a recovery, alone", field="undo")
        done = run(run.memory.undo(recovery_id=undo))
        left = [each["message"] for each in done.get("errors", ())]
        said = f"the recovery is undone; as before it: {_counted(len(done['restored_ids']))}"
        return Answer(done, said, notes=left)
    if source is None and principal is None and since is None:
        raise ValidationError("say what to take back: --source, --principal or --since, at least one", field="source")
    take_back = partial(
        run.memory.recover, source=source, principal=principal, since=values.past(since, "--since"), agent_id=run.agent
    )
    seen = run(take_back(dry_run=True))
    if dry_run or not seen["affected"]:
        return Answer({"dry_run": dry_run, **seen}, _table(seen, "nothing was changed"), notes=_lost(seen))
    if not yes:
        if not run.interactive:
            raise ValidationError(
                f"{_counted(len(seen['affected']))} would be taken back: look with --dry-run first, then add --yes",
                field="yes",
            )
        _table(seen, "").print()
        confirm(f"Take back {_counted(len(seen['affected']))}?")
    done = run(take_back())
    taken = f"taken back; `commonplace recover --undo {done['recovery_id']}` undoes that"
    return Answer(done, _table(done, taken), notes=_lost(done))


def _counted(count: int) -> str:
    return "1 memory or statement" if count == 1 else f"{count:,} memories and statements"


def _table(found: Document, more: str) -> Table:
    rows = [
        [
            each["id"],
            each["agent_id"],
            each["kind"],
            _ACTIONS[each["action"]],
            "itself" if each["direct"] else "derived",
        ]
        for each in found["affected"]
    ]
    empty = "nothing came from there, or it is taken back already"
    return Table(["id", "agent", "what", "becomes", "why"], rows, rows, empty=empty, more=more or None)


def _lost(found: Document) -> list[str]:
    erased = found["erased"]
    return [f"{plural(erased, 'memory')} they erased for good; a backup may have them"] if erased else []
