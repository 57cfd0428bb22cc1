"""`commonplace token`: who may use the server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, line, minute, note
from commonplace.cli.support.session import Session

if TYPE_CHECKING:
    from commonplace.engine import Token

TokenId = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `commonplace token list` shows it.")]

_ABOUT = """Make, list and end the tokens that a server asks for.

\b
Example:
  commonplace token create --role writer --agents 'assistant,team-*' --expires 90d
  commonplace token list
"""


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("create")(create)
    group.command("list")(listing)
    group.command("revoke")(revoke)
    group.command("rotate")(rotate)
    group.command("remove")(remove)
    app.add_typer(group, name="token", rich_help_panel="Governance", help=_ABOUT)


def create(
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="reader, writer, reviewer or admin.",
            autocompletion=options.offering("reader", "writer", "reviewer", "admin"),
        ),
    ] = "writer",
    agents: Annotated[
        list[str] | None,
        typer.Option("--agents", metavar="NAMES", help="Which agents: names or patterns, parted by commas [*]."),
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose memory it opens.")] = "local",
    expires: options.Expires = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What audit entries call its holder.")
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Make a token. It is shown once; only a hash is kept.

    \b
    Example:
      commonplace token create --role writer --agents assistant --expires 90d
      commonplace token create --role admin --json
    """  # fmt: skip
    now = time.time_ns() // 1_000_000
    ends = None if expires is None else values.instant(expires, "--expires", now, direction=1)
    patterns = [part.strip() for given in agents or [agent or "*"] for part in given.split(",") if part.strip()]
    with Session(data, agent) as run:
        engine = run(run.memory.engine())
        made, secret = run(
            engine.tokens.create(_local(), tenant=tenant, role=role, agents=patterns, expires_at=ends, name=name)
        )
    _shown_once(made, secret, as_json)


def listing(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """List tokens, without their secrets.

    \b
    Example:
      commonplace token list
    """
    with Session(data, agent) as run:
        engine = run(run.memory.engine())
        found = [token.to_wire(engine.clock()) for token in run(engine.tokens.all()).values()]
    if as_json:
        emit({"tokens": found})
    elif not found:
        note("there are no tokens: a server on this machine is open to everyone on it")
    else:
        show.table(
            ["token", "tenant", "role", "agents", "status", "expires"],
            [[(t["name"], t["id"]), t["tenant"], t["role"], ", ".join(t["agents"]), t["status"],
              minute(t["expires_at"])] for t in found],
        )  # fmt: skip


def revoke(
    token: TokenId, as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None
) -> None:
    """End a token; running servers refuse it within a quarter of a second.

    \b
    Example:
      commonplace token revoke 3f9a1c0b7d52
    """
    with Session(data, agent) as run:
        engine = run(run.memory.engine())
        gone = run(engine.tokens.revoke(_local(), token)).to_wire(engine.clock())
    emit(gone) if as_json else line(f"revoked {gone['id']} ({gone['name']})")


def rotate(
    token: TokenId, as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None
) -> None:
    """Give a token a new secret; the old one ends at once.

    \b
    Example:
      commonplace token rotate 3f9a1c0b7d52
    """
    with Session(data, agent) as run:
        engine = run(run.memory.engine())
        renewed, secret = run(engine.tokens.rotate(_local(), token))
    _shown_once(renewed, secret, as_json)


def remove(
    token: TokenId, as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None
) -> None:
    """Drop what is kept of a token that no longer works.

    While any token is kept a server asks for one, even if none works any more; once none is kept, a server on this
    machine is open to everyone on it again.

    \b
    Example:
      commonplace token remove 3f9a1c0b7d52
    """
    with Session(data, agent) as run:
        engine = run(run.memory.engine())
        gone = run(engine.tokens.remove(_local(), token)).to_wire(engine.clock())
    emit(gone) if as_json else line(f"removed {gone['id']} ({gone['name']})")


def _local() -> Any:
    """Whoever can read the data directory looks after it."""
    from commonplace.wire.record import Principal

    return Principal()


def _shown_once(token: Token, secret: str, as_json: bool) -> None:
    if as_json:
        emit({"id": token.id, "token": secret, "tenant": token.tenant, "role": token.role,
              "agents": list(token.agents), "expires_at": token.expires_at})  # fmt: skip
        return
    line(secret)
    note(f"{token.role} of {token.tenant}, agents {', '.join(token.agents)}; this is the only time it is shown")
