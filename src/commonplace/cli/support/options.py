"""The options that commands share, and a short way to declare one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

TYPES = ("semantic", "episodic", "procedural", "emotional")


def option(declaration: str, help: str, *words: str, **settings: Any) -> Any:
    """An option, declared as its help shows it, such as `--limit N` or `--yes -y`.

    The shell offers `words` for it. What is allowed is checked, and explained, where every protocol checks it.
    """
    parts = declaration.split()
    names = [part for part in parts if part.startswith("-")]
    metavar = None if len(names) == len(parts) else parts[-1]
    if words:
        settings["autocompletion"] = lambda incomplete: [word for word in words if word.startswith(incomplete)]
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help)


def token_option(help: str) -> Any:
    return option("--token TOKEN", help, envvar="COMMONPLACE_TOKEN", show_envvar=False)


#: The help of --agent, but where a command gives it a meaning of its own.
AGENT = "Whose memory [COMMONPLACE_AGENT, else `default`]."
Agent = Annotated[str | None, option("--agent NAME", AGENT)]
Json = Annotated[bool, option("--json", "Print the answer as JSON on stdout.")]
Data = Annotated[Path | None, option("--data DIR", "Data directory [COMMONPLACE_DATA, else the platform's own].")]

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
Confidence = Annotated[float | None, option("--confidence 0–1", "How sure it is, from 0 to 1.")]
Expires = Annotated[
    str | None, option("--expires TIME", "When it ends: an ISO time (UTC), epoch ms, or an age such as 30d.")
]
MemoryId = Annotated[str, argument("ID", "A memory's id, or 6 or more characters of its beginning or end.")]
AgentUrl = Annotated[str, argument("AGENT_URL", "The server to ask, such as http://127.0.0.1:8420.")]
PeerToken = Annotated[str | None, token_option("A token of that server [COMMONPLACE_TOKEN].")]
