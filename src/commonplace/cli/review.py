"""Look at changes that wait for approval, and decide.

\b
Example:
  commonplace review list
  commonplace review approve 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
"""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli import FAILURE, OK
from commonplace.cli.forget import remains
from commonplace.cli.support import values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import (
    Document,
    Table,
    body,
    flattened,
    indented,
    label,
    line,
    minute,
    moment,
    print_fields,
    text_of,
)
from commonplace.wire.errors import ValidationError

ReviewId = Annotated[str, argument("REVIEW", "The review's id.")]
Reviewer = Annotated[str | None, option("--reviewer NAME", "Who decides.")]
Reason = Annotated[str | None, option("--reason TEXT", "Why.")]

_INDENT = "    "
_IN_THE_LINE = ("id", "agent_id", "content", "subject", "predicate", "object", "valid_to", "asserted_by")
_TIMES = ("expires_at", "valid_from")
_STATUSES = ("pending", "approved", "rejected", "all")

commands = Commands(__doc__)


@commands.add("list")
def list_reviews(
    run: Session,
    status: Annotated[str, option("--status STATUS", "pending, approved, rejected or all.", *_STATUSES)] = "pending",
) -> Answer:
    """List reviews, oldest first, of all agents or of --agent.

    \b
    Example:
      commonplace review list
      commonplace review list --status all --json
    """
    if status not in _STATUSES:
        raise ValidationError(f"--status is pending, approved, rejected or all, not {status!r}", field="status")
    found = run(run.memory.reviews(None if status == "all" else status))
    found = [review for review in found if run.agent in (None, review["agent_id"])]

    def row(review: Document, asked: str) -> list[Any]:
        return [
            (_summary(review), review["id"]),
            *(review[name] for name in ("operation", "agent_id", "status")),
            asked,
        ]

    table = Table(
        ["change", "operation", "agent", "status", "asked"],
        [row(review, minute(review["created_at"])) for review in found],
        [row(review, moment(review["created_at"])) for review in found],
        empty="nothing waits for approval" if status == "pending" else "there are no such reviews",
    )
    return Answer({"reviews": found}, table)


@commands.add("show")
def show_review(run: Session, review: ReviewId) -> Answer:
    """Show what a waiting change would add, remove and modify.

    \b
    Example:
      commonplace review show 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    found = run(run.memory.review(review))
    return Answer(found, lambda: _show(found))


def _show(review: Document) -> None:
    names = ("id", "operation", "agent_id", "status", "requested_by", "reasoning")
    request = review.get("request") or {}
    known = {name: review.get(name) for name in names} | {name: request.get(name) for name in ("reason", "strategy")}
    if request.get("hard_delete"):
        known["operation"] = f"{review['operation']}, which erases it for good"
        known["cascade"] = request.get("cascade") or None
    print_fields({name: value and indented(str(value), _INDENT) for name, value in known.items()})
    line(f"asked at {moment(review['created_at'])}")
    diff = review.get("diff") or {}
    for memory in diff.get("added", ()):
        _show_side("+", memory)
        for name, value in _fields(memory).items():
            line(f"{_INDENT}{name}: {value}")
    for memory in diff.get("removed", ()):
        _show_side("-", memory)
    for pair in diff.get("modified", ()):
        _show_side("-", pair["before"])
        _show_side("+", pair["after"])
        before, after = _fields(pair["before"]), _fields(pair["after"])
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                line(f"{_INDENT}{name}: {before.get(name, '—')} → {after.get(name, '—')}")
    if decision := review.get("decision"):
        line(f"{review['status']} by {decision['reviewer']} at {moment(decision['reviewed_at'])}")


def _show_side(sign: str, memory: Document) -> None:
    ends = f", until {moment(memory['valid_to'])}" if "valid_to" in memory else ""  # of a statement
    line(f"{sign} {memory['id']}  {indented(body(memory), _INDENT)}{ends}")


def _fields(memory: Document) -> dict[str, str]:
    """What is said of a memory or statement beside its text, each field once."""
    fields = {name: value for name, value in flattened(memory).items() if name not in _IN_THE_LINE}
    return {
        label(name): moment(value) if name in _TIMES else indented(text_of(value), _INDENT)
        for name, value in fields.items()
        if not name.startswith("metadata.") or fields.get(name.removeprefix("metadata.")) != value
    }


@commands.add("approve")
def approve(
    run: Session,
    review: ReviewId,
    reviewer: Reviewer = None,
    reason: Reason = None,
    request: Annotated[str | None, option("--request JSON", "Approve this request instead of the one staged.")] = None,
) -> Answer:
    """Let a waiting change happen.

    \b
    Example:
      commonplace review approve 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reviewer bob
    """
    edited = None if request is None else values.json_object(request, "--request")
    decided = run(run.memory.approve(review, reviewer=reviewer, reason=reason, request=edited))
    outcome: Document = decided.get("outcome") or {}
    about = outcome.get("id") or outcome.get("canonical") or ", ".join(outcome.get("forgotten_ids", ()))
    said = f"approved: {decided['operation']} {about}".rstrip()
    failed = [outcome["error"]] if "error" in outcome else []
    notes = remains(outcome["erased"]) if "erased" in outcome else []
    return Answer(decided, said, notes, FAILURE if failed else OK, failed)


@commands.add("reject")
def reject(run: Session, review: ReviewId, reviewer: Reviewer = None, reason: Reason = None) -> Answer:
    """Refuse a waiting change; nothing of it happens.

    \b
    Example:
      commonplace review reject 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reason "not true any more"
    """
    decided = run(run.memory.reject(review, reviewer=reviewer, reason=reason))
    return Answer(decided, f"rejected: {decided['operation']}")


def _summary(review: Document) -> str:
    diff = review.get("diff") or {}
    said = [*diff.get("added", ()), *diff.get("removed", ()), *(pair["after"] for pair in diff.get("modified", ()))]
    return "; ".join(body(memory) for memory in said) or "(erased)"
