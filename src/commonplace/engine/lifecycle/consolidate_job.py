"""The job `consolidate`: what is worth it moves from short-term to long-term memory, what went cold is archived.

Short-term is what was written with `short_term` in its metadata. Windows are the short-term memories of one agent and
one person. A promoted memory is a semantic one with the words of its sources; these become part of it and are archived
in the same unit of work, so that a stop at any moment leaves each thing said once, and whoever erases a source hears of
the other. What was promoted and never needed is archived again, so that it does not become more and more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from commonplace.engine.core import Core, StaleRead
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.lifecycle import long_term
from commonplace.engine.lifecycle.consolidator import ALIKE, KEEP, Consolidator, Score, ScoreConsolidator
from commonplace.engine.lifecycle.dream_job import PROMOTED
from commonplace.engine.lifecycle.run_log import Action, RunLog
from commonplace.engine.memory import expire
from commonplace.engine.memory.read import read_all
from commonplace.engine.memory.retention import inherit_retention
from commonplace.engine.memory.undelete import RESTORED
from commonplace.engine.memory.write import new_memory, write
from commonplace.engine.types import Draft, Expire
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.wire import filters
from commonplace.wire.errors import Forbidden
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory, Principal

SHORT_TERM = "short_term"
WINDOW = 1000
_CHUNK = 16  # of a unit of work, which those who recall meanwhile wait for
Why = dict[str, Any]


@dataclass(slots=True)
class ConsolidateJob:
    core: Core
    consolidator: Consolidator = field(default_factory=ScoreConsolidator)
    every: int = 60_000
    name: str = "consolidate"

    async def run(
        self, who: Principal, *, dry_run: bool, asked: bool = True, log: RunLog | None = None
    ) -> dict[str, int]:
        run = _Run(self.core, self.consolidator, who, dry_run, log or RunLog())
        for agent in await self.core.usable_agents(who):
            reach = Reach(who.tenant, (agent,), filters.parse({SHORT_TERM: True}), now=self.core.clock())
            windows: dict[str | None, list[Memory]] = {}
            for memory in await read_all(self.core, reach):
                if RESTORED in memory.provenance:  # someone took it back
                    continue
                windows.setdefault(memory.user_id, []).append(memory)
            for user, window in windows.items():
                moved = await run.consolidate(agent, window)
                await run.archive_unneeded(agent, user, moved)
        return run.counts


@dataclass(slots=True)
class _Run:
    core: Core
    consolidator: Consolidator
    who: Principal
    dry_run: bool
    log: RunLog
    counts: dict[str, int] = field(default_factory=lambda: {"promoted": 0, "archived": 0, "waiting": 0})

    async def consolidate(self, agent: str, whole: Sequence[Memory]) -> bool:
        """Whether any of it was moved."""
        left = 0
        for window in _in_parts(whole):
            await self.core.recall_priority.give_way()
            # Beside the event loop: of a long window it takes a while.
            plan = await asyncio.to_thread(self.consolidator.plan, window, self.core.clock())
            moved = 0
            for group, scored in plan.promoted:
                await self.core.recall_priority.give_way()
                if await self._promote(group, scored):
                    self.counts["promoted"] += 1
                    moved += len(group)
            archived = await self._archive(agent, [(memory, scored.parts()) for memory, scored in plan.cold])
            left += len(window) - moved - archived
        self.counts["waiting"] += left
        return left < len(whole)

    async def archive_unneeded(self, agent: str, user: str | None, moved: bool) -> None:
        """Of the long-term memories with this person those that are too many, or were never needed. All of them
        are read only where something moved, or where a run that was killed has left too many."""
        capacity = self.core.settings.lifecycle.capacity
        whose = Condition(("user_id",), "exists", False) if user is None else Condition(("user_id",), "eq", user)
        where = (Condition(("kind",), "eq", PROMOTED), Condition(("metadata", KEEP), "ne", True), whose)
        reach = Reach(self.who.tenant, (agent,), where, now=self.core.clock())
        if moved or (capacity and await self.core.primary.count(reach) > capacity):
            await self.core.recall_priority.give_way()
            found = await read_all(self.core, reach)
            authors = await self._authors(found)
            await self._archive(agent, long_term.choose_for_archive(found, capacity, self.core.clock(), authors))

    async def _authors(self, promoted: Sequence[Memory]) -> dict[str, str]:
        """By id whose words each holds: of its first source, since its own principal is whoever ran the job. Whoever
        repeats what another said does not make it theirs."""
        first = {memory.id: chain[0] for memory in promoted if (chain := memory.provenance.get("chain"))}
        sources = await self.core.primary.get(self.who.tenant, list(dict.fromkeys(first.values())))
        said_by = {source.id: str(source.provenance.get("principal", "")) for source in sources}
        return {id: said_by.get(source, "") for id, source in first.items()}

    async def _promote(self, sources: Sequence[Memory], scored: Score) -> bool:
        who, policies = self.who, self.core.policies
        promoted = _promoted(who, sources, scored, self.core.clock())
        # A rule about who may write holds for those whose words these are, too, and not only for this job.
        for name in dict.fromkeys(str(source.provenance.get("principal", who.name)) for source in sources):
            if not await policies.would_admit(replace(who, name=name), "remember", promoted):
                return False
        if self.dry_run:
            if not await policies.would_admit(who, "remember", promoted):
                return False
            self.log.plan(_promotion(sources, sources[0].version, scored))
            return True
        try:
            promoted = await policies.admit_memory(who, "remember", promoted)
        except Forbidden:  # it stays short-term memory, which is what was admitted
            return False
        (entry,) = await self.core.make_entries([promoted])

        def work(tx: Transaction) -> None:
            for seen in sources:
                now = tx.get(seen.id)
                if now is None or now.version != seen.version or now.status != "live":
                    raise StaleRead
            made = write(tx, who, entry, "remember", promoted_from=[source.id for source in sources])
            archived = [
                tx.put(Entry(replace(source, status="archived", merged_into=made.id), None, b"")) for source in sources
            ]
            parts = [version_part(each, merged_into=made.id) for each in archived]
            audit.append(tx, who, "consolidate", made.agent_id, parts)
            self.log.note(tx, _promotion(sources, archived[0].version, scored, made.id))

        try:
            await self.core.transact(who.tenant, work)
        except StaleRead:  # its author is still at it; the next run looks again
            return False
        return True

    async def _archive(self, agent: str, cold: Sequence[tuple[Memory, Why]]) -> int:
        reasons = {memory.id: why for memory, why in cold}

        def action(memory: Memory) -> Action:
            return Action("archived", agent, memory.id, memory.version, reasons[memory.id])

        def work(tx: Transaction, batch: Sequence[Memory]) -> list[str]:
            request = Expire(agent, action="archive")
            return expire.apply_expire(
                tx, self.core, self.who, request, batch, lambda tx, memory: self.log.note(tx, action(memory))
            )

        free, _ = await self.core.policies.admitted(self.who, "forget", [memory for memory, _ in cold])
        if self.dry_run:
            for memory in free:
                self.log.plan(action(memory))
            self.counts["archived"] += len(free)
            return len(free)
        done, _ = await self.core.transact_in_chunks(self.who, free, _CHUNK, work, gives_way=True)
        self.counts["archived"] += len(done)
        return len(done)


def _in_parts(window: Sequence[Memory]) -> list[Sequence[Memory]]:
    """Neighbours in time, so many that one is planned in a moment: someone may note thousands in a week."""
    return [window[start : start + WINDOW] for start in range(0, len(window), WINDOW)]


def _promotion(sources: Sequence[Memory], version: int, scored: Score, into: str | None = None) -> Action:
    """Named by its first source: with that one the others come back."""
    first, more = sources[0], tuple(source.id for source in sources) if len(sources) > 1 else ()
    return Action("promoted", first.agent_id, first.id, version, scored.parts(), into, more)


def _promoted(who: Principal, sources: Sequence[Memory], scored: Score, now: int) -> Memory:
    """The long-term memory that says what its sources said, under every promise that was made for them."""
    first = sources[0]
    metadata = {name: value for name, value in first.metadata.items() if name != SHORT_TERM}
    draft = Draft(
        first.agent_id,
        "semantic",
        first.content,
        user_id=first.user_id,
        metadata=metadata,
        kind=PROMOTED,
        provenance={
            "dialect": first.provenance.get("dialect", "memorywire"),
            "chain": [source.id for source in sources],
            "score": scored.parts(),
        },
        session_id=first.session_id,
        entity_name=first.entity_name,
        importance=first.importance,
        **{name: getattr(first, name) for name in ALIKE},
    )
    return inherit_retention(replace(new_memory(who, draft, now), expires_at=first.expires_at), sources)
