"""`commonplace palace`: what trusty-memory's clients call an agent's memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, line, minute, note, plural
from commonplace.cli.support.session import Session
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.engine import Palace

Name = Annotated[str, typer.Argument(metavar="NAME", help="The palace's name; an agent's name is one.")]

_ABOUT = """Look after palaces: the memories that trusty-memory's tools work in.

\b
Example:
  commonplace palace create my-project --description "What we know about the project"
  commonplace palace identity my-project --file identity.txt
  commonplace palace list
"""


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(listing)
    group.command("create")(create)
    group.command("info")(info)
    group.command("identity")(identity)
    app.add_typer(group, name="palace", rich_help_panel="The data", help=_ABOUT)


def listing(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """List every palace: those that were made, and every agent that has a memory.

    \b
    Example:
      commonplace palace list
      commonplace palace list --json
    """
    with Session(data, agent, existing=True) as run:
        engine = run(run.memory.engine())
        found = [_told(run, engine, palace) for palace in run(engine.palaces.all(_local()))]
    if as_json:
        emit({"palaces": found})
    elif not found:
        note("there are no palaces; `commonplace palace create NAME` makes one")
    else:
        show.table(
            ["palace", "drawers", "description", "made"],
            [[p["name"], p["drawer_count"], p["description"] or "", minute(p["created_at"])] for p in found],
        )


def create(
    name: Name,
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT", help="What it is for.")] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Make a palace; one that is there stays as it is.

    \b
    Example:
      commonplace palace create client-acme --description "Memories for the Acme engagement"
    """
    with Session(data, agent) as run:
        engine = run(run.memory.engine())
        palace = _told(run, engine, run(engine.palaces.create(_local(), name, description)))
    emit(palace) if as_json else line(f"palace {palace['name']}: {plural(palace['drawer_count'], 'drawer')}")


def info(name: Name, as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """Show what a palace is and holds.

    \b
    Example:
      commonplace palace info my-project
    """
    with Session(data, agent, existing=True) as run:
        engine = run(run.memory.engine())
        palace = _told(run, engine, run(engine.palaces.get(_local(), name)))
    if as_json:
        emit(palace)
        return
    for label, value in (
        ("palace", palace["name"]), ("drawers", f"{palace['drawer_count']:,}"), ("made", minute(palace["created_at"])),
        ("description", palace["description"]), ("identity", palace["identity"]),
    ):  # fmt: skip
        if value:
            line(f"{label}: {value}")


def identity(
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="A text file with the identity; - reads stdin.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take the identity back.")] = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
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
    with Session(data, agent, existing=text is None) as run:
        engine = run(run.memory.engine())
        if text is None and not clear:
            palace = run(engine.palaces.get(_local(), name))
        else:
            palace = run(engine.palaces.set_identity(_local(), name, text))
        told = _told(run, engine, palace)
    if as_json:
        emit(told)
    elif told["identity"]:
        line(told["identity"])
    else:
        note(f"{name} has no identity; --file FILE gives it one")


def _told(run: Session, engine: Any, palace: Palace) -> dict[str, Any]:
    return {
        "name": palace.name, "description": palace.description, "identity": palace.identity,
        "drawer_count": run(engine.count(_local(), (palace.name,))), "created_at": palace.created_at,
    }  # fmt: skip


def _local() -> Any:
    """Whoever can read the data directory looks after it."""
    from commonplace.wire.record import Principal

    return Principal()
