"""The sixteen scenarios of the memorywire paper, by its names, for a primary and for a store with copies alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from commonplace.conformance.subject import ScenarioFailure as ScenarioFailure, Subject, expect
from commonplace.engine import Decision, Draft, Expire, Forget, Query
from commonplace.stores.base import CAPABILITIES
from commonplace.wire.errors import Fault, NotFound, ValidationError
from commonplace.wire.models import ExpireRequest
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS
from commonplace.wire.validate import parse


@dataclass(slots=True, frozen=True)
class Scenario:
    """`needs` are capabilities without which the engine cannot be asked for it; a store with copies needs none."""

    name: str
    run: Callable[[Subject], Awaitable[None]]
    needs: tuple[str, ...] = ()


SCENARIOS: list[Scenario] = []


def _scenario(*needs: str) -> Callable[[Callable[[Subject], Awaitable[None]]], Callable[[Subject], Awaitable[None]]]:
    def note(run: Callable[[Subject], Awaitable[None]]) -> Callable[[Subject], Awaitable[None]]:
        SCENARIOS.append(Scenario(run.__name__, run, needs))
        return run

    return note


@contextmanager
def _refusal(kind: type[Fault], what: str) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise ScenarioFailure(f"{what} was not refused")


async def _recall(s: Subject, text: str, **query: Any) -> list[Memory]:
    # Whether a memory answers is the judge's business; here it is whether the store finds it.
    return await s.recall(text, min_score=0.0, judge="off", **query)


async def _ids(s: Subject, text: str, **query: Any) -> list[str]:
    return [memory.id for memory in await _recall(s, text, **query)]


@_scenario()
async def basic_remember_recall(s: Subject) -> None:
    id = await s.remember("Alice is allergic to peanuts")
    await s.remember("Bob drives a red van")
    expect("the best for 'peanuts allergy of Alice'", (await _ids(s, "peanuts allergy of Alice"))[:1], [id])


@_scenario()
async def remember_recall_by_user_filter(s: Subject) -> None:
    mine = await s.remember("likes green tea", user_id="alice")
    await s.remember("likes green tea", user_id="bob")
    expect("what is Alice's", await _ids(s, "green tea", filter={"user_id": "alice"}), [mine])


@_scenario()
async def type_filter(s: Subject) -> None:
    ids = {t: await s.remember("the trip to Rome", type=t) for t in ("semantic", "episodic", "emotional")}
    found = await _recall(s, "trip to Rome", filter={"type": ["episodic", "emotional"]})
    expect("of two types", {m.id for m in found}, {ids["episodic"], ids["emotional"]})
    expect("their types", {m.type for m in found}, {"episodic", "emotional"})


@_scenario()
async def forget_by_ids(s: Subject) -> None:
    gone, kept = await s.remember("the old address"), await s.remember("the new address")
    expect("what was forgotten", (await s.forget(gone)).ids, [gone])
    expect("what is found afterwards", await _ids(s, "address"), [kept])
    expect("what is left", [m.id for m in await s.list()], [kept])
    expect("whether it is gone", await s.gone(gone), True)
    expect("what is forgotten twice", (await s.forget(gone)).ids, [])


@_scenario()
async def forget_no_scope_raises(s: Subject) -> None:
    await s.remember("something")
    nothing: tuple[dict[str, str] | None, ...] = (None, {})
    for filter in nothing:
        with _refusal(ValidationError, "forgetting without ids and without a filter"):
            await s.engine.forget(s.who, Forget(s.agent, [], filter))
    expect("what is left", len(await s.list()), 1)


@_scenario()
async def expire_empty_policy_raises(s: Subject) -> None:
    await s.remember("something")
    with _refusal(ValidationError, "expiring by no policy"):
        await s.engine.expire(s.who, Expire(s.agent))
    expect("what is left", len(await s.list()), 1)


@_scenario()
async def expire_empty_policy_object_raises(s: Subject) -> None:
    await s.remember("something")
    with _refusal(ValidationError, "expiring by an empty policy"):
        parse(ExpireRequest, {"agent_id": s.agent, "policy": {}, "action": "forget"})
    expect("what is left", len(await s.list()), 1)


@_scenario()
async def expire_by_age(s: Subject) -> None:
    old = await s.remember("an old fact")
    s.clock.advance(31 * DAY_MS)
    new = await s.remember("a new fact")
    expect("what expired", await s.expire(older_than_days=30), [old])
    expect("what is found afterwards", await _ids(s, "fact"), [new])
    expect("whether the old one is gone", await s.gone(old), True)


@_scenario()
async def merge_keep_canonical(s: Subject) -> None:
    keep, lose = await s.remember("Alice lives in Rome"), await s.remember("Alice lives in Roma")
    merged = await s.merge(keep, lose)
    expect("what became of them", (merged.survivor.id, [m.id for m in merged.losers]), (keep, [lose]))
    found = [(m.id, m.content) for m in await _recall(s, "where Alice lives")]
    expect("what is found afterwards", found, [(keep, "Alice lives in Rome")])
    expect("what is left", [m.id for m in await s.list()], [keep])
    with _refusal(NotFound, "merging into what was merged away"):
        await s.merge(lose, keep)


@_scenario("governance")
async def approval_required_pending(s: Subject) -> None:
    draft = Draft(s.agent, "semantic", "Bob moved to Oslo")
    staged = await s.engine.remember(s.who, draft, approval={"content": "x"})
    expect("who has what waits", staged.stores, [])
    if staged.review_id is None:
        raise ScenarioFailure("nothing waits for a reviewer")
    expect("what is found meanwhile", await _recall(s, "Oslo"), [])
    expect("what is held meanwhile", await s.list(), [])
    expect("whether it is nowhere", await s.gone(staged.id), True)
    s.clock.advance(5)
    await s.engine.reviews.decide(s.who, staged.review_id, Decision(True, "Alice"))
    found = [(m.id, m.created_at) for m in await _recall(s, "Oslo")]
    expect("what is found once it is approved", found, [(staged.id, s.clock())])


@_scenario()
async def capabilities_declared(s: Subject) -> None:
    expect("whether it declares any", bool(s.store.capabilities), True)
    expect("what nobody knows of", sorted(s.store.capabilities - CAPABILITIES), [])


@_scenario()
async def health_returns_status(s: Subject) -> None:
    status = (await s.store.health()).get("status")
    expect("whether it says how it is", status in ("ok", "degraded", "down"), True)


@_scenario()
async def isinstance_protocol(s: Subject) -> None:
    expect(f"whether it is a {s.protocol.__name__}", isinstance(s.store, s.protocol), True)


@_scenario()
async def recall_returns_score_metadata(s: Subject) -> None:
    metadata = {"team": {"name": "core"}}
    id = await s.remember("the deploy is on Friday", metadata=metadata)
    expect("what the store finds", await _ids(s, "deploy"), [id])
    (hit,) = (await s.engine.recall(s.who, Query((s.agent,), "deploy", min_score=0.0, judge="off"))).hits
    expect("whether it has a score", hit.score > 0, True)
    expect("where it is from", hit.source_store, s.source)
    expect("its metadata", hit.memory.metadata, metadata)
    expect("the metadata that is held", [m.metadata for m in await s.list()], [metadata])


@_scenario()
async def fresher_than_days_filter(s: Subject) -> None:
    await s.remember("a stale report")
    s.clock.advance(10 * DAY_MS)
    fresh = await s.remember("a fresh report")
    recent = {"created_at": {"$gte": s.clock() - 5 * DAY_MS}}
    expect("what is fresh", await _ids(s, "report", filter=recent), [fresh])


@_scenario()
async def multi_remember_then_recall(s: Subject) -> None:
    topics = ("violins", "glaciers", "tax law", "sourdough", "lighthouses")
    ids = {topic: await s.remember(f"a note about {topic}") for topic in topics}
    for topic, id in ids.items():
        expect(f"the best for {topic!r}", (await _ids(s, f"what about {topic}"))[:1], [id])
