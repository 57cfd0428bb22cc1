"""Look at changes that wait for approval, and decide.

\b
Example:
  commonplace reviews list
  commonplace reviews approve 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
"""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli import FAILURE, OK
from commonplace.cli.forget import remains
from commonplace.cli.support import values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, Table, body, line, minute, moment, print_fields
from commonplace.wire.errors import ValidationError

ReviewId = Annotated[str, argument("REVIEW", "The review's id.")]
Reviewer = Annotated[str | None, option("--reviewer NAME", "Who decides.")]
Reason = Annotated[str | None, option("--reason TEXT", "Why.")]

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
      commonplace reviews list
      commonplace reviews list --status all --json
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
      commonplace reviews show 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    found = run(run.memory.review(review))
    return Answer(found, lambda: _show(found))


def _show(review: Document) -> None:
    names = ("id", "operation", "agent_id", "status", "requested_by", "reasoning")
    print_fields({name: review.get(name) for name in names})
    line(f"asked at {moment(review['created_at'])}")
    diff = review.get("diff") or {}
    changes = [("+", memory) for memory in diff.get("added", ())]
    changes += [("-", memory) for memory in diff.get("removed", ())]
    for pair in diff.get("modified", ()):
        changes += [("-", pair["before"]), ("+", pair["after"])]
    for sign, memory in changes:
        ends = f", until {moment(memory['valid_to'])}" if "valid_to" in memory else ""  # of a statement
        line(f"{sign} {memory['id']}  {body(memory)}{ends}")
    if decision := review.get("decision"):
        line(f"{review['status']} by {decision['reviewer']} at {moment(decision['reviewed_at'])}")


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
      commonplace reviews approve 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reviewer bob
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
      commonplace reviews reject 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reason "not true any more"
    """
    decided = run(run.memory.reject(review, reviewer=reviewer, reason=reason))
    return Answer(decided, f"rejected: {decided['operation']}")


def _summary(review: Document) -> str:
    diff = review.get("diff") or {}
    said = [*diff.get("added", ()), *diff.get("removed", ()), *(pair["after"] for pair in diff.get("modified", ()))]
    return "; ".join(body(memory) for memory in said) or "(erased)"
