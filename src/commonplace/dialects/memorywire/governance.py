"""What people decide and check, in memorywire: reviews, policies, the audit trail, and recovery from a bad source."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.dialects.memorywire.base import Document, MemorywireBase
from commonplace.dialects.memorywire.records import (
    entry_to_wire,
    erasure_report,
    store_errors,
    to_draft,
    to_forget,
    to_merge,
    to_update,
    undelivered_to_wire,
)
from commonplace.engine import (
    AssertResult,
    BadSource,
    Decision,
    Draft,
    Forget,
    ForgetResult,
    Merge,
    MergeResult,
    Progress,
    Receipt,
    ReviewOutcome,
    Statement,
    Update,
)
from commonplace.wire.errors import Fault
from commonplace.wire.models import (
    AssertRequest,
    ForgetRequest,
    MergeRequest,
    RememberRequest,
    ReviewApply,
    UpdateRequest,
    dump,
)
from commonplace.wire.validate import parse

_GOVERNED: dict[str, type[RememberRequest | UpdateRequest | ForgetRequest | MergeRequest | AssertRequest]] = {
    "remember": RememberRequest,
    "attestation": RememberRequest,
    "update": UpdateRequest,
    "statement": AssertRequest,
    "forget": ForgetRequest,
    "merge": MergeRequest,
}


class GovernanceOperations(MemorywireBase):
    # reviews

    async def reviews(self, status: str = "pending", agent_id: str | None = None) -> Sequence[Document]:
        found = await self._engine.reviews.list(self._who, None if status == "all" else status)
        return [review for review in found if agent_id in (None, review["agent_id"])]

    async def review(self, id: str) -> Document:
        return await self._engine.reviews.get(self._who, id)

    async def decide(
        self,
        review_id: str,
        approved: bool,
        reviewer: str | None = None,
        reason: str | None = None,
        request: Document | None = None,
        apply: ReviewApply | None = None,
        revision: int | None = None,
    ) -> Document:
        """Approve, reject, or approve an edited request: the decided review with what came of it."""
        edited = None if request is None else await self._edit(review_id, request)
        decision = Decision(approved, reviewer, reason, edited, request, revision=revision)
        if apply is not None:
            decision.merge_into, decision.forget = apply.merge_into, tuple(apply.forget or ())
        decided = await self._engine.reviews.decide(self._who, review_id, decision)
        return {**decided.review, **_outcome(decided), **undelivered_to_wire(decided.undelivered)}

    async def decide_many(
        self, ids: Sequence[str], approved: bool, reviewer: str | None = None, reason: str | None = None
    ) -> Sequence[Document]:
        """{id, status, errors?} of each in the order asked, or {id, error}."""
        outcomes = await self._engine.reviews.decide_many(self._who, ids, Decision(approved, reviewer, reason))
        return [
            {"id": id, **(each.to_wire() if isinstance(each, Fault) else _decided(each))}
            for id, each in zip(ids, outcomes, strict=True)
        ]

    async def edit_review(self, review_id: str, request: Document, revision: int | None = None) -> Document:
        """Ask for something else instead: the review, which goes on waiting."""
        edited = await self._edit(review_id, request)
        return await self._engine.reviews.edit(self._who, review_id, edited, request, revision)

    async def _edit(self, review_id: str, request: Document) -> Draft | Update | Forget | Merge | Statement:
        """A request as a reviewer wrote it, of the operation that waits."""
        review = await self._engine.reviews.get(self._who, review_id)
        match parse(_GOVERNED[review["operation"]], request):
            case RememberRequest() as parsed:
                return to_draft(parsed)
            case ForgetRequest() as parsed:
                return to_forget(parsed)
            case MergeRequest() as parsed:
                return to_merge(parsed)
            case UpdateRequest() as parsed:
                return to_update("", parsed)
            case parsed:
                return Statement(**dict(parsed))

    # policies

    async def policies(self) -> Document:
        """{rules, configured}."""
        return await self._engine.policies.get(self._who)

    async def set_policies(self, rules: Sequence[Document]) -> Document:
        return await self._engine.policies.replace(self._who, rules)

    async def try_policies(self, rules: Sequence[Document], days: int = 30) -> Document:
        """{looked_at, counts, caught}."""
        return await self._engine.policies.dry_run(self._who, rules, days)

    async def learned_policies(self) -> Sequence[Document]:
        return await self._engine.policies.learned(self._who)

    async def revoke_learned(self, id: str) -> Document:
        await self._engine.policies.revoke(self._who, id)
        return {"id": id, "revoked": True}

    # audit

    async def audit(
        self,
        *,
        agent_id: str | None = None,
        operation: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Document:
        """A page {entries, next_cursor} of the audit trail, oldest first."""
        entries, more = await self._engine.ledger.page(
            self._who, agent_id=agent_id, operation=operation, since=since, until=until, limit=limit, cursor=cursor
        )
        return {"entries": [entry_to_wire(entry) for entry in entries], "next_cursor": more}

    async def verify_audit(self, progress: Progress | None = None) -> Document:
        """{ok, entries, head}, and when it is not ok {first_bad, problem}."""
        return (await self._engine.ledger.verify(self._who, progress)).to_wire()

    async def audit_head(self) -> Document:
        return await self._engine.ledger.heads.head(self._who)

    async def audit_proof(self, entry: int, size: int | None = None) -> Document:
        return await self._engine.ledger.heads.proof(self._who, entry, size)

    async def audit_consistency(self, **sizes: int) -> Document:
        """`from` and `to`, the first of which is a word of Python's."""
        return await self._engine.ledger.heads.consistency(self._who, sizes["from"], sizes.get("to"))

    async def audit_key(self) -> Document:
        return self._engine.ledger.heads.key(self._who)

    # recovery

    async def recover(
        self,
        *,
        source: str | None = None,
        principal: str | None = None,
        since: int | None = None,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> Document:
        """{recovery_id?, affected, erased}."""
        bad, recovery = BadSource(source, principal, since, agent_id), self._engine.recovery
        with self._engine.reporting(self._who) as report:
            found = await (recovery.preview if dry_run else recovery.recover)(self._who, bad)
        answer: Document = {} if found.recovery_id is None else {"recovery_id": found.recovery_id}
        answer |= {"affected": [each.to_wire() for each in found.affected], "erased": found.erased}
        return answer | store_errors(report)


def _decided(each: ReviewOutcome) -> Document:
    return {"status": each.review["status"], **undelivered_to_wire(each.undelivered)}


def _outcome(decided: ReviewOutcome) -> Document:
    outcome: Document = {}
    for part in (decided.outcome, decided.applied):
        match part:
            case Receipt() as receipt:
                outcome |= {"id": receipt.id, "stores": receipt.stores}
            case ForgetResult() as forgotten:
                outcome |= {"forgotten_ids": forgotten.ids}
                if (erased := erasure_report(forgotten)) is not None:
                    outcome["erased"] = dump(erased)
                if forgotten.error is not None:
                    outcome["error"] = forgotten.error
            case AssertResult() as stated:
                outcome |= {"id": stated.triple.id}
            case MergeResult() as merged:
                outcome |= {"canonical": merged.survivor.id, "merged_count": len(merged.losers)}
    return {"outcome": outcome} if outcome else {}
