"""What a reviewer says about a review, and how it is noted, once, in the transaction of what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from commonplace.engine.checks import RANK
from commonplace.engine.core import REVIEW, Core
from commonplace.engine.governance import staging
from commonplace.engine.graph.statements import AssertResult
from commonplace.engine.ledger import audit
from commonplace.engine.memory.erase_records import erase_records, without_quotes
from commonplace.engine.types import Draft, Forget, ForgetResult, Merge, MergeResult, Receipt, Statement, Update
from commonplace.stores.base import Record, Transaction
from commonplace.wire.errors import Conflict, Forbidden, NotFound
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS

Edit = Draft | Update | Forget | Merge | Statement

#: What the engine notes in a review for itself.
_NOTES = ("draft", "replacement", "ids", "drafts", "statement", "statement_id", "line",
          "pattern", "edited")  # fmt: skip


@dataclass(slots=True)
class Decision:
    """What a reviewer says. `edited` replaces the request that was staged; a new memory that is approved may join
    an existing one (`merge_into`) or take the place of others (`forget`). `revision` is the one that was looked at."""

    approved: bool
    reviewer: str | None = None  # only whoever needs no token may give another name than its own
    reason: str | None = None
    edited: Edit | None = None
    edited_request: dict[str, Any] | None = None  # the edit as its author wrote it, for the review to show
    merge_into: str | None = None
    forget: tuple[str, ...] = ()
    revision: int | None = None
    identity: Any = None  # a dataclass {iss, sub, email?, name?}: who that is elsewhere, as the host knows


@dataclass(slots=True)
class ReviewOutcome:
    review: dict[str, Any]
    outcome: Receipt | ForgetResult | MergeResult | AssertResult | None
    applied: ForgetResult | MergeResult | None = None
    undelivered: dict[str, str] = field(default_factory=dict)  # by store beside the primary: why it has not done it yet


class ReviewOutdated(Exception):
    """What a review was made from is no longer what is there."""


def may_see(who: Principal, value: Mapping[str, Any]) -> bool:
    """What is staged is no memory yet: only reviewers of its agent, and whoever asked for it, know of it."""
    own = value["requested_by"] == who.name
    return who.may_use(value["agent_id"]) and (own or RANK[who.role] >= RANK["reviewer"])


def shown(value: Mapping[str, Any]) -> dict[str, Any]:
    """A review as callers see it: without the engine's own notes, nulls left out."""
    return {k: v for k, v in value.items() if k not in _NOTES and v is not None}


def stale(core: Core, value: Mapping[str, Any], now: int) -> bool:
    """Whether a review has waited longer than the operator lets any wait."""
    days = core.settings.governance.review_days
    return bool(days) and value["status"] == "pending" and value["created_at"] + days * DAY_MS <= now


def as_of_now(core: Core, value: dict[str, Any], now: int) -> dict[str, Any]:
    """A review that has waited too long is expired from that moment on, whether or not anyone has noted it yet."""
    return {**value, "status": "expired"} if stale(core, value, now) else value


def author_of(who: Principal, value: Mapping[str, Any]) -> Principal:
    """Whoever asked: provenance and ledger name them for what is approved, and the reviewer for the approval."""
    return replace(who, name=value["requested_by"], dialect=value.get("dialect") or "")


def conclude(
    tx: Transaction, core: Core, who: Principal, review_id: str, decision: Decision, about: Sequence[str] = ()
) -> dict[str, Any]:
    """Note the decision, unless another was first, the review has expired or moved on, or nobody may decide it so."""
    record = tx.record(REVIEW, review_id)
    if record is None:
        raise review_not_found(review_id)
    require_pending(core, record.value, decision, tx.now)
    require_other_eyes(core, who, record.value, decision)
    made: dict[str, Any] = {"approved": decision.approved, "reviewer": decision.reviewer, "reviewed_at": tx.now}
    if decision.reason is not None:
        made["reason"] = decision.reason
    if decision.identity is not None:
        made["identity"] = {n: v for n, v in asdict(decision.identity).items() if v is not None}
    value = {**record.value, "status": "approved" if decision.approved else "rejected", "decision": made}
    if decision.edited is not None:
        value |= {"request": decision.edited_request or value["request"], "edited": True}
    quoted = tuple(dict.fromkeys((*record.about, *about)))  # an edit may be about others than what was staged
    if not decision.approved and core.settings.governance.rejected == "erase":
        value = erase_quotes(tx, value)
    tx.put_record(Record(REVIEW, review_id, value, quoted))
    verb = "approve" if decision.approved else "reject"
    payload = {"review_id": review_id, "reviewer": decision.reviewer, "edited": decision.edited is not None}
    audit.append(tx, who, verb, value["agent_id"], [audit.part(None, payload)])
    return value


def erase_quotes(tx: Transaction, value: dict[str, Any]) -> dict[str, Any]:
    """The review without what it quotes; a memory that never was leaves nothing elsewhere either."""
    if "memory_id" in value:
        erase_records(tx, value["memory_id"])
        tx.erase(value["memory_id"])
    return without_quotes(value)


def require_unchanged(tx: Transaction, value: Mapping[str, Any]) -> None:
    """In the transaction that approves: every memory is the version that the reviewer was shown."""
    if not staging.is_current(tx, value):
        raise ReviewOutdated


def require_pending(core: Core, value: Mapping[str, Any], decision: Decision, now: int) -> None:
    id, status = value["id"], value["status"]
    if value.get("erased") and (decision.approved or status != "pending"):
        advice = "; reject it" if status == "pending" else ""
        raise Conflict(f"review {id} quoted what has since been erased{advice}")
    if status != "pending":
        by = f" by {value['decision']['reviewer']}" if value.get("decision") else ""
        raise Conflict(f"review {id} was {status} already{by}", status=status)
    if stale(core, value, now):
        days = core.settings.governance.review_days
        raise Conflict(f"review {id} has expired: it waited longer than {days} days; ask again", status="expired")
    if decision.revision is not None and decision.revision != value.get("revision", 1):
        said = f"review {id} is at revision {value.get('revision', 1)}, not {decision.revision}; look again"
        raise Conflict(said, review_id=id, review=shown(value))


#: The command line has no token either: if a name that is only claimed counted, two eyes would do.
_ONE_NAME = (
    "without a token everyone has that name, whatever `reviewer` says: approve it on the page or over HTTP "
    "with another's token (`commonplace token create --role reviewer` makes one)"
)


def require_other_eyes(core: Core, who: Principal, value: Mapping[str, Any], decision: Decision) -> None:
    """With four eyes nobody approves what they asked for or edited: an edit waits for another to approve it."""
    if not core.settings.governance.four_eyes or not decision.approved:
        return
    if decision.edited is not None:
        raise Forbidden("with four_eyes an edit waits for another to approve it: edit the review, and ask them")
    if who.name in (value["requested_by"], *value.get("edited_by", ())):
        hint = _ONE_NAME if who == Principal() else None
        raise Forbidden(f"with four_eyes nobody approves their own write, and this one is {who.name}'s", hint=hint)


def review_not_found(review_id: str) -> NotFound:
    """The same sentence whether it never was or is someone else's."""
    return NotFound(f"no review {review_id}", hint="`commonplace review list --status all` shows what there is")
