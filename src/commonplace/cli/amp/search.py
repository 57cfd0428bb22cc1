"""`amp search`."""

from __future__ import annotations

from typing import Annotated

from commonplace.cli.amp import options
from commonplace.cli.amp.client import AmpClient, AmpCommands
from commonplace.cli.support.command import Answer, argument, option
from commonplace.cli.support.output import Document, flat, line
from commonplace.cli.support.values import split_commas
from commonplace.wire.words import shorten

_MAX_CELL_CHARS = 100

commands = AmpCommands()


@commands.add("search")
def search(
    client: AmpClient,
    query: Annotated[list[str], argument("QUERY", "What to look for, in your own words.")],
    type: options.Type = None,
    tags: options.Tags = None,
    project: options.Project = None,
    agent: options.Agent = None,
    limit: Annotated[int | None, option("--limit N", "How many at most, 1 to 1000 [10].")] = None,
    min_score: Annotated[float | None, option("--min-score 0–1", "Only what scores at least this.")] = None,
) -> Answer:
    """Find records by meaning, best first. With --agent: that agent's and the shared ones.

    \b
    Example:
      amp search "database connection issues production" --type lesson
      amp search "null pointer handling" --tags java --min-score 0.5 --json
    """
    text, tags = " ".join(query), split_commas(tags)
    answer = client.ask(
        "search", query=text, type=type, tags=tags, project=project, agent=agent, limit=limit, min_score=min_score
    )
    results = answer["results"]
    return Answer(answer, lambda: _show(results), [answer.get("note"), None if results else "nothing found"])


def _show(results: list[Document]) -> None:
    for hit in results:
        line(f'"{headline(hit["record"])}" (score: {hit["score"]:.2f})')
        line(f"  {hit['id']}  {_excerpt(hit['record'])}")


def headline(record: Document) -> str:
    """What a record is called: its title, else the task, else where it is from, else how it begins."""
    for name in ("title", "working_on"):
        if isinstance(record.get(name), str) and record[name].strip():
            return flat(record[name])
    if isinstance(record.get("file_path"), str) and record["file_path"]:
        start = record.get("start_line")
        return flat(record["file_path"] + (f":{start}" if isinstance(start, int) else ""))
    return _excerpt(record)


def _excerpt(record: Document) -> str:
    return shorten(flat(record.get("content", "")), _MAX_CELL_CHARS)
