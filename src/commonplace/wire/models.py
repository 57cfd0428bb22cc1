"""The memorywire messages as Python objects: their fields and types. The schemas are the truth about the rest.

What may be in a field is said once, in `schemas/memorywire`: `validate.parse` checks a document against its schema and
only then makes the message, and a request made in Python is checked the same way. On the wire an optional field is
absent, never null; only `approval_url` may be null. In Python, where None is how absence is spelled, a constructor
takes None for any optional field and leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from commonplace.wire.record import MemoryType
from commonplace.wire.validate import check

Fusion = Literal["rrf", "max", "weighted"]
Judge = Literal["auto", "off", "always"]
MergeStrategy = Literal["keep_canonical", "merge_content", "keep_highest_confidence"]
ExpireAction = Literal["forget", "archive", "demote"]
JsonObject = dict[str, Any]


class Message(BaseModel):
    """Closed: a field that the message does not have is refused."""

    # Deferred: a process pays for the messages it uses, not for all of them.
    model_config = ConfigDict(extra="forbid", defer_build=True)

    #: The schema of this message, for those that have a file of their own.
    schema_name: ClassVar[str] = ""

    def __init__(self, /, **fields: Any) -> None:
        super().__init__(**{name: value for name, value in fields.items() if value is not None})

    # Without this mark pydantic would send parsed documents through __init__ too, which checks requests once more.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class Request(Message):
    """A message that callers make; one that its schema refuses cannot be made."""

    def __init__(self, /, **fields: Any) -> None:
        given = {
            name: value.model_dump(exclude_unset=True) if isinstance(value, Message) else value
            for name, value in fields.items()
            if value is not None
        }
        check(self.schema_name, given)
        super().__init__(**given)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


def dump(message: Message) -> JsonObject:
    """The message as a JSON document: defaults included, None left out, but a remember response always says
    `approval_url`, as null when there is nothing to approve."""
    document = message.model_dump(exclude_none=True)
    if isinstance(message, RememberResponse):
        document.setdefault("approval_url", None)
    return document


# remember


class PrivacyIntent(Message):
    """How long a memory may be kept, who may see it, and the consent it rests on."""

    retain: int | None = None
    share_with: list[str] | None = None
    user_consent_id: str | None = None


class RememberRequest(Request):
    schema_name = "memorywire/operations/remember"

    agent_id: str
    type: MemoryType
    content: str
    user_id: str | None = None
    metadata: JsonObject | None = None
    confidence: float = 1.0
    source: str | None = None
    expires_at: int | None = None
    approval_required: bool = False
    privacy_intent: PrivacyIntent | None = None
    idempotency_key: str | None = None
    embedding: list[float] | None = None
    reasoning: str | None = None


class StoreError(Message):
    """A store that did not do its part, and why."""

    store: str
    error: str


class RememberResponse(Message):
    schema_name = "memorywire/operations/remember.response"

    id: str
    stored_at: int
    stores: list[str]
    pending_approval: bool
    approval_url: str | None = None
    review_id: str | None = None
    errors: list[StoreError] | None = None
    redacted: list[str] | None = None


# recall


class RecallRequest(Request):
    schema_name = "memorywire/operations/recall"

    agent_id: str
    query: str
    user_id: str | None = None
    k: int = 5
    types: list[MemoryType] | None = None
    hops: int = 0
    fusion: Fusion = "rrf"
    filter: JsonObject | None = None
    fresher_than_days: int | None = None
    min_score: float | None = None
    as_of: int | None = None
    explain: bool = False
    quorum_k: int | None = None
    include_shared: bool = False
    judge: Judge = "auto"


class RecallHit(Message):
    id: str
    type: MemoryType
    content: str | JsonObject
    score: float
    metadata: JsonObject | None = None
    created_at: int | None = None
    supporting: list[str] | None = None
    source_store: str | None = None
    confidence: float | None = None
    source: str | None = None
    user_id: str | None = None
    expires_at: int | None = None
    relevance: float | None = None
    demotion: float | None = None
    signature: str | None = None
    explain: JsonObject | None = None


class RecallResponse(Message):
    """Iterating over it gives its hits, the best first."""

    schema_name = "memorywire/operations/recall.response"

    results: list[RecallHit]
    fusion_used: Fusion
    stores_queried: list[str]
    latency_ms: int
    explain: JsonObject | None = None
    note: str | None = None
    errors: list[StoreError] | None = None

    def __iter__(self) -> Iterator[RecallHit]:  # type: ignore[override]  # pydantic's own gives names and values
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


# forget


class ForgetRequest(Request):
    """What to forget must be said: `ids`, `filter`, or both, and not both empty."""

    schema_name = "memorywire/operations/forget"

    agent_id: str
    user_id: str | None = None
    ids: list[str] | None = None
    filter: JsonObject | None = None
    hard_delete: bool = False
    reason: str | None = None
    approval_required: bool = False
    cascade: bool = False
    reasoning: str | None = None
    all_agents: bool = False


class StoreOutcome(Message):
    """How many memories one store changed, or why it failed."""

    store: str
    count: int
    error: str | None = None


class ErasureReport(Message):
    """What an erasure touched beyond the ids asked for, and the backups that still hold them."""

    descendants: list[str] = Field(default_factory=list)
    sources: list[str] | None = None
    backups: list[str] = Field(default_factory=list)
    backup_count: int | None = None


class AgentOutcome(Message):
    """How many memories of one agent are gone."""

    agent_id: str
    count: int


class ForgetResponse(Message):
    schema_name = "memorywire/operations/forget.response"

    forgotten_ids: list[str]
    stores: list[StoreOutcome]
    hard_delete: bool
    pending_approval: bool | None = None
    approval_url: str | None = None
    review_id: str | None = None
    erased: ErasureReport | None = None
    remaining_ids: list[str] | None = None
    agents: list[AgentOutcome] | None = None


# merge


class MergeRequest(Request):
    schema_name = "memorywire/operations/merge"

    agent_id: str
    canonical: str
    duplicates: list[str]
    strategy: MergeStrategy = "keep_canonical"
    approval_required: bool = False
    reasoning: str | None = None


class MergeResponse(Message):
    schema_name = "memorywire/operations/merge.response"

    canonical: str
    merged_count: int
    strategy_used: MergeStrategy
    stores: list[str]
    errors: list[StoreError] | None = None
    pending_approval: bool | None = None
    approval_url: str | None = None
    review_id: str | None = None


# expire


class ExpirePolicy(Message):
    """Conditions that must all hold; at least one is given."""

    older_than_days: int | None = None
    type: MemoryType | None = None
    confidence_below: float | None = None
    no_recall_in_days: int | None = None


class ExpireRequest(Request):
    schema_name = "memorywire/operations/expire"

    agent_id: str
    policy: ExpirePolicy
    action: ExpireAction = "forget"


class ExpireResponse(Message):
    schema_name = "memorywire/operations/expire.response"

    matched_count: int
    action_taken: ExpireAction
    stores: list[str]
    remaining_count: int | None = None
    errors: list[StoreError] | None = None


# changing a memory, deciding a review


class Sharing(Message):
    """The part of a privacy intent that may change; the rest is a promise."""

    share_with: list[str]


class UpdateRequest(Request):
    """The body of PATCH /v0/memories/{id}; a field that is absent stays as it is."""

    schema_name = "memorywire/operations/update"

    agent_id: str
    content: str | None = None
    metadata: JsonObject | None = None
    tags: list[str] | None = None
    confidence: float | None = None
    expires_at: int | None = None
    privacy_intent: Sharing | None = None
    expected_version: int | None = None
    approval_required: bool = False
    reasoning: str | None = None


class FireRequest(Request):
    """The body of POST /v0/procedures/{id}/fire."""

    schema_name = "memorywire/operations/procedure.fire"

    agent_id: str | None = None
    trigger: str
    facts: dict[str, bool] | None = None
    expected_version: int | None = None
    approval_required: bool = False
    reasoning: str | None = None


class ResetRequest(Request):
    """The body of POST /v0/procedures/{id}/reset."""

    schema_name = "memorywire/operations/procedure.reset"

    agent_id: str | None = None
    expected_version: int | None = None
    approval_required: bool = False
    reasoning: str | None = None


class LifecycleRunRequest(Request):
    """The body of POST /v0/lifecycle/{job}/run."""

    schema_name = "memorywire/operations/lifecycle.run"

    dry_run: bool = False


class ReviewApply(Message):
    """What else happens when a new memory is approved: it joins another, or takes the place of others."""

    merge_into: str | None = None
    forget: list[str] | None = None


class DecideRequest(Request):
    """The body of POST /v0/reviews/{id}."""

    schema_name = "memorywire/operations/decide"

    approved: bool
    reviewer: str | None = None
    reason: str | None = None
    request: JsonObject | None = None
    apply: ReviewApply | None = None
    revision: int | None = None


class EditReviewRequest(Request):
    """The body of PATCH /v0/reviews/{id}."""

    schema_name = "memorywire/operations/review.edit"

    request: JsonObject
    revision: int | None = None


# the knowledge graph


class AssertRequest(Request):
    """The body of POST /v0/kg/assert."""

    schema_name = "memorywire/operations/kg.assert"

    agent_id: str
    subject: str
    predicate: str
    object: str
    confidence: float = 1.0
    provenance: str | None = None
    valid_from: int | None = None
    approval_required: bool = False
    reasoning: str | None = None


class RetractRequest(Request):
    """The body of POST /v0/kg/retract."""

    schema_name = "memorywire/operations/kg.retract"

    agent_id: str
    subject: str
    predicate: str


class EraseRequest(Request):
    """The body of POST /v0/kg/erase."""

    schema_name = "memorywire/operations/kg.erase"

    agent_id: str
    subject: str
    mentions: bool = False
