"""`commonplace migrate`: a whole store into another kind of store, or another place."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from commonplace.cli.support import options, output
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, option
from commonplace.cli.support.interruption import RUN_AGAIN, report_interrupt
from commonplace.cli.support.output import plural
from commonplace.cli.support.progress import ProgressBar
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import ValidationError

_WORDS = {
    "memory": "memory", "version": "version", "statement": "statement", "record": "record",
    "ledger entry": "ledger entry",
}  # fmt: skip

commands = Commands()


@commands.add("migrate", existing=False, unused="a migration carries every agent")
def migrate(
    run: Session,
    target: Annotated[str, option("--to URL", "An empty store: a URL, a folder, or a file that is there.")],
    source: Annotated[
        str | None, option("--from URL", "The store that is moved: a URL, its file, or the folder it is in.")
    ] = None,
    set_aside: Annotated[
        bool, option("--set-aside", "Of a migration that cannot go on: set aside what --to has of it, whole.")
    ] = False,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
) -> Answer:
    """Copy a whole store into another that is empty, compare both, and say so.

    \b
    Example:
      commonplace migrate --from ~/old-data --to ~/new-data --dry-run
      commonplace migrate --from ~/old-data --to postgresql://localhost/commonplace
      commonplace migrate --to ~/new-data --set-aside
    """
    if set_aside:
        if source is not None:
            raise ValidationError("--set-aside copies nothing: leave --from out", field="from")
        return _set_aside(run, target, dry_run, yes)
    if source is None:
        raise ValidationError("name the store that is moved with --from", field="from")
    import asyncio

    from commonplace.transfer.migrate import StoreMove
    from commonplace.wire.shown_urls import shown_url

    bar: ProgressBar | None = None
    # The question is asked between two pieces of work: in one the loop would keep the first Ctrl-C from being heard.
    with asyncio.Runner() as runner, report_interrupt(lambda: _stopped(bar)):
        move = StoreMove(source, target)
        try:
            report = runner.run(move.report())
            if dry_run:
                would = f"would copy {_amounts(report.counts)}"
                if report.already_there:
                    would = f"would copy nothing: {_amounts(report.counts)} seem to be there already"
                return Answer(report.document(), lambda: _show(report.fidelity, would))
            if not run.as_json:  # whose one document has it
                _show(report.fidelity, None)
                sys.stdout.flush()  # what is said first is to be read also of a run that is killed
            if not yes and run.interactive and not report.already_there:
                output.confirm(f"copy {_amounts(report.counts)} to {shown_url(move.target_url)}?")
            with ProgressBar("copying") as bar:
                done = runner.run(move.run(OPERATOR, report, bar))
        finally:
            runner.run(move.close())
    on = " (went on where it had stopped)" if done.done and done.done["resumed"] else ""
    said = f"copied {_amounts(done.counts)} to {shown_url(move.target_url)}{on}; both stores hold the same"
    if done.done and done.done["already_there"]:
        said = f"{_amounts(done.counts)} were in {shown_url(move.target_url)} already; both stores hold the same"
    return Answer(done.document(), said, [f"the store in {shown_url(move.source_url)} is as it was"])


def _set_aside(run: Session, given: str, dry_run: bool, yes: bool) -> Answer:
    import asyncio

    from commonplace.transfer.unfinished_target import UnfinishedTarget
    from commonplace.wire.shown_urls import shown_url

    target = UnfinishedTarget(given)
    counts = asyncio.run(target.counts())
    if dry_run:
        said = f"would set aside {_amounts(counts)}; nothing was changed"
        return Answer({"counts": counts, "dry_run": True}, said)
    if not yes and run.interactive:
        output.confirm(f"set aside {_amounts(counts)} of {shown_url(target.url)}?")
    where = target.set_aside()
    said = f"set aside {_amounts(counts)}: all of it is in {where}, and a store can begin in {shown_url(target.url)}"
    hint = "`migrate` with that as --to goes on where it was; delete it once nothing in it is missed"
    return Answer({"counts": counts, "dry_run": False, "set_aside": where}, said, [hint])


def _stopped(bar: ProgressBar | None) -> str:
    """`bar` is None until the copying begins."""
    if bar is None:
        return ": nothing was copied, and the source is as it was"
    so_far = "what was copied is kept, and the source is as it was"
    return f" at about {bar.percent} %: {so_far}; {RUN_AGAIN}, and it goes on where it was"


def _show(rows: list[dict[str, str]], last: str | None) -> None:
    Table(["what", "kept", ""], [[row["what"], row["kept"], row["remark"]] for row in rows]).print()
    if last is not None:
        output.line(last)


def _amounts(counts: dict[str, Any]) -> str:
    return ", ".join(plural(counts.get(kind, 0), word) for kind, word in _WORDS.items())
