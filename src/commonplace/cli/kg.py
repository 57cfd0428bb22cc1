"""State facts about things, and ask what held when.

\b
Example:
  commonplace kg assert Alice works_at Acme
  commonplace kg query Alice --as-of 2026-03-01
  commonplace kg path Alice Oslo
"""

from __future__ import annotations

from typing import Annotated

from commonplace.cli import FAILURE, OK
from commonplace.cli.support import options, values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, body, confirm, minute, moment, plural, sentence, waiting
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import NotFound, ValidationError

Subject = Annotated[str, argument("SUBJECT", "What it is about, exactly as it was stated.")]
Predicate = Annotated[str, argument("PREDICATE", "What is said of it, such as works_at.")]
OnlyPredicate = Annotated[str | None, option("--predicate NAME", "Only what is said with this predicate.")]

commands = Commands(__doc__)


@commands.add("assert", existing=False)
def assert_fact(
    run: Session,
    subject: Annotated[str, argument("SUBJECT", "What it is about.")],
    predicate: Predicate,
    object: Annotated[str, argument("OBJECT", "The value, or the other thing.")],
    confidence: options.Confidence = None,
    provenance: Annotated[
        str | None, option("--provenance TEXT", "Where it comes from; a memory's id binds it to that one.")
    ] = None,
    valid_from: Annotated[
        str | None, option("--valid-from TIME", "Since when: an ISO time (UTC), epoch ms, or an age [now].")
    ] = None,
    approval: options.Approval = False,
    reasoning: options.Reasoning = None,
) -> Answer:
    """State a fact; what held of this subject and predicate until then ends.

    A predicate has one value at a time. To keep several, give each a predicate of its own: likes_tea, likes_coffee.

    \b
    Example:
      commonplace kg assert Alice works_at Acme
      commonplace kg assert auth-service deployed_version 2.4.1 --confidence 0.95 --provenance deploy-log
      commonplace kg assert Alice works_at Bolt --valid-from 2026-03-01
    """
    since = values.past(valid_from, "--valid-from")
    made = run(
        run.memory.graph_assert(
            subject, predicate, object, confidence=confidence, provenance=provenance, valid_from=since,
            approval_required=approval, reasoning=reasoning,
        )
    )  # fmt: skip
    if made.get("pending_approval"):
        return Answer(made, waiting(made["review_id"], made.get("approval_url")))
    until = "" if made["valid_to"] is None else f" until {moment(made['valid_to'])}"
    said = f"{sentence(made)}, since {moment(made['valid_from'])}{until}"
    ended = made.get("replaced")
    if ended is not None and ended["object"] != made["object"]:
        said += f"\nends: {sentence(ended)}, since {moment(ended['valid_from'])}"
    return Answer(made, said)


@commands.add("query")
def query(run: Session, subject: Subject, predicate: OnlyPredicate = None, as_of: options.AsOf = None) -> Answer:
    """Show what is stated about a subject, now or as of another time.

    \b
    Example:
      commonplace kg query Alice
      commonplace kg query Alice --as-of 2026-03-01 --json
    """
    found = run(run.memory.graph_query(subject, predicate=predicate, as_of=values.past(as_of, "--as-of")))
    return Answer(found, _table(found, f"nothing is stated about {subject}"))


@commands.add("history")
def history(run: Session, subject: Subject, predicate: OnlyPredicate = None) -> Answer:
    """Show everything that was ever stated about a subject, oldest first.

    \b
    Example:
      commonplace kg history Alice --predicate works_at
    """
    found = run(run.memory.graph_history(subject, predicate=predicate))
    return Answer(found, _table(found, f"nothing was ever stated about {subject}"))


@commands.add("path")
def path(
    run: Session,
    start: Annotated[str, argument("FROM", "Where the way begins, in upper or lower case.")],
    end: Annotated[str, argument("TO", "Where it leads.")],
    max_hops: Annotated[int, option("--max-hops N", "At most so many statements, 1 to 6.")] = 3,
    as_of: options.AsOf = None,
) -> Answer:
    """Show the fewest statements that lead from one thing to another.

    \b
    Example:
      commonplace kg path Alice Oslo
      commonplace kg path Alice Oslo --max-hops 6 --as-of 30d
    """
    found = run(run.memory.graph_path(start, end, max_hops=max_hops, as_of=values.past(as_of, "--as-of")))
    return Answer(found, _table(found, f"no way from {start} to {end} within {plural(max_hops, 'statement')}"))


@commands.add("neighbors")
def neighbors(
    run: Session, id: options.MemoryId, hops: Annotated[int, option("--hops N", "How far to look, 1 to 3.")] = 1
) -> Answer:
    """Show the memories tied to one by reference, subject or statement.

    \b
    Example:
      commonplace kg neighbors 1d2e3f --hops 2
    """
    found = run(run.memory.neighbors(run.id(id), hops=hops))
    if run.as_json:
        return Answer(found)
    rows = [[(body(run(run.memory.get(n["id"]))), n["id"]), n["distance"]] for n in found["neighbors"]]
    return Answer(found, Table(["memory", "hops"], rows, empty=f"nothing is tied to {id} within {plural(hops, 'hop')}"))


@commands.add("retract")
def retract(run: Session, subject: Subject, predicate: Predicate) -> Answer:
    """End what holds now, with nothing in its place; its history stays.

    \b
    Example:
      commonplace kg retract Alice works_at
    """
    ended = run(run.memory.graph_retract(subject, predicate))
    return Answer(ended, f"{sentence(ended)}, until {moment(ended['valid_to'])}")


@commands.add("erase")
def erase(
    run: Session,
    subject: Subject,
    mentions: Annotated[bool, option("--mentions", "Also what names it as the object.")] = False,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
) -> Answer:
    """Erase everything ever stated about a subject, for good.

    \b
    Example:
      commonplace kg erase Alice --mentions --dry-run
      commonplace kg erase Alice --mentions --yes
    """
    if not (yes or dry_run or run.interactive):
        raise ValidationError("erasing cannot be undone: look with --dry-run first, then add --yes", field="subject")
    if dry_run or not yes:
        preview = run(run.memory.preview_graph_erase(subject, mentions=mentions))
        count = plural(len(preview["triples"]), "statement")
        table = _table(preview, f"nothing was ever stated about {subject}")
        if dry_run:
            table.more = f"would erase {count}; nothing was changed"
            return Answer({"dry_run": True, **preview}, table)
        table.print()
        if preview["triples"]:
            confirm(f"Erase {count} for good?")
    answer = run(run.memory.graph_erase(subject, mentions=mentions))
    if not answer["erased"]:
        raise NotFound(f"nothing was ever stated about {subject} for agent {run.memory.agent_id}")
    backups = [f"the backup {path} may still hold it" for path in answer.get("backups", ())]
    said, failed = f"erased {plural(len(answer['erased']), 'statement')}", answer.get("error")
    if remaining := answer.get("remaining"):
        said += f"; {plural(len(remaining), 'statement')} could not be"
    return Answer(answer, said, backups, FAILURE if failed else OK, [failed] if failed else ())


def _table(found: Document, nothing: str) -> Table:
    """Piped: id, subject, predicate, object, since, until, confidence, provenance."""
    rows, piped = [], []
    for t in found["triples"]:
        said = [t["subject"], t["predicate"], t["object"]]
        sure = [f"{t['confidence']:g}", t.get("provenance", "")]
        rows.append([*said, minute(t["valid_from"]), minute(t["valid_to"]), *sure])
        piped.append([t["id"], *said, moment(t["valid_from"]), moment(t["valid_to"]), *sure])
    headers = ["subject", "predicate", "object", "since", "until", "sure", "from"]
    return Table(headers, rows, piped, empty=nothing)
