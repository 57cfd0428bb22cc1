"""What was learnt in a conversation, proposed as memories: for a reviewer unless someone decides otherwise."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from commonplace.engine import BatchItem, Draft, Engine, draft_document, says_the_same
from commonplace.transfer.extraction import Proposal, proposals
from commonplace.transfer.report import Reasons
from commonplace.transfer.transcripts import Turn
from commonplace.wire.errors import Fault
from commonplace.wire.record import Principal

DIALECT = "import"
_KEYS = uuid.UUID("3f1d9a52-6f0e-5b7c-8a43-0c5f2f6b7a11")


@dataclass(slots=True, frozen=True)
class CaptureTarget:
    agent: str
    user: str | None = None
    project: str | None = None  # else the name of the folder that was worked in
    review: bool = True


@dataclass(slots=True)
class CaptureReport:
    dry_run: bool
    proposed: list[dict[str, Any]] = field(default_factory=list)  # what is new
    staged: int = 0
    written: int = 0
    left_out: Reasons = field(default_factory=Reasons)
    redacted: Counter[str] = field(default_factory=Counter)

    def document(self) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run, "proposed": self.proposed, "staged": self.staged, "written": self.written,
            "left_out": self.left_out.as_documents(), "redacted": dict(self.redacted),
        }  # fmt: skip


async def capture(
    engine: Engine, who: Principal, turns: Sequence[Turn], source: str, target: CaptureTarget, *, dry_run: bool = False
) -> CaptureReport:
    """Propose what people said in these turns; what is known, waits for a reviewer or was turned down by one is not
    said twice."""
    report = CaptureReport(dry_run)
    reviews = await engine.reviews.list(who, None)
    known = {review["id"] for review in reviews}
    told = [(text, review) for review in reviews if (text := _proposed_text(review, target.agent))]

    def shown(proposal: Proposal) -> str:
        """As it would be kept: a report is printed and logged, so no secret may be in it."""
        return engine.redactor.text(proposal.text)[0]

    fresh: list[tuple[Proposal, Draft, str]] = []
    for proposal in proposals(turns):
        draft = _draft(proposal, source, target)
        same = {review["status"]: review["id"] for text, review in told if says_the_same(draft.content, text)}
        if any(says_the_same(draft.content, other.content) for _, other, _ in fresh):
            report.left_out.add("it was said twice", shown(proposal)[:60])
        elif "pending" in same:
            report.left_out.add("it waits for a reviewer already", shown(proposal)[:60])
        elif "rejected" in same:
            report.left_out.add("a reviewer turned it down", shown(proposal)[:60])
        elif await engine.imports.near_duplicate(who, draft) is not None:
            report.left_out.add("it is remembered already", shown(proposal)[:60])
        else:
            fresh.append((proposal, draft, same.get("expired", "")))
    if dry_run:
        report.proposed = [_told(proposal, shown) for proposal, _, _ in fresh]
        return report
    items = [_item(proposal, draft, target, expired) for proposal, draft, expired in fresh]
    for (proposal, _, _), done in zip(fresh, await engine.remember_many(who, items) if items else (), strict=True):
        if isinstance(done, Fault):
            report.left_out.add(done.message, shown(proposal)[:60])
        elif done.review_id in known:  # approved as edited, or its words were erased
            report.left_out.add("it was proposed before, and decided", shown(proposal)[:60])
        elif done.review_id is None and done.memory is None:
            report.left_out.add("it was captured before, and was forgotten here since", shown(proposal)[:60])
        else:
            report.proposed.append(_told(proposal, shown))
            report.staged += done.review_id is not None
            report.written += done.review_id is None
            report.redacted.update(done.redacted)
    return report


def _told(proposal: Proposal, shown: Callable[[Proposal], str]) -> dict[str, Any]:
    return {"kind": proposal.kind, "content": shown(proposal), "confidence": proposal.confidence}


def _item(proposal: Proposal, draft: Draft, target: CaptureTarget, expired: str) -> BatchItem:
    """`expired` is a review of the same that nobody decided: this is another request than that was."""
    said = "\0".join(filter(None, (target.agent, proposal.turn.session, proposal.turn.id, proposal.text, expired)))
    reasoning = f"said in a conversation; taken for a {proposal.kind}"
    return BatchItem(
        draft, f"capture-{uuid.uuid5(_KEYS, said)}", draft_document(draft) if target.review else None,
        reasoning if target.review else None,
    )  # fmt: skip


def _draft(proposal: Proposal, source: str, target: CaptureTarget) -> Draft:
    turn = proposal.turn
    metadata = {"answers": proposal.answers} if proposal.answers else {}
    captured = {"session": turn.session, "turn": turn.id, "rule": proposal.kind}
    return Draft(
        target.agent, "semantic", proposal.text, kind=proposal.kind, user_id=target.user, tags=["captured"],
        project=target.project or (PurePath(turn.folder).name or None), session_id=turn.session or None, speaker="user",
        event_time=turn.at, confidence=proposal.confidence,
        source=f"{source}:{turn.session}" if turn.session else source,
        metadata=metadata, provenance={"dialect": DIALECT, "captured": captured},
    )  # fmt: skip


def _proposed_text(review: dict[str, Any], agent: str) -> str:
    request = review.get("request")
    own = review.get("operation") == "remember" and review.get("agent_id") == agent and isinstance(request, dict)
    text = request.get("content") if own and isinstance(request, dict) else None
    return text if isinstance(text, str) else ""
