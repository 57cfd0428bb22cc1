"""What callers hand to the engine and what it answers, whichever protocol they speak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from commonplace.wire.filters import Where
from commonplace.wire.record import Memory, MemoryType

MergeStrategy = Literal["keep_canonical", "merge_content", "keep_highest_confidence"]
ExpireAction = Literal["forget", "archive", "demote"]
Fusion = Literal["rrf", "max", "weighted"]

#: The tenant under which the store's own records lie.
SYSTEM = ""


@dataclass(slots=True)
class Draft:
    """A memory as its author gives it; the engine adds identity, time, hashes and history."""

    agent_id: str
    type: MemoryType
    content: str
    kind: str = ""
    user_id: str | None = None
    project: str | None = None
    title: str | None = None
    entity_name: str | None = None
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    confidence: float = 1.0
    importance: float | None = None
    source: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    privacy: dict[str, Any] = field(default_factory=dict)
    expires_at: int | None = None
    event_time: int | None = None
    session_id: str | None = None
    speaker: str | None = None
    supersedes: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    embedding: list[float] | None = None


@dataclass(slots=True)
class Receipt:
    """What became of a write. While it is pending `stores` is empty and `review_id` names the review."""

    id: str
    stored_at: int
    stores: list[str]
    review_id: str | None = None
    memory: Memory | None = None
    redacted: list[str] = field(default_factory=list)  # labels of the secrets that were replaced in it


@dataclass(slots=True, frozen=True)
class Snapshot:
    """What was there when a run began: whoever reads at it gets the same answer however often they ask."""

    seq: int  # the tenant's sequence then
    at: int  # ms; what "yesterday" means in a question asked there


@dataclass(slots=True)
class Query:
    """A question to one or more agents' memories."""

    agents: tuple[str, ...]
    text: str
    k: int = 5
    where: Where = ()
    fusion: Fusion = "rrf"
    hops: int = 0
    quorum: int = 1
    as_of: int | None = None  # ms
    explain: bool = False
    min_score: float | None = None  # on relevance; 0 turns the default cut-off off
    judge: Literal["auto", "off", "always"] = "auto"
    snapshot: Snapshot | None = None  # instead of as_of
    include_shared: bool = False  # the shared space, too, for whoever may read it


@dataclass(slots=True)
class Hit:
    memory: Memory
    score: float
    source_store: str
    relevance: float | None = None
    supporting: list[str] = field(default_factory=list)
    explain: dict[str, Any] | None = None


@dataclass(slots=True)
class RecallResult:
    hits: list[Hit]
    stores_queried: list[str]
    latency_ms: float
    note: str | None = None
    explain: dict[str, Any] | None = None
    errors: dict[str, str] = field(default_factory=dict)  # by store, why it failed

    @property
    def remarks(self) -> str | None:
        """The note and the errors, for whoever has one place for both."""
        errors = [f"{store}: {why}" for store, why in self.errors.items()]
        return "; ".join(filter(None, (self.note, *errors))) or None


@dataclass(slots=True)
class SearchResult:
    """The best hits of a search, and how many there were before the cut."""

    hits: list[Hit]
    total: int
    note: str | None = None


@dataclass(slots=True)
class NumberedPage:
    """A page by number, and how many memories all pages have."""

    memories: list[Memory]
    total: int


@dataclass(slots=True)
class BatchItem:
    """One remember of a batch; with `approval`, the request to show a reviewer, it waits for one first."""

    draft: Draft
    idempotency_key: str | None = None
    approval: dict[str, Any] | None = None
    reasoning: str | None = None
    memory_id: str | None = None  # given by the engine


@dataclass(slots=True)
class UpsertResult:
    receipt: Receipt
    created: bool


@dataclass(slots=True, frozen=True)
class Forget:
    """What to forget: those of `ids` (ids or aliases) that also pass `filter` and `user_id`; one of the first two must
    be given. `hard_delete` erases; with `cascade` also what they were merged into and what was merged into them.
    `all_agents` means every agent the caller may write to, and not `agent_id` alone."""

    agent_id: str
    ids: Sequence[str] = ()
    filter: Mapping[str, Any] | None = None
    user_id: str | None = None
    hard_delete: bool = False
    cascade: bool = False
    reason: str | None = None
    approval_required: bool = False
    reasoning: str | None = None
    all_agents: bool = False


@dataclass(slots=True)
class ForgetResult:
    """While it is pending `review_id` names the review and nothing is forgotten yet."""

    ids: list[str]
    store: str
    erased: bool
    review_id: str | None = None
    descendants: list[str] = field(default_factory=list)  # what the erased were merged into, and is still there
    sources: list[str] = field(default_factory=list)  # what was merged into the erased, and is still there
    backups: list[str] = field(default_factory=list)  # where they lie, told to the operator alone
    backup_count: int = 0
    agents: dict[str, int] = field(default_factory=dict)  # how many of each agent that was looked at are gone
    remaining: list[str] = field(default_factory=list)  # what was meant and is still there, because of `error`
    error: str | None = None


@dataclass(slots=True)
class ExpireResult:
    ids: list[str]
    remaining: list[str] = field(default_factory=list)  # what the policy means and nothing was done to
    error: str | None = None  # why


@dataclass(slots=True, frozen=True)
class Merge:
    """Several memories made one. Each is named by id, alias or entity name."""

    agent_id: str
    canonical: str
    duplicates: Sequence[str]
    strategy: MergeStrategy = "keep_canonical"
    approval_required: bool = False
    reasoning: str | None = None


@dataclass(slots=True)
class MergeResult:
    """While it is pending `review_id` names the review and nothing is merged yet."""

    survivor: Memory
    losers: list[Memory]
    changed: bool  # whether the survivor differs from how it was
    review_id: str | None = None


@dataclass(slots=True, frozen=True)
class Update:
    """What changes of one memory, named by id or alias; what is None stays as it is. Of a privacy intent only who else
    may see it can change."""

    agent_id: str
    id: str
    content: str | None = None
    metadata: Mapping[str, Any] | None = None
    tags: Sequence[str] | None = None
    confidence: float | None = None
    expires_at: int | None = None
    privacy_intent: Mapping[str, Any] | None = None
    expected_version: int | None = None
    approval_required: bool = False
    reasoning: str | None = None
    remove_expiry: bool = False  # on the wire, an `expires_at` of null


@dataclass(slots=True)
class UpdateResult:
    """The memory as it is now; while the change waits `review_id` names its review."""

    memory: Memory
    review_id: str | None = None


@dataclass(slots=True, frozen=True)
class Fire:
    """A trigger for one procedure, named by id or alias, and the facts that its guards ask for; of every agent the
    caller may use where none is named. It is governed as the update that it is."""

    id: str
    trigger: str = ""
    facts: Mapping[str, bool] = field(default_factory=dict)
    agent_id: str | None = None
    expected_version: int | None = None
    approval_required: bool = False
    reasoning: str | None = None


@dataclass(slots=True, frozen=True)
class Statement:
    """Something to state in the graph; it holds from now where `valid_from` (ms) is not given."""

    agent_id: str
    subject: str
    predicate: str
    object: str
    confidence: float = 1.0
    provenance: str | None = None
    valid_from: int | None = None
    approval_required: bool = False
    reasoning: str | None = None


@dataclass(slots=True, frozen=True)
class Expire:
    """A policy, of which at least one condition must be given and all must hold, and what happens to what it means."""

    agent_id: str
    older_than_days: int | None = None
    type: MemoryType | None = None
    confidence_below: float | None = None
    no_recall_in_days: int | None = None
    action: ExpireAction = "forget"
