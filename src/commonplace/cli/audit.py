"""Read the ledger of all that was done; verify it, and sign what it is.

\b
Example:
  commonplace audit list --operation forget
  commonplace audit head --json > head.json
  commonplace audit verify --head head.json
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from commonplace.cli import FAILURE
from commonplace.cli.support import options, values
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, minute, moment, plural, text_of
from commonplace.cli.support.progress import ProgressBar
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import ValidationError

_UNUSED = "the ledger is of every agent"

commands = Commands(__doc__)


@commands.add("list", agent="Only entries of this agent; of every agent where none is named.")
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


@commands.add("verify", unused=_UNUSED)
def verify(
    run: Session,
    head: Annotated[
        Path | None, option("--head FILE", "What must still be true: a signed head, or lines of them and of an export.")
    ] = None,
    key: Annotated[
        str | None, option("--key KEY", "The public key of heads; by default any this installation ever had.")
    ] = None,
) -> Answer:
    """Check the whole ledger, and every row against it; what was changed exits 2.

    Whoever can write the store can rewrite all of it, so keep signed heads elsewhere (`audit head`, or
    `[audit] export` in commonplace.toml) and give them with --head: a ledger that was cut off or rewritten since is
    found out, and of an exported one the first entry that differs is named.

    \b
    Example:
      commonplace audit verify
      commonplace audit verify --head /mnt/worm/head-2026-03-01.json
    """
    if key is not None and head is None:
        raise ValidationError("--key is the key of heads; give them with --head FILE", field="key")
    evidence = [] if head is None else _documents(head)
    with ProgressBar("verifying") as progress:
        found = run(run.engine.ledger.verify(OPERATOR, progress, evidence=evidence, key=key)).to_wire()
    if found["ok"]:
        whole = f"the ledger is whole: {plural(found['entries'], 'entry')}, head {found['head'] or '(none yet)'}"
        if head is not None:
            whole += f"; it is the one that {head} tells of ({plural(len(evidence), 'line')})"
        return Answer(found, whole)
    if head is not None and "first_bad" not in found:  # it may be the file that was changed, or is of another ledger
        differs = f"{head} and the ledger do not agree: {found.get('problem')}"
        advice = "`commonplace audit verify` without --head says whether the ledger itself is whole"
        return Answer(found, f"{differs}\n{advice}", exit_code=FAILURE)
    entry = f"entry {found['first_bad']}: " if "first_bad" in found else ""
    changed = f"something other than Commonplace changed the store: {entry}{found.get('problem')}"
    advice = "compare with a backup to see what it should say; `commonplace restore BACKUP` brings one back"
    return Answer(found, f"{changed}\n{advice}", exit_code=FAILURE)


@commands.add("head", unused=_UNUSED)
def head(run: Session) -> Answer:
    """Sign what the ledger is now: how many entries, and the Merkle root over them.

    Kept elsewhere it exposes whoever rewrites the ledger later: `commonplace audit verify --head FILE`.

    \b
    Example:
      commonplace audit head --json > head.json
    """
    made = run(run.memory.audit_head())
    return Answer(made, {**made, "at": moment(made["at"])})


@commands.add("export", unused=_UNUSED)
def export(run: Session, file: Annotated[Path, argument("FILE", "What it is appended to.")]) -> Answer:
    """Append to a file what it lacks of the ledger's headers, and a signed head.

    Nothing of any memory is in it. Servers do it by themselves into the folder that `export` under [audit] in
    commonplace.toml names.

    \b
    Example:
      commonplace audit export /mnt/worm/commonplace.jsonl
      commonplace audit verify --head /mnt/worm/commonplace.jsonl
    """
    count = run(run.engine.ledger.export(OPERATOR, file.expanduser().absolute()))
    return Answer({"file": str(file), "exported": count}, f"appended {plural(count, 'entry')} to {file}")


@commands.add("proof", unused=_UNUSED)
def proof(
    run: Session,
    entry: Annotated[int, argument("N", "The number of the entry, as `audit list` shows it.")],
    size: Annotated[int | None, option("--size M", "In the tree of the first M entries; by default of all.")] = None,
) -> Answer:
    """Prove that an entry is in the ledger (RFC 6962): the path from it to a root.

    \b
    Example:
      commonplace audit proof 7 --json
    """
    made = run(run.memory.audit_proof(entry, size))
    return Answer(made, {**made, "path": "\n".join(made["path"]) or "(empty: it is the only one)"})


@commands.add("consistency", unused=_UNUSED)
def consistency(
    run: Session,
    first: Annotated[int, argument("FROM", "The size of the ledger then, as a head says it.")],
    second: Annotated[int | None, argument("TO", "Its size later; by default what it is now.")] = None,
) -> Answer:
    """Prove that what the ledger was is the beginning of what it is (RFC 6962).

    \b
    Example:
      commonplace audit consistency 120 --json
    """
    made = run(run.memory.audit_consistency(first, second))
    return Answer(made, {**made, "path": "\n".join(made["path"]) or "(empty)"})


@commands.add("key", unused=_UNUSED)
def key(run: Session) -> Answer:
    """Show the public key that heads are signed with, and those before it.

    \b
    Example:
      commonplace audit key --json
    """
    made = run(run.memory.audit_key())
    retired = [f"retired {old['key_id']} {old['public_key']}" for old in made["retired"]]
    return Answer(made, made["public_key"], notes=[f"key_id {made['key_id']}", *retired])


def _documents(path: Path) -> list[Document]:
    from commonplace.engine import read_evidence

    with values.open_text(path, "--head") as file:
        return read_evidence(file, str(path))


def _about(entry: Document) -> str:
    parts = entry.get("payload", ())
    return "; ".join(_part(part) for part in parts[:3]) + ("; …" if len(parts) > 3 else "")


def _part(part: Document) -> str:
    if "memory_id" in part:
        return str(part["memory_id"])
    if "query_hash" in part:
        return plural(part["results"], "result")
    return ", ".join(f"{name}: {text_of(value)}" for name, value in part.items())
