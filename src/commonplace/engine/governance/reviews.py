"""Reviews: what waits for a human, and what becomes of it when someone decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from commonplace.engine.core import RANK, REVIEW, Core
from commonplace.engine.governance import staging
from commonplace.engine.graph import graph
from commonplace.engine.graph.graph import AssertResult
from commonplace.engine.ledger import audit
from commonplace.engine.memory import erase, forget, merge
from commonplace.engine.memory.change import check_update
from commonplace.engine.memory.read import resolve
from commonplace.engine.memory.write import check_draft, new_memory, redact_draft, write, write_next
from commonplace.engine.types import Draft, Forget, ForgetResult, Merge, MergeResult, Receipt, Statement, Update
from commonplace.stores.base import Record, Transaction
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.record import Memory, Principal

#: What the engine notes in a review for itself.
_NOTES = ("draft", "ids", "versions", "drafts", "statement", "statement_id", "line")
_LOOK_AGAIN = "it stays pending and shows how things are now: look again"


class _ReviewOutdated(Exception):
    """What a review was made from is no longer what is there."""


@dataclass(slots=True)
class Decision:
    """What a reviewer says. `edited` replaces the request that was staged; a new memory that is approved may join
    an existing one (`merge_into`) or take the place of others (`forget`)."""

    approved: bool
    reviewer: str | None = None  # only whoever needs no token may give another name than its own
    reason: str | None = None
    edited: Draft | Update | Forget | Merge | Statement | None = None
    edited_request: dict[str, Any] | None = None  # the edit as its author wrote it, for the review to show
    merge_into: str | None = None
    forget: tuple[str, ...] = ()


@dataclass(slots=True)
class ReviewOutcome:
    review: dict[str, Any]
    outcome: Receipt | ForgetResult | MergeResult | AssertResult | None
    applied: ForgetResult | MergeResult | None = None


def may_see(who: Principal, value: dict[str, Any]) -> bool:
    """What is staged is no memory yet: only reviewers of its agent, and whoever asked for it, know of it."""
    own = value["requested_by"] == who.name
    return who.may_use(value["agent_id"]) and (own or RANK[who.role] >= RANK["reviewer"])


def shown(value: dict[str, Any]) -> dict[str, Any]:
    """A review as callers see it: without the engine's own notes, nulls left out."""
    return {k: v for k, v in value.items() if k not in _NOTES and v is not None}


class Reviews:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def list(self, who: Principal, status: str | None = "pending") -> Sequence[dict[str, Any]]:
        """Those the caller may see, oldest first."""
        records = await self._core.primary.records(who.tenant, REVIEW)
        return [shown(r.value) for r in records if status in (None, r.value["status"]) and may_see(who, r.value)]

    async def get(self, who: Principal, review_id: str) -> dict[str, Any]:
        return shown(await self._load(who, review_id))

    async def _load(self, who: Principal, review_id: str) -> dict[str, Any]:
        self._core.check_names(review_id=review_id)
        record = await self._core.primary.record(who.tenant, REVIEW, review_id)
        if record is None or not may_see(who, record.value):
            raise review_not_found(review_id)
        return record.value

    async def decide(self, who: Principal, review_id: str, decision: Decision) -> ReviewOutcome:
        """Approve, approve as edited, or reject: once. What is approved happens in the transaction that says so."""
        value = await self._load(who, review_id)
        self._core.require(who, value["agent_id"], "reviewer")
        _require_pending(value, decision)
        if (decision.merge_into or decision.forget) and not (decision.approved and value["operation"] == "remember"):
            raise ValidationError("apply is only for approving a remember", field="apply")
        if decision.merge_into and decision.forget:
            raise ValidationError("apply merges or forgets, not both", field="apply")
        if who != Principal() or not decision.reviewer:
            decision = replace(decision, reviewer=who.name)
        decision = await self._redacted(decision)
        if not decision.approved:
            rejected = await self._core.transact(
                who.tenant, lambda tx: _conclude(tx, who, review_id, decision, "rejected")
            )
            return ReviewOutcome(shown(rejected), None)
        author = _author(who, value)
        approve = {
            "remember": self._approve_remember,
            "update": self._approve_update,
            "forget": self._approve_forget,
            "merge": self._approve_merge,
            "statement": self._approve_statement,
        }
        try:
            return await approve[value["operation"]](who, author, value, decision)
        except _ReviewOutdated:
            raise await self._refresh(who, value) from None

    async def _refresh(self, who: Principal, value: dict[str, Any]) -> Conflict:
        """Show the review as it would be made now; it stays pending, to be looked at again."""
        core, request = self._core, value["request"]
        said = f"what review {value['id']} showed has changed since"

        def keep(tx: Transaction, fresh: dict[str, Any], ids: Sequence[str]) -> None:
            record = tx.record(REVIEW, value["id"])
            if record is not None and record.value["status"] == "pending" and not record.value.get("erased"):
                about = tuple(dict.fromkeys((*record.about, *ids)))
                tx.put_record(Record(REVIEW, value["id"], {**record.value, **fresh}, about))

        def plan_anew(tx: Transaction) -> None:
            made = graph.plan_statement(tx, _author(who, value), Statement(**request), value["statement_id"])
            keep(tx, staging.show_statement(made), staging.quoted_ids(made))

        async def show_anew() -> None:
            match value["operation"]:
                case "statement":
                    await core.transact(who.tenant, plan_anew)
                    return
                case "forget":
                    fresh = await staging.show_forget(core, who, Forget(**request))
                case "merge":
                    fresh = await staging.show_merge(core, who, Merge(**request))
                case _:
                    fresh = await staging.show_update(core, who, _as_staged(value))

            def work(tx: Transaction) -> None:
                fresh.require_current(tx)
                keep(tx, fresh.value, fresh.ids)

            await core.transact(who.tenant, work)

        try:
            await core.retry_on_conflict(show_anew)
        except NotFound as gone:
            return Conflict(f"{said}: {gone.summary}; reject it", review_id=value["id"])
        return Conflict(f"{said}; {_LOOK_AGAIN}", review_id=value["id"])

    async def _redacted(self, decision: Decision) -> Decision:
        """What a reviewer writes is kept like everything else; an edited draft is cleaned where it is used."""
        return replace(
            decision,
            reviewer=self._core.redact_text(decision.reviewer or "", "reviewer"),
            reason=await self._core.redact_async(decision.reason, "reason"),
            edited_request=await self._core.redact_async(decision.edited_request, "request"),
        )

    async def _approve_remember(
        self, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
    ) -> ReviewOutcome:
        core, edited = self._core, _edit_of(decision, Draft, value)
        draft = Draft(**value["draft"])
        if edited is not None:
            draft = as_edited(draft, edited)
        check_draft(core, draft)
        draft, redacted = await redact_draft(core, draft)

        async def attempt() -> ReviewOutcome:
            memory = new_memory(author, draft, core.clock(), id=value["memory_id"])
            (entry,) = await core.make_entries([memory], [draft.embedding])
            apply = await self._prepare(who, memory, decision)

            def work(tx: Transaction) -> ReviewOutcome:
                kept = _conclude(tx, who, value["id"], decision, "approved")
                written = write(tx, author, entry, "remember", review_id=value["id"])
                store = [core.primary.name]
                receipt = Receipt(written.id, written.updated_at, store, memory=written, redacted=redacted)
                return ReviewOutcome(shown(kept), receipt, apply(tx, written))

            return await core.transact(who.tenant, work)

        return await core.retry_on_conflict(attempt)

    async def _prepare(
        self, who: Principal, proposed: Memory, decision: Decision
    ) -> Callable[[Transaction, Memory], ForgetResult | MergeResult | None]:
        """What else is to happen in the transaction that makes the proposed memory live."""
        core, agent = self._core, proposed.agent_id
        if decision.merge_into is not None:
            request = Merge(agent, decision.merge_into, [proposed.id], "merge_content")
            canonical = await resolve(core, who, agent, decision.merge_into)
            duplicate = replace(proposed, created_at=core.clock())
            merged, entry = await merge.merged_entry(core, canonical, [duplicate], request)

            def join(tx: Transaction, written: Memory) -> MergeResult:
                merged.losers = [written]
                return merge.apply_merge(tx, who, request, merged, entry)

            return join
        others = [await resolve(core, who, agent, ref) for ref in decision.forget]

        def supersede(tx: Transaction, written: Memory) -> ForgetResult | None:
            if not others:
                return None
            reason = f"superseded by {written.id}"
            done = forget.apply_forget(tx, core, who, agent, others, hard=False, because=reason)
            return ForgetResult(done, core.primary.name, erased=False)

        return supersede

    async def _approve_forget(
        self, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
    ) -> ReviewOutcome:
        core, edited = self._core, _edit_of(decision, Forget, value)
        request = await forget.redact_reason(core, edited or Forget(**value["request"]))
        # Without an edit exactly what the reviewer was shown is forgotten, not what the filter would find by now.
        if edited is None:
            memories = await core.primary.get(who.tenant, value["ids"])
            drafts = value.get("drafts", [])
        else:
            memories = await forget.select(core, who, request)
            reach = await forget.reach_of(core, who, request)
            drafts = [draft.id for draft in await forget.select_drafts(core, who, request, reach, memories)]
        ids = [m.id for m in memories]
        unchanged = edited is not None and forget.by_filter(request)
        result = ForgetResult([], core.primary.name, erased=request.hard_delete)

        def work(tx: Transaction) -> ReviewOutcome:
            if edited is None:
                _require_unchanged(tx, value)
            kept = _conclude(tx, who, value["id"], decision, "approved", about=ids)
            done = forget.apply_forget(
                tx, core, author, value["agent_id"], memories, hard=request.hard_delete, reason=request.reason,
                unchanged=unchanged,
            )  # fmt: skip
            waiting = not request.ids
            done += erase.erase_drafts(
                tx, core, author, value["agent_id"], drafts, reason=request.reason, waiting=waiting
            )
            result.ids = done
            return ReviewOutcome(shown(kept), result)

        outcome = await core.transact(who.tenant, work)
        if request.hard_delete or any(erase.must_erase(m) for m in memories):
            gone = set(result.ids)
            await forget.finish_erasure(core, who, [m for m in memories if m.id in gone], result)
        return outcome

    async def _approve_merge(
        self, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
    ) -> ReviewOutcome:
        core, edited = self._core, _edit_of(decision, Merge, value)
        request = edited or Merge(**value["request"])
        if edited is None:  # those the reviewer was shown, not whoever carries the entity name by now
            canonical_id, *others = value["ids"]
            request = replace(request, canonical=canonical_id, duplicates=others)

        async def attempt() -> ReviewOutcome:
            with _gone_is_outdated(edited):
                canonical, duplicates = await merge.resolve_parties(core, who, request)
            merged, entry = await merge.merged_entry(core, canonical, duplicates, request)

            def work(tx: Transaction) -> ReviewOutcome:
                if edited is None:
                    _require_unchanged(tx, value)
                about = [canonical.id, *(m.id for m in duplicates)]
                kept = _conclude(tx, who, value["id"], decision, "approved", about=about)
                return ReviewOutcome(shown(kept), merge.apply_merge(tx, author, request, merged, entry))

            return await core.transact(who.tenant, work)

        return await core.retry_on_conflict(attempt)

    async def _approve_update(
        self, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
    ) -> ReviewOutcome:
        core, edited = self._core, _edit_of(decision, Update, value)
        staged = _as_staged(value)
        update = staged if edited is None else replace(edited, id=staged.id)
        check_update(update)

        async def attempt() -> ReviewOutcome:
            with _gone_is_outdated(edited):
                current, next = await staging.plan_update(core, who, update)
            (entry,) = await core.make_entries([next])

            def work(tx: Transaction) -> ReviewOutcome:
                if edited is None:
                    _require_unchanged(tx, value)
                kept = _conclude(tx, who, value["id"], decision, "approved")
                written = write_next(tx, author, current, entry, review_id=value["id"])
                receipt = Receipt(written.id, written.updated_at, [core.primary.name], memory=written)
                return ReviewOutcome(shown(kept), receipt)

            return await core.transact(who.tenant, work)

        return await core.retry_on_conflict(attempt)

    async def _approve_statement(
        self, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
    ) -> ReviewOutcome:
        core, edited = self._core, _edit_of(decision, Statement, value)
        clean = await graph.clean_statement(core, who, edited or Statement(**value["request"]))

        def work(tx: Transaction) -> ReviewOutcome:
            made = graph.plan_statement(tx, author, clean, value["statement_id"])
            if edited is None and staging.timeline_position(made) != value["line"]:
                raise _ReviewOutdated
            kept = _conclude(tx, who, value["id"], decision, "approved", about=staging.quoted_ids(made))
            return ReviewOutcome(shown(kept), graph.apply_statement(tx, author, made))

        return await core.transact(who.tenant, work)


@contextmanager
def _gone_is_outdated(edited: object) -> Iterator[None]:
    """What the reviewer was shown and is no more makes the review outdated; what an edit names must be there."""
    try:
        yield
    except NotFound:
        if edited is None:
            raise _ReviewOutdated from None
        raise


_Edit = TypeVar("_Edit", Draft, Update, Forget, Merge, Statement)


def _edit_of(decision: Decision, kind: type[_Edit], value: dict[str, Any]) -> _Edit | None:
    """The request as the reviewer edited it: an edit changes neither the operation nor whose memory it is about."""
    edited, operation = decision.edited, value["operation"]
    if edited is None or (isinstance(edited, kind) and edited.agent_id == value["agent_id"]):
        return edited
    article = "an" if operation == "update" else "a"
    raise ValidationError(f"the edited request must be {article} {operation} of the same agent", field="request")


def _author(who: Principal, value: dict[str, Any]) -> Principal:
    """Whoever asked: provenance and ledger name them for what is approved, and the reviewer for the approval."""
    return replace(who, name=value["requested_by"])


def _as_staged(value: dict[str, Any]) -> Update:
    """The change that waits; which version it means is pinned by the review."""
    return Update(**{**value["request"], "id": value["ids"][0], "expected_version": None})


def as_edited(staged: Draft, edited: Draft) -> Draft:
    """The edit, which is a plain remember, with what the record is to the protocol that it came by."""
    # The kind was shown to the reviewer among the metadata, where it comes back from.
    metadata = {k: v for k, v in edited.metadata.items() if k != "kind" or not staged.kind or v != staged.kind}
    return replace(edited, metadata=metadata, aliases=staged.aliases, kind=staged.kind, provenance=staged.provenance)


def _conclude(
    tx: Transaction, who: Principal, review_id: str, decision: Decision, status: str, about: Sequence[str] = ()
) -> dict[str, Any]:
    record = tx.record(REVIEW, review_id)
    if record is None:
        raise review_not_found(review_id)
    _require_pending(record.value, decision)
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


def _require_unchanged(tx: Transaction, value: dict[str, Any]) -> None:
    """In the transaction that approves: every memory is the version that the reviewer was shown."""
    if not staging.is_current(tx, value):
        raise _ReviewOutdated


def _require_pending(value: dict[str, Any], decision: Decision) -> None:
    if value.get("erased") and (decision.approved or value["status"] != "pending"):
        advice = "; reject it" if value["status"] == "pending" else ""
        raise Conflict(f"review {value['id']} quoted what has since been erased{advice}")
    if value["status"] != "pending":
        raise Conflict(f"review {value['id']} was {value['status']} already")


def review_not_found(review_id: str) -> NotFound:
    """The same sentence whether it never was or is someone else's."""
    return NotFound(f"no review {review_id}", hint="`commonplace review list --status all` shows what there is")
