"""Make, list and end the tokens that a server asks for.

\b
Example:
  commonplace token create --role writer --agents 'assistant,team-*' --expires 90d
  commonplace token list
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from commonplace.cli.support import options, values
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import minute
from commonplace.cli.support.tables import Table

if TYPE_CHECKING:
    from commonplace.engine import Token

TokenId = Annotated[str, argument("ID", "The token's id, as `commonplace token list` shows it.")]

_ROLES = ("reader", "writer", "reviewer", "admin")
_UNUSED = "a token says itself which agents it opens"

commands = Commands(__doc__)


@commands.add("create", existing=False, agent="Only this agent, where --agents does not say which.")
def create(
    run: Session,
    role: Annotated[str, option("--role ROLE", "reader, writer, reviewer or admin.", *_ROLES)] = "writer",
    agents: Annotated[
        list[str] | None, option("--agents NAMES", "Which agents: names or patterns, comma-separated [*].")
    ] = None,
    tenant: Annotated[str, option("--tenant NAME", "Whose memory it opens.")] = "local",
    expires: options.Expires = None,
    name: Annotated[str | None, option("--name NAME", "What audit entries call its holder.")] = None,
) -> Answer:
    """Make a token. It is shown once; only a hash is kept.

    \b
    Example:
      commonplace token create --role writer --agents assistant --expires 90d
      commonplace token create --role admin --json
    """
    ends = values.future(expires, "--expires")
    patterns = values.split_commas(agents or [run.agent or "*"])
    tokens = run.engine.tokens
    made = tokens.create(OPERATOR, tenant=tenant, role=role, agents=patterns, expires_at=ends, name=name)
    return _with_secret(*run(made))


@commands.add("list", unused=_UNUSED)
def list_tokens(run: Session) -> Answer:
    """List tokens, without their secrets.

    \b
    Example:
      commonplace token list
    """
    found = [token.to_wire(run.engine.clock()) for token in run(run.engine.tokens.all()).values()]
    rows = []
    for t in found:
        agents, expires = ", ".join(t["agents"]), minute(t["expires_at"])
        rows.append([(t["name"], t["id"]), t["tenant"], t["role"], agents, t["status"], expires])
    nothing = "there are no tokens: a server on this machine is open to everyone on it"
    headers = ["token", "tenant", "role", "agents", "status", "expires"]
    return Answer({"tokens": found}, Table(headers, rows, empty=nothing))


@commands.add("revoke", existing=False, unused=_UNUSED)
def revoke(run: Session, token: TokenId) -> Answer:
    """End a token; running servers refuse it within a quarter of a second.

    \b
    Example:
      commonplace token revoke 3f9a1c0b7d52
    """
    gone = run(run.engine.tokens.revoke(OPERATOR, token)).to_wire(run.engine.clock())
    return Answer(gone, f"revoked {gone['id']} ({gone['name']})")


@commands.add("rotate", existing=False, unused=_UNUSED)
def rotate(run: Session, token: TokenId) -> Answer:
    """Give a token a new secret; running servers refuse the old one within 0.25 seconds.

    \b
    Example:
      commonplace token rotate 3f9a1c0b7d52
    """
    return _with_secret(*run(run.engine.tokens.rotate(OPERATOR, token)))


@commands.add("remove", existing=False, unused=_UNUSED)
def remove(run: Session, token: TokenId) -> Answer:
    """Drop what is kept of a token that no longer works.

    While any token is kept a server asks for one, even if none works any more; once none is kept, a server on this
    machine is open to everyone on it again.

    \b
    Example:
      commonplace token remove 3f9a1c0b7d52
    """
    gone = run(run.engine.tokens.remove(OPERATOR, token)).to_wire(run.engine.clock())
    return Answer(gone, f"removed {gone['id']} ({gone['name']})")


def _with_secret(token: Token, secret: str) -> Answer:
    agents = list(token.agents)
    document = {"id": token.id, "token": secret, "tenant": token.tenant, "role": token.role, "agents": agents}
    note = f"{token.role} of {token.tenant}, agents {', '.join(agents)}; this is the only time it is shown"
    return Answer({**document, "expires_at": token.expires_at}, secret, notes=[note])
