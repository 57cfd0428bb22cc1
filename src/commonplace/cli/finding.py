"""`commonplace recall`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, line
from commonplace.cli.support.session import Session
from commonplace.wire.record import system_clock


def register(app: typer.Typer) -> None:
    app.command("recall", rich_help_panel="Remember and recall")(recall)


def recall(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for, in your own words.")],
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many to find, 1 to 1000.")] = 5,
    user: options.User = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--types",
            metavar="TYPE",
            help="Only these types; repeat it, or part them by commas.",
            autocompletion=options.offering(*options.TYPES),
        ),
    ] = None,
    filter: options.Filter = None,
    where: options.Where = None,
    fresher_than_days: Annotated[
        int | None, typer.Option("--fresher-than-days", metavar="N", help="Only what was written in the last N days.")
    ] = None,
    as_of: options.AsOf = None,
    min_score: Annotated[
        float | None, typer.Option("--min-score", metavar="0–1", help="Only what is at least this relevant; 0 is all.")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", metavar="WHEN", help="Read the best with a judge: auto (the default), off or always."),
    ] = None,
    fusion: Annotated[
        str | None,
        typer.Option(
            "--fusion",
            metavar="HOW",
            help="How lists of several stores become one: rrf (the default), max or weighted.",
            autocompletion=options.offering("rrf", "max", "weighted"),
        ),
    ] = None,
    hops: Annotated[
        int | None,
        typer.Option("--hops", metavar="N", help="Raise what is tied to other finds, up to N steps away, 1 to 3."),
    ] = None,
    include_shared: Annotated[bool, typer.Option("--include-shared", help="Look in the shared space, too.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each one was found.")] = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Find the memories that answer a question, best first.

    \b
    Example:
      commonplace recall "what should I not cook for Alice?" -k 3
      commonplace recall deployment --where project=atlas --fresher-than-days 30
      commonplace recall "door code" --as-of 2026-03-01 --json
    """
    now = system_clock()
    fields: dict[str, Any] = {
        "user_id": user,
        "types": [part.strip() for given in types for part in given.split(",")] if types else None,
        "filter": values.conditions(filter, where),
        "fresher_than_days": fresher_than_days,
        "as_of": None if as_of is None else values.instant(as_of, "--as-of", now, direction=-1),
        "min_score": min_score, "judge": judge, "fusion": fusion, "hops": hops,
        "include_shared": include_shared or None, "explain": explain or None,
    }  # fmt: skip
    with Session(data, agent, existing=True) as run:
        answer = run(run.memory.recall(" ".join(query), k=k, **fields))
        notes = run.heard.notes
    from commonplace.wire.models import dump

    document = dump(answer)
    if as_json:
        emit(document)
        return
    if document["results"]:
        show.hits(document["results"])
    elif not document.get("note"):
        show.remarks(["nothing found"])
    if explain:
        line()
        for hit in document["results"]:
            line(f"{hit['id']}  {_why(hit.get('explain') or {})}")
        line(f"{answer.latency_ms} ms  {_why(document.get('explain') or {})}")
    show.remarks([document.get("note"), *notes, *(f"{e['store']}: {e['error']}" for e in document.get("errors", ()))])


def _why(parts: dict[str, Any]) -> str:
    shown = {name: f"{value:.4f}" if isinstance(value, float) else value for name, value in parts.items()}
    return "  ".join(f"{name}={value}" for name, value in shown.items() if value is not None)
