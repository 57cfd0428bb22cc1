"""What was learnt in a conversation, proposed as memories: for a reviewer unless someone decides otherwise."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from commonplace.engine import MAX_BATCH, BatchItem, Draft, Engine, NearDuplicates, draft_document
from commonplace.transfer.extraction import Proposal, proposals
from commonplace.transfer.llm_extraction import LLMExtractor
from commonplace.transfer.report import Reasons
from commonplace.transfer.transcripts import Turn
from commonplace.wire.errors import Conflict, Fault
from commonplace.wire.record import Principal

DIALECT = "import"
_ANSWERED_CHARS = 200
_KEYS = uuid.UUID("3f1d9a52-6f0e-5b7c-8a43-0c5f2f6b7a11")


@dataclass(slots=True, frozen=True)
class CaptureTarget:
    agent: str
    user: str | None = None
    project: str | None = None  # as somebody named it; else the name of the folder that was worked in
    review: bool = True
    folder: str | None = None  # its name where the caller knows it; else as each turn has it


@dataclass(slots=True)
class CaptureReport:
    dry_run: bool
    proposed: list[dict[str, Any]] = field(default_factory=list)  # what is new
    staged: int = 0
    written: int = 0
    left_out: Reasons = field(default_factory=Reasons)
    redacted: Counter[str] = field(default_factory=Counter)
    note: str | None = None  # what went wrong with a language model that was asked

    def document(self) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run, "proposed": self.proposed, "staged": self.staged, "written": self.written,
            "left_out": self.left_out.as_documents(), "redacted": dict(self.redacted), "note": self.note,
        }  # fmt: skip


async def capture(
    engine: Engine, who: Principal, turns: Sequence[Turn], source: str, target: CaptureTarget, *, dry_run: bool = False,
    extractor: LLMExtractor | None = None,
) -> CaptureReport:  # fmt: skip
    """Propose what people said in these turns; what is known, waits for a reviewer or was turned down by one is not
    said twice."""
    proposer = _Proposer(engine, who, source, target, CaptureReport(dry_run), await engine.reviews.list(who, None))
    found = await asyncio.to_thread(proposals, turns, proposer.redact)
    await proposer.propose(found)  # before a model is asked, which may take longer than a hook is let live
    if extractor is not None:
        more, proposer.report.note = await asyncio.to_thread(extractor.proposals, turns, found, proposer.redact)
        await proposer.propose(more)
    return proposer.report


class _Proposer:
    """Stages or writes what is new, as often as it is given something."""

    def __init__(
        self, engine: Engine, who: Principal, source: str, target: CaptureTarget, report: CaptureReport,
        reviews: Sequence[dict[str, Any]],
    ) -> None:  # fmt: skip
        self.report = report
        self._engine = engine
        self._who = who
        self._source = source
        self._target = target
        self._said = NearDuplicates[Proposal]()
        self._known = {review["id"] for review in reviews}
        self._told = NearDuplicates[tuple[str, str]]()
        for review in reviews:
            if (earlier := _proposed(review, target.agent)) is not None:
                self._told.add(earlier, (review["status"], review["id"]))

    def redact(self, text: str) -> str:
        return self._engine.redactor.text(text)[0]

    def _shown(self, proposal: Proposal) -> str:
        """As it would be kept: a report is printed and logged, so no secret may be in it."""
        return self.redact(proposal.text)

    async def propose(self, found: Sequence[Proposal]) -> None:
        fresh = await self._fresh(found)
        if self.report.dry_run:
            self.report.proposed += [_told(proposal, self._shown) for proposal, _, _ in fresh]
        else:
            await self._write(fresh)

    async def _fresh(self, found: Sequence[Proposal]) -> list[tuple[Proposal, Draft, str]]:
        fresh: list[tuple[Proposal, Draft, str]] = []
        for proposal in found:
            draft = _draft(proposal, self._source, self._target, self._engine)
            # What is known has no secret in it, and what looks for it may send the text to somebody's embedder.
            clean = replace(draft, content=self._shown(proposal))
            same = dict(self._told.of(clean))
            if any(self._said.of(clean)):
                self._leave_out("it was said twice", proposal)
            elif "pending" in same:
                self._leave_out("it waits for a reviewer already", proposal)
            elif "rejected" in same:
                self._leave_out("a reviewer turned it down", proposal)
            elif await self._engine.imports.near_duplicate(self._who, clean) is not None:
                self._leave_out("it is remembered already", proposal)
            else:
                fresh.append((proposal, draft, same.get("expired", "")))
                self._said.add(clean, proposal)
        return fresh

    async def _write(self, fresh: Sequence[tuple[Proposal, Draft, str]]) -> None:
        items = [_item(proposal, draft, self._target, expired) for proposal, draft, expired in fresh]
        chunks = [items[start : start + MAX_BATCH] for start in range(0, len(items), MAX_BATCH)]
        outcomes = [each for chunk in chunks for each in await self._engine.remember_many(self._who, chunk)]
        for (proposal, _, _), done in zip(fresh, outcomes, strict=True):
            if isinstance(done, Conflict) and done.details.get("field") == "idempotency_key":
                self._leave_out("it was captured before, for another project or with other details", proposal)
            elif isinstance(done, Fault):
                self._leave_out(done.message, proposal)
            elif done.review_id in self._known:  # approved as edited, or its words were erased
                self._leave_out("it was proposed before, and decided", proposal)
            elif done.review_id is None and done.memory is None:
                self._leave_out("it was captured before, and was forgotten here since", proposal)
            else:
                self.report.proposed.append(_told(proposal, self._shown))
                self.report.staged += done.review_id is not None
                self.report.written += done.review_id is None
                self.report.redacted.update(done.redacted)

    def _leave_out(self, reason: str, proposal: Proposal) -> None:
        self.report.left_out.add(reason, self._shown(proposal)[:60])


def _told(proposal: Proposal, shown: Callable[[Proposal], str]) -> dict[str, Any]:
    return {"kind": proposal.kind, "content": shown(proposal), "confidence": proposal.confidence}


def _item(proposal: Proposal, draft: Draft, target: CaptureTarget, expired: str) -> BatchItem:
    """`expired` is a review of the same that nobody decided: this is another request than that was."""
    turn, person = proposal.turn, f"user {target.user}" if target.user else ""
    # Only one that was named: of a session that moves between folders a hook would propose everything once for each.
    named = f"project {target.project}" if target.project and target.project != PurePath(turn.folder).name else ""
    said = "\0".join(filter(None, (target.agent, person, named, turn.session, turn.id, proposal.text, expired)))
    reasoning = f"said in a conversation; taken for a {proposal.kind}{f' by {proposal.by}' if proposal.by else ''}"
    return BatchItem(
        draft, f"capture-{uuid.uuid5(_KEYS, said)}", draft_document(draft) if target.review else None,
        reasoning if target.review else None,
    )  # fmt: skip


def _draft(proposal: Proposal, source: str, target: CaptureTarget, engine: Engine) -> Draft:
    turn = proposal.turn
    # Cut after its secrets are out: half of one is not known for what it is.
    answers = " ".join(engine.redactor.shown(proposal.answers).split())[:_ANSWERED_CHARS]
    metadata = {"answers": answers} if answers else {}
    captured = {"session": turn.session, "turn": turn.id, "rule": proposal.kind}
    captured |= {"by": proposal.by} if proposal.by else {}
    return Draft(
        target.agent, "semantic", proposal.text, kind=proposal.kind, user_id=target.user, tags=["captured"],
        project=target.project or target.folder or PurePath(turn.folder).name or None,
        session_id=turn.session or None, speaker="user", event_time=turn.at, confidence=proposal.confidence,
        source=f"{source}:{turn.session}" if turn.session else source,
        metadata=metadata, provenance={"dialect": DIALECT, "captured": captured},
    )  # fmt: skip


def _proposed(review: dict[str, Any], agent: str) -> Draft | None:
    """What a review asks to remember for this agent, as far as it takes to tell whether something says the same."""
    request = review.get("request")
    if review.get("operation") != "remember" or review.get("agent_id") != agent or not isinstance(request, dict):
        return None
    text, metadata = request.get("content"), request.get("metadata")
    project = metadata.get("project") if isinstance(metadata, dict) else None
    if not isinstance(text, str) or not text:
        return None
    return Draft(agent, "semantic", text, user_id=request.get("user_id"), project=project)
