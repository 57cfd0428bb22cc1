"""The job `consolidate`: what is worth it moves from short-term to long-term memory, what went cold is put away.

Short-term is what was written with `short_term` in its metadata. Windows are the short-term memories of one agent and
one person. A promoted memory is a semantic one with the words of its sources; these become part of it and are archived
in the same unit of work, so that a stop at any moment leaves each thing said once, and whoever erases a source hears of
the other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

from commonplace.engine.core import Core, StaleRead
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.lifecycle.dream_job import PROMOTED
from commonplace.engine.lifecycle.run_log import Action, RunLog
from commonplace.engine.lifecycle.statements import GRAMMAR, statement
from commonplace.engine.memory import expire
from commonplace.engine.memory.read import read_all
from commonplace.engine.memory.retention import inherit_retention
from commonplace.engine.memory.undelete import RESTORED
from commonplace.engine.memory.write import new_memory, write
from commonplace.engine.types import Draft, Expire
from commonplace.stores.base import Entry, Reach, Transaction
from commonplace.wire import filters
from commonplace.wire.errors import Forbidden
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

SHORT_TERM, KEEP = "short_term", "keep"
SETTLED_MS = 600_000  # younger than this a memory belongs to a conversation that may still go on
COLD_MS = 7 * DAY_MS
WINDOW = 1000
PROMOTED_FROM = 0.6  # at once
#: When it has gone cold it is decided: from here on it is long-term memory all the same, below it is put away. A sure
#: statement that nobody has asked for yet is above it: what is true must not be lost for want of a question.
KEPT_FROM = 0.22
_HALF_LIFE = DAY_MS
_ENOUGH = 3  # mentions and recalls that count in full
_SHARED = 0.75  # of its words, from which on another item mentions it
_ALIKE = ("project", "privacy", "expires_at", "speaker", "title", "tags", "confidence", "event_time", "source")


@dataclass(slots=True, frozen=True)
class Score:
    """Each from 0 to 1; `flag` is 1 where the author asked for it to be kept."""

    recency: float
    salience: float
    confidence: float
    flag: float

    @property
    def total(self) -> float:
        return 0.3 * self.recency + 0.25 * self.salience + 0.3 * self.confidence + 0.15 * self.flag


@dataclass(slots=True)
class Plan:
    promoted: list[tuple[list[Memory], Score]] = field(default_factory=list)  # sources that say the same
    cold: list[tuple[Memory, Score]] = field(default_factory=list)


class Consolidator(Protocol):
    def plan(self, window: Sequence[Memory], now: int) -> Plan:
        """What of a window, oldest first, becomes long-term memory and what is put away; the rest stays. Pure."""


class ScoreConsolidator:
    """By recency, salience, confidence and the author's own word."""

    def plan(self, window: Sequence[Memory], now: int) -> Plan:
        mentions = _mentions(window)
        plan, groups = Plan(), dict[str, tuple[list[Memory], Score]]()
        for memory in window:
            if now - memory.created_at < SETTLED_MS:
                continue
            scored = score(memory, mentions[memory.id], now)
            cold = now - memory.created_at >= COLD_MS
            if scored.flag or scored.total >= (KEPT_FROM if cold else PROMOTED_FROM):
                key = repr([statement(memory.content), *(getattr(memory, name) for name in _ALIKE)])
                groups.setdefault(key, ([], scored))[0].append(memory)
            elif cold:
                plan.cold.append((memory, scored))
        plan.promoted = list(groups.values())
        return plan


def score(memory: Memory, mentions: int, now: int) -> Score:
    age = max(now - memory.created_at, 0)
    return Score(
        recency=2 ** (-age / _HALF_LIFE),
        salience=min((mentions + memory.recalls) / _ENOUGH, 1.0),
        confidence=memory.confidence,
        flag=1.0 if memory.metadata.get(KEEP) is True else 0.0,
    )


def _mentions(window: Sequence[Memory]) -> dict[str, int]:
    """How many others of the window have most of the words of each, but those of grammar; by the words that they
    share, because comparing each with each takes seconds where there are thousands."""
    words = {memory.id: frozenset(statement(memory.content)) - GRAMMAR for memory in window}
    having: dict[str, list[str]] = {}
    for id, own in words.items():
        for word in own:
            having.setdefault(word, []).append(id)
    numbers = {id: frozenset(word for word in own if word[0].isdecimal()) for id, own in words.items()}
    found: dict[str, int] = {}
    for id, own in words.items():
        shared = Counter(other for word in own for other in having[word])
        del shared[id]
        near = [other for other, count in shared.items() if count >= _SHARED * len(own)]
        found[id] = sum(numbers[other] == numbers[id] for other in near)  # another number is another event
    return found


@dataclass(slots=True)
class ConsolidateJob:
    core: Core
    consolidator: Consolidator = field(default_factory=ScoreConsolidator)
    every: int = 60_000
    name: str = "consolidate"

    async def run(
        self, who: Principal, *, dry_run: bool, asked: bool = True, log: RunLog | None = None
    ) -> dict[str, int]:
        counts = {"promoted": 0, "archived": 0, "waiting": 0}
        log = log or RunLog()
        for agent in await self.core.usable_agents(who):
            reach = Reach(who.tenant, (agent,), filters.parse({SHORT_TERM: True}), now=self.core.clock())
            windows: dict[str | None, list[Memory]] = {}
            for memory in await read_all(self.core, reach):
                if RESTORED in memory.provenance:  # someone took it back
                    continue
                windows.setdefault(memory.user_id, []).append(memory)
            for window in (each for whole in windows.values() for each in _in_parts(whole)):
                # Beside the event loop: of a long window it takes a while.
                plan = await asyncio.to_thread(self.consolidator.plan, window, self.core.clock())
                moved = 0
                for group, scored in plan.promoted:
                    done = await self._promote(who, group, scored, log, dry_run)
                    counts["promoted"] += done
                    moved += len(group) if done else 0
                archived = await self._archive(who, agent, plan, log, dry_run)
                counts["archived"] += archived
                counts["waiting"] += len(window) - moved - archived
        return counts

    async def _promote(
        self, who: Principal, sources: Sequence[Memory], scored: Score, log: RunLog, dry_run: bool
    ) -> int:
        promoted = _promoted(who, sources, scored, self.core.clock())
        # A rule about who may write holds for those whose words these are, too, and not only for this job.
        for name in dict.fromkeys(str(source.provenance.get("principal", who.name)) for source in sources):
            if not await self.core.policies.would_admit(replace(who, name=name), "remember", promoted):
                return 0
        if dry_run:
            if not await self.core.policies.would_admit(who, "remember", promoted):
                return 0
            log.plan(_promotion(sources, sources[0].version, scored))
            return 1
        try:
            promoted = await self.core.policies.admit_memory(who, "remember", promoted)
        except Forbidden:  # it stays short-term memory, which is what was admitted
            return 0
        (entry,) = await self.core.make_entries([promoted])

        def work(tx: Transaction) -> None:
            for seen in sources:
                now = tx.get(seen.id)
                if now is None or now.version != seen.version or now.status != "live":
                    raise StaleRead
            made = write(tx, who, entry, "remember", promoted_from=[source.id for source in sources])
            put_away = [
                tx.put(Entry(replace(source, status="archived", merged_into=made.id), None, b"")) for source in sources
            ]
            parts = [version_part(each, merged_into=made.id) for each in put_away]
            audit.append(tx, who, "consolidate", made.agent_id, parts)
            log.note(tx, _promotion(sources, put_away[0].version, scored, made.id))

        try:
            await self.core.transact(who.tenant, work)
        except StaleRead:  # its author is still at it; the next run looks again
            return 0
        return 1

    async def _archive(self, who: Principal, agent: str, plan: Plan, log: RunLog, dry_run: bool) -> int:
        scores = {memory.id: scored for memory, scored in plan.cold}

        def action(memory: Memory) -> Action:
            return Action("archived", agent, memory.id, memory.version, parts_of(scores[memory.id]))

        def work(tx: Transaction, batch: Sequence[Memory]) -> list[str]:
            request = Expire(agent, action="archive")
            return expire.apply_expire(
                tx, self.core, who, request, batch, lambda tx, memory: log.note(tx, action(memory))
            )

        free, _ = await self.core.policies.admitted(who, "forget", [memory for memory, _ in plan.cold])
        if dry_run:
            for memory in free:
                log.plan(action(memory))
            return len(free)
        done, _ = await self.core.transact_in_chunks(who.tenant, free, 64, work)
        return len(done)


def _in_parts(window: Sequence[Memory]) -> list[Sequence[Memory]]:
    """Neighbours in time, so many that one is planned in a moment: someone may note thousands in a week."""
    return [window[start : start + WINDOW] for start in range(0, len(window), WINDOW)]


def _promotion(sources: Sequence[Memory], version: int, scored: Score, into: str | None = None) -> Action:
    """Named by its first source: with that one the others come back."""
    first, more = sources[0], tuple(source.id for source in sources) if len(sources) > 1 else ()
    return Action("promoted", first.agent_id, first.id, version, parts_of(scored), into, more)


def parts_of(scored: Score) -> dict[str, float]:
    """A score as people are shown it."""
    parts = {name: round(value, 4) for name, value in asdict(scored).items()}
    return {**parts, "total": round(scored.total, 4)}


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
            "score": parts_of(scored),
        },
        session_id=first.session_id,
        entity_name=first.entity_name,
        importance=first.importance,
        **{name: getattr(first, name) for name in _ALIKE},
    )
    return inherit_retention(replace(new_memory(who, draft, now), expires_at=first.expires_at), sources)
