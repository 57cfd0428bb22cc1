"""A complete primary in one file: everything in dictionaries, gone with the process. For tests and for reading."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from commonplace.stores import base, exact_search
from commonplace.stores.base import (
    AuditEntry,
    Candidate,
    EmbedderInfo,
    Entry,
    Page,
    Reach,
    Record,
    Search,
    StaleGeneration,
    Vectors,
)
from commonplace.stores.graph import Instant, Triple, commit_time
from commonplace.stores.mixins import ScanGraphReads, ScanReads, TransactVerbs, page_of
from commonplace.stores.optional import SecondEmbedderInfo
from commonplace.stores.text import matched_terms, packed_terms, query_terms
from commonplace.stores.token_vectors import best_late_scores
from commonplace.stores.urls import split_options
from commonplace.wire.errors import Conflict
from commonplace.wire.record import Clock, Memory, system_clock

T = TypeVar("T")


@dataclass
class _Tenant:
    """One tenant's data, and the transaction on it: work is done on a copy, which then takes the original's place.

    The copy has dictionaries of its own; what is in them is shared with the original and never changed in place.
    """

    now: int = 0
    seq: int = 0
    versions: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    recalls: dict[str, tuple[int, int]] = field(default_factory=dict)
    statements: dict[str, Triple] = field(default_factory=dict)  # in the order they were made
    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    audit: tuple[AuditEntry, ...] = ()
    elsewhere: tuple[dict[str, Triple], ...] = ()  # the statements of other tenants, while work is done

    def copy(self, now: int) -> _Tenant:
        return replace(
            self,
            now=now,
            versions={**self.versions},
            recalls={**self.recalls},
            statements={**self.statements},
            records={**self.records},
        )

    def shown(self, memory: Memory) -> Memory:
        """For whoever asked, who may change it."""
        return deepcopy(self._counted(memory))

    def _counted(self, memory: Memory) -> Memory:
        count, last = self.recalls.get(memory.id, (0, None))
        return replace(memory, recalls=count, last_recalled_at=last)

    def visible(self, reach: Reach) -> list[Entry]:
        """Not to be changed, nor given away without a copy: copying everything that is looked at takes longest."""
        held = [vs for vs in self.versions.values() if not reach.expired(vs[-1].memory)]
        then = [[e for e in vs if reach.as_of is None or e.memory.seq <= reach.as_of] for vs in held]
        current = [replace(entries[-1], memory=self._counted(entries[-1].memory)) for entries in then if entries]
        return sorted((e for e in current if reach.admits(e.memory)), key=lambda e: (e.memory.created_at, e.memory.id))

    # memories

    def get(self, id: str) -> Memory | None:
        return self.shown(self.versions[id][-1].memory) if id in self.versions else None

    def find(self, reach: Reach, *, limit: int | None = None) -> list[Memory]:
        return [deepcopy(entry.memory) for entry in self.visible(reach)[:limit]]

    def by_alias(self, agent_id: str, alias: str) -> Memory | None:
        holders = self.visible(Reach("", (agent_id,), statuses=("live", "archived")))
        return next((deepcopy(e.memory) for e in holders if alias in e.memory.aliases), None)

    def put(self, entry: Entry) -> Memory:
        memory = entry.memory
        for alias in memory.aliases if memory.status in ("live", "archived") else ():
            if (holder := self.by_alias(memory.agent_id, alias)) is not None and holder.id != memory.id:
                raise Conflict(f"the id {alias!r} already names another memory of {memory.agent_id}")
        earlier = self.versions.get(memory.id, ())
        self.seq += 1
        memory = replace(deepcopy(memory), seq=self.seq, version=len(earlier) + 1, updated_at=self.now)
        self.versions[memory.id] = (*earlier, replace(entry, memory=memory))
        return self.shown(memory)

    def demote(self, ids: Sequence[str], factor: float) -> None:
        for id in ids:
            *earlier, last = self.versions[id]
            self.versions[id] = (*earlier, replace(last, memory=replace(last.memory, demotion=factor)))

    def count_recalls(self, ids: Sequence[str], at: int, times: int = 1) -> None:
        for id in self.versions.keys() & ids:
            count, last = self.recalls.get(id, (0, 0))
            self.recalls[id] = (count + times, max(last, at))

    def erase(self, id: str) -> None:
        if self.versions.pop(id, None) is not None:
            self.seq += 1
            self.recalls.pop(id, None)
        self._erase_audit_parts(id)  # also of what was staged and never written

    # statements

    def triple(self, id: str) -> Triple | None:
        return self.statements.get(id)

    def triples(
        self, agent_id: str, subject: str | None = None, predicate: str | None = None, at: int | None = None
    ) -> list[Triple]:
        found = [t for t in self.statements.values() if t.agent_id == agent_id and subject in (None, t.subject)]
        chosen = [t for t in found if predicate in (None, t.predicate) and (at is None or t.holds(at))]
        return sorted(chosen, key=lambda t: t.valid_from)

    def triple_at(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        return next(iter(self.triples(agent_id, subject, predicate, at)), None)

    def triple_after(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        line = self.triples(agent_id, subject, predicate)
        return next((t for t in line if t.valid_from > at and not t.empty), None)

    def triples_from(self, memory_id: str) -> list[Triple]:
        return [t for t in self.statements.values() if t.memory_id == memory_id]

    def put_triple(self, triple: Triple) -> None:
        held = self.statements.get(triple.id)
        if (held and held.agent_id != triple.agent_id) or any(triple.id in theirs for theirs in self.elsewhere):
            raise Conflict(f"a statement with id {triple.id} exists already")
        self.statements[triple.id] = triple

    def erase_triple(self, id: str) -> None:
        if self.statements.pop(id, None) is not None:
            self._erase_audit_parts(id)

    # audit and records

    def _erase_audit_parts(self, id: str) -> None:
        self.audit = tuple(replace(e, parts=[p.without(id) for p in e.parts]) for e in self.audit)

    def audit_head(self) -> tuple[int, str]:
        return (self.audit[-1].n, self.audit[-1].hash) if self.audit else (0, "")

    def append_audit(self, entry: AuditEntry) -> None:
        self.audit = (*self.audit, entry)

    def record(self, kind: str, key: str) -> Record | None:
        return deepcopy(self.records.get((kind, key)))

    def put_record(self, record: Record) -> None:
        self.records[record.kind, record.key] = deepcopy(record)

    def drop_record(self, kind: str, key: str) -> None:
        self.records.pop((kind, key), None)

    def records_about(self, memory_id: str) -> list[Record]:
        return [deepcopy(r) for r in self.records.values() if memory_id in r.about]


class InMemory(ScanReads, ScanGraphReads, TransactVerbs):
    """The protocols `Primary` and `Store`; see `stores.base` for what each verb means."""

    name = "memory"
    capabilities = base.CAPABILITIES

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._tenants: dict[str, _Tenant] = {}
        self._embedder: EmbedderInfo | None = None
        self._second: SecondEmbedderInfo | None = None
        self._lock = threading.Lock()

    def _of(self, tenant: str) -> _Tenant:
        return self._tenants.get(tenant) or _Tenant()

    async def transact(self, tenant: str, work: Callable[[Any], T]) -> T:
        with self._lock:
            draft = self._of(tenant).copy(commit_time(self._clock(), self._of(tenant).now))
            draft.elsewhere = tuple(of.statements for name, of in self._tenants.items() if name != tenant)
            result = work(draft)
            draft.elsewhere = ()
            self._tenants[tenant] = draft
            return result

    async def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        return [m for m in map(self._of(tenant).get, ids) if m is not None]

    async def search(self, search: Search) -> list[Candidate]:
        found = self._of(search.reach.tenant).visible(search.reach)
        terms = query_terms(search.text or "")
        wanted = packed_terms(terms)
        second = None
        if search.second_generation is not None and search.second_generation != self._ready_second():
            raise StaleGeneration
        if search.second is not None:
            second = exact_search.dense_scores([e.second for e in found], search.second)
        rows = [(e.terms, e.vectors) for e in found]
        ranked = exact_search.rank(rows, terms, search.vector, search.limit, _late_leg(search, found), second)
        return [
            Candidate(
                deepcopy(found[row].memory),
                dense,
                keyword,
                matched_terms(found[row].terms, wanted),
                late,
                exact_search.given(second, row),
            )
            for row, dense, keyword, late in ranked
        ]

    async def scan(
        self, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        return page_of(self._of(reach.tenant).find(reach), limit, cursor, newest_first)

    async def history(self, tenant: str, id: str) -> list[Memory]:
        return [self._of(tenant).shown(e.memory) for e in self._of(tenant).versions.get(id, ())]

    async def find_alias(self, tenant: str, agents: Iterable[str], alias: str) -> list[Memory]:
        return [m for a in agents if (m := self._of(tenant).by_alias(a, alias)) is not None]

    async def agents(self, tenant: str) -> dict[str, int]:
        current = [versions[-1].memory for versions in self._of(tenant).versions.values()]
        return {a: sum(m.agent_id == a and m.status == "live" for m in current) for a in {m.agent_id for m in current}}

    async def count(self, reach: Reach) -> int:
        return len(self._of(reach.tenant).visible(reach))

    async def sequence(self, tenant: str, at: int | None = None) -> int:
        of = self._of(tenant)
        return of.seq if at is None else max((e.seq for e in of.audit if e.at <= at), default=0)

    async def audit(self, tenant: str, *, after: int = 0, limit: int = 100, **which: Any) -> list[AuditEntry]:
        return [e for e in self._of(tenant).audit if e.n > after and e.matches(**which)][:limit]

    async def audit_head(self, tenant: str) -> tuple[int, str]:
        return self._of(tenant).audit_head()

    async def record(self, tenant: str, kind: str, key: str) -> Record | None:
        return self._of(tenant).record(kind, key)

    async def records(self, tenant: str, kind: str) -> list[Record]:
        return [deepcopy(r) for (k, _), r in sorted(self._of(tenant).records.items()) if k == kind]

    async def record_kinds(self, tenant: str) -> list[str]:
        return sorted({kind for kind, _ in self._of(tenant).records})

    async def triples(
        self,
        tenant: str,
        agent_id: str,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        at: Instant | None = None,
        limit: int | None = None,
    ) -> list[Triple]:
        of = self._of(tenant)
        return of.triples(agent_id, subject, predicate, None if at is None else at.resolve(of.now))[:limit]

    async def embedder(self) -> EmbedderInfo | None:
        return self._embedder

    async def adopt_embedder(self, name: str, dimension: int) -> EmbedderInfo:
        self._embedder = self._embedder or EmbedderInfo(name, dimension, 1)
        return self._embedder

    # the vectors of a second embedder

    def _ready_second(self) -> int:
        return self._second.generation if self._second and self._second.ready else 0

    def _lacking_second(self) -> list[tuple[int, Memory]]:
        """Numbered by their sequence, which each tenant has of its own, and by the tenant."""
        numbered = [
            (entry.memory.seq << 16 | place, entry.memory)
            for place, tenant in enumerate(self._tenants.values())
            for versions in tenant.versions.values()
            for entry in versions
            if entry.second is None and entry.memory.status == "live"
        ]
        return sorted(numbered, key=lambda pair: pair[0])

    def _set_second(self, of: Callable[[int, Entry], Vectors | None]) -> None:
        for place, (name, tenant) in enumerate(self._tenants.items()):
            draft = tenant.copy(tenant.now)
            for id, versions in tenant.versions.items():
                made = [(e, of(e.memory.seq << 16 | place, e)) for e in versions]
                draft.versions[id] = tuple(replace(e, second=second) for e, second in made)
            self._tenants[name] = draft

    async def second_embedder(self) -> SecondEmbedderInfo | None:
        return self._second

    async def begin_second(self, name: str, dimension: int) -> SecondEmbedderInfo:
        held = self._second
        if held is None or (held.name, held.dimension) != (name, dimension):
            await self.drop_second()
            self._second = SecondEmbedderInfo(name, dimension, held.generation + 1 if held else 1, ready=False)
        assert self._second is not None
        return self._second

    async def without_second(self, after: int, limit: int) -> list[tuple[int, Memory]]:
        return [(number, memory) for number, memory in self._lacking_second() if number > after][:limit]

    async def count_without_second(self) -> int:
        return len(self._lacking_second())

    async def fill_second(self, generation: int, vectors: Sequence[tuple[int, Vectors]]) -> None:
        made = dict(vectors)
        if self._second is not None and self._second.generation == generation:
            with self._lock:
                self._set_second(lambda number, entry: made.get(number, entry.second))

    async def add_second(self, memory: Memory, number: int, generation: int, vectors: Vectors) -> None:
        await self.fill_second(generation, [(number, vectors)])

    async def finish_second(self, generation: int) -> bool:
        with self._lock:
            if self._second is None or self._second.generation != generation or self._lacking_second():
                return False
            self._second = replace(self._second, ready=True)
            return True

    async def drop_second(self) -> bool:
        with self._lock:
            there, self._second = self._second is not None, None
            self._set_second(lambda number, entry: None)
            return there

    async def tenants(self) -> list[str]:
        return sorted(filter(None, self._tenants))

    async def health(self) -> dict[str, Any]:
        return {"status": "ok"}

    async def close(self) -> None:
        """Nothing is kept."""


def _late_leg(search: Search, found: Sequence[Entry]) -> exact_search.LateLeg | None:
    question = search.tokens
    if question is None:
        return None

    def scores(rows: Sequence[int]) -> list[float | None]:
        entries = [found[row] for row in rows]
        kept = [
            e.tokens if e.tokens and e.vectors is not None and len(e.tokens) == len(e.vectors) else () for e in entries
        ]
        codes = [part.reshape(-1) for parts in kept for part in parts]
        return best_late_scores(question, codes, [*map(len, kept)])

    return exact_search.LateLeg(search.depth, scores)


def open_url(url: str, clock: Clock = system_clock, settings: base.StoreSettings | None = None) -> InMemory:
    """`memory://`; no setting concerns it."""
    split_options(url)
    return InMemory(clock)
