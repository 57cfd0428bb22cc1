"""The options that commands share, and what the shell may offer for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

TYPES = ("semantic", "episodic", "procedural", "emotional")


def offering(*words: str) -> Callable[[str], list[str]]:
    """Completion only: what is allowed is checked, and explained, where every protocol checks it."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON on stdout.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Data directory [COMMONPLACE_DATA, else the platform's own]."),
]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Whose memory [COMMONPLACE_AGENT, else `default`].")
]
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only what concerns this user of the agent.")]
Filter = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help='A wire filter, such as {"project": "atlas", "stars": {"$gte": 3}}.'),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="FIELD=VALUE", help="A simple condition; also !=, >, >=, <, <=. Repeat it: all must hold."
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="As it was then: an ISO time (UTC), epoch ms, or an age such as 2h."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen; change nothing.")]
Approval = Annotated[bool, typer.Option("--approval", help="Hold it back until someone approves it.")]
Metadata = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="KEY=VALUE", help="A metadata field; VALUE is read as JSON where it is JSON."),
]
MetadataJson = Annotated[
    str | None, typer.Option("--metadata-json", metavar="JSON", help="All the metadata, as a JSON object.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; repeat it for several.")]
Confidence = Annotated[float | None, typer.Option("--confidence", metavar="0–1", help="How sure it is, from 0 to 1.")]
Expires = Annotated[
    str | None,
    typer.Option("--expires", metavar="TIME", help="When it ends: an ISO time (UTC), epoch ms, or an age such as 30d."),
]
MemoryId = Annotated[
    str, typer.Argument(metavar="ID", help="A memory's id, or 6 or more characters of its beginning or end.")
]
