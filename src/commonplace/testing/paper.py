"""The sixteen scenarios of the memorywire paper, by its names."""

from __future__ import annotations

import pytest

from commonplace.engine import Decision, Draft, Expire, Forget, Query
from commonplace.stores.base import CAPABILITIES, Primary, Store
from commonplace.testing.subject import DAY_MS, WHO, Contract, Subject, scenario
from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.models import ExpireRequest
from commonplace.wire.validate import parse


class PaperScenarios(Contract):
    @scenario()
    async def test_basic_remember_recall(self, s: Subject) -> None:
        id = await s.remember("Alice is allergic to peanuts")
        await s.remember("Bob drives a red van")
        assert (await s.recall("peanuts allergy of Alice"))[0].id == id

    @scenario()
    async def test_remember_recall_by_user_filter(self, s: Subject) -> None:
        mine = await s.remember("likes green tea", user_id="alice")
        await s.remember("likes green tea", user_id="bob")
        assert [m.id for m in await s.recall("green tea", filter={"user_id": "alice"})] == [mine]

    @scenario()
    async def test_type_filter(self, s: Subject) -> None:
        ids = {t: await s.remember("the trip to Rome", type=t) for t in ("semantic", "episodic", "emotional")}
        found = await s.recall("trip to Rome", filter={"type": ["episodic", "emotional"]})
        assert {m.id for m in found} == {ids["episodic"], ids["emotional"]}
        assert {m.type for m in found} == {"episodic", "emotional"}

    @scenario()
    async def test_forget_by_ids(self, s: Subject) -> None:
        gone, kept = await s.remember("the old address"), await s.remember("the new address")
        assert (await s.forget(gone)).ids == [gone]
        assert [m.id for m in await s.recall("address")] == [kept]
        assert (await s.forget(gone)).ids == []

    @scenario()
    async def test_forget_no_scope_raises(self, s: Subject) -> None:
        await s.remember("something")
        nothing: tuple[dict[str, str] | None, ...] = (None, {})
        for filter in nothing:
            with pytest.raises(ValidationError):
                await s.engine.forget(WHO, Forget("agent", [], filter))
        assert len(await s.list()) == 1

    @scenario()
    async def test_expire_empty_policy_raises(self, s: Subject) -> None:
        await s.remember("something")
        with pytest.raises(ValidationError):
            await s.engine.expire(WHO, Expire("agent"))
        assert len(await s.list()) == 1

    @scenario()
    async def test_expire_empty_policy_object_raises(self, s: Subject) -> None:
        await s.remember("something")
        with pytest.raises(ValidationError):
            parse(ExpireRequest, {"agent_id": "agent", "policy": {}, "action": "forget"})
        assert len(await s.list()) == 1

    @scenario()
    async def test_expire_by_age(self, s: Subject) -> None:
        old = await s.remember("an old fact")
        s.clock.advance(31 * DAY_MS)
        new = await s.remember("a new fact")
        assert await s.expire(older_than_days=30) == [old]
        assert [m.id for m in await s.recall("fact")] == [new]

    @scenario()
    async def test_merge_keep_canonical(self, s: Subject) -> None:
        keep, lose = await s.remember("Alice lives in Rome"), await s.remember("Alice lives in Roma")
        merged = await s.merge(keep, lose)
        assert (merged.survivor.id, [m.id for m in merged.losers]) == (keep, [lose])
        assert [(m.id, m.content) for m in await s.recall("where Alice lives")] == [(keep, "Alice lives in Rome")]
        with pytest.raises(NotFound):
            await s.merge(lose, keep)

    @scenario("governance")
    async def test_approval_required_pending(self, s: Subject) -> None:
        draft = Draft("agent", "semantic", "Bob moved to Oslo")
        staged = await s.engine.remember(WHO, draft, approval={"content": "x"})
        assert staged.stores == []
        assert staged.review_id is not None
        assert await s.recall("Oslo") == await s.list() == []
        assert await s.gone(staged.id)
        s.clock.advance(5)
        await s.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice"))
        (found,) = await s.recall("Oslo")
        assert (found.id, found.created_at) == (staged.id, s.clock())

    @scenario()
    async def test_capabilities_declared(self, s: Subject) -> None:
        assert s.store.capabilities
        assert s.store.capabilities <= CAPABILITIES

    @scenario()
    async def test_health_returns_status(self, s: Subject) -> None:
        assert (await s.store.health())["status"] in ("ok", "degraded", "down")

    @scenario()
    async def test_isinstance_protocol(self, s: Subject) -> None:
        assert isinstance(s.store, Store)
        assert isinstance(s.store, Primary)

    @scenario()
    async def test_recall_returns_score_metadata(self, s: Subject) -> None:
        await s.remember("the deploy is on Friday", metadata={"team": {"name": "core"}})
        (hit,) = (await s.engine.recall(WHO, Query(("agent",), "deploy"))).hits
        assert hit.score > 0
        assert hit.source_store == s.store.name
        assert hit.memory.metadata == {"team": {"name": "core"}}

    @scenario()
    async def test_fresher_than_days_filter(self, s: Subject) -> None:
        await s.remember("a stale report")
        s.clock.advance(10 * DAY_MS)
        fresh = await s.remember("a fresh report")
        found = await s.recall("report", filter={"created_at": {"$gte": s.clock() - 5 * DAY_MS}})
        assert [m.id for m in found] == [fresh]

    @scenario()
    async def test_multi_remember_then_recall(self, s: Subject) -> None:
        topics = ("violins", "glaciers", "tax law", "sourdough", "lighthouses")
        ids = {topic: await s.remember(f"a note about {topic}") for topic in topics}
        for topic, id in ids.items():
            assert (await s.recall(f"what about {topic}", k=1))[0].id == id
