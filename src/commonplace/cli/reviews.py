"""`commonplace reviews`: what waits for a person, and the decision."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, line, minute, moment, note
from commonplace.cli.support.session import Session
from commonplace.wire.errors import ValidationError

ReviewId = Annotated[str, typer.Argument(metavar="REVIEW", help="The review's id.")]
Reviewer = Annotated[str | None, typer.Option("--reviewer", metavar="NAME", help="Who decides.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(listing)
    group.command("show")(details)
    group.command("approve")(approve)
    group.command("reject")(reject)
    app.add_typer(group, name="reviews", rich_help_panel="Governance", help=_ABOUT)


_ABOUT = """Look at changes that wait for approval, and decide.

\b
Example:
  commonplace reviews list
  commonplace reviews approve 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
"""


def listing(
    status: Annotated[
        str,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="pending, approved, rejected or all.",
            autocompletion=options.offering("pending", "approved", "rejected", "all"),
        ),
    ] = "pending",
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """List reviews, oldest first, of all agents or of --agent.

    \b
    Example:
      commonplace reviews list
      commonplace reviews list --status all --json
    """
    if status not in ("pending", "approved", "rejected", "all"):
        raise ValidationError(f"--status is pending, approved, rejected or all, not {status!r}", field="status")
    with Session(data, agent, existing=True) as run:
        found = run(run.memory.reviews(None if status == "all" else status))
    if agent is not None:
        found = [r for r in found if r["agent_id"] == agent]
    if as_json:
        emit({"reviews": found})
    elif not found:
        note("nothing waits for approval" if status == "pending" else "there are no such reviews")
    else:
        show.table(
            ["change", "operation", "agent", "status", "asked"],
            [[(_gist(r), r["id"]), r["operation"], r["agent_id"], r["status"], minute(r["created_at"])] for r in found],
        )


def details(
    review: ReviewId, as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None
) -> None:
    """Show what a waiting change would add, remove and modify.

    \b
    Example:
      commonplace reviews show 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    with Session(data, agent, existing=True) as run:
        found = run(run.memory.review(review))
    if as_json:
        emit(found)
        return
    show.fields((n, found.get(n)) for n in ("id", "operation", "agent_id", "status", "requested_by", "reasoning"))
    line(f"asked at {moment(found['created_at'])}")
    diff = found.get("diff") or {}
    for memory in diff.get("added", ()):
        line(f"+ {memory['id']}  {show.body(memory)}")
    for memory in diff.get("removed", ()):
        line(f"- {memory['id']}  {show.body(memory)}")
    for pair in diff.get("modified", ()):
        line(f"- {pair['before']['id']}  {show.body(pair['before'])}")
        line(f"+ {pair['after']['id']}  {show.body(pair['after'])}")
    if "decision" in found:
        line(f"{found['status']} by {found['decision']['reviewer']} at {moment(found['decision']['reviewed_at'])}")


def approve(
    review: ReviewId,
    reviewer: Reviewer = None,
    reason: Reason = None,
    request: Annotated[
        str | None, typer.Option("--request", metavar="JSON", help="Approve this request instead of the one staged.")
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Let a waiting change happen.

    \b
    Example:
      commonplace reviews approve 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reviewer bob
    """
    edited = None if request is None else values.json_object(request, "--request")
    with Session(data, agent, existing=True) as run:
        decided = run(run.memory.approve(review, reviewer=reviewer, reason=reason, request=edited))
    if as_json:
        emit(decided)
        return
    outcome: dict[str, Any] = decided.get("outcome") or {}
    about = outcome.get("id") or outcome.get("canonical") or ", ".join(outcome.get("forgotten_ids", ()))
    line(f"approved: {decided['operation']} {about}".rstrip())


def reject(
    review: ReviewId,
    reviewer: Reviewer = None,
    reason: Reason = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Refuse a waiting change; nothing of it happens.

    \b
    Example:
      commonplace reviews reject 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --reason "not true any more"
    """
    with Session(data, agent, existing=True) as run:
        decided = run(run.memory.reject(review, reviewer=reviewer, reason=reason))
    if as_json:
        emit(decided)
    else:
        line(f"rejected: {decided['operation']}")


def _gist(review: dict[str, Any]) -> str:
    diff = review.get("diff") or {}
    said = [*diff.get("added", ()), *diff.get("removed", ()), *(pair["after"] for pair in diff.get("modified", ()))]
    return "; ".join(show.body(memory) for memory in said) or "(erased)"
