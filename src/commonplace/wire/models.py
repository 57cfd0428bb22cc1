"""The memorywire messages as Python objects. The schemas are the truth; these accept the same documents.

On the wire an optional field is absent, never null; only `approval_url` may be null. In Python, where None is
how absence is spelled, a constructor takes None for any optional field and leaves it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from commonplace.wire.message import (
    Count,
    JsonObject,
    Maybe,
    Message,
    Milliseconds,
    Name,
    Number,
    Positive,
    Text,
    Unit,
    whole,
)
from commonplace.wire.record import MemoryType

if TYPE_CHECKING:
    from commonplace.wire.types import (
        EmotionalMemory,
        EpisodicMemory,
        Fsm,
        FsmTransition,
        ProceduralMemory,
        SemanticMemory,
    )

__all__ = [
    "Change",
    "Diff",
    "EmotionalMemory",
    "EpisodicMemory",
    "Erased",
    "ErrorBody",
    "ErrorCode",
    "ErrorEnvelope",
    "ExpireAction",
    "ExpirePolicy",
    "ExpireRequest",
    "ExpireResponse",
    "ForgetRequest",
    "ForgetResponse",
    "Fsm",
    "FsmTransition",
    "Fusion",
    "GovernedOperation",
    "Judge",
    "MergeRequest",
    "MergeResponse",
    "MergeStrategy",
    "Message",
    "PrivacyIntent",
    "ProceduralMemory",
    "RecallHit",
    "RecallRequest",
    "RecallResponse",
    "RememberRequest",
    "RememberResponse",
    "ReviewDecision",
    "ReviewRequest",
    "SemanticMemory",
    "StoreError",
    "StoreOutcome",
    "UpdateRequest",
    "dump",
]

Fusion = Literal["rrf", "max", "weighted"]
Judge = Literal["auto", "off", "always"]
MergeStrategy = Literal["keep_canonical", "merge_content", "keep_highest_confidence"]
ExpireAction = Literal["forget", "archive", "demote"]
GovernedOperation = Literal["remember", "forget", "merge"]
ErrorCode = Literal[
    "validation_error",
    "unauthenticated",
    "forbidden",
    "not_found",
    "conflict",
    "payload_too_large",
    "secret_leakage",
    "rate_limited",
    "unavailable",
]


def __getattr__(name: str) -> Any:
    # The type records are asked for seldom, and making their classes would lengthen every start.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from commonplace.wire import types

    return getattr(types, name)


def dump(message: Message) -> dict[str, Any]:
    """The message as a JSON document: defaults included, None left out, but a remember response always says
    `approval_url`, as null when there is nothing to approve."""
    document = message.model_dump(exclude_none=True)
    if isinstance(message, RememberResponse):
        document.setdefault("approval_url", None)
    return document


class PrivacyIntent(Message):
    """How long a memory may be kept, who may see it, and the consent it rests on."""

    retain: Maybe[Positive] = None
    share_with: Maybe[list[Text]] = None
    user_consent_id: Maybe[Text] = None


class RememberRequest(Message):
    schema_name = "memorywire/operations/remember"

    agent_id: Name
    type: MemoryType
    content: Text
    user_id: Maybe[Name] = None
    metadata: Maybe[JsonObject] = None
    confidence: Unit = 1.0
    source: Maybe[str] = None
    expires_at: Maybe[Milliseconds] = None
    approval_required: bool = False
    privacy_intent: Maybe[PrivacyIntent] = None
    idempotency_key: Maybe[Name] = None
    embedding: Maybe[Annotated[list[Number], Field(min_length=1)]] = None
    reasoning: Maybe[str] = None


class StoreError(Message):
    """A store that did not do its part, and why."""

    store: Text
    error: Text


class RememberResponse(Message):
    schema_name = "memorywire/operations/remember.response"

    id: Text
    stored_at: Milliseconds
    stores: list[Text]
    pending_approval: bool
    approval_url: Text | None = None
    errors: Maybe[list[StoreError]] = None
    redacted: Maybe[Annotated[list[Text], Field(min_length=1)]] = None


class RecallRequest(Message):
    schema_name = "memorywire/operations/recall"

    agent_id: Name
    query: Text
    user_id: Maybe[Name] = None
    k: Annotated[int, Field(ge=1, le=1000), BeforeValidator(whole)] = 5
    types: Maybe[list[MemoryType]] = None
    hops: Annotated[int, Field(ge=0, le=3), BeforeValidator(whole)] = 0
    fusion: Fusion = "rrf"
    filter: Maybe[JsonObject] = None
    fresher_than_days: Maybe[Count] = None
    min_score: Maybe[Unit] = None
    as_of: Maybe[Milliseconds] = None
    explain: bool = False
    quorum_k: Maybe[Positive] = None
    include_shared: bool = False
    judge: Judge = "auto"


class RecallHit(Message):
    id: Text
    type: MemoryType
    content: Annotated[Text | JsonObject, Field(union_mode="left_to_right")]
    score: Number
    metadata: Maybe[JsonObject] = None
    created_at: Maybe[Milliseconds] = None
    supporting: Maybe[list[Text]] = None
    source_store: Maybe[Text] = None
    confidence: Maybe[Unit] = None
    source: Maybe[str] = None
    user_id: Maybe[Name] = None
    expires_at: Maybe[Milliseconds] = None
    relevance: Maybe[Unit] = None
    signature: Maybe[Text] = None
    explain: Maybe[JsonObject] = None


class RecallResponse(Message):
    schema_name = "memorywire/operations/recall.response"

    results: list[RecallHit]
    fusion_used: Fusion
    stores_queried: list[Text]
    latency_ms: Count
    explain: Maybe[JsonObject] = None
    note: Maybe[Text] = None
    errors: Maybe[list[StoreError]] = None


class ForgetRequest(Message):
    """What to forget must be said: `ids`, `filter`, or both, and not both empty."""

    schema_name = "memorywire/operations/forget"

    agent_id: Name
    user_id: Maybe[Name] = None
    ids: Maybe[list[Text]] = None
    filter: Maybe[JsonObject] = None
    hard_delete: bool = False
    reason: Maybe[str] = None
    approval_required: bool = False
    cascade: bool = False
    reasoning: Maybe[str] = None

    @model_validator(mode="after")
    def _names_something(self) -> ForgetRequest:
        if not self.ids and not self.filter:
            raise ValueError("forget needs a non-empty ids or filter")
        return self


class StoreOutcome(Message):
    """How many memories one store changed, or why it failed."""

    store: Text
    count: Count
    error: Maybe[Text] = None


class Erased(Message):
    """What an erasure touched beyond the ids asked for, and the backups that still hold them."""

    descendants: list[Text] = Field(default_factory=list)
    backups: list[Text] = Field(default_factory=list)
    backup_count: Maybe[Count] = None


class ForgetResponse(Message):
    schema_name = "memorywire/operations/forget.response"

    forgotten_ids: list[Text]
    stores: list[StoreOutcome]
    hard_delete: bool
    pending_approval: Maybe[bool] = None
    approval_url: Text | None = None
    erased: Maybe[Erased] = None


class MergeRequest(Message):
    schema_name = "memorywire/operations/merge"

    agent_id: Name
    canonical: Text
    duplicates: Annotated[list[Text], Field(min_length=1)]
    strategy: MergeStrategy = "keep_canonical"
    approval_required: bool = False
    reasoning: Maybe[str] = None


class MergeResponse(Message):
    schema_name = "memorywire/operations/merge.response"

    canonical: Text
    merged_count: Count
    strategy_used: MergeStrategy
    stores: list[StoreOutcome]
    pending_approval: Maybe[bool] = None
    approval_url: Text | None = None


class ExpirePolicy(Message):
    """Conditions that must all hold; at least one is given."""

    older_than_days: Maybe[Positive] = None
    type: Maybe[MemoryType] = None
    confidence_below: Maybe[Unit] = None
    no_recall_in_days: Maybe[Positive] = None

    @model_validator(mode="after")
    def _says_something(self) -> ExpirePolicy:
        if not self.model_fields_set:
            raise ValueError("policy needs at least one condition")
        return self


class ExpireRequest(Message):
    schema_name = "memorywire/operations/expire"

    agent_id: Name
    policy: ExpirePolicy
    action: ExpireAction = "forget"


class ExpireResponse(Message):
    schema_name = "memorywire/operations/expire.response"

    matched_count: Count
    action_taken: ExpireAction
    stores: list[StoreOutcome]


class Sharing(Message):
    """The part of a privacy intent that may change; the rest is a promise."""

    share_with: list[Text]


class UpdateRequest(Message):
    """The body of PATCH /v0/memories/{id}; a field that is absent stays as it is."""

    schema_name = "memorywire/operations/update"

    agent_id: Name
    content: Maybe[Text] = None
    metadata: Maybe[JsonObject] = None
    tags: Maybe[list[Text]] = None
    confidence: Maybe[Unit] = None
    expires_at: Maybe[Milliseconds] = None
    privacy_intent: Maybe[Sharing] = None
    expected_version: Maybe[Positive] = None


class Change(Message):
    before: JsonObject
    after: JsonObject


class Diff(Message):
    """What the memory would gain, lose and change if the reviewed request went through."""

    added: list[JsonObject] = Field(default_factory=list)
    removed: list[JsonObject] = Field(default_factory=list)
    modified: list[Change] = Field(default_factory=list)


_GOVERNED: dict[str, type[RememberRequest | ForgetRequest | MergeRequest]] = {
    "remember": RememberRequest,
    "forget": ForgetRequest,
    "merge": MergeRequest,
}


class ReviewRequest(Message):
    schema_name = "memorywire/operations/governance.review"

    operation: GovernedOperation
    agent_id: Name
    request: RememberRequest | ForgetRequest | MergeRequest
    diff: Maybe[Diff] = None
    reasoning: Maybe[str] = None

    @field_validator("request", mode="before")
    @classmethod
    def _chosen_by_operation(cls, request: Any, info: ValidationInfo) -> Any:
        model = _GOVERNED.get(info.data.get("operation", ""))
        return request if model is None else model.model_validate(request)


class ReviewDecision(Message):
    schema_name = "memorywire/operations/governance.decision"

    approved: bool
    reviewer: Text
    reviewed_at: Milliseconds
    reason: Maybe[str] = None


class ErrorBody(Message):
    code: ErrorCode
    message: Text
    details: Maybe[JsonObject] = None


class ErrorEnvelope(Message):
    schema_name = "memorywire/error"

    error: ErrorBody
