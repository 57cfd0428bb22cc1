"""Options that several commands share, beside those that all have."""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli.support.command import argument, option

TYPES = ("semantic", "episodic", "procedural", "emotional")


def token_option(help: str) -> Any:
    return option("--token TOKEN", help, envvar="COMMONPLACE_TOKEN", show_envvar=False)


User = Annotated[str | None, option("--user NAME", "Only what concerns this user of the agent.")]
Filter = Annotated[
    str | None, option("--filter JSON", 'A wire filter, such as {"project": "atlas", "stars": {"$gte": 3}}.')
]
Where = Annotated[
    list[str] | None,
    option("--where FIELD=VALUE", "A simple condition; also !=, >, >=, <, <=. Repeat it: all must hold."),
]
AsOf = Annotated[
    str | None, option("--as-of TIME", "As it was then: an ISO time (UTC), epoch ms, or an age such as 2h.")
]
Cursor = Annotated[str | None, option("--cursor CURSOR", "Go on where the last page ended.")]
DryRun = Annotated[bool, option("--dry-run", "Only show what would happen; change nothing.")]
Yes = Annotated[bool, option("--yes -y", "Do not ask.")]
Approval = Annotated[bool, option("--approval", "Hold it back until someone approves it.")]
Reasoning = Annotated[str | None, option("--reasoning TEXT", "With --approval: why, shown to whoever decides.")]
Confidence = Annotated[float | None, option("--confidence 0–1", "How sure it is, from 0 to 1.")]
Expires = Annotated[
    str | None, option("--expires TIME", "When it ends: an ISO time (UTC), epoch ms, or an age such as 30d.")
]
MemoryId = Annotated[str, argument("ID", "A memory's id, or 6 or more characters of its beginning or end.")]
AgentUrl = Annotated[str, argument("AGENT_URL", "The server to ask, such as http://127.0.0.1:8420.")]
PeerToken = Annotated[str | None, token_option("A token of that server [COMMONPLACE_TOKEN].")]
