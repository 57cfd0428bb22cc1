"""What callers hand to the engine, whichever protocol they speak."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from commonplace.wire.filters import Where
from commonplace.wire.record import Memory, MemoryType


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
    fusion: str = "rrf"
    hops: int = 0
    quorum: int = 1
    as_of: int | None = None  # ms
    explain: bool = False
    min_score: float | None = None  # on relevance; 0 turns the default cut-off off
    judge: Literal["auto", "off", "always"] = "auto"
    snapshot: Snapshot | None = None  # instead of as_of


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
    errors: list[tuple[str, str]] = field(default_factory=list)
    explain: dict[str, Any] | None = None


@dataclass(slots=True)
class ForgetResult:
    ids: list[str]
    store: str
    erased: bool
    review_id: str | None = None
    descendants: list[str] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)  # where they lie, told to the operator alone
    backup_count: int = 0
