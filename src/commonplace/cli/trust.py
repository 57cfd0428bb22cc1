"""`commonplace trust`: which agents of others are trusted, and how far."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options
from commonplace.cli.support.output import emit, line, note
from commonplace.cli.support.session import Session
from commonplace.wire.record import LOCAL_TENANT

Peer = Annotated[
    str, typer.Argument(metavar="AGENT", help="The agent's name, as its requests and attestations say it.")
]
Tenant = Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose memory the agent may ask for.")]

_ABOUT = """Say which agents of others are trusted, how far, and by which key.

\b
Example:
  commonplace trust add Babel --level 2 --key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
  commonplace trust add djclawd --level 3 --voucher
  commonplace trust list
"""


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("add")(add)
    group.command("list")(listing)
    group.command("remove")(remove)
    app.add_typer(group, name="trust", rich_help_panel="Other agents", help=_ABOUT)


def add(
    peer: Peer,
    level: Annotated[
        int, typer.Option("--level", metavar="1|2|3", help="1 identified, 2 vouched for, 3 trusted directly.")
    ],
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="BASE64", help="Its public key: only who holds it is believed to be it."),
    ] = None,
    voucher: Annotated[bool, typer.Option("--voucher", help="Its word for other agents counts here.")] = False,
    tenant: Tenant = LOCAL_TENANT,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Trust an agent; what was said of it before is replaced.

    \b
    Example:
      commonplace trust add Babel --level 2 --key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
      commonplace trust add djclawd --level 3 --voucher
    """
    with Session(data, agent) as run:
        peers = run(run.memory.engine()).peers
        made = run(peers.bind(_local(tenant), peer, level=level, key=key, voucher=voucher)).to_wire()
    if as_json:
        emit(made)
        return
    line(f"{made['agent_id']} is trusted at level {made['level']} ({made['name']}){', also as a voucher' * voucher}")
    if key is None:
        note("without --key nothing shows that a request is really from it, so what it asks counts as anonymous")
    elif (warning := ambiguous(peer)) is not None:
        note(warning)


def listing(
    tenant: Tenant = LOCAL_TENANT, as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None
) -> None:
    """List the agents that are trusted.

    \b
    Example:
      commonplace trust list
    """
    with Session(data, agent) as run:
        peers = run(run.memory.engine()).peers
        found = [peer.to_wire() for peer in run(peers.bindings(tenant)).values()]
    if as_json:
        emit({"peers": found})
    elif not found:
        note("no agent of others is trusted: whoever asks without a token is anonymous")
    else:
        show.table(
            ["agent", "level", "voucher", "key"],
            [[p["agent_id"], f"{p['level']} {p['name']}", "yes" if p["voucher"] else "", p.get("fingerprint", "")]
             for p in found],
        )  # fmt: skip


def remove(
    peer: Peer,
    tenant: Tenant = LOCAL_TENANT,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Trust an agent no more; its vouches count no more, either.

    \b
    Example:
      commonplace trust remove Babel
    """
    with Session(data, agent) as run:
        peers = run(run.memory.engine()).peers
        gone = run(peers.unbind(_local(tenant), peer)).to_wire()
    emit(gone) if as_json else line(f"{gone['agent_id']} is not trusted any more")


def ambiguous(name: str) -> str | None:
    """Why a key bound to this name may stand in the way: it is the name of whoever was given none."""
    from commonplace.config import DEFAULT_AGENT, MrpConfig

    if name == DEFAULT_AGENT:
        whose, instead = "every agent that was given no name", "bind the name and key of its server instead"
    elif name == MrpConfig().name:
        whose, instead = "every server without `name` in [mrp] of its settings", "have its owner set one first"
    else:
        return None
    return f"{whose} is called {name}: once it is bound, all others called so are refused; better {instead}"


def _local(tenant: str) -> Any:
    """Whoever can read the data directory looks after all of it."""
    from commonplace.wire.record import Principal

    return Principal(tenant=tenant)
