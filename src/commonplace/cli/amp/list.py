"""`amp list`."""

from __future__ import annotations

from typing import Annotated

from commonplace.cli.amp import options
from commonplace.cli.amp.client import AmpClient, AmpCommands
from commonplace.cli.amp.search import headline
from commonplace.cli.support.command import Answer, option
from commonplace.cli.support.output import moment
from commonplace.cli.support.tables import Table
from commonplace.cli.support.values import split_commas

commands = AmpCommands()


@commands.add("list")
def list_records(
    client: AmpClient,
    type: options.Type = None,
    agent: options.Agent = None,
    project: options.Project = None,
    tags: options.Tags = None,
    limit: Annotated[int | None, option("--limit N", "How many at most, 1 to 1000 [20].")] = None,
    offset: Annotated[int | None, option("--offset N", "How many to pass over first.")] = None,
    order: Annotated[
        str | None, option("--order ORDER", "desc (newest first, the default) or asc.", "desc", "asc")
    ] = None,
) -> Answer:
    """List records by time. With --agent exactly that agent's.

    \b
    Example:
      amp list --type checkpoint --agent radarr --limit 1
      amp list --tags postgresql,devops --order asc --json
    """
    tags = split_commas(tags)
    answer = client.ask(
        "list", type=type, agent=agent, project=project, tags=tags, limit=limit, offset=offset, order=order
    )
    records = answer["records"]
    more = f"there is more: {answer['total']:,} in all; add --offset {(offset or 0) + len(records)}"
    table = Table(
        ["record", "type", "agent", "stored"],
        [[(headline(r), r["id"]), r["type"], r.get("agent", ""), moment(r["created_at"])] for r in records],
        ([r["id"], moment(r["created_at"]), r["type"], r.get("agent", ""), headline(r)] for r in records),
        empty="nothing found",
        more=more if answer["has_more"] else None,
    )
    return Answer(answer, table)
