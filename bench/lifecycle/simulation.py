"""Conversations lived through on a clock that passes as told: with the jobs, without them, and with jobs that crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from bench.lifecycle.conversation import Day, Fact, days
from commonplace.config import LifecycleConfig
from commonplace.embedders.base import Embedder
from commonplace.engine import BatchItem, Draft, Engine, Query
from commonplace.engine.core import Settings
from commonplace.engine.lifecycle.statements import same_statement
from commonplace.engine.types import Snapshot
from commonplace.stores.base import Primary
from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import parse
from commonplace.wire.record import Clock, Memory, Principal
from commonplace.wire.times import DAY_MS

START = 1_750_000_000_000
AGENT = "assistant"
WHO = Principal()
JOBS = ("expire", "retain", "dream", "consolidate")
KINDS = ("short-term", "true", "no longer true", "chatter")
_HOUR = 3_600_000


@dataclass(eq=False)
class SimulatedClock:
    now: int = START

    def __call__(self) -> int:
        return self.now


@dataclass(slots=True)
class World:
    """What became of one run through all the days."""

    name: str
    days: int
    notes: int = 0
    live: int = 0
    most_live: int = 0
    live_on_day: dict[int, dict[str, int]] = field(default_factory=dict)  # of what kind, and of all
    long_term: int = 0
    lost: list[str] = field(default_factory=list)  # true, and in no live memory: "day 30: Alice lives in Lisbon"
    worse: list[str] = field(default_factory=list)  # days on which jobs made recall@5 worse
    recall_at_5: float = 0.0
    crashes: int = 0
    done: dict[str, int] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return asdict(self)


async def live_through(
    open_store: Callable[[Clock], Primary],
    embedder: Embedder | None,
    *,
    name: str,
    count: int,
    seed: int,
    jobs: bool = True,
    crash: bool = False,
    look_every: int = 30,
    capacity: int | None = None,
    told: Callable[[int], None] = lambda day: None,
) -> World:
    clock = SimulatedClock()
    kept = LifecycleConfig() if capacity is None else LifecycleConfig(capacity=capacity)
    engine = await Engine.open(open_store(clock), embedder, clock=clock, settings=Settings(lifecycle=kept))
    world, random, said = World(name, count), Random(seed), set[str]()
    try:
        for day in days(count, seed):
            await _talk(engine, clock, day, world)
            said |= {fact.statement for fact in day.truth}
            look = day.number % look_every == look_every - 1 or day.number == count - 1
            before = await recall_at_5(engine, day.truth) if look else 0.0
            for _ in range(2):  # the night
                clock.now += 6 * _HOUR
                if jobs:
                    await _tend(engine, world, random if crash else None)
            world.live = await _count(engine)
            if look:
                await _look(engine, day, before, said, world)
            world.most_live = max(world.most_live, world.live)
            told(day.number)
        world.recall_at_5 = await recall_at_5(engine, day.truth)
        world.long_term = await engine.count(WHO, (AGENT,), parse({"kind": "promoted", "status": "live"}))
        verified = await engine.ledger.verify(WHO)
        if verified.problem is not None:
            world.lost.append(f"the ledger: {verified.problem}")
    finally:
        await engine.close()
    return world


async def _talk(engine: Engine, clock: SimulatedClock, day: Day, world: World) -> None:
    clock.now = START + day.number * DAY_MS + 8 * _HOUR
    items = []
    for note in day.notes:
        metadata = {"short_term": True, **({"keep": True} if note.keep else {})}
        draft = Draft(
            AGENT, "episodic", note.text, user_id=note.user_id, confidence=note.confidence, metadata=metadata,
            session_id=f"{note.user_id}-{day.number}",
        )  # fmt: skip
        items.append(BatchItem(draft))
    await engine.remember_many(WHO, items)
    world.notes += len(items)
    clock.now += 2 * _HOUR
    for user, question in day.questions:
        await engine.recall(WHO, Query((AGENT,), question, where=parse({"user_id": user}), judge="off"))
    await engine.flush()


async def _tend(engine: Engine, world: World, random: Random | None) -> None:
    for job in JOBS:
        if random is not None:
            with gone_after(engine, random.randrange(1, 12)):
                try:
                    await engine.lifecycle.run(WHO, job)
                except Unavailable:
                    world.crashes += 1
        report = await engine.lifecycle.run(WHO, job)
        for name, count in report.counts.items():
            world.done[name] = world.done.get(name, 0) + count


@contextmanager
def gone_after(engine: Engine, units: int) -> Iterator[None]:
    """As if the process were killed when so many units of work are written: no later one is."""
    core = engine._core
    transact, left = core.transact, iter(range(units))

    async def dying(tenant: str, work: Any) -> Any:
        if next(left, None) is None:
            raise Unavailable("gone")
        return await transact(tenant, work)

    core.transact = dying  # type: ignore[method-assign]
    try:
        yield
    finally:
        core.transact = transact  # type: ignore[method-assign]


async def _look(engine: Engine, day: Day, before: float, said: set[str], world: World) -> None:
    live = [memory async for memory in _live(engine)]
    contents = [memory.content for memory in live]
    world.live_on_day[day.number + 1] = _kinds(live, {fact.statement for fact in day.truth}, said)
    for fact in day.truth:
        if not any(same_statement(fact.statement, text) for text in contents):
            world.lost.append(f"day {day.number}: {fact.statement}")
    after = await recall_at_5(engine, day.truth)
    if after < before:
        world.worse.append(f"day {day.number}: {before:.3f} → {after:.3f}")


def _kinds(live: list[Memory], true: set[str], said: set[str]) -> dict[str, int]:
    """What there is how much of: notes, and of long-term memory what is true, what was, and chatter."""
    found = Counter[str]()
    for memory in live:
        if memory.kind != "promoted":
            found["short-term"] += 1
        elif any(same_statement(each, memory.content) for each in true):
            found["true"] += 1
        elif any(same_statement(each, memory.content) for each in said):
            found["no longer true"] += 1
        else:
            found["chatter"] += 1
    return {name: found[name] for name in KINDS} | {"all": len(live)}


async def recall_at_5(engine: Engine, truth: tuple[Fact, ...]) -> float:
    """The share of questions with the true answer among the first five; asking counts for nothing."""
    snapshot = Snapshot(await engine._core.primary.sequence(WHO.tenant), engine.clock())

    async def found(fact: Fact) -> bool:
        where = parse({"user_id": fact.who.lower()})
        query = Query((AGENT,), fact.question, where=where, min_score=0.0, judge="off", snapshot=snapshot)
        hits = (await engine.recall(WHO, query)).hits
        return any(same_statement(fact.statement, hit.memory.content) for hit in hits)

    answers = await asyncio.gather(*(found(fact) for fact in truth))
    return sum(answers) / max(len(answers), 1)


async def _live(engine: Engine) -> Any:
    cursor = None
    while True:
        page = await engine.list(WHO, (AGENT,), limit=1000, cursor=cursor, archived=False)
        for memory in page.memories:
            yield memory
        if (cursor := page.next_cursor) is None:
            return


async def _count(engine: Engine) -> int:
    return await engine.count(WHO, (AGENT,), parse({"status": "live"}))
