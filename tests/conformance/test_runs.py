"""A run passes what works and notices what does not, whatever the primary beside the store would have answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commonplace.conformance import SCENARIOS, ConformanceRun, Outcome, open_run
from commonplace.conformance.subject import FakeClock
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Attachment, Engine
from commonplace.sdk import Memory
from commonplace.stores.base import Reach, StoreSettings
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.memory import InMemory
from commonplace.stores.mixins import scan_all
from commonplace.stores.sqlite import SqliteStore

EMBEDDER = HashingEmbedder()


class Copy(PrimaryCopy):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__(InMemory(clock))


class ForgetsNothing(Copy):
    async def delete(self, tenant: str, ids: Any) -> int:
        return len(ids)


class FindsNothing(Copy):
    async def search(self, search: Any) -> Any:
        return []


class IgnoresFilters(Copy):
    async def search(self, search: Any) -> Any:
        # The primary lets nothing through that is out of reach, so all it can do is to crowd out what is wanted.
        found = await super().search(replace(search, reach=Reach(search.reach.tenant, search.reach.agents)))
        return [each for each in found if not search.reach.admits(each.memory)] or found


class LosesMetadata(Copy):
    async def put(self, entries: Any) -> None:
        await super().put([replace(each, memory=replace(each.memory, metadata={})) for each in entries])


class AltersTexts(Copy):
    async def put(self, entries: Any) -> None:
        await super().put([replace(each, memory=replace(each.memory, content="other words")) for each in entries])


class Breaks(Copy):
    async def put(self, entries: Any) -> None:
        raise KeyError("vendor")


class QuotesItsAddress(Copy):
    async def health(self) -> dict[str, Any]:
        raise RuntimeError("cannot reach https://alice:hunter2hunter2@db.example")


class SaysNothing(Copy):
    async def health(self) -> dict[str, Any]:
        return {}


class DeclaresNothing(Copy):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.capabilities = frozenset()


class DeclaresAWordOfItsOwn(Copy):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.capabilities |= {"telepathy"}


class Ungoverned(InMemory):
    capabilities = InMemory.capabilities - {"governance"}


async def _all(run: ConformanceRun) -> dict[str, Outcome]:
    try:
        return {each.name: await run.run(each) for each in SCENARIOS}
    finally:
        await run.close()


async def _with_copy(kind: type[Copy]) -> dict[str, Outcome]:
    clock = FakeClock()
    store = kind(clock)
    engine = await Engine.open(InMemory(clock), EMBEDDER, clock=clock, replicas=[Attachment("copy", lambda: store)])
    await engine.stores.wait_until_open(5)
    return await _all(ConformanceRun(engine, store, clock, "copy"))


def test_there_are_the_sixteen_of_the_paper() -> None:
    assert len({each.name for each in SCENARIOS}) == 16


@pytest.mark.parametrize("url", ["memory://", "sqlite://{}/m.db", "sqlite-vec://{}/m.db"])
def test_our_own_stores_pass_as_primaries(tmp_path: Path, url: str) -> None:
    async def work() -> dict[str, Outcome]:
        run = await open_run(url.format(tmp_path), StoreSettings(), EMBEDDER)
        assert run.role == "primary"
        return await _all(run)

    wrong = {name: outcome for name, outcome in asyncio.run(work()).items() if outcome.result == "fail"}
    assert wrong == {}


def test_one_with_copies_passes_as_a_replica() -> None:
    outcomes = asyncio.run(_with_copy(Copy))
    assert {outcome.result for outcome in outcomes.values()} == {"pass"}


@pytest.mark.parametrize(
    ("kind", "noticed", "said"),
    [
        (ForgetsNothing, "forget_by_ids", "what it holds"),
        (ForgetsNothing, "expire_by_age", "whether the old one is gone"),
        (ForgetsNothing, "merge_keep_canonical", "what it holds"),
        (FindsNothing, "basic_remember_recall", "the best for"),
        (FindsNothing, "multi_remember_then_recall", "the best for"),
        (IgnoresFilters, "remember_recall_by_user_filter", "what is Alice's"),
        (IgnoresFilters, "type_filter", "of two types"),
        (IgnoresFilters, "fresher_than_days_filter", "what is fresh"),
        (LosesMetadata, "recall_returns_score_metadata", "the metadata that is held"),
        (AltersTexts, "basic_remember_recall", "another text"),
        (Breaks, "basic_remember_recall", "the best for"),
        (SaysNothing, "health_returns_status", "whether it says how it is"),
    ],
)
def test_what_a_store_does_wrong_is_noticed_and_said(kind: type[Copy], noticed: str, said: str) -> None:
    outcomes = asyncio.run(_with_copy(kind))
    assert outcomes[noticed].result == "fail"
    assert said in outcomes[noticed].why
    assert outcomes["capabilities_declared"].result == "pass"


@pytest.mark.parametrize(
    ("kind", "said"), [(DeclaresNothing, "whether it declares any"), (DeclaresAWordOfItsOwn, "telepathy")]
)
def test_capabilities_that_say_nothing_are_noticed(kind: type[Copy], said: str) -> None:
    outcome = asyncio.run(_with_copy(kind))["capabilities_declared"]
    assert outcome.result == "fail"
    assert said in outcome.why


def test_what_a_store_does_not_let_go_of_fails_every_scenario_that_wrote_it() -> None:
    outcomes = asyncio.run(_with_copy(ForgetsNothing))
    for name in ("basic_remember_recall", "multi_remember_then_recall"):
        assert outcomes[name].result == "fail"
        assert "what is left in it" in outcomes[name].why


def test_a_scenario_that_a_primary_says_it_cannot_do_is_skipped_with_the_reason() -> None:
    async def work() -> dict[str, Outcome]:
        clock = FakeClock()
        store = Ungoverned(clock)
        return await _all(ConformanceRun(await Engine.open(store, EMBEDDER, clock=clock), store, clock, "mine"))

    outcomes = asyncio.run(work())
    skipped = {name: outcome.why for name, outcome in outcomes.items() if outcome.result != "pass"}
    assert skipped == {"approval_required_pending": "it does not declare governance"}
    assert outcomes["approval_required_pending"].result == "skip"


def test_what_a_product_says_of_its_failure_may_quote_a_password() -> None:
    outcomes = asyncio.run(_with_copy(QuotesItsAddress))
    assert outcomes["health_returns_status"].why.startswith("RuntimeError at ")
    assert "hunter2" not in repr(outcomes)


def test_nothing_of_a_users_is_touched_and_nothing_is_left(tmp_path: Path) -> None:
    async def work() -> None:
        url = f"sqlite://{tmp_path}/m.db"
        async with Memory("alice", stores=[url], data=tmp_path, embedder="hashing") as memory:
            kept = await memory.remember("Alice's own memory")
            before = (await memory.list())["memories"]
        await _all(await open_run(url, StoreSettings(), EMBEDDER))
        async with Memory("alice", stores=[url], data=tmp_path, embedder="hashing") as memory:
            assert (await memory.list())["memories"] == before
            assert (await memory.get(kept.id))["content"] == "Alice's own memory"
            assert [check for check in await memory.doctor() if not check["ok"]] == []
        store = SqliteStore(tmp_path / "m.db")
        for tenant in await store.tenants():
            agents = tuple(await store.agent_names(tenant))
            left = await scan_all(store, Reach(tenant, agents, statuses=("live", "pending", "archived", "deleted")))
            assert len(left) == (1 if tenant == "local" else 0)
        await store.close()

    asyncio.run(work())
