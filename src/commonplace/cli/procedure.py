"""Run procedures: memories that are state machines.

\b
Example:
  commonplace procedure show 1d2e3f
  commonplace procedure fire 1d2e3f chosen --fact within_budget
  commonplace procedure draw 1d2e3f -o booking.svg
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from commonplace.cli.support import options
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, store_problems, waiting
from commonplace.wire.errors import ValidationError

ExpectedVersion = Annotated[int | None, option("--expected-version N", "Refuse if it is no longer this version.")]

commands = Commands(__doc__)


@commands.add("show")
def show(run: Session, id: options.MemoryId) -> Answer:
    """Show where a procedure stands, and what can be fired from there.

    \b
    Example:
      commonplace procedure show 1d2e3f
    """
    found = run(run.memory.procedure_show(run.id(id)))
    fields = {"procedure": found["name"], "state": found["state"], "version": found["version"]}
    return Answer(found, fields | {"possible": ", ".join(map(_move, found["possible"])) or "nothing"})


@commands.add("fire")
def fire(
    run: Session,
    id: options.MemoryId,
    trigger: Annotated[str, argument("TRIGGER", "The trigger.")],
    fact: Annotated[
        list[str] | None, option("--fact NAME[=false]", "That a guard's fact holds, or does not; repeat it.")
    ] = None,
    expected_version: ExpectedVersion = None,
    approval: options.Approval = False,
    reasoning: options.Reasoning = None,
) -> Answer:
    """Move a procedure by a trigger; the state before stays in its history.

    \b
    Example:
      commonplace procedure fire 1d2e3f found
      commonplace procedure fire 1d2e3f chosen --fact within_budget --fact is_late=false
    """
    facts = dict(_fact(text) for text in fact or ())
    moved = run(
        run.memory.procedure_fire(
            run.id(id),
            trigger,
            facts,
            expected_version=expected_version,
            approval_required=approval,
            reasoning=reasoning,
        )
    )
    return _moved(run, moved)


@commands.add("reset")
def reset(
    run: Session,
    id: options.MemoryId,
    expected_version: ExpectedVersion = None,
    approval: options.Approval = False,
    reasoning: options.Reasoning = None,
) -> Answer:
    """Put a procedure back to where it starts.

    \b
    Example:
      commonplace procedure reset 1d2e3f
    """
    moved = run(
        run.memory.procedure_reset(
            run.id(id), expected_version=expected_version, approval_required=approval, reasoning=reasoning
        )
    )
    return _moved(run, moved)


@commands.add("draw")
def draw(
    run: Session,
    id: options.MemoryId,
    format: Annotated[str, option("--format WHAT", "svg (the default) or mermaid.", "svg", "mermaid")] = "svg",
    output: Annotated[Path | None, option("--output -o FILE", "Where to; stdout by default.")] = None,
) -> Answer:
    """Draw a procedure as SVG or as a Mermaid state diagram.

    \b
    Example:
      commonplace procedure draw 1d2e3f --format mermaid
      commonplace procedure draw 1d2e3f -o booking.svg
    """
    drawn = run(run.memory.procedure_draw(run.id(id), format=format))
    if output is None:
        return Answer(drawn, drawn["drawing"].rstrip())
    try:
        output.write_text(drawn["drawing"], "utf-8")
    except OSError as error:
        raise ValidationError(f"{output} cannot be written: {error.strerror or error}", field="output") from error
    return Answer(drawn, f"drew {drawn['id']} into {output}")


def _fact(text: str) -> tuple[str, bool]:
    name, _, value = text.partition("=")
    if not name or value not in ("", "true", "false"):
        raise ValidationError(f"--fact is NAME, NAME=true or NAME=false, not {text!r:.80}", field="facts")
    return name, value != "false"


def _move(move: Document) -> str:
    guards = [*move.get("conditions", ()), *(f"not {name}" for name in move.get("unless", ()))]
    return f"{move['trigger']} → {move['dest']}" + (f" [{', '.join(guards)}]" if guards else "")


def _moved(run: Session, moved: Document) -> Answer:
    if moved.get("pending_approval"):
        return Answer(moved, waiting(moved["review_id"], moved.get("approval_url")), run.warnings)
    told = [*run.warnings, *store_problems(moved)]
    return Answer(moved, f"{moved['name']} is {moved['state']} (version {moved['version']})", told)
