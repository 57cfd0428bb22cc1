"""`commonplace kg`: what is stated about things, since when and until when."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, fancy, line, minute, moment, note, plural, row
from commonplace.cli.support.session import Session
from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.record import system_clock

Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="What it is about, exactly as it was stated.")]
Predicate = Annotated[str, typer.Argument(metavar="PREDICATE", help="What is said of it, such as works_at.")]
OnlyPredicate = Annotated[
    str | None, typer.Option("--predicate", metavar="NAME", help="Only what is said with this predicate.")
]

_ABOUT = """State facts about things, and ask what held when.

\b
Example:
  commonplace kg assert Alice works_at Acme
  commonplace kg query Alice --as-of 2026-03-01
  commonplace kg path Alice Oslo
"""


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("assert")(state)
    group.command("query")(query)
    group.command("history")(history)
    group.command("path")(path)
    group.command("neighbors")(neighbors)
    group.command("retract")(retract)
    group.command("erase")(erase)
    app.add_typer(group, name="kg", rich_help_panel="Knowledge graph", help=_ABOUT)


def state(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="What it is about.")],
    predicate: Predicate,
    object: Annotated[str, typer.Argument(metavar="OBJECT", help="The value, or the other thing.")],
    confidence: options.Confidence = None,
    provenance: Annotated[
        str | None,
        typer.Option("--provenance", metavar="TEXT", help="Where it comes from; a memory's id binds it to that one."),
    ] = None,
    valid_from: Annotated[
        str | None,
        typer.Option("--valid-from", metavar="TIME", help="Since when: an ISO time (UTC), epoch ms, or an age [now]."),
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """State a fact; what held of this subject and predicate until then ends.

    A predicate has one value at a time. To keep several, give each a predicate of its own: likes_tea, likes_coffee.

    \b
    Example:
      commonplace kg assert Alice works_at Acme
      commonplace kg assert auth-service deployed_version 2.4.1 --confidence 0.95 --provenance deploy-log
      commonplace kg assert Alice works_at Bolt --valid-from 2026-03-01
    """
    since = None if valid_from is None else values.instant(valid_from, "--valid-from", system_clock(), direction=-1)
    with Session(data, agent) as run:
        made = run(
            run.memory.graph_assert(
                subject, predicate, object, confidence=confidence, provenance=provenance, valid_from=since
            )
        )
    if as_json:
        emit(made)
    else:
        until = "" if made["valid_to"] is None else f" until {moment(made['valid_to'])}"
        line(f"{_said(made)}, since {moment(made['valid_from'])}{until}")
        ended = made.get("replaced")
        if ended is not None and ended["object"] != made["object"]:
            line(f"ends: {_said(ended)}, since {moment(ended['valid_from'])}")


def query(
    subject: Subject,
    predicate: OnlyPredicate = None,
    as_of: options.AsOf = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Show what is stated about a subject, now or as of another time.

    \b
    Example:
      commonplace kg query Alice
      commonplace kg query Alice --as-of 2026-03-01 --json
    """
    with Session(data, agent, existing=True) as run:
        found = run(run.memory.graph_query(subject, predicate=predicate, as_of=_instant(as_of)))
    _show(found, as_json, f"nothing is stated about {subject}")


def history(
    subject: Subject,
    predicate: OnlyPredicate = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Show everything that was ever stated about a subject, oldest first.

    \b
    Example:
      commonplace kg history Alice --predicate works_at
    """
    with Session(data, agent, existing=True) as run:
        found = run(run.memory.graph_history(subject, predicate=predicate))
    _show(found, as_json, f"nothing was ever stated about {subject}")


def path(
    start: Annotated[str, typer.Argument(metavar="FROM", help="Where the way begins, in upper or lower case.")],
    end: Annotated[str, typer.Argument(metavar="TO", help="Where it leads.")],
    max_hops: Annotated[int, typer.Option("--max-hops", metavar="N", help="At most so many statements, 1 to 6.")] = 3,
    as_of: options.AsOf = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Show the fewest statements that lead from one thing to another.

    \b
    Example:
      commonplace kg path Alice Oslo
      commonplace kg path Alice Oslo --max-hops 6 --as-of 30d
    """
    with Session(data, agent, existing=True) as run:
        found = run(run.memory.graph_path(start, end, max_hops=max_hops, as_of=_instant(as_of)))
    if as_json:
        emit(found)
    elif not found["triples"]:
        note(f"no way from {start} to {end} within {plural(max_hops, 'statement')}")
    else:
        for triple in found["triples"]:
            line(_said(triple))


def neighbors(
    id: options.MemoryId,
    hops: Annotated[int, typer.Option("--hops", metavar="N", help="How far to look, 1 to 3.")] = 1,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Show the memories tied to one by reference, subject or statement.

    \b
    Example:
      commonplace kg neighbors 1d2e3f --hops 2
    """
    with Session(data, agent, existing=True) as run:
        found = run(run.memory.neighbors(run.id(id), hops=hops))
        texts = [] if as_json else [(n, run(run.memory.get(n["id"]))) for n in found["neighbors"]]
    if as_json:
        emit(found)
        return
    if not texts:
        note(f"nothing is tied to {id} within {plural(hops, 'hop')}")
    show.table(["memory", "hops"], [[(show.body(memory), memory["id"]), n["distance"]] for n, memory in texts])


def retract(
    subject: Subject,
    predicate: Predicate,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """End what holds now, with nothing in its place; its history stays.

    \b
    Example:
      commonplace kg retract Alice works_at
    """
    with Session(data, agent, existing=True) as run:
        ended = run(run.memory.graph_retract(subject, predicate))
    if as_json:
        emit(ended)
    else:
        line(f"{_said(ended)}, until {moment(ended['valid_to'])}")


def erase(
    subject: Subject,
    mentions: Annotated[bool, typer.Option("--mentions", help="Also what names it as the object.")] = False,
    dry_run: options.DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Erase everything ever stated about a subject, for good.

    \b
    Example:
      commonplace kg erase Alice --mentions --dry-run
      commonplace kg erase Alice --mentions --yes
    """
    interactive = not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    if not (yes or dry_run or interactive):
        raise ValidationError("erasing cannot be undone: look with --dry-run first, then add --yes", field="subject")
    with Session(data, agent, existing=True) as run:
        if dry_run or not yes:
            would = run(run.memory.preview_graph_erase(subject, mentions=mentions))
            count = plural(len(would["triples"]), "statement")
            if dry_run and as_json:
                emit({"dry_run": True, **would})
                return
            _show(would, False, f"nothing was ever stated about {subject}")
            if dry_run:
                note(f"would erase {count}; nothing was changed")
                return
            if would["triples"]:
                _confirm(f"Erase {count} for good?")
        answer = run(run.memory.graph_erase(subject, mentions=mentions))
        if not answer["erased"]:
            raise NotFound(f"nothing was ever stated about {subject} for agent {run.memory.agent_id}")
    if as_json:
        emit(answer)
    else:
        line(f"erased {plural(len(answer['erased']), 'statement')}")
        show.remarks([f"the backup {path} may still hold it" for path in answer.get("backups", ())])


def _instant(as_of: str | None) -> int | None:
    return None if as_of is None else values.instant(as_of, "--as-of", system_clock(), direction=-1)


def _said(triple: dict[str, Any]) -> str:
    return f"{triple['subject']} {triple['predicate']} {triple['object']}"


def _show(found: dict[str, Any], as_json: bool, nothing: str) -> None:
    """Piped: id, subject, predicate, object, since, until, confidence, provenance."""
    if as_json:
        emit(found)
        return
    triples = found["triples"]
    if not triples:
        note(nothing)
    elif fancy():
        show.table(
            ["subject", "predicate", "object", "since", "until", "sure", "from"],
            [[t["subject"], t["predicate"], t["object"], minute(t["valid_from"]), minute(t["valid_to"]),
              f"{t['confidence']:g}", t.get("provenance", "")] for t in triples],
        )  # fmt: skip
    else:
        for t in triples:
            row([t["id"], t["subject"], t["predicate"], t["object"], moment(t["valid_from"]), moment(t["valid_to"]),
                 f"{t['confidence']:g}", t.get("provenance", "")])  # fmt: skip


def _confirm(question: str) -> None:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        note("nothing was changed")
        raise typer.Exit(1)
