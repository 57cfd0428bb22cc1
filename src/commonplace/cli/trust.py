"""Say which agents of others are trusted, how far, and by which key.

\b
Example:
  commonplace trust add Babel --level 2 --key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
  commonplace trust add djclawd --level 3 --voucher
  commonplace trust list
"""

from __future__ import annotations

from typing import Annotated

from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.peers import ambiguous_name
from commonplace.cli.support.tables import Table
from commonplace.wire.record import LOCAL_TENANT, Principal

Peer = Annotated[str, argument("AGENT", "The agent's name, as its requests and attestations say it.")]
Tenant = Annotated[str, option("--tenant NAME", "Whose memory the agent may ask for.")]
_UNUSED = "a peer is trusted for every agent here"

commands = Commands(__doc__)


@commands.add("add", existing=False, unused=_UNUSED)
def add(
    run: Session,
    peer: Peer,
    level: Annotated[int, option("--level 1|2|3", "1 identified, 2 vouched for, 3 trusted directly.")],
    key: Annotated[
        str | None, option("--key BASE64", "Its public key: only who holds it is believed to be it.")
    ] = None,
    voucher: Annotated[bool, option("--voucher", "Its word for other agents counts here.")] = False,
    decline: Annotated[bool, option("--decline", "Answer nothing that it asks.")] = False,
    replace: Annotated[bool, option("--replace", "It has another key now, or none.")] = False,
    tenant: Tenant = LOCAL_TENANT,
) -> Answer:
    """Trust an agent; what was said of it before is replaced, its key only with --replace.

    \b
    Example:
      commonplace trust add Babel --level 2 --key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
      commonplace trust add djclawd --level 3 --voucher
    """
    who = Principal(tenant=tenant)
    made = run(
        run.engine.peers.bind(who, peer, level=level, key=key, voucher=voucher, declined=decline, replace=replace)
    ).to_wire()
    warning = ambiguous_name(peer)
    if key is None:
        warning = "without --key nothing shows that a request is really from it, so what it asks counts as anonymous"
    also = (", also as a voucher" if voucher else "") + ("; what it asks is declined" if decline else "")
    said = f"{made['agent_id']} is trusted at level {made['level']} ({made['name']}){also}"
    return Answer(made, said, notes=[warning] if warning is not None else [])


@commands.add("list", unused=_UNUSED)
def list_peers(run: Session, tenant: Tenant = LOCAL_TENANT) -> Answer:
    """List the agents that are trusted.

    \b
    Example:
      commonplace trust list
    """
    found = [peer.to_wire() for peer in run(run.engine.peers.bindings(tenant)).values()]
    rows = []
    for p in found:
        voucher, level = "yes" if p["voucher"] else "", f"{p['level']} {p['name']}"
        shown = f"{level}, declined" if p.get("declined") else level
        rows.append([p["agent_id"], shown, voucher, p.get("fingerprint", "")])
    nothing = "no agent of others is trusted: whoever asks without a token is anonymous"
    return Answer({"peers": found}, Table(["agent", "level", "voucher", "key"], rows, empty=nothing))


@commands.add("remove", existing=False, unused=_UNUSED)
def remove(run: Session, peer: Peer, tenant: Tenant = LOCAL_TENANT) -> Answer:
    """Trust an agent no more; its vouches count no more, either.

    \b
    Example:
      commonplace trust remove Babel
    """
    gone = run(run.engine.peers.unbind(Principal(tenant=tenant), peer)).to_wire()
    return Answer(gone, f"{gone['agent_id']} is not trusted any more")
