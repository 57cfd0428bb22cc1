"""The record: what a memory is, whose it is, and who asks. Plain dataclasses, because rows are read by the thousand."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Literal, get_args

from commonplace.wire.errors import PayloadTooLarge

MemoryType = Literal["semantic", "episodic", "procedural", "emotional"]
Status = Literal["live", "pending", "archived", "deleted"]
EVERY_STATUS: tuple[Status, ...] = get_args(Status)
REVIEW_STATUSES = ("pending", "approved", "rejected", "expired")
Role = Literal["reader", "writer", "reviewer", "admin"]

MEMORY_TYPES: tuple[MemoryType, ...] = ("semantic", "episodic", "procedural", "emotional")
#: What a store may say that it can do; nothing else is a capability.
CAPABILITIES = frozenset(
    {"semantic", "episodic", "procedural", "emotional", "vector", "fts", "graph", "recall_tracking", "governance"}
)
SHARED_AGENT = "shared"
LOCAL_TENANT = "local"
EVERYONE = "*"  # among those a memory is shared with
ALL_AGENTS = "*"  # whom a principal may use, and whom an audit entry is about that is not about one agent
MAX_CONTENT_CHARS = 262_144
MAX_NAME_CHARS = 256  # of an agent or a user
MAX_KIND_CHARS = 128
MAX_ALIAS_CHARS = 4_096  # protocols take shorter ones; a file that was imported goes by its path
MIN_SECRET_CHARS = 8  # a shorter one would be found in ordinary words
MAX_PAGE = 1000  # entries of a list that one answer holds
MAX_TERM_CHARS = 1024  # of a subject, predicate, object or provenance in the graph

#: Fields of the record that memorywire, and so a reviewer, has among a memory's metadata.
TEXT_FIELDS = ("title", "project", "session_id", "speaker", "entity_name")
METADATA_FIELDS = (*TEXT_FIELDS, "tags", "importance", "event_time", "supersedes")

#: The one clock: integer milliseconds since the epoch.
Clock = Callable[[], int]


def system_clock() -> int:
    return time.time_ns() // 1_000_000


def check_content_size(content: str) -> None:
    if len(content) > MAX_CONTENT_CHARS:
        raise PayloadTooLarge(
            f"content has {len(content):,} characters; at most {MAX_CONTENT_CHARS:,} are kept in one memory",
            field="content",
        )


@dataclass(slots=True)
class Memory:
    """One version of one memory. `id` is minted by the engine and is the same in every store."""

    id: str
    tenant: str
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
    created_at: int = 0
    updated_at: int = 0
    expires_at: int | None = None
    event_time: int | None = None
    status: Status = "live"
    demotion: float = 1.0
    session_id: str | None = None
    speaker: str | None = None
    supersedes: list[str] = field(default_factory=list)
    merged_into: str | None = None
    aliases: list[str] = field(default_factory=list)
    seq: int = 0
    version: int = 0
    content_hash: str = ""
    salt: bytes = b""
    recalls: int = 0
    last_recalled_at: int | None = None


_values = attrgetter(*(each.name for each in fields(Memory)))


def replace_fields(memory: Memory, **new: Any) -> Memory:
    """As `dataclasses.replace`, in a third of the time: every write makes such a copy."""
    copy = Memory(*_values(memory))
    for name, value in new.items():
        setattr(copy, name, value)
    return copy


def covers(pattern: str, agent_id: str) -> bool:
    """Whether a name given to a token means this agent: only `*` stands for anything else, and for any text."""
    if pattern in (ALL_AGENTS, agent_id):
        return True
    if "*" not in pattern:
        return False
    first, *inner, last = pattern.split("*")
    at, end = len(first), len(agent_id) - len(last)
    if at > end or not agent_id.startswith(first) or not agent_id.endswith(last):
        return False
    for piece in inner:
        found = agent_id.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


@dataclass(slots=True, frozen=True)
class Principal:
    """Who asks. Open local mode is one admin of the tenant `local` who may use every agent."""

    name: str = "local"
    tenant: str = LOCAL_TENANT
    role: Role = "admin"
    agents: tuple[str, ...] = (ALL_AGENTS,)
    dialect: str = field(default="", compare=False)  # the protocol by which this call came

    def may_use(self, agent_id: str) -> bool:
        return any(covers(pattern, agent_id) for pattern in self.agents)

    @property
    def uses_all_agents(self) -> bool:
        return ALL_AGENTS in self.agents

    @property
    def is_operator(self) -> bool:
        """Whether it may maintain the whole server: an admin of the tenant `local` who may use every agent."""
        return self.role == "admin" and self.tenant == LOCAL_TENANT and self.uses_all_agents
