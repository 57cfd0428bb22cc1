"""`commonplace merge`."""

from __future__ import annotations

from typing import Annotated

from commonplace.cli.support import options
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, body, line, plural, store_problems, waiting

_STRATEGIES = ("keep_canonical", "merge_content", "keep_highest_confidence")

commands = Commands()


@commands.add("merge")
def merge(
    run: Session,
    canonical: Annotated[str, argument("CANONICAL", "The memory that stays: an id or entity name.")],
    duplicates: Annotated[list[str], argument("DUPES", "The memories that become part of it.")],
    strategy: Annotated[
        str | None,
        option(
            "--strategy HOW", "keep_canonical (the default), merge_content or keep_highest_confidence.", *_STRATEGIES
        ),
    ] = None,
    approval: options.Approval = False,
    reasoning: options.Reasoning = None,
    dry_run: options.DryRun = False,
) -> Answer:
    """Make one memory of several that say the same.

    \b
    Example:
      commonplace merge 1d2e3f 9a8b7c --dry-run
      commonplace merge 1d2e3f 9a8b7c 4f5e6d --strategy merge_content
    """
    first, rest = run.id(canonical), [run.id(ref) for ref in duplicates]
    if dry_run:
        preview = run(run.memory.preview_merge(first, rest, strategy=strategy))
        return Answer({"dry_run": True, **preview}, lambda: _show_preview(preview))
    answer = run(run.memory.merge(first, rest, strategy=strategy, approval_required=approval, reasoning=reasoning))
    if answer.pending_approval:
        return Answer(answer, waiting(answer.review_id, answer.approval_url))
    merged = f"merged {plural(answer.merged_count, 'memory')} into {answer.canonical}"
    return Answer(answer, merged, store_problems(answer.model_dump()))


def _show_preview(preview: Document) -> None:
    line(f"would keep {preview['survivor']['id']}, which would say:")
    line(body(preview["survivor"]))
    for loser in preview["losers"]:
        line(f"would take in {loser['id']}  {body(loser)}")
