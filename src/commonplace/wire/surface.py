"""The messages around the five operations: memories as they are read, batches, reviews, audit, health, JSON-RPC.

They mirror their schemas exactly as `models` does.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from commonplace.wire.message import (
    Count,
    Integer,
    JsonObject,
    Maybe,
    Message,
    Milliseconds,
    Name,
    Number,
    Positive,
    Text,
    Unit,
)
from commonplace.wire.models import (
    Diff,
    ErrorEnvelope,
    GovernedOperation,
    PrivacyIntent,
    RememberResponse,
    ReviewDecision,
)
from commonplace.wire.record import MemoryType, Status

ReviewStatus = Literal["pending", "approved", "rejected"]
Health = Literal["ok", "degraded", "down"]
MAX_BATCH = 1000


class MemoryDocument(Message):
    """A memory as `get`, `list` and `history` show it."""

    schema_name = "memorywire/types/memory"

    id: Text
    agent_id: Name
    type: MemoryType
    content: Text
    created_at: Milliseconds
    updated_at: Milliseconds
    version: Positive
    status: Status
    confidence: Unit
    metadata: JsonObject
    content_hash: Maybe[Text] = None
    user_id: Maybe[Name] = None
    source: Maybe[str] = None
    expires_at: Maybe[Milliseconds] = None
    merged_into: Maybe[Text] = None
    last_recalled_at: Maybe[Milliseconds] = None
    recalls: Maybe[Count] = None
    aliases: Maybe[list[Text]] = None
    supersedes: Maybe[list[Text]] = None
    privacy_intent: Maybe[PrivacyIntent] = None
    provenance: Maybe[JsonObject] = None
    demotion: Maybe[Unit] = None


class ListResponse(Message):
    schema_name = "memorywire/operations/list.response"

    memories: list[MemoryDocument]
    next_cursor: Text | None = None


class HistoryResponse(Message):
    schema_name = "memorywire/operations/history.response"

    versions: list[MemoryDocument]


class PreviewResponse(Message):
    schema_name = "memorywire/operations/preview.response"

    memories: list[MemoryDocument]


class MergePreviewResponse(Message):
    schema_name = "memorywire/operations/preview.merge.response"

    survivor: MemoryDocument
    losers: list[MemoryDocument]


class BatchRequest(Message):
    """Items are looked at one by one, so that a wrong one does not keep the others out."""

    schema_name = "memorywire/operations/remember.batch"

    items: Annotated[list[JsonObject], Field(min_length=1, max_length=MAX_BATCH)]


class BatchResponse(Message):
    schema_name = "memorywire/operations/remember.batch.response"

    results: list[Annotated[RememberResponse | ErrorEnvelope, Field(union_mode="left_to_right")]]


class Outcome(Message):
    """What came of an approval."""

    id: Maybe[Text] = None
    stores: Maybe[list[Text]] = None
    forgotten_ids: Maybe[list[Text]] = None
    canonical: Maybe[Text] = None
    merged_count: Maybe[Count] = None


class Review(Message):
    schema_name = "memorywire/types/review"

    id: Text
    operation: GovernedOperation
    agent_id: Name
    created_at: Milliseconds
    status: ReviewStatus
    requested_by: Text
    request: Maybe[JsonObject] = None
    diff: Maybe[Diff] = None
    reasoning: Maybe[str] = None
    memory_id: Maybe[Text] = None
    decision: Maybe[ReviewDecision] = None
    erased: Maybe[bool] = None
    outcome: Maybe[Outcome] = None


class ReviewsResponse(Message):
    schema_name = "memorywire/operations/reviews.response"

    reviews: list[Review]


class ReviewApply(Message):
    """What else happens when a new memory is approved: it joins another, or takes the place of others."""

    merge_into: Maybe[Text] = None
    forget: Maybe[Annotated[list[Text], Field(min_length=1)]] = None

    @model_validator(mode="after")
    def _says_something(self) -> ReviewApply:
        if not self.model_fields_set:
            raise ValueError("apply needs merge_into or forget")
        return self


class DecideRequest(Message):
    """The body of POST /v0/reviews/{id}."""

    schema_name = "memorywire/operations/decide"

    approved: bool
    reviewer: Maybe[Name] = None
    reason: Maybe[str] = None
    request: Maybe[JsonObject] = None
    apply: Maybe[ReviewApply] = None


class DecideResponse(Review):
    schema_name = "memorywire/operations/decide.response"

    approved: bool
    reviewer: Text
    reviewed_at: Milliseconds
    reason: Maybe[str] = None


class AuditEntryDocument(Message):
    n: Positive
    at: Milliseconds
    seq: Count
    operation: Text
    agent_id: Name
    principal: Text
    hash: Text
    previous: str
    payload: list[JsonObject]


class AuditResponse(Message):
    schema_name = "memorywire/operations/audit.response"

    entries: list[AuditEntryDocument]
    next_cursor: Text | None = None


class AuditVerification(Message):
    schema_name = "memorywire/operations/audit.verify.response"

    ok: bool
    entries: Count
    head: str
    first_bad: Maybe[Positive] = None
    problem: Maybe[Text] = None


class HealthResponse(Message):
    schema_name = "memorywire/operations/health.response"

    status: Health
    version: Text
    store: Text
    capabilities: list[Text]
    embedder: Text | None = None
    note: Maybe[Text] = None


class EmbedderDocument(Message):
    name: Text
    dimension: Positive


class StatusResponse(Message):
    schema_name = "memorywire/operations/status.response"

    version: Text
    agents: JsonObject
    memories: Count
    pending_reviews: Count
    embedder: Maybe[EmbedderDocument] = None
    note: Maybe[Text] = None


_RpcId = Annotated[str | Number, Field(union_mode="left_to_right")]


class RpcRequest(Message):
    """One JSON-RPC 2.0 call; a list of them is a batch."""

    schema_name = "memorywire/rpc"

    jsonrpc: Literal["2.0"]
    method: Text
    id: _RpcId | None = None
    params: Maybe[JsonObject] = None


class RpcError(Message):
    code: Integer
    message: Text
    data: Maybe[JsonObject] = None


class RpcResponse(Message):
    schema_name = "memorywire/rpc.response"

    jsonrpc: Literal["2.0"]
    id: _RpcId | None = None
    result: Maybe[JsonObject] = None
    error: Maybe[RpcError] = None
