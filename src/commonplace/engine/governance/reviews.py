"""Writes that wait for a human: staged in the primary store, invisible until someone decides."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from commonplace.engine.core import RANK, Core
from commonplace.engine.ledger import audit
from commonplace.engine.memory import forget
from commonplace.engine.memory.forget import REVIEW
from commonplace.engine.memory.merge import MergeResult
from commonplace.engine.memory.read import readable, resolve
from commonplace.engine.memory.write import (
    IDEMPOTENCY,
    check,
    check_draft,
    idempotency_record,
    idempotency_slot,
    new_memory,
    redact_draft,
    repeat_receipt,
    write,
)
from commonplace.engine.redaction import Secrets
from commonplace.engine.types import Draft, ForgetResult, Receipt
from commonplace.stores.base import Record, Transaction
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.models import ForgetRequest, MergeRequest, dump
from commonplace.wire.record import Memory, Principal

Operation = Literal["remember", "forget", "merge"]


@dataclass(slots=True)
class Decision:
    """What a reviewer says. `edited` replaces the request that was staged; a new memory that is approved may join
    an existing one (`merge_into`) or take the place of others (`forget`)."""

    approved: bool
    reviewer: str
    reason: str | None = None
    edited: Draft | ForgetRequest | MergeRequest | None = None
    edited_request: dict[str, Any] | None = None  # the edit as its author wrote it, for the review to show
    merge_into: str | None = None
    forget: tuple[str, ...] = ()


@dataclass(slots=True)
class ReviewOutcome:
    review: dict[str, Any]
    outcome: Receipt | ForgetResult | MergeResult | None
    applied: ForgetResult | MergeResult | None = None


async def stage_remember(
    core: Core, who: Principal, draft: Draft, request: dict[str, Any], reasoning: str | None, key: str | None = None,
    secrets: Secrets | None = None,
) -> Receipt:  # fmt: skip
    check(core, who, draft)
    draft, redacted = await redact_draft(core, draft, key, secrets)
    request = await to_thread(core.redact_document, request, "request", secrets)
    if redacted:
        request = {name: value for name, value in request.items() if name != "embedding"}  # made of the text as it was
    memory_id = mint_id(core.clock())

    def work(tx: Transaction) -> Receipt:
        if key is not None and (earlier := tx.record(IDEMPOTENCY, idempotency_slot(draft, key))) is not None:
            return repeat_receipt(earlier, draft, core)
        diff = {"added": [_draft_shown(memory_id, draft)], "removed": [], "modified": []}
        value = {"request": request, "draft": asdict(draft), "diff": diff, "memory_id": memory_id}
        review_id = _stage(tx, core, who, "remember", draft.agent_id, value, reasoning, (memory_id,), secrets)
        receipt = Receipt(memory_id, tx.now, [], review_id=review_id)
        if key is not None:
            tx.put_record(idempotency_record(key, draft, receipt))
        return receipt

    receipt = await core.transact(who.tenant, work)
    receipt.redacted = redacted
    return receipt


async def stage_forget(core: Core, who: Principal, request: ForgetRequest) -> ForgetResult:
    memories = await forget.chosen(core, who, request)
    if request.hard_delete and request.cascade:
        memories += await forget.descendants(core, who, memories)
    now = core.clock()
    removed = [_shown(m) if readable(m, now) else {"id": m.id, "status": forget.standing(m, now)} for m in memories]
    diff = {"added": [], "removed": removed, "modified": []}
    ids = tuple(m.id for m in memories)
    value = {"request": core.redact_document(dump(request), "request"), "diff": diff, "ids": list(ids)}

    def work(tx: Transaction) -> str:
        return _stage(tx, core, who, "forget", request.agent_id, value, request.reasoning, ids)

    review_id = await core.transact(who.tenant, work)
    return ForgetResult([], core.primary.name, erased=request.hard_delete, review_id=review_id)


async def stage_merge(core: Core, who: Principal, request: MergeRequest) -> tuple[Memory, str]:
    canonical, duplicates = await forget.parties(core, who, request)
    merged = forget.combined(core, canonical, duplicates, request)
    before = {m.id: m for m in (canonical, *duplicates)}
    modified = []
    if merged.changed:
        modified = [{"before": _shown(before[merged.survivor.id]), "after": _shown(merged.survivor)}]
    diff = {"added": [], "removed": [_shown(m) for m in merged.losers], "modified": modified}
    value = {"request": core.redact_document(dump(request), "request"), "diff": diff, "ids": list(before)}

    def work(tx: Transaction) -> str:
        return _stage(tx, core, who, "merge", request.agent_id, value, request.reasoning, tuple(before))

    return canonical, await core.transact(who.tenant, work)


def _stage(
    tx: Transaction, core: Core, who: Principal, operation: Operation, agent_id: str, value: dict[str, Any],
    reasoning: str | None, about: tuple[str, ...], secrets: Secrets | None = None,
) -> str:  # fmt: skip
    review_id = mint_id(core.clock())
    if reasoning is not None:
        reasoning = core.redact_text(reasoning, "reasoning", secrets)
    review = {
        "id": review_id, "operation": operation, "agent_id": agent_id, "reasoning": reasoning,
        "created_at": tx.now, "status": "pending", "requested_by": who.name, **value,
    }  # fmt: skip
    tx.put_record(Record(REVIEW, review_id, review, about))
    audit.append(tx, who, f"stage_{operation}", agent_id, [audit.part(None, {"review_id": review_id})])
    return review_id


async def reviews(core: Core, who: Principal, status: str | None = "pending") -> list[dict[str, Any]]:
    """Those the caller may see, oldest first."""
    records = await core.primary.records(who.tenant, REVIEW)
    return [shown(r.value) for r in records if status in (None, r.value["status"]) and may_see(who, r.value)]


def may_see(who: Principal, value: dict[str, Any]) -> bool:
    """What is staged is no memory yet: only reviewers of its agent, and whoever asked for it, know of it."""
    own = value["requested_by"] == who.name
    return who.may_use(value["agent_id"]) and (own or RANK[who.role] >= RANK["reviewer"])


async def review(core: Core, who: Principal, review_id: str) -> dict[str, Any]:
    return shown(await _load(core, who, review_id))


def shown(value: dict[str, Any]) -> dict[str, Any]:
    """A review as callers see it: without the engine's own notes, nulls left out."""
    return {k: v for k, v in value.items() if k not in ("draft", "ids") and v is not None}


async def decide(core: Core, who: Principal, review_id: str, decision: Decision) -> ReviewOutcome:
    """Approve, approve as edited, or reject: once. What is approved happens in the transaction that says so."""
    value = await _load(core, who, review_id)
    core.require(who, value["agent_id"], "reviewer")
    _must_be_pending(value)
    if (decision.merge_into or decision.forget) and not (decision.approved and value["operation"] == "remember"):
        raise ValidationError("apply goes with approving a remember, and with nothing else", field="apply")
    if decision.merge_into and decision.forget:
        raise ValidationError("apply merges or forgets, not both", field="apply")
    decision = _redact_decision(core, decision)
    if not decision.approved:
        rejected = await core.transact(who.tenant, lambda tx: _settle_review(tx, who, review_id, decision, "rejected"))
        return ReviewOutcome(shown(rejected), None)
    author = replace(who, name=value["requested_by"])
    match value["operation"]:
        case "remember":
            return await _approve_remember(core, who, author, value, decision)
        case "forget":
            return await _approve_forget(core, who, author, value, decision)
        case _:
            return await _approve_merge(core, who, author, value, decision)


def _redact_decision(core: Core, decision: Decision) -> Decision:
    """What a reviewer writes is kept like everything else; an edited draft or reason is cleaned where it is used."""
    return replace(
        decision,
        reviewer=core.redact_text(decision.reviewer, "reviewer"),
        reason=None if decision.reason is None else core.redact_text(decision.reason, "reason"),
        edited_request=core.redact_document(decision.edited_request, "request"),
    )


async def _approve_remember(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    draft = Draft(**value["draft"])
    if decision.edited is not None:
        if not isinstance(decision.edited, Draft) or decision.edited.agent_id != value["agent_id"]:
            raise ValidationError("the edited request must be a remember of the same agent", field="request")
        draft = as_edited(draft, decision.edited)
    check_draft(core, draft)
    draft, redacted = await redact_draft(core, draft)

    async def attempt() -> ReviewOutcome:
        memory = new_memory(author, draft, core.clock(), id=value["memory_id"])
        (entry,) = await core.entries([memory], [draft.embedding])
        apply = await _prepare(core, who, memory, decision)

        def work(tx: Transaction) -> ReviewOutcome:
            kept = _settle_review(tx, who, value["id"], decision, "approved")
            written = write(tx, author, entry, "remember", review_id=value["id"])
            receipt = Receipt(written.id, written.updated_at, [core.primary.name], memory=written, redacted=redacted)
            return ReviewOutcome(shown(kept), receipt, apply(tx, written))

        return await core.transact(who.tenant, work)

    decided: ReviewOutcome = await core.retry_on_conflict(attempt)
    return decided


def as_edited(staged: Draft, edited: Draft) -> Draft:
    """The edit, which is a plain remember, with what the record is to the protocol that it came by."""
    # The kind was shown to the reviewer among the metadata, where it comes back from.
    metadata = {k: v for k, v in edited.metadata.items() if k != "kind" or not staged.kind or v != staged.kind}
    return replace(edited, metadata=metadata, aliases=staged.aliases, kind=staged.kind, provenance=staged.provenance)


async def _prepare(
    core: Core, who: Principal, proposed: Memory, decision: Decision
) -> Callable[[Transaction, Memory], ForgetResult | MergeResult | None]:
    """What else is to happen in the transaction that makes the proposed memory live."""
    agent = proposed.agent_id
    if decision.merge_into is not None:
        request = MergeRequest(
            agent_id=agent, canonical=decision.merge_into, duplicates=[proposed.id], strategy="merge_content"
        )
        canonical = await resolve(core, who, agent, decision.merge_into)
        merged, entry = await forget.merged_entry(
            core, canonical, [replace(proposed, created_at=core.clock())], request
        )

        def join(tx: Transaction, written: Memory) -> MergeResult:
            merged.losers = [written]
            return forget.merge_now(tx, who, request, merged, entry)

        return join
    others = [await resolve(core, who, agent, ref) for ref in decision.forget]

    def supersede(tx: Transaction, written: Memory) -> ForgetResult | None:
        if not others:
            return None
        reason = f"superseded by {written.id}"
        done = forget.forget_now(tx, core, who, agent, others, hard=False, because=reason)
        return ForgetResult(done, core.primary.name, erased=False)

    return supersede


async def _approve_forget(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    edited = decision.edited
    if edited is not None and not (isinstance(edited, ForgetRequest) and edited.agent_id == value["agent_id"]):
        raise ValidationError("the edited request must be a forget of the same agent", field="request")
    request = edited or ForgetRequest.model_validate(value["request"])
    # Without an edit exactly what the reviewer was shown is forgotten, not what the filter would find by now.
    if edited is None:
        memories = await core.primary.get(who.tenant, value["ids"])
    else:
        memories = await forget.chosen(core, who, request)
    ids = [m.id for m in memories]

    def work(tx: Transaction) -> ReviewOutcome:
        kept = _settle_review(tx, who, value["id"], decision, "approved", about=ids)
        hard = request.hard_delete
        done = forget.forget_now(
            tx, core, author, value["agent_id"], memories, hard=hard, reason=request.reason,
            unchanged=edited is not None and forget.by_filter(request),
        )  # fmt: skip
        return ReviewOutcome(shown(kept), ForgetResult(done, core.primary.name, erased=hard))

    decided = await core.transact(who.tenant, work)
    if request.hard_delete or any(forget.erases(m) for m in memories):
        await core.primary.delete_migration_backups()
    return decided


async def _approve_merge(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    edited = decision.edited
    if edited is not None and not (isinstance(edited, MergeRequest) and edited.agent_id == value["agent_id"]):
        raise ValidationError("the edited request must be a merge of the same agent", field="request")
    request = edited or MergeRequest.model_validate(value["request"])
    if edited is None:  # those the reviewer was shown, not whoever carries the entity name by now
        canonical_id, *others = value["ids"]
        request = request.model_copy(update={"canonical": canonical_id, "duplicates": others})

    async def attempt() -> ReviewOutcome:
        canonical, duplicates = await forget.parties(core, who, request)
        merged, entry = await forget.merged_entry(core, canonical, duplicates, request)

        def work(tx: Transaction) -> ReviewOutcome:
            about = [canonical.id, *(m.id for m in duplicates)]
            kept = _settle_review(tx, who, value["id"], decision, "approved", about=about)
            return ReviewOutcome(shown(kept), forget.merge_now(tx, author, request, merged, entry))

        return await core.transact(who.tenant, work)

    decided: ReviewOutcome = await core.retry_on_conflict(attempt)
    return decided


def _settle_review(
    tx: Transaction, who: Principal, review_id: str, decision: Decision, status: str, about: Sequence[str] = ()
) -> dict[str, Any]:
    record = tx.record(REVIEW, review_id)
    if record is None:
        raise NotFound(f"no review {review_id}")
    _must_be_pending(record.value)
    made = {"approved": decision.approved, "reviewer": decision.reviewer, "reviewed_at": tx.now}
    if decision.reason is not None:
        made["reason"] = decision.reason
    value = {**record.value, "status": status, "decision": made}
    if decision.edited is not None:
        value["request"] = decision.edited_request or value["request"]
    quoted = tuple(dict.fromkeys((*record.about, *about)))  # an edit may be about others than what was staged
    tx.put_record(Record(REVIEW, review_id, value, quoted))
    verb = "approve" if decision.approved else "reject"
    payload = {"review_id": review_id, "reviewer": decision.reviewer, "edited": decision.edited is not None}
    audit.append(tx, who, verb, value["agent_id"], [audit.part(None, payload)])
    return value


async def _load(core: Core, who: Principal, review_id: str) -> dict[str, Any]:
    for record in await core.primary.records(who.tenant, REVIEW):
        if record.key == review_id and may_see(who, record.value):
            return record.value
    raise NotFound(f"no review {review_id}")


def _must_be_pending(value: dict[str, Any]) -> None:
    if value.get("erased"):
        raise Conflict(f"review {value['id']} quoted a memory that has since been erased")
    if value["status"] != "pending":
        raise Conflict(f"review {value['id']} was {value['status']} already")


def _shown(memory: Memory) -> dict[str, Any]:
    shown = {"id": memory.id, "type": memory.type, "content": memory.content, "confidence": memory.confidence}
    for name in ("user_id", "title", "tags", "metadata", "source", "expires_at"):
        if value := getattr(memory, name):
            shown[name] = value
    return shown


def _draft_shown(memory_id: str, draft: Draft) -> dict[str, Any]:
    return _shown(Memory(memory_id, "", draft.agent_id, draft.type, draft.content, user_id=draft.user_id,
                         title=draft.title, tags=draft.tags, metadata=draft.metadata, confidence=draft.confidence,
                         source=draft.source, expires_at=draft.expires_at))  # fmt: skip
