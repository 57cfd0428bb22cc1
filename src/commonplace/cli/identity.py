"""`commonplace identity`: the key that this installation signs with."""

from __future__ import annotations

from typing import Any

import typer

from commonplace.cli import options
from commonplace.cli.plain import emit, line, note

_ABOUT = """Show the key that answers and attestations are signed with; `rotate` replaces it.

Others bind it with `commonplace trust add NAME --level 2 --key …`.

\b
Example:
  commonplace identity
  commonplace identity --json
  commonplace identity rotate
"""


def register(app: typer.Typer) -> None:
    group = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
    group.callback()(show)
    group.command("rotate")(rotate)
    app.add_typer(group, name="identity", rich_help_panel="Other agents", help=_ABOUT)


def show(
    context: typer.Context, as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None
) -> None:
    if context.invoked_subcommand is None:
        _tell(_identity(data, agent).to_wire(), as_json)


def rotate(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """Sign with a new key from now on; what the old ones signed can still be verified.

    \b
    Example:
      commonplace identity rotate
    """
    identity = _identity(data, agent)
    identity.rotate()
    _tell(identity.to_wire(), as_json)


def _identity(data: Any, agent: str | None) -> Any:
    from commonplace import config
    from commonplace.engine.identity import Identity

    return Identity(config.load(data=data, agent=agent).data)


def _tell(document: dict[str, Any], as_json: bool) -> None:
    if as_json:
        emit(document)
        return
    line(document["public_key"])
    note(f"fingerprint {document['fingerprint']}")
    for old in document["retired"]:
        note(f"retired {old['fingerprint']} {old['public_key']}")
