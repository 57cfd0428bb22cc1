"""Verbs that follow from other verbs, for backends to use until they have something faster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from commonplace.stores.base import (
    AgentContext,
    AuditEntry,
    Candidate,
    Entry,
    ImportanceDecay,
    Page,
    Reach,
    Record,
    Search,
    Store,
    Transaction,
)
from commonplace.stores.cursors import PageProgress, decode_cursor, encode_cursor
from commonplace.stores.graph import Instant, Triple
from commonplace.stores.traversal import InMemoryGraph, linked_memories, shortest_path
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory

_WINDOW = 500  # entries of the ledger that are read at a time
SCANNED_AT_ONCE = 1000  # memories


class TransactVerbs:
    """What follows from `transact`, `agents`, `records` and `audit`."""

    transact: Callable[..., Any]
    agents: Callable[[str], Awaitable[dict[str, int]]]
    records: Callable[[str, str], Awaitable[list[Record]]]
    audit: Callable[..., Awaitable[list[AuditEntry]]]
    audit_head: Callable[[str], Awaitable[tuple[int, str]]]

    async def put(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            await self.transact(entry.memory.tenant, lambda tx, entry=entry: tx.put(entry))

    async def delete(self, tenant: str, ids: Sequence[str]) -> int:
        def work(tx: Transaction) -> int:
            present = [id for id in ids if tx.get(id) is not None]
            for id in present:
                tx.erase(id)
            return len(present)

        count: int = await self.transact(tenant, work)
        return count

    async def audit_hashes(self, tenant: str, *, after: int = 0, limit: int = 1000) -> list[str]:
        return [entry.hash for entry in await self.audit(tenant, after=after, limit=limit)]

    async def agent_names(self, tenant: str) -> list[str]:
        return sorted(await self.agents(tenant))

    async def delete_migration_backups(self) -> None:
        """Nothing to do for a store that makes none."""

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
        said = [r for r in await self.records(tenant, kind) if all(r.value.get(n) == v for n, v in where.items())]
        said.sort(key=lambda record: record.key, reverse=newest_first)
        if after is not None:
            said = [r for r in said if (r.key < after if newest_first else r.key > after)]
        return said[:limit]

    async def audit_before(
        self, tenant: str, *, before: int | None = None, limit: int = 100, **which: Any
    ) -> list[AuditEntry]:
        end = (await self.audit_head(tenant))[0] + 1 if before is None else before
        found: list[AuditEntry] = []
        while end > 1 and len(found) < limit:
            start = max(end - 1 - _WINDOW, 0)
            window = await self.audit(tenant, after=start, limit=_WINDOW, **which)
            found += reversed([entry for entry in window if entry.n < end])
            end = start + 1
        return found[:limit]


class ScanReads:
    """`context`, `most_important` and `neighbours_in_session` by reading everything in reach."""

    async def context(self: Store, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext:
        memories = await scan_all(self, Reach(tenant, tuple(agents), now=now))
        replaced = {old: m.id for m in memories for old in m.supersedes}
        return AgentContext(frozenset(m.speaker for m in memories if m.speaker), replaced)

    async def most_important(self: Store, reach: Reach, decay: ImportanceDecay, at: int, limit: int) -> list[Memory]:
        return decay.order(await scan_all(self, reach), at)[:limit]

    async def neighbours_in_session(
        self: Store, search: Search, ids: Sequence[str], each: int
    ) -> list[list[Candidate]]:
        named = [m for m in await self.get(search.reach.tenant, ids) if m.session_id is not None]
        runs: list[list[str]] = []
        for agent, session in sorted({(m.agent_id, str(m.session_id)) for m in named}):
            where = (*search.reach.where, Condition(("session_id",), "eq", session))
            spoken = [m.id for m in await scan_all(self, replace(search.reach, agents=(agent,), where=where))]
            runs += _runs_around(spoken, [spoken.index(m.id) for m in named if m.id in spoken], each)
        wanted = [id for run in runs for id in run]
        only = (*search.reach.where, Condition(("id",), "in", wanted))
        scored = await self.search(replace(search, reach=replace(search.reach, where=only), limit=len(wanted)))
        by_id = {c.memory.id: c for c in scored}
        return [[by_id[id] for id in run if id in by_id] for run in runs]


class _ScannableStore(Store, Protocol):
    triples: Callable[..., Awaitable[list[Triple]]]


class ScanGraphReads:
    """The graph by reading everything in reach, and what follows from `triples`."""

    async def triples_about(
        self: _ScannableStore, tenant: str, agent_id: str, subject: str, mentions: bool = False
    ) -> list[Triple]:
        about = await self.triples(tenant, agent_id, subject=subject)
        naming = await self.triples(tenant, agent_id) if mentions else []
        return about + [t for t in naming if subject == t.object and subject != t.subject]

    async def triple_counts(self: _ScannableStore, tenant: str, agent_id: str, at: Instant) -> tuple[int, int, int]:
        holding = await self.triples(tenant, agent_id, at=at)
        return len(await self.triples(tenant, agent_id)), len(holding), len({t.subject for t in holding})

    async def path(
        self: _ScannableStore, tenant: str, agent_id: str, start: str, end: str, max_hops: int, at: Instant
    ) -> list[Triple]:
        return shortest_path(InMemoryGraph((), await self.triples(tenant, agent_id, at=at)), start, end, max_hops)

    async def linked(
        self: _ScannableStore, reach: Reach, ids: Sequence[str], hops: int, at: Instant, most: int
    ) -> dict[str, dict[str, int]]:
        holding = [t for agent in reach.agents for t in await self.triples(reach.tenant, agent, at=at)]
        return linked_memories(InMemoryGraph(await scan_all(self, reach), holding), ids, hops, most)


def _runs_around(spoken: Sequence[str], positions: Sequence[int], each: int) -> list[list[str]]:
    """Slices of `spoken` that reach `each` to both sides of the positions; those that overlap are one."""
    runs: list[tuple[int, int]] = []
    for position in sorted(set(positions)):
        start, end = max(position - each, 0), min(position + each + 1, len(spoken))
        if runs and start < runs[-1][1]:
            start = runs.pop()[0]
        runs.append((start, end))
    return [list(spoken[start:end]) for start, end in runs]


def page_of(memories: Iterable[Memory], limit: int, cursor: str | None, newest_first: bool) -> Page:
    """One page of all that is in reach, for a store that has them at hand."""
    found = sorted(memories, key=lambda m: (m.created_at, m.id), reverse=newest_first)
    if cursor is not None:
        last = decode_cursor(cursor)
        found = [m for m in found if m.id != last[1] and ((m.created_at, m.id) < last) is newest_first]
    page = found[:limit]
    # Copies of one memory are not parted, because no cursor tells them apart: the next page would begin after both.
    page += [m for m in found[limit:] if page and (m.created_at, m.id) == (page[-1].created_at, page[-1].id)]
    return Page(page, encode_cursor(page[-1]) if page and len(found) > len(page) else None)


async def scan_pages(store: Store, reach: Reach) -> AsyncIterator[Sequence[Memory]]:
    """All in reach page by page, oldest first."""
    cursor = None
    progress = PageProgress()
    while True:
        page = await store.scan(reach, limit=SCANNED_AT_ONCE, cursor=cursor, newest_first=False)
        yield page.memories
        cursor = page.next_cursor
        if cursor is None:
            return
        progress.check([memory.id for memory in page.memories], cursor)


async def scan_all(store: Store, reach: Reach) -> list[Memory]:
    """All in reach, oldest first."""
    return [memory async for page in scan_pages(store, reach) for memory in page]
