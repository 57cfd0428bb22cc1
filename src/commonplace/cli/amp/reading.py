"""The verbs of `amp` that find, show and remove."""

from __future__ import annotations

from typing import Annotated

import typer

from commonplace.cli import MISTAKE, show
from commonplace.cli.amp import options as given
from commonplace.cli.amp.client import Document, ask
from commonplace.cli.support import options
from commonplace.cli.support.output import emit, fancy, flat, line, moment, note, row
from commonplace.wire.errors import ValidationError

_LONGEST = 100


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for, in your own words.")],
    type: given.Type = None,
    tags: given.Tags = None,
    project: given.Project = None,
    agent: given.Agent = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="How many at most, 1 to 1000 [10].")] = None,
    min_score: Annotated[
        float | None, typer.Option("--min-score", metavar="0–1", help="Only what scores at least this.")
    ] = None,
    url: given.Url = None,
    token: given.Token = None,
    as_json: options.Json = False,
    data: options.Data = None,
) -> None:
    """Find records by meaning, best first. With --agent: that agent's and the shared ones.

    \b
    Example:
      amp search "database connection issues production" --type lesson
      amp search "null pointer handling" --tags java --min-score 0.5 --json
    """
    request = {"query": " ".join(query), "type": type, "tags": given.tags(tags), "project": project, "agent": agent,
               "limit": limit, "min_score": min_score}  # fmt: skip
    answer = ask("search", request, url=url, token=token, data=data)
    if as_json:
        emit(answer)
        return
    for hit in answer["results"]:
        line(f'"{headline(hit["record"])}" (score: {hit["score"]:.2f})')
        line(f"  {hit['id']}  {_shortened(hit['record'].get('content', ''))}")
    show.remarks([answer.get("note"), None if answer["results"] else "nothing found"])


def get(
    id: given.Id, agent: given.Agent = None, url: given.Url = None, token: given.Token = None,
    as_json: options.Json = False, data: options.Data = None,
) -> None:  # fmt: skip
    """Show one record in full. --agent says whose, where several agents use the same id.

    \b
    Example:
      amp get lesson_0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    answer = ask("get", {"id": id, "agent": agent}, url=url, token=token, data=data)
    if as_json:
        emit(answer)
        return
    record = answer["record"]
    line(record["content"])
    line()
    times = ("created_at", "updated_at", "expires_at")
    show.fields(
        (name, moment(value) if name in times and isinstance(value, int) else show.written(value))
        for name, value in record.items()
        if name != "content"
    )


def delete(
    id: given.Id, agent: given.Agent = None, url: given.Url = None, token: given.Token = None,
    as_json: options.Json = False, data: options.Data = None,
) -> None:  # fmt: skip
    """Remove a record. Exits 1 when there is none.

    \b
    Example:
      amp delete lesson_0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    answer = ask("delete", {"id": id, "agent": agent}, url=url, token=token, data=data)
    if as_json:
        emit(answer)
    elif answer["deleted"]:
        line(f"deleted {id}")
    else:
        note(f"amp: no record {id}")
    if not answer["deleted"]:
        raise typer.Exit(MISTAKE)


def listing(
    type: given.Type = None,
    agent: given.Agent = None,
    project: given.Project = None,
    tags: given.Tags = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="How many at most, 1 to 1000 [20].")] = None,
    offset: Annotated[int | None, typer.Option("--offset", metavar="N", help="How many to pass over first.")] = None,
    order: Annotated[
        str | None,
        typer.Option("--order", metavar="ORDER", help="desc (newest first, the default) or asc.",
                     autocompletion=options.offering("desc", "asc")),
    ] = None,
    url: given.Url = None,
    token: given.Token = None,
    as_json: options.Json = False,
    data: options.Data = None,
) -> None:  # fmt: skip
    """List records by time. With --agent exactly that agent's.

    \b
    Example:
      amp list --type checkpoint --agent radarr --limit 1
      amp list --tags postgresql,devops --order asc --json
    """
    request = {"type": type, "agent": agent, "project": project, "tags": given.tags(tags), "limit": limit,
               "offset": offset, "order": order}  # fmt: skip
    answer = ask("list", request, url=url, token=token, data=data)
    if as_json:
        emit(answer)
        return
    records = answer["records"]
    if fancy():
        show.table(
            ["record", "type", "agent", "stored"],
            [[(headline(r), r["id"]), r["type"], r.get("agent", ""), moment(r["created_at"])] for r in records],
        )
    else:
        for r in records:
            row([r["id"], moment(r["created_at"]), r["type"], r.get("agent", ""), headline(r)])
    if not records:
        note("nothing found")
    if answer["has_more"]:
        note(f"there is more: {answer['total']:,} in all; add --offset {(offset or 0) + len(records)}")


def status(
    url: given.Url = None, token: given.Token = None, as_json: options.Json = False, data: options.Data = None
) -> None:  # fmt: skip
    """Show health and statistics.

    \b
    Example:
      amp status
      amp status --url http://127.0.0.1:8420 --json
    """
    answer = ask("status", {}, url=url, token=token, data=data)
    if as_json:
        emit(answer)
        return
    stats = answer["stats"]
    show.fields(
        [("healthy", "yes" if answer["healthy"] else "no"), ("version", answer["version"]),
         ("protocol", answer["protocol"]), *((name, f"{stats[name]:,}") for name in stats if name != "embedding_model"),
         ("embedding_model", stats["embedding_model"] or "none (keywords)")]
    )  # fmt: skip


def agent_status(
    name: Annotated[str | None, typer.Argument(metavar="AGENT", help="The agent.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The same, as an option.")] = None,
    url: given.Url = None,
    token: given.Token = None,
    as_json: options.Json = False,
    data: options.Data = None,
) -> None:
    """Show what an agent is doing, by its newest checkpoint.

    \b
    Example:
      amp agent-status radarr
    """
    chosen = name or agent
    if chosen is None:
        raise ValidationError("say which agent: amp agent-status radarr", field="agent")
    answer = ask("agent_status", {"agent": chosen}, url=url, token=token, data=data)
    if as_json:
        emit(answer)
        return
    show.fields(
        [("agent", answer["agent"]), ("status", answer["status"]), ("current_task", answer["current_task"]),
         ("checkpoint_count", str(answer["checkpoint_count"])), ("last_updated", moment(answer["last_updated"]))]
    )  # fmt: skip


def headline(record: Document) -> str:
    """What a record is called: its title, else the task, else where it is from, else how it begins."""
    for name in ("title", "working_on"):
        if isinstance(record.get(name), str) and record[name].strip():
            return flat(record[name])
    if isinstance(record.get("file_path"), str) and record["file_path"]:
        start = record.get("start_line")
        return flat(record["file_path"] + (f":{start}" if isinstance(start, int) else ""))
    return _shortened(record.get("content", ""))


def _shortened(text: str) -> str:
    text = flat(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
