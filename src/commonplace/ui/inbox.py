"""*Inbox*: what waits for a person, and what they decide about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.engine import Decision
from commonplace.ui import edit_form, review_view
from commonplace.ui.page import Answer, PageRequest, PageRoute, Redirect, TemplatePage
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.record import REVIEW_STATUSES

PAGE = 50
STATUSES = (*REVIEW_STATUSES, "all")
OPERATIONS = tuple(review_view.TITLES)
#: What a page says after it was led to by a decision.
_SAID = {"approved": "Approved.", "rejected": "Rejected.", "edited": "Edited; it goes on waiting for approval."}


async def show_inbox(call: PageRequest) -> Answer:
    return TemplatePage("inbox.html", await _listing(call))


async def _listing(call: PageRequest) -> dict[str, Any]:
    query = call.query
    status = query.get("status") or "pending"
    operation, agent = query.get("operation") or None, query.get("agent") or None
    if status not in STATUSES:
        raise ValidationError(f"status is one of {', '.join(STATUSES)}", field="status")
    reviews, cursor = await call.engine.reviews.page(
        call.who,
        None if status == "all" else status,
        agent_id=agent,
        operation=operation,
        limit=PAGE,
        cursor=query.get("cursor") or None,
        newest_first=status != "pending",
    )
    rows = [{**review, "summary": review_view.summary(review)} for review in reviews]
    following = call.link("inbox", status=status, operation=operation, agent=agent, cursor=cursor) if cursor else None
    return {
        "rows": rows, "following": following, "status": status, "operation": operation or "", "agent": agent or "",
        "statuses": STATUSES, "operations": OPERATIONS, "may_decide": call.may("reviewer"),
        "said": _SAID.get(query.get("said", "")), "outcomes": [],
        "empty_store": not rows and not await call.engine.agent_names(call.who),
    }  # fmt: skip


async def decide_many(call: PageRequest) -> Answer:
    """The same decision about everything that was ticked; each box says which revision was looked at."""
    verdict = call.value("decision")
    if verdict not in ("approve", "reject"):
        raise ValidationError("choose approve or reject", field="decision")
    ticked = dict(each.partition(":")[::2] for each in call.form.get("review", ()))
    if not ticked:
        raise ValidationError("tick at least one review first", field="review")
    revisions = {id: call.whole("revision", revision) for id, revision in ticked.items()}
    decision = Decision(verdict == "approve", reason=call.value("reason") or None)
    results = await call.engine.reviews.decide_many(call.who, list(ticked), decision, revisions)
    refused = [
        {"id": id, "sentence": _sentence(call, each)}
        for id, each in zip(ticked, results, strict=True)
        if isinstance(each, Fault)
    ]
    done = len(results) - len(refused)
    said = f"{'Approved' if decision.approved else 'Rejected'} {done} of {len(results)}."
    undelivered: dict[str, str] = {}
    for each in results:
        undelivered |= {} if isinstance(each, Fault) else each.undelivered
    said = _with_stores(said, undelivered)
    return TemplatePage(
        "inbox.html", {**await _listing(call), "said": said, "outcomes": refused}, 409 if refused else 200
    )


async def show_review(call: PageRequest) -> Answer:
    return await _review(call, said=_SAID.get(call.query.get("said", "")))


async def _review(
    call: PageRequest, *, said: str | None = None, problem: Fault | None = None, typed: Mapping[str, str] | None = None
) -> Answer:
    review = await call.engine.reviews.get(call.who, call.path["review"])
    pending = review["status"] == "pending"
    values = {
        "review": review, "summary": review_view.summary(review), "changes": review_view.changes(review),
        "title": review_view.TITLES[review["operation"]], "pending": pending,
        "may_decide": pending and call.may("reviewer"), "said": said,
        "problem": _sentence(call, problem) if problem is not None else None,
        "form": edit_form.FORMS.get(review["operation"], ()), "choices": edit_form.CHOICES,
        "given": {**edit_form.given(review), **(typed or {})},
        "editing": typed is not None or call.query.get("edit") == "1",
        "may_apply": review["operation"] == "remember", "next": await _next(call, review["id"]) if pending else None,
    }  # fmt: skip
    return TemplatePage("review.html", values, _STATUS.get(problem.code, 400) if problem is not None else 200)


_STATUS = {"conflict": 409, "forbidden": 403, "not_found": 404, "unavailable": 503}


async def _next(call: PageRequest, after: str) -> str | None:
    """The review that waits behind this one, else the one that waits longest."""
    for behind in (after, None):
        found, _ = await call.engine.reviews.page(call.who, limit=2, after=behind)
        for review in found:
            if review["id"] != after:
                return str(review["id"])
    return None


async def decide(call: PageRequest) -> Answer:
    """Approve, reject, approve as edited, or approve and apply; then on to what waits next."""
    id, verdict = call.path["review"], call.value("decision")
    typed: dict[str, str] | None = None
    try:
        revision = call.whole("revision", call.value("revision"))
        decision = Decision(verdict != "reject", reason=call.value("reason") or None, revision=revision)
        match verdict:
            case "approve" | "reject":
                pass
            case "merge":
                decision.merge_into = call.value("other")
            case "replace":
                decision.forget = (call.value("other"),)
            case "edit" | "approve_edited":
                review = await call.engine.reviews.get(call.who, id)
                typed = edit_form.typed(review, call)
                edited, request = await call.engine.reviews.with_changes(call.who, id, edit_form.changes(review, typed))
                if verdict == "edit":
                    await call.engine.reviews.edit(call.who, id, edited, request, revision)
                    return Redirect(call.link(f"inbox/{id}", said="edited"))
                decision.edited, decision.edited_request = edited, request
            case _:
                raise ValidationError("choose approve, reject or edit", field="decision")
        following = await _next(call, id)
        decided = await call.engine.reviews.decide(call.who, id, decision)
    except Fault as fault:
        return await _review(call, problem=fault, typed=typed)
    said = "approved" if decision.approved else "rejected"
    if decided.undelivered:  # told here: the address that is led to has no room for it
        return await _review(call, said=_with_stores(_SAID[said], decided.undelivered))
    return Redirect(call.link(f"inbox/{following}" if following else "inbox", said=said))


def _with_stores(said: str, undelivered: Mapping[str, str]) -> str:
    """With the stores beside the primary that have not done it yet, and why."""
    return " ".join([said, *(f"Not yet in {store}: {why}." for store, why in undelivered.items())])


def _sentence(call: PageRequest, fault: Fault) -> str:
    call.engine.redactor.redact_fault(fault, call.who)
    return fault.summary


ROUTES = (
    PageRoute("GET", "inbox", show_inbox, "page_inbox"),
    PageRoute("POST", "inbox", decide_many, "page_decide_many"),
    PageRoute("GET", "inbox/{review}", show_review, "page_review"),
    PageRoute("POST", "inbox/{review}", decide, "page_decide"),
)
