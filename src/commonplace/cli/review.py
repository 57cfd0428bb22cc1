"""Look at changes that wait for approval, and decide.

\b
Example:
  commonplace review list
  commonplace review approve 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
"""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli import FAILURE, MISTAKE, OK
from commonplace.cli.forget import remains
from commonplace.cli.support import values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import (
    Document,
    body,
    flattened,
    indented,
    label,
    line,
    minute,
    moment,
    plural,
    print_fields,
    text_of,
)
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import REVIEW_STATUSES

ReviewIds = Annotated[list[str], argument("REVIEWS", "The ids of the reviews.")]
ReviewId = Annotated[str, argument("REVIEW", "The review's id.")]
Reviewer = Annotated[str | None, option("--reviewer NAME", "Who decides.")]
Reason = Annotated[str | None, option("--reason TEXT", "Why.")]
Revision = Annotated[int | None, option("--revision N", "The revision you looked at; another one is a conflict.")]

_INDENT = "    "
_IN_THE_LINE = ("id", "agent_id", "content", "subject", "predicate", "object", "valid_to", "asserted_by")
_TIMES = ("expires_at", "valid_from")
_STATUSES = (*REVIEW_STATUSES, "all")
_UNUSED = "the id of a review says whose it is"

commands = Commands(__doc__)


@commands.add("list", agent="Only of this agent; of every agent where none is named.")
def list_reviews(
    run: Session,
    status: Annotated[
        str, option("--status STATUS", "pending, approved, rejected, expired or all.", *_STATUSES)
    ] = "pending",
) -> Answer:
    """List reviews, oldest first, of all agents or of --agent.

    \b
    Example:
      commonplace review list
      commonplace review list --status all --json
    """
    if status not in _STATUSES:
        raise ValidationError(f"--status is one of {', '.join(_STATUSES)}, not {status!r}", field="status")
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


@commands.add("show", unused=_UNUSED)
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
    for other in review.get("nearest", ()):
        line(f"~ {other['id']}  {other['similarity']:.2f} {other['relation']}: {indented(other['content'], _INDENT)}")
    if editors := review.get("edited_by"):
        line(f"edited by {', '.join(editors)}; revision {review['revision']}")
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


@commands.add("approve", unused=_UNUSED)
def approve(
    run: Session,
    review: ReviewIds,
    reviewer: Reviewer = None,
    reason: Reason = None,
    request: Annotated[str | None, option("--request JSON", "Approve this request instead of the one staged.")] = None,
    revision: Revision = None,
) -> Answer:
    """Let waiting changes happen.

    \b
    Example:
      commonplace review approve 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reviewer bob
    """
    if len(review) > 1:
        if request is not None or revision is not None:
            raise ValidationError("--request and --revision are about one review; name one", field="review")
        return _decide_many(run, review, True, reviewer, reason)
    edited = None if request is None else values.json_object(request, "--request")
    decided = run(run.memory.approve(review[0], reviewer=reviewer, reason=reason, request=edited, revision=revision))
    return _decided(decided)


@commands.add("reject", unused=_UNUSED)
def reject(run: Session, review: ReviewIds, reviewer: Reviewer = None, reason: Reason = None) -> Answer:
    """Refuse waiting changes; nothing of them happens.

    \b
    Example:
      commonplace review reject 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reason "not true any more"
    """
    if len(review) > 1:
        return _decide_many(run, review, False, reviewer, reason)
    decided = run(run.memory.reject(review[0], reviewer=reviewer, reason=reason))
    return Answer(decided, f"rejected: {decided['operation']}")


@commands.add("edit", unused=_UNUSED)
def edit(
    run: Session,
    review: ReviewId,
    content: Annotated[str | None, option("--content TEXT", "What it should say instead.")] = None,
    request: Annotated[str | None, option("--request JSON", "The whole request as it should have been.")] = None,
    revision: Revision = None,
) -> Answer:
    """Change what a review asks for; it goes on waiting.

    \b
    Example:
      commonplace review edit 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --content "Alice likes green tea"
    """
    if (content is None) == (request is None):
        raise ValidationError("give --content or --request, one of them", field="request")
    if request is not None:
        edited = values.json_object(request, "--request")
    else:
        asked = run(run.memory.review(review))
        if asked["operation"] not in ("remember", "update"):
            raise ValidationError(f"a {asked['operation']} has no content; give --request", field="content")
        edited = {name: value for name, value in asked["request"].items() if name != "approval_required"}
        edited["content"] = content
    changed = run(run.memory.edit_review(review, edited, revision=revision))
    return Answer(changed, f"edited: {changed['operation']} {review}, revision {changed['revision']}")


@commands.add("apply", unused=_UNUSED)
def apply(
    run: Session,
    review: ReviewId,
    merge_into: Annotated[str | None, option("--merge-into ID", "The memory that the new one joins.")] = None,
    forget: Annotated[
        list[str] | None, option("--forget ID", "A memory that the new one takes the place of; repeat it.")
    ] = None,
    reviewer: Reviewer = None,
    reason: Reason = None,
    revision: Revision = None,
) -> Answer:
    """Approve a new memory and let it join another, or take the place of others.

    \b
    Example:
      commonplace review apply 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --forget 0198c3f1-1c2d-7a3b-8e4f-5061728394a5
    """
    if (merge_into is None) == (not forget):
        raise ValidationError("give --merge-into or --forget, one of them", field="apply")
    how: Document = {"forget": forget} if merge_into is None else {"merge_into": merge_into}
    decided = run(run.memory.approve(review, reviewer=reviewer, reason=reason, apply=how, revision=revision))
    return _decided(decided)


def _decided(decided: Document) -> Answer:
    outcome: Document = decided.get("outcome") or {}
    about = outcome.get("id") or outcome.get("canonical") or ", ".join(outcome.get("forgotten_ids", ()))
    said = f"approved: {decided['operation']} {about}".rstrip()
    failed = [outcome["error"]] if "error" in outcome else []
    notes = remains(outcome["erased"]) if "erased" in outcome else []
    return Answer(decided, said, notes, FAILURE if failed else OK, failed)


def _decide_many(run: Session, reviews: list[str], approved: bool, reviewer: str | None, reason: str | None) -> Answer:
    results = run(run.memory.decide_many(reviews, approved, reviewer=reviewer, reason=reason))
    done = [each for each in results if "status" in each]
    refused = [f"{each['id']}: {each['error']['message']}" for each in results if "error" in each]
    said = f"{'approved' if approved else 'rejected'} {len(done)} of {plural(len(results), 'review')}"
    return Answer({"results": results}, said, (), MISTAKE if refused else OK, refused)


def _summary(review: Document) -> str:
    diff = review.get("diff") or {}
    said = [*diff.get("added", ()), *diff.get("removed", ()), *(pair["after"] for pair in diff.get("modified", ()))]
    return "; ".join(body(memory) for memory in said) or "(erased)"
