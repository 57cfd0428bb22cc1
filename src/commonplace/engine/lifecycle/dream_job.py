"""The job `dream`: what lies twice in a palace is made one, what no longer matters is archived. Nothing is destroyed.

It merges drawers (the memories that trusty-memory's tools wrote) and what consolidation promoted, and archives drawers
alone: no other protocol says that memories may go by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from commonplace.embedders.text_queue import Lane
from commonplace.engine.core import Core, reads_speakers
from commonplace.engine.lifecycle.run_log import Action, RunLog
from commonplace.engine.lifecycle.statements import same_statement
from commonplace.engine.memory import expire, merge
from commonplace.engine.memory.passages import passages
from commonplace.engine.memory.unmerge import UNMERGED
from commonplace.engine.palaces.palace_recall import DECAY, MIN_IMPORTANCE
from commonplace.engine.types import Expire, Merge, MergeResult
from commonplace.stores.base import Reach, Record, Search, StaleGeneration, Transaction
from commonplace.stores.cursors import encode_cursor
from commonplace.wire.errors import Conflict, Forbidden, NotFound
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

DREAM = "dream"  # the kind of the record that says how far a palace has been looked through
PROMOTED = "promoted"  # the kind of what consolidation has made
DRAWERS: Where = (Condition(("kind",), "eq", "drawer"),)
MERGED: Where = (Condition(("kind",), "in", ["drawer", PROMOTED]),)
IDLE_MS = 300_000
BUDGET_MS = 5_000  # of one pass over one palace
ALIKE = 0.95  # cosine
PRUNED_AFTER_MS = 30 * DAY_MS
_PAGE = 64
_CANDIDATES = 32  # some may be of another kind
_CHUNK = 64
_OF_BOTH = ("type", "kind", "user_id", "project", "title", "speaker", "privacy", "expires_at", "tags", "event_time")
#: Of which conversation a promoted memory came, and whether its author asked for it, says nothing of what it says.
_OF_ITS_SOURCE = frozenset({"session_id", "keep"})


@dataclass(slots=True, frozen=True)
class _Progress:
    """How far a palace has been looked through; a pass that has used up its time leaves the rest to the next."""

    since: int = 0  # what was written or changed from then on is to be compared, which is a round
    round: int | None = None  # when the one under way began
    compared: str | None = None  # and where it stands, as a cursor
    pruned: str | None = None  # where looking for what has faded stands


@dataclass(slots=True)
class DreamJob:
    core: Core
    every: int = IDLE_MS
    name: str = "dream"

    async def run(
        self, who: Principal, *, dry_run: bool, asked: bool = True, log: RunLog | None = None
    ) -> dict[str, int]:
        counts = {"merged": 0, "decayed": 0, "pruned": 0}
        log = log or RunLog()
        for agent in await self.core.usable_agents(who):
            if asked or await self._is_idle(who, agent):
                for name, count in (await self._dream(who, agent, dry_run, log)).items():
                    counts[name] += count
        return counts

    async def _is_idle(self, who: Principal, agent: str) -> bool:
        newest = await self.core.primary.scan(Reach(who.tenant, (agent,), MERGED), limit=1)
        last = max((m.updated_at for m in newest.memories), default=None)
        return last is not None and self.core.clock() - last >= IDLE_MS

    async def _dream(self, who: Principal, agent: str, dry_run: bool, log: RunLog) -> dict[str, int]:
        until = self.core.clock() + BUDGET_MS
        record = await self.core.primary.record(who.tenant, DREAM, agent)
        before = _Progress(**record.value) if record is not None else _Progress()
        merged, progress = await self._merge_duplicates(who, agent, before, until, dry_run, log)
        pruned, progress = await self._prune(who, agent, progress, until, dry_run, log)
        if progress != before:
            await self._save(who, agent, progress, dry_run)
        now = self.core.clock()
        faded = Reach(who.tenant, (agent,), (*DRAWERS, Condition(("created_at",), "lt", now - DAY_MS)), now=now)
        return {"merged": merged, "decayed": await self.core.primary.count(faded), "pruned": pruned}

    async def _save(self, who: Principal, agent: str, progress: _Progress, dry_run: bool) -> None:
        if not dry_run:
            await self.core.transact(who.tenant, lambda tx: tx.put_record(Record(DREAM, agent, asdict(progress))))

    async def _merge_duplicates(
        self, who: Principal, agent: str, progress: _Progress, until: int, dry_run: bool, log: RunLog
    ) -> tuple[int, _Progress]:
        """Each that was written or changed since the last round, compared with all that are there. A round takes as
        many passes as it needs."""
        began = self.core.clock() if progress.round is None else progress.round
        progress = replace(progress, round=began)
        where = (*MERGED, Condition(("updated_at",), "gte", progress.since))
        merged, gone = 0, set[str]()
        while self.core.clock() < until:
            reach = Reach(who.tenant, (agent,), where, now=self.core.clock())
            page = await self.core.primary.scan(reach, limit=_PAGE, cursor=progress.compared, newest_first=False)
            for memory in page.memories:
                if self.core.clock() >= until:
                    break
                await self.core.recall_priority.give_way()
                if memory.id not in gone:
                    losers = await self._merge_with(who, memory, gone, dry_run, log)
                    gone |= losers
                    merged += len(losers)
                progress = replace(progress, compared=encode_cursor(memory))
            else:
                if page.next_cursor is None:  # what was written since the round began is the next one's
                    since = progress.since if progress.compared is None else began
                    return merged, replace(progress, since=since, round=None, compared=None)
            await self._save(who, agent, progress, dry_run)
        return merged, progress

    async def _merge_with(self, who: Principal, memory: Memory, gone: set[str], dry_run: bool, log: RunLog) -> set[str]:
        """What was merged, of this drawer and those that say the same."""
        same = {other.id: (other, cosine) for other, cosine in await self._alike(who, memory) if other.id not in gone}
        if not same:
            return set()
        canonical, *duplicates = sorted([memory, *(other for other, _ in same.values())], key=_worth)

        def action(loser: Memory, version: int) -> Action:
            nearer = loser if loser.id in same else canonical  # one of the two is the drawer the others are near to
            why = {"cosine": round(same[nearer.id][1], 4)}
            return Action("merged", loser.agent_id, loser.id, version, why, canonical.id)

        def note(tx: Transaction, done: MergeResult) -> None:
            for loser in done.losers:
                log.note(tx, action(loser, loser.version))

        if dry_run:
            if not await merge.would_merge(self.core, who, canonical, duplicates):
                return set()
            for loser in duplicates:
                log.plan(action(loser, loser.version))
        else:
            request = Merge(memory.agent_id, canonical.id, sorted(m.id for m in duplicates))
            try:
                await merge.merge(self.core, who, request, note)
            except (Conflict, Forbidden, NotFound):  # changed by someone else meanwhile, or held back by a rule
                return set()
        return {duplicate.id for duplicate in duplicates}

    async def _alike(self, who: Principal, memory: Memory) -> list[tuple[Memory, float]]:
        texts = passages(memory, speakers=reads_speakers(self.core.embedding))
        if len(texts) != 1:  # long texts are compared by their parts, which says little of the whole
            return []
        encoded, info = await self.core.encode_with_info(texts, who.tenant, Lane.BACKGROUND)
        if encoded is None or info is None:
            return []
        # Of any kind: an index finds those by itself, while a condition would be asked of every row of the palace.
        reach = Reach(who.tenant, (memory.agent_id,), now=self.core.clock())
        try:
            found = await self.core.primary.search(
                Search(reach, vector=encoded[0].vector, limit=_CANDIDATES, generation=info.generation)
            )
        except StaleGeneration:
            return []
        near = [(each.memory, each.dense) for each in found if each.dense is not None and each.dense >= ALIKE]
        return [(other, cosine) for other, cosine in near if other.id != memory.id and is_duplicate(memory, other)]

    async def _prune(
        self, who: Principal, agent: str, progress: _Progress, until: int, dry_run: bool, log: RunLog
    ) -> tuple[int, _Progress]:
        """Out of recall, readable by id and brought back by an undo; never erased."""
        now, pruned = self.core.clock(), 0
        # Changed long ago, too: what someone brought back is not archived at once again. One recall is worth as much
        # as what is left of one that may go.
        ages = [Condition((name,), "lt", now - PRUNED_AFTER_MS) for name in ("created_at", "updated_at")]
        reach = Reach(who.tenant, (agent,), (*DRAWERS, *ages, Condition(("recalls",), "eq", 0)), now=now)

        def action(memory: Memory) -> Action:
            age = (now - memory.created_at) // DAY_MS
            why = {"importance": round(DECAY.of(memory, now), 4), "below": MIN_IMPORTANCE, "age_days": age}
            return Action("archived", agent, memory.id, memory.version, {**why, "recalls": memory.recalls})

        def work(tx: Transaction, batch: Sequence[Memory]) -> list[str]:
            request = Expire(agent, action="archive")
            return expire.apply_expire(
                tx, self.core, who, request, batch, lambda tx, memory: log.note(tx, action(memory))
            )

        while self.core.clock() < until:
            await self.core.recall_priority.give_way()
            page = await self.core.primary.scan(reach, limit=_CHUNK, cursor=progress.pruned, newest_first=False)
            worthless = [m for m in page.memories if DECAY.of(m, now) < MIN_IMPORTANCE and not _is_kept(m)]
            free, _ = await self.core.policies.admitted(who, "forget", worthless)
            if dry_run:
                for memory in free:
                    log.plan(action(memory))
                pruned += len(free)
            elif free:
                pruned += len(await self.core.transact(who.tenant, lambda tx: work(tx, free)))  # noqa: B023
            progress = replace(progress, pruned=page.next_cursor)
            if page.next_cursor is None:
                break
        return pruned, progress


def _is_kept(memory: Memory) -> bool:
    return memory.metadata.get("keep") is True


def is_duplicate(one: Memory, other: Memory) -> bool:
    """Whether two memories that are near each other say the same, of the same, and under the same promises."""
    if any(getattr(one, name) != getattr(other, name) for name in _OF_BOTH):
        return False
    if _said_beside(one) != _said_beside(other):
        return False
    if UNMERGED in one.provenance or UNMERGED in other.provenance:  # someone has said that it is not
        return False
    return same_statement(one.content, other.content)


def _said_beside(memory: Memory) -> dict[str, Any]:
    if memory.kind != PROMOTED:
        return memory.metadata
    return {name: value for name, value in memory.metadata.items() if name not in _OF_ITS_SOURCE}


def _worth(memory: Memory) -> tuple[float, bool, float, int, str]:
    """The one to keep first: what was called more important, what its author wants kept, what was surer, what is
    older."""
    given = DECAY.base if memory.importance is None else memory.importance
    return (-given, not _is_kept(memory), -memory.confidence, memory.created_at, memory.id)
