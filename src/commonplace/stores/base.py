"""What a backend must do: `Store` for any of them, `Primary` for the one that is authoritative. What it may do
beyond that is in `optional`.

A store keeps entries and finds them again; it decides nothing. Whether a memory may be written, is due,
is pending or belongs to the caller is settled in the engine before a store is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.graph import GraphReads, GraphWork
from commonplace.stores.token_vectors import Codes, QuestionTokens
from commonplace.wire.filters import Where, matches
from commonplace.wire.record import CAPABILITIES as CAPABILITIES, Memory, Status

T = TypeVar("T")
Vectors = NDArray[np.float32]


#: Unit vectors of texts, one row each; may take long, so call it from a thread.
Embed = Callable[[Sequence[str]], Vectors]


@dataclass(slots=True, frozen=True)
class StoreSettings:
    """What a configuration says to whatever store is opened; a store takes from it what concerns it."""

    index_mb: int = 512  # memory for what a process keeps of its indexes
    folder: Path | None = None  # the data directory, for a store that keeps files of its own; None where there is none
    embed: Embed | None = None  # the embedder's, for a product that wants vectors of texts; None without an embedder
    timeout: float = 2.0  # seconds that one operation of a replica may take


@dataclass(slots=True)
class Entry:
    """A memory with what is derived from it: one unit vector per searchable part, and its terms."""

    memory: Memory
    vectors: Vectors | None  # shape (parts, dimension), rows of length 1; None when there is no embedder
    terms: bytes  # commonplace.stores.text.terms(); every store may recompute it
    generation: int = 0  # the embedder generation that made `vectors`
    tokens: Sequence[Codes] | None = None  # of each part, for late interaction; None when the embedder has none
    second: Vectors | None = None  # the same of the second embedder, where there is one
    second_generation: int = 0


@dataclass(slots=True, frozen=True)
class Reach:
    """Which memories an operation may touch. Stores apply all of it before they rank or page."""

    tenant: str
    agents: tuple[str, ...]
    where: Where = ()
    statuses: tuple[Status, ...] = ("live",)
    now: int | None = None  # rows whose expires_at is not after it are invisible; None shows them
    as_of: int | None = None  # a sequence number: the versions that were current then

    def admits(self, memory: Memory) -> bool:
        """What a reach means, for a version that was current at its instant; native filters must agree."""
        inside = memory.agent_id in self.agents and memory.status in self.statuses
        return inside and not self.expired(memory) and matches(memory, self.where)

    def expired(self, memory: Memory) -> bool:
        """What has expired is gone from every past instant, too: there, the current version says so as well."""
        return self.now is not None and memory.expires_at is not None and memory.expires_at <= self.now


@dataclass(slots=True, frozen=True)
class Search:
    reach: Reach
    text: str | None = None
    vector: Vectors | None = None  # shape (dimension,), length 1
    limit: int = 20  # best by meaning and best by keywords, each
    generation: int | None = None  # of the embedder the caller knows; a store that has another raises StaleGeneration
    tokens: QuestionTokens | None = None  # with it, a third leg: the best `limit` by late interaction among
    depth: int = 60  # so many of the best by meaning and as many by keywords
    second: Vectors | None = None  # the question by the second embedder: a leg of its own
    second_generation: int | None = None  # likewise; 0 when the caller knows of none


@dataclass(slots=True)
class Candidate:
    """A memory the search found, with the raw score of each leg (None when that leg cannot say)."""

    memory: Memory
    dense: float | None = None  # cosine of its best part
    keyword: float | None = None  # BM25 within the scope
    matched: int | None = None  # bit i tells whether the question's term i (`text.query_terms`) occurs in it
    late: float | None = None  # late interaction of its best part
    second: float | None = None  # cosine of its best part by the second embedder
    score: float | None = None  # what a product that has but one score says of it; higher is better


@dataclass(slots=True, frozen=True)
class AgentContext:
    """What an agent's live memories say about one another and whose words they are."""

    speakers: frozenset[str] = frozenset()
    replaced: Mapping[str, str] = field(default_factory=dict)  # id or alias → id of the memory that supersedes it


@dataclass(slots=True, frozen=True)
class ImportanceDecay:
    """What a memory is worth at an instant: its given importance halves with its age, and each recall adds a little."""

    base: float  # the importance of one that was given none
    half_life: int  # ms
    each: float  # for every recall,
    most: float  # but not more than this for all of them

    def of(self, memory: Memory, at: int) -> float:
        given = self.base if memory.importance is None else memory.importance
        age = max(at - memory.created_at, 0)
        return float(given * 2 ** (-age / self.half_life) + min(self.each * memory.recalls, self.most))

    def order(self, memories: Iterable[Memory], at: int) -> list[Memory]:
        """Best first, the newer first among equals."""
        return sorted(memories, key=lambda m: (self.of(m, at), m.created_at, m.id), reverse=True)


@dataclass(slots=True, frozen=True)
class Page:
    memories: list[Memory]
    next_cursor: str | None


@dataclass(slots=True)
class Record:
    """A small document the engine keeps beside memories: a review, an idempotency key, a setting.

    `about` lists the memories whose content it may quote, so that erasing one finds it.
    """

    kind: str
    key: str
    value: dict[str, Any]
    about: tuple[str, ...] = ()


@dataclass(slots=True)
class AuditPart:
    """The erasable half of an audit entry: what was done to one memory."""

    memory_id: str | None
    payload: bytes | None
    salt: bytes | None
    hash: str

    def without(self, memory_id: str) -> AuditPart:
        """Itself, or what is left once that memory is erased: a hash that says nothing."""
        return AuditPart(None, None, None, self.hash) if self.memory_id == memory_id else self


@dataclass(slots=True)
class AuditEntry:
    """The immutable half: a header chained to the one before by `previous`."""

    n: int
    at: int
    seq: int
    operation: str
    agent_id: str
    principal: str
    payload_hash: str
    previous: str
    hash: str
    parts: list[AuditPart] = field(default_factory=list)

    def matches(
        self,
        agent_id: str | None = None,
        operation: str | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> bool:
        """Whether it passes these filters of a listing; None passes everything."""
        named = agent_id in (None, self.agent_id) and operation in (None, self.operation)
        return named and (since is None or self.at >= since) and (until is None or self.at <= until)


@dataclass(slots=True, frozen=True)
class EmbedderInfo:
    """The embedder a store's vectors were made with; `generation` grows each time it is replaced."""

    name: str
    dimension: int
    generation: int


class StaleGeneration(Exception):
    """The caller knows an embedder the store has since left behind: its vectors say nothing here; embed again."""


@runtime_checkable
class Store(Protocol):
    """Any backend. Replicas (another product, another server) implement just this, and `ReplicaContract` is their test.

    A replica is given the live memories and asked which of them answer; the primary's rows are what is shown. It may
    keep less than it was given, but the ids, scopes, types, times and every character of the content.
    """

    name: str

    @property
    def capabilities(self) -> frozenset[str]: ...

    async def put(self, entries: Sequence[Entry]) -> None:
        """Keep these, replacing what has the same id."""

    async def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        """The current versions that exist, whatever their status, in the order asked."""

    async def search(self, search: Search) -> list[Candidate]:
        """At most `limit` by each leg; everything in `reach` applied before the cut.

        Every score is given for each of them, `late` where the store has the memory's tokens, and their order means
        nothing. A replica that has no such scores answers best first, and may say `score`.
        """

    async def delete(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove them and every trace of their content; how many there were."""

    async def scan(
        self, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        """A page in order of (created_at, id)."""

    async def health(self) -> dict[str, Any]:
        """At least {"status": "ok" | "degraded" | "down"}."""

    async def close(self) -> None: ...


class Transaction(GraphWork, Protocol):
    """What a unit of work may do; all of it becomes durable together or not at all."""

    # The commit time of this transaction: never earlier than the tenant's last. Whoever replays what another store
    # wrote sets it before each version to the time that one had.
    now: int
    seq: int  # the tenant's sequence so far

    def get(self, id: str) -> Memory | None: ...

    def find(self, reach: Reach, *, limit: int | None = None) -> list[Memory]:
        """Everything in reach, oldest first."""

    def by_alias(self, agent_id: str, alias: str) -> Memory | None:
        """The live or archived memory that carries this alias."""

    def put(self, entry: Entry) -> Memory:
        """Write the next version: gives it `seq`, `version` and `updated_at`, keeps the one before."""

    def demote(self, ids: Sequence[str], factor: float) -> None:
        """Change the demotion and nothing else: no version, no sequence."""

    def count_recalls(self, ids: Sequence[str], at: int, times: int = 1) -> None:
        """Count a recall of each, or several, of which the last was then: no version, no sequence."""

    def erase(self, id: str) -> None:
        """Remove the memory, its versions, terms, vectors, aliases and audit payloads; leave a mark (id, seq)."""

    def audit_head(self) -> tuple[int, str]:
        """Number and hash of the last audit entry; (0, "") before the first."""

    def append_audit(self, entry: AuditEntry) -> None: ...

    def record(self, kind: str, key: str) -> Record | None: ...

    def put_record(self, record: Record) -> None: ...

    def drop_record(self, kind: str, key: str) -> None: ...

    def records_about(self, memory_id: str) -> list[Record]: ...


@runtime_checkable
class Primary(Store, GraphReads, Protocol):
    """The authoritative store: ids, versions, pending changes and audit live here."""

    async def transact(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` alone and durably; if it raises, nothing of it remains.

        Several callers' work may share one commit. `work` must not block and may be run in another thread.
        """

    async def history(self, tenant: str, id: str) -> list[Memory]:
        """All versions, oldest first."""

    async def find_alias(self, tenant: str, agents: Sequence[str], alias: str) -> list[Memory]: ...

    async def agents(self, tenant: str) -> dict[str, int]:
        """Every agent that has memories, with the number of live ones."""

    async def agent_names(self, tenant: str) -> list[str]:
        """Every agent that has memories, whatever their status."""

    async def count(self, reach: Reach) -> int:
        """How many a scan of it would find."""

    async def sequence(self, tenant: str, at: int | None = None) -> int:
        """The tenant's sequence now, or the last one committed at or before `at` (ms)."""

    async def audit(
        self,
        tenant: str,
        *,
        after: int = 0,
        limit: int = 100,
        agent_id: str | None = None,
        operation: str | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> list[AuditEntry]:
        """Entries with n > after, in order, parts included."""

    async def audit_head(self, tenant: str) -> tuple[int, str]:
        """Number and hash of the last audit entry, as committed; (0, "") before the first."""

    async def audit_hashes(self, tenant: str, *, after: int = 0, limit: int = 1000) -> list[str]:
        """The hashes of the entries with n > after, in order: all that the Merkle tree over them is made of."""

    async def record(self, tenant: str, kind: str, key: str) -> Record | None:
        """One record, read without waiting for whoever writes."""

    async def records(self, tenant: str, kind: str) -> list[Record]: ...

    async def records_page(
        self,
        tenant: str,
        kind: str,
        where: Mapping[str, str],
        *,
        after: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Record]:
        """Those whose documents say these texts under these names, by their keys: the next after one of them."""

    async def audit_before(
        self, tenant: str, *, before: int | None = None, limit: int = 100, **which: Any
    ) -> list[AuditEntry]:
        """As `audit`, the newest first: entries with n < before; `which` is what `AuditEntry.matches` takes."""

    async def embedder(self) -> EmbedderInfo | None:
        """The one whose vectors are searched."""

    async def adopt_embedder(self, name: str, dimension: int) -> EmbedderInfo:
        """Record the first embedder; if there is one already, that one is the answer."""

    async def tenants(self) -> list[str]: ...

    async def context(self, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext:
        """From live memories; given `now`, not from those that have expired."""

    async def most_important(self, reach: Reach, decay: ImportanceDecay, at: int, limit: int) -> list[Memory]:
        """What of it is worth most at that time, best first, the newer first among equals."""

    async def neighbours_in_session(self, search: Search, ids: Sequence[str], each: int) -> list[list[Candidate]]:
        """Runs of one session's memories in the order written: these with up to `each` before and after them.

        All within the reach, with their cosine, late interaction and the terms they match; what belongs to no session
        is left out.
        """

    async def delete_migration_backups(self) -> None:
        """Something was erased: remove copies the store made of itself, such as those before a migration."""
