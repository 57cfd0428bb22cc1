"""Read the ledger of all that was done; verify it.

\b
Example:
  commonplace audit list --operation forget
  commonplace audit verify
"""

from __future__ import annotations

from typing import Annotated

from commonplace.cli import FAILURE
from commonplace.cli.support import options, values
from commonplace.cli.support.command import Answer, Commands, Session, option
from commonplace.cli.support.output import Document, Table, minute, moment, plural, text_of
from commonplace.cli.support.progress import ProgressBar

commands = Commands(__doc__)


@commands.add("list")
def list_entries(
    run: Session,
    operation: Annotated[str | None, option("--operation NAME", "Only this one: remember, recall, forget, …")] = None,
    since: Annotated[
        str | None, option("--since TIME", "From then on: an ISO time (UTC), epoch ms, or an age.")
    ] = None,
    until: Annotated[str | None, option("--until TIME", "Up to then: an ISO time (UTC), epoch ms, or an age.")] = None,
    limit: Annotated[int, option("--limit N", "How many at most.")] = 100,
    cursor: options.Cursor = None,
) -> Answer:
    """List what was done, oldest first, by all agents or by --agent.

    \b
    Example:
      commonplace audit list --since 24h
      commonplace audit list --agent assistant --operation forget --json
    """
    times = {"since": values.past(since, "--since"), "until": values.past(until, "--until")}
    page = run(run.memory.audit(agent_id=run.agent, operation=operation, limit=limit, cursor=cursor, **times))
    entries, after = page["entries"], page["next_cursor"]
    rest = [[e["operation"], e["agent_id"], e["principal"], _about(e)] for e in entries]
    table = Table(
        ["n", "when", "operation", "agent", "by", "about"],
        [[e["n"], minute(e["at"]), *cells] for e, cells in zip(entries, rest, strict=True)],
        ([e["n"], moment(e["at"]), *cells] for e, cells in zip(entries, rest, strict=True)),
        empty="no entries",
        more=None if after is None else f"there is more: --cursor {after}",
    )
    return Answer(page, table)


@commands.add("verify")
def verify(run: Session) -> Answer:
    """Check the whole ledger, and every row against it; what was changed exits 2.

    \b
    Example:
      commonplace audit verify
    """
    with ProgressBar("verifying") as progress:
        found = run(run.memory.verify_audit(progress=progress))
    if found["ok"]:
        return Answer(
            found, f"the ledger is whole: {plural(found['entries'], 'entry')}, head {found['head'] or '(none yet)'}"
        )
    entry = f"entry {found['first_bad']}: " if "first_bad" in found else ""
    changed = f"something other than Commonplace changed the store: {entry}{found.get('problem')}"
    advice = "compare with a backup to see what it should say; `commonplace restore BACKUP` brings one back"
    return Answer(found, f"{changed}\n{advice}", exit_code=FAILURE)


def _about(entry: Document) -> str:
    parts = entry.get("payload", ())
    return "; ".join(_part(part) for part in parts[:3]) + ("; …" if len(parts) > 3 else "")


def _part(part: Document) -> str:
    if "memory_id" in part:
        return str(part["memory_id"])
    if "query_hash" in part:
        return plural(part["results"], "result")
    return ", ".join(f"{name}: {text_of(value)}" for name, value in part.items())
