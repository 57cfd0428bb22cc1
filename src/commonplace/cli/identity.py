"""Show the key that answers and attestations are signed with; `rotate` replaces it.

Others bind it with `commonplace trust add NAME --level 2 --key …`.

\b
Example:
  commonplace identity
  commonplace identity --json
  commonplace identity rotate
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from commonplace import config
from commonplace.cli.support import options
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, session_command
from commonplace.cli.support.output import confirm, note
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.engine import Identity

_UNUSED = "an installation has one key"

commands = Commands(__doc__)


def show(run: Session, context: typer.Context) -> Answer | None:
    if context.invoked_subcommand is not None:
        return None
    from commonplace.engine import Identity

    return _answer(Identity(config.load(data=run.data, agent=run.agent).data))  # which needs no store


# A group that is a command, too: alone it shows the key.
commands.typer.callback(invoke_without_command=True, no_args_is_help=False)(session_command(show, unused=_UNUSED))


@commands.add("rotate", unused=_UNUSED)
def rotate(run: Session, dry_run: options.DryRun = False, yes: options.Yes = False) -> Answer:
    """Sign with a new key from now on; what the old ones signed can still be verified.

    Whoever has bound the old key with `commonplace trust add` refuses our answers, requests and vouches until they
    bind the new one, and nobody tells them but you.

    \b
    Example:
      commonplace identity rotate --dry-run
      commonplace identity rotate --yes
    """
    if not (yes or dry_run or run.interactive):
        raise ValidationError(
            "whoever has bound the old key refuses us until they bind the new one: look with --dry-run first, "
            "then add --yes",
            field="yes",
        )
    identity = run.engine.peers.identity
    old = identity.to_wire()
    if not run.as_json and not yes:
        note(f"the key {old['fingerprint']} would be replaced: whoever has bound it with `commonplace trust add`")
        note("refuses our answers, requests and vouches until they bind the new one, which you must give them")
    if dry_run:
        retired = {name: old[name] for name in ("public_key", "fingerprint")}
        return Answer({"dry_run": True, "would_retire": retired}, notes=["nothing was changed"])
    if not yes:
        confirm("Replace it?")
    run(run.engine.peers.rotate_identity(OPERATOR))
    return _answer(
        identity,
        "give it to everyone who had bound the old one: commonplace trust add NAME --level … --key … --replace",
    )


def _answer(identity: Identity, *advice: str) -> Answer:
    document = identity.to_wire()
    retired = [f"retired {old['fingerprint']} {old['public_key']}" for old in document["retired"]]
    return Answer(document, document["public_key"], notes=[f"fingerprint {document['fingerprint']}", *retired, *advice])
