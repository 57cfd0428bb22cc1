"""Look after palaces: the memories that trusty-memory's tools work in.

\b
Example:
  commonplace palace create my-project --description "What we know about the project"
  commonplace palace identity my-project --file identity.txt
  commonplace palace list
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.cli.support import values
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, minute, moment, plural
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.engine import Palace

Name = Annotated[str, argument("NAME", "The palace's name; an agent's name is one.")]

_UNUSED = "a palace has a name of its own"

commands = Commands(__doc__)


@commands.add("list", unused=_UNUSED)
def list_palaces(run: Session) -> Answer:
    """List every palace: those that were made, and every agent that has a memory.

    \b
    Example:
      commonplace palace list
      commonplace palace list --json
    """
    found = [_document(run, palace) for palace in run(run.engine.palaces.all(OPERATOR))]

    def row(palace: Document, made: str) -> list[Any]:
        return [palace["name"], palace["drawer_count"], palace["description"] or "", made]

    table = Table(
        ["palace", "drawers", "description", "made"],
        [row(palace, minute(palace["created_at"])) for palace in found],
        [row(palace, moment(palace["created_at"])) for palace in found],
        empty="there are no palaces; `commonplace palace create NAME` makes one",
    )
    return Answer({"palaces": found}, table)


@commands.add("create", existing=False, unused=_UNUSED)
def create(
    run: Session, name: Name, description: Annotated[str | None, option("--description TEXT", "What it is for.")] = None
) -> Answer:
    """Make a palace; one that is there stays as it is.

    \b
    Example:
      commonplace palace create client-acme --description "Memories for the Acme engagement"
    """
    palace = _document(run, run(run.engine.palaces.create(OPERATOR, name, description)))
    return Answer(palace, f"palace {palace['name']}: {plural(palace['drawer_count'], 'drawer')}")


@commands.add("info", unused=_UNUSED)
def info(run: Session, name: Name) -> Answer:
    """Show what a palace is and holds.

    \b
    Example:
      commonplace palace info my-project
    """
    palace = _document(run, run(run.engine.palaces.get(OPERATOR, name)))
    fields = {"palace": palace["name"], "drawers": f"{palace['drawer_count']:,}", "made": moment(palace["created_at"])}
    fields |= {label: palace[label] for label in ("description", "identity")}
    return Answer(palace, "\n".join(f"{label}: {value}" for label, value in fields.items() if value))


@commands.add("identity", unused=_UNUSED)
def identity(
    run: Session,
    name: Name,
    file: Annotated[Path | None, option("--file FILE", "A text file with the identity; - reads stdin.")] = None,
    clear: Annotated[bool, option("--clear", "Take the identity back.")] = False,
) -> Answer:
    """Say who a palace is, in the words that every recall in it begins with; or show them.

    \b
    Example:
      commonplace palace identity my-project --file identity.txt
      commonplace palace identity my-project
    """
    if file is not None and clear:
        raise ValidationError("give --file or --clear, not both")
    text = None if file is None else values.text_file(file, "--file")
    if text is not None and not text.strip():
        raise ValidationError(f"{file} holds nothing; --clear takes an identity back", field="file")
    run.existing = text is None
    palaces = run.engine.palaces
    if text is not None or clear:
        palace = run(palaces.set_identity(OPERATOR, name, text))
    else:
        palace = run(palaces.get(OPERATOR, name))
    notes = [] if palace.identity else [f"{name} has no identity; --file FILE gives it one"]
    return Answer(_document(run, palace), palace.identity or None, notes=notes)


def _document(run: Session, palace: Palace) -> Document:
    drawers = run(run.engine.count(OPERATOR, (palace.name,)))
    known = {"name": palace.name, "description": palace.description, "identity": palace.identity}
    return {**known, "drawer_count": drawers, "created_at": palace.created_at}
