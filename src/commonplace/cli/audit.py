"""`commonplace audit`: the ledger of everything that was done."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commonplace.cli import FAILURE, show
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, fancy, line, minute, moment, note, plural, row
from commonplace.cli.support.progress import Bar
from commonplace.cli.support.session import Session
from commonplace.wire.record import system_clock


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(listing)
    group.command("verify")(verify)
    app.add_typer(group, name="audit", rich_help_panel="Governance", help=_ABOUT)


_ABOUT = """Read the ledger of all that was done; verify it.

\b
Example:
  commonplace audit list --operation forget
  commonplace audit verify
"""


def listing(
    operation: Annotated[
        str | None, typer.Option("--operation", metavar="NAME", help="Only this one: remember, recall, forget, …")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="From then on: an ISO time (UTC), epoch ms, or an age."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Up to then: an ISO time (UTC), epoch ms, or an age.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many at most.")] = 100,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where the last page ended.")
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """List what was done, oldest first, by all agents or by --agent.

    \b
    Example:
      commonplace audit list --since 24h
      commonplace audit list --agent assistant --operation forget --json
    """
    now = system_clock()
    times = {
        name: None if text is None else values.instant(text, f"--{name}", now, direction=-1)
        for name, text in (("since", since), ("until", until))
    }
    with Session(data, agent, existing=True) as run:
        page = run(run.memory.audit(agent_id=agent, operation=operation, limit=limit, cursor=cursor, **times))
    if as_json:
        emit(page)
        return
    entries = page["entries"]
    if not entries:
        note("no entries")
    elif fancy():
        show.table(
            ["n", "when", "operation", "agent", "by", "about"],
            [[e["n"], minute(e["at"]), e["operation"], e["agent_id"], e["principal"], _about(e)] for e in entries],
        )
    else:
        for e in entries:
            row([e["n"], moment(e["at"]), e["operation"], e["agent_id"], e["principal"], _about(e)])
    if page["next_cursor"] is not None:
        note(f"there is more: --cursor {page['next_cursor']}")


def verify(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """Check the whole ledger; one that was changed exits 2.

    \b
    Example:
      commonplace audit verify
    """
    with Session(data, agent, existing=True) as run, Bar("verifying") as progress:
        found = run(run.memory.verify_audit(progress=progress))
    if as_json:
        emit(found)
    elif found["ok"]:
        line(f"the ledger is whole: {plural(found['entries'], 'entry')}, head {found['head'] or '(none yet)'}")
    else:
        line(f"the ledger was changed: entry {found.get('first_bad')}: {found.get('problem')}")
        line("everything before it is as it was written; compare with a backup to see what it should say")
    if not found["ok"]:
        raise typer.Exit(FAILURE)


def _about(entry: dict[str, Any]) -> str:
    parts = entry.get("payload", ())
    return "; ".join(_part(part) for part in parts[:3]) + ("; …" if len(parts) > 3 else "")


def _part(part: dict[str, Any]) -> str:
    if "memory_id" in part:
        return str(part["memory_id"])
    if "query_hash" in part:
        return plural(part["results"], "result")
    return ", ".join(f"{name}: {show.written(value)}" for name, value in part.items())
