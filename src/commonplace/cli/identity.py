"""`commonplace identity`: the key that this installation signs with."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from commonplace.cli.support import options
from commonplace.cli.support.output import emit, line, note
from commonplace.wire.errors import ValidationError

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


def rotate(
    dry_run: options.DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Sign with a new key from now on; what the old ones signed can still be verified.

    Whoever has bound the old key with `commonplace trust add` refuses our answers, requests and vouches until they
    bind the new one, and nobody tells them but you.

    \b
    Example:
      commonplace identity rotate --dry-run
      commonplace identity rotate --yes
    """
    interactive = not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    if not (yes or dry_run or interactive):
        raise ValidationError(
            "whoever has bound the old key refuses us until they bind the new one: look with --dry-run first, "
            "then add --yes",
            field="yes",
        )
    identity = _identity(data, agent)
    old = identity.to_wire()
    if dry_run and as_json:
        emit({"dry_run": True, "would_retire": {name: old[name] for name in ("public_key", "fingerprint")}})
        return
    if not as_json and not yes:
        note(f"the key {old['fingerprint']} would be replaced: whoever has bound it with `commonplace trust add`")
        note("refuses our answers, requests and vouches until they bind the new one, which you must give them")
    if dry_run:
        note("nothing was changed")
        return
    if not yes:
        _confirm("Replace it?")
    identity.rotate()
    _tell(identity.to_wire(), as_json)
    if not as_json:
        note("give it to everyone who had bound the old one: commonplace trust add NAME --level … --key …")


def _confirm(question: str) -> None:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        note("nothing was changed")
        raise typer.Exit(1)


def _identity(data: Any, agent: str | None) -> Any:
    from commonplace import config
    from commonplace.engine import Identity

    return Identity(config.load(data=data, agent=agent).data)


def _tell(document: dict[str, Any], as_json: bool) -> None:
    if as_json:
        emit(document)
        return
    line(document["public_key"])
    note(f"fingerprint {document['fingerprint']}")
    for old in document["retired"]:
        note(f"retired {old['fingerprint']} {old['public_key']}")
