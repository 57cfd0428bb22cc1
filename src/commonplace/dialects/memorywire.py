"""memorywire: its requests become engine calls, and what the engine answers becomes its responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.engine import Engine
from commonplace.engine.governance.reviews import Decision, ReviewOutcome
from commonplace.engine.memory.merge import MergeResult
from commonplace.engine.memory.retention import DAY_MS
from commonplace.engine.memory.write import MAX_BATCH, Item
from commonplace.engine.types import Draft, ForgetResult, Hit, Query, Receipt
from commonplace.wire import filters
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.filters import Condition
from commonplace.wire.models import (
    Erased,
    ExpireRequest,
    ExpireResponse,
    ForgetRequest,
    ForgetResponse,
    MergeRequest,
    MergeResponse,
    RecallHit,
    RecallRequest,
    RecallResponse,
    RememberRequest,
    RememberResponse,
    StoreError,
    StoreOutcome,
    UpdateRequest,
)
from commonplace.wire.record import SHARED_AGENT, Memory, Principal
from commonplace.wire.validate import parse

if TYPE_CHECKING:
    from commonplace.wire.surface import ReviewApply

NAME = "memorywire"
_GOVERNED: dict[str, type[RememberRequest | ForgetRequest | MergeRequest]] = {
    "remember": RememberRequest,
    "forget": ForgetRequest,
    "merge": MergeRequest,
}


class Memorywire:
    """The five operations and what surrounds them, for one caller."""

    def __init__(self, engine: Engine, who: Principal) -> None:
        self._engine = engine
        self._who = who

    async def remember(self, request: RememberRequest) -> RememberResponse:
        approval = request.model_dump(exclude_unset=True) if request.approval_required else None
        receipt = await self._engine.remember(
            self._who,
            to_draft(request),
            idempotency_key=request.idempotency_key,
            approval=approval,
            reasoning=request.reasoning,
        )
        return self._remembered(receipt)

    async def remember_many(self, requests: Sequence[RememberRequest]) -> list[RememberResponse | Fault]:
        """Each its own outcome; those that need approval are staged one by one."""
        if len(requests) > MAX_BATCH:  # before any of them is staged
            raise ValidationError(f"items must hold 1 to {MAX_BATCH} memories, not {len(requests)}", field="items")
        outcomes: dict[int, RememberResponse | Fault] = {}
        plain = [i for i, request in enumerate(requests) if not request.approval_required]
        for i, request in enumerate(requests):
            if request.approval_required:
                try:
                    outcomes[i] = await self.remember(request)
                except Fault as fault:
                    outcomes[i] = fault
        items = [Item(to_draft(requests[i]), requests[i].idempotency_key) for i in plain]
        if items or not requests:
            for i, outcome in zip(plain, await self._engine.remember_many(self._who, items), strict=True):
                outcomes[i] = self._remembered(outcome) if isinstance(outcome, Receipt) else outcome
        return [outcomes[i] for i in range(len(requests))]

    async def recall(self, request: RecallRequest) -> RecallResponse:
        agents: tuple[str, ...] = (request.agent_id,)
        if request.include_shared and request.agent_id != SHARED_AGENT:
            agents += (SHARED_AGENT,)
        now = self._engine.core.clock()
        where = filters.parse(request.filter)
        if request.user_id is not None:
            where += (Condition(("user_id",), "eq", request.user_id),)
        if request.types:
            where += (Condition(("type",), "in", list(request.types)),)
        if request.fresher_than_days is not None:
            where += (Condition(("created_at",), "gte", max(now - request.fresher_than_days * DAY_MS, 0)),)
        found = await self._engine.recall(
            self._who,
            Query(
                agents,
                request.query,
                request.k,
                where,
                request.fusion,
                request.hops,
                request.quorum_k or 1,
                request.as_of,
                request.explain,
                request.min_score,
                request.judge,
            ),
        )
        return RecallResponse(
            results=[to_hit(hit) for hit in found.hits],
            fusion_used=request.fusion,
            stores_queried=found.stores_queried,
            latency_ms=round(found.latency_ms),
            note=found.note,
            errors=[StoreError(store=store, error=error) for store, error in found.errors] or None,
            explain=found.explain,
        )

    async def forget(self, request: ForgetRequest) -> ForgetResponse:
        return self._forgotten(await self._engine.forget(self._who, request))

    async def merge(self, request: MergeRequest) -> MergeResponse:
        if request.approval_required:
            canonical, review_id = await self._engine.stage_merge(self._who, request)
            return MergeResponse(
                canonical=canonical.id,
                merged_count=0,
                strategy_used=request.strategy,
                stores=[],
                pending_approval=True,
                approval_url=self._review_url(review_id),
            )
        return self._merged(await self._engine.merge(self._who, request), request)

    async def expire(self, request: ExpireRequest) -> ExpireResponse:
        ids = await self._engine.expire(self._who, request)
        outcome = StoreOutcome(store=self._engine.core.primary.name, count=len(ids))
        return ExpireResponse(matched_count=len(ids), action_taken=request.action, stores=[outcome])

    async def update(self, ref: str, request: UpdateRequest) -> dict[str, Any]:
        memory = await self._engine.update(
            self._who, request.agent_id, ref, to_change(request), expected_version=request.expected_version
        )
        return to_wire(memory)

    async def decide(
        self,
        review_id: str,
        approved: bool,
        reviewer: str,
        reason: str | None = None,
        request: dict[str, Any] | None = None,
        apply: ReviewApply | None = None,
    ) -> dict[str, Any]:
        """Approve, reject, or approve an edited request: the decided review with what came of it."""
        edited: Draft | ForgetRequest | MergeRequest | None = None
        if request is not None:
            review = await self._engine.review(self._who, review_id)
            parsed = parse(_GOVERNED[review["operation"]], request)
            edited = to_draft(parsed) if isinstance(parsed, RememberRequest) else parsed
        decision = Decision(approved, reviewer, reason, edited, request)
        if apply is not None:
            decision.merge_into, decision.forget = apply.merge_into, tuple(apply.forget or ())
        decided = await self._engine.decide(self._who, review_id, decision)
        return {**decided.review, **self._outcome(decided)}

    # encoding

    def _review_url(self, review_id: str | None) -> str | None:
        base = self._engine.core.settings.review_url
        return f"{base}/{review_id}" if base and review_id else None

    def _remembered(self, receipt: Receipt) -> RememberResponse:
        return RememberResponse(
            id=receipt.id,
            stored_at=receipt.stored_at,
            stores=receipt.stores,
            pending_approval=receipt.review_id is not None,
            approval_url=self._review_url(receipt.review_id),
            redacted=receipt.redacted or None,
        )

    def _forgotten(self, result: ForgetResult) -> ForgetResponse:
        pending = result.review_id is not None
        return ForgetResponse(
            forgotten_ids=result.ids,
            stores=[] if pending else [StoreOutcome(store=result.store, count=len(result.ids))],
            hard_delete=result.erased,
            pending_approval=pending,
            approval_url=self._review_url(result.review_id),
            erased=Erased(
                descendants=result.descendants, backups=result.backups, backup_count=result.backup_count or None
            )
            if result.descendants or result.backup_count
            else None,
        )

    def _merged(self, merged: MergeResult, request: MergeRequest) -> MergeResponse:
        count = len(merged.losers)
        return MergeResponse(
            canonical=merged.survivor.id,
            merged_count=count,
            strategy_used=request.strategy,
            stores=[StoreOutcome(store=self._engine.core.primary.name, count=count)],
        )

    def _outcome(self, decided: ReviewOutcome) -> dict[str, Any]:
        outcome: dict[str, Any] = {}
        for part in (decided.outcome, decided.applied):
            match part:
                case Receipt() as receipt:
                    outcome |= {"id": receipt.id, "stores": receipt.stores}
                case ForgetResult() as forgotten:
                    outcome |= {"forgotten_ids": forgotten.ids}
                case MergeResult() as merged:
                    outcome |= {"canonical": merged.survivor.id, "merged_count": len(merged.losers)}
        return {"outcome": outcome} if outcome else {}


def to_draft(request: RememberRequest) -> Draft:
    metadata = request.metadata or {}
    return Draft(
        agent_id=request.agent_id,
        type=request.type,
        content=request.content,
        user_id=request.user_id,
        metadata=metadata,
        confidence=request.confidence,
        source=request.source,
        provenance={"dialect": NAME},
        privacy=request.privacy_intent.model_dump(exclude_none=True) if request.privacy_intent else {},
        expires_at=request.expires_at,
        embedding=request.embedding,
        **lift(metadata),
    )


def lift(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata keys that are fields of the record; a value of another type stays plain metadata."""
    lifted: dict[str, Any] = {}
    for name in ("title", "project", "session_id", "speaker", "entity_name"):
        value = metadata.get(name)
        if isinstance(value, str) and value:
            lifted[name] = value
    tags = metadata.get("tags")
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        lifted["tags"] = list(tags)
    importance = metadata.get("importance")
    if isinstance(importance, (int, float)) and not isinstance(importance, bool) and 0 <= importance <= 1:
        lifted["importance"] = float(importance)
    when = _milliseconds(metadata.get("event_time"))
    if when is not None:
        lifted["event_time"] = when
    supersedes = metadata.get("supersedes")
    if isinstance(supersedes, list) and all(isinstance(id, str) for id in supersedes):
        lifted["supersedes"] = list(supersedes)
    return lifted


def _milliseconds(value: Any) -> int | None:
    """A moment given as epoch milliseconds or as an ISO date, which without a zone means UTC."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return int(value) if abs(value) < 2**53 else None
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = datetime.fromisoformat(f"{moment.isoformat()}+00:00")
    return int(moment.timestamp() * 1000)


_LIFTED_BLANK: dict[str, Any] = {
    "title": None, "project": None, "session_id": None, "speaker": None, "entity_name": None, "tags": [],
    "importance": None, "event_time": None, "supersedes": [],
}  # fmt: skip


def to_change(request: UpdateRequest) -> Callable[[Memory], Memory]:
    given = request.model_fields_set

    def change(memory: Memory) -> Memory:
        fields: dict[str, Any] = {n: getattr(request, n) for n in ("content", "confidence", "expires_at") if n in given}
        if "metadata" in given:
            fields["metadata"] = _without_kind(request.metadata or {}, memory)
            fields |= {**_LIFTED_BLANK, **lift(request.metadata or {})}
        if "tags" in given:
            metadata = fields.get("metadata", memory.metadata)
            fields["tags"] = request.tags
            if "tags" in metadata:
                fields["metadata"] = {**metadata, "tags": request.tags}
        if request.privacy_intent is not None:
            promised = {name: value for name, value in memory.privacy.items() if name != "share_with"}
            names = request.privacy_intent.share_with
            fields["privacy"] = {**promised, "share_with": names} if names else promised
        return replace(memory, **fields)

    if not given - {"agent_id", "expected_version"}:
        raise ValidationError(
            "nothing to change: give content, metadata, tags, confidence, expires_at or privacy_intent"
        )
    return change


def _without_kind(metadata: dict[str, Any], memory: Memory) -> dict[str, Any]:
    """Metadata that was read, changed and sent back, less the kind that only reading added to it."""
    added = metadata.get("kind") == memory.kind != memory.metadata.get("kind")
    if not added or memory.provenance.get("dialect", NAME) == NAME:
        return metadata
    return {name: value for name, value in metadata.items() if name != "kind"}


def shown_metadata(memory: Memory) -> dict[str, Any]:
    """Metadata as written, plus what another protocol kept in fields that memorywire shows here."""
    metadata = dict(memory.metadata)
    for name in ("title", "project", "session_id", "speaker", "entity_name", "importance", "event_time"):
        value = getattr(memory, name)
        if value is not None and name not in metadata:
            metadata[name] = value
    for name in ("tags", "supersedes"):
        if (value := getattr(memory, name)) and name not in metadata:
            metadata[name] = value
    if memory.provenance.get("dialect", NAME) != NAME and "kind" not in metadata:
        metadata["kind"] = memory.kind
    return metadata


def to_hit(hit: Hit) -> RecallHit:
    memory = hit.memory
    # What the store gives back was checked when it was written; checking every hit again costs more than the rest.
    return RecallHit.model_construct(
        id=memory.id,
        type=memory.type,
        content=memory.content,
        score=hit.score,
        metadata=shown_metadata(memory),
        created_at=memory.created_at,
        supporting=hit.supporting or None,
        source_store=hit.source_store,
        confidence=memory.confidence,
        source=memory.source,
        user_id=memory.user_id,
        expires_at=memory.expires_at,
        relevance=hit.relevance,
        explain=hit.explain,
    )


_RECEIVED = ("source", "from", "witnesses", "chain")


def to_wire(memory: Memory) -> dict[str, Any]:
    """A memory as `get`, `list` and `history` show it: nothing empty, the engine's secrets left out."""
    document: dict[str, Any] = {
        "id": memory.id, "agent_id": memory.agent_id, "type": memory.type, "content": memory.content,
        "created_at": memory.created_at, "updated_at": memory.updated_at, "version": memory.version,
        "status": memory.status, "confidence": memory.confidence, "metadata": shown_metadata(memory),
        "content_hash": memory.content_hash,
    }  # fmt: skip
    for name in (
        "user_id",
        "source",
        "expires_at",
        "merged_into",
        "last_recalled_at",
        "aliases",
        "recalls",
        "supersedes",
    ):
        value = getattr(memory, name)
        if value:
            document[name] = value
    if memory.privacy:
        document["privacy_intent"] = memory.privacy
    if memory.provenance.get("source") == "received":
        document["provenance"] = {name: memory.provenance[name] for name in _RECEIVED if name in memory.provenance}
    if memory.demotion != 1.0:
        document["demotion"] = memory.demotion
    return document
