"""Which names a token means, who looks after the whole store, and what others are told of it."""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.embedders.hashing import Hashing
from commonplace.engine import Engine
from commonplace.engine.core import Settings
from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import Draft, Forget, Query
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Forbidden, RateLimited
from commonplace.wire.record import Principal, covers

Over = tuple[Subject, Any]


@pytest.mark.parametrize(("pattern", "agent", "meant"), [
    ("team[1]", "team[1]", True), ("team[1]", "team1", False), ("team?", "team?", True), ("team?", "teams", False),
    ("*", "anything", True), ("team-*", "team-", True), ("team-*", "team", False), ("a*a", "a", False),
    ("a*b*c", "a-b-b-c", True), ("a*b*c", "a-c-b", False), ("*b*", "abc", True), ("", "", True), ("", "a", False),
    ("x*\n*", "xy\nz", True),
])  # fmt: skip
def test_only_a_star_is_special(pattern: str, agent: str, meant: bool) -> None:
    assert covers(pattern, agent) is meant
    assert Principal(agents=("other", pattern)).may_use(agent) is meant


@given(st.text("ab*", max_size=8), st.text("ab\n", max_size=10))
def test_stars_mean_what_they_mean_to_a_shell(pattern: str, agent: str) -> None:
    assert covers(pattern, agent) is fnmatchcase(agent, pattern)


def test_a_review_of_an_agent_with_an_odd_name_can_be_approved(over: Over) -> None:
    s, run = over
    who = Principal("alice", role="reviewer", agents=("team[1]",))
    staged = run(s.engine.remember(who, Draft("team[1]", "semantic", "x"), approval={"content": "x"}))
    run(s.engine.reviews.decide(who, staged.review_id, Decision(True, "Alice")))
    assert run(s.get(staged.id, "team[1]")).content == "x"


@pytest.mark.parametrize("who", [
    Principal("a", "local", "reviewer"), Principal("a", "acme", "admin"), Principal("a", "local", "admin", ("ada",)),
])  # fmt: skip
def test_only_the_operator_looks_after_the_store(over: Over, who: Principal, tmp_path: Path) -> None:
    s, run = over
    engine = s.engine
    for work in (engine.upkeep.doctor(who), engine.upkeep.backup(who, tmp_path / "b.db"), engine.upkeep.compact(who),
                 engine.upkeep.reindex(who, Hashing())):  # fmt: skip
        with pytest.raises(Forbidden):
            run(work)
    assert not (tmp_path / "b.db").exists()


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_the_audit_trail_is_for_reviewers(over: Over, role: Any) -> None:
    s, run = over
    who = Principal("a", role=role)
    for work in (
        s.engine.ledger.entries(who),
        s.engine.ledger.entries(who, agent_id="agent"),
        s.engine.ledger.verify(who),
    ):
        with pytest.raises(Forbidden):
            run(work)
    some = Principal("a", role="reviewer", agents=("ada",))
    with pytest.raises(Forbidden):
        run(s.engine.ledger.entries(some, agent_id="bea"))


def test_a_short_page_of_few_entries_reads_many_at_a_time(over: Over) -> None:
    s, run = over
    run(s.remember("x", "ada"))
    run(s.remember_all([Draft("bea", "semantic", str(i)) for i in range(40)]))
    run(s.remember("y", "ada"))
    calls, plain = [], s.store.audit

    async def counted(*args: Any, **options: Any) -> Any:
        calls.append(options)
        return await plain(*args, **options)

    s.store.audit = counted  # type: ignore[method-assign]
    some = Principal("a", role="reviewer", agents=("ada",))
    assert [e.agent_id for e in run(s.engine.ledger.entries(some, limit=2))] == ["ada", "ada"]
    assert len(calls) == 1


def test_where_backups_lie_is_told_to_the_operator_alone(tmp_path: Path, clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(SqliteStore(tmp_path / "commonplace.db", clock), Hashing(), clock=clock)
        path = tmp_path / "backup.db"
        await engine.upkeep.backup(WHO, path)
        for who, told in ((WHO, [str(path)]), (Principal("a", role="writer"), [])):
            kept = await engine.remember(WHO, Draft("agent", "semantic", "x"))
            gone = await engine.forget(who, Forget("agent", [kept.id], hard_delete=True))
            assert (gone.backups, gone.backup_count) == (told, 1)
        await engine.close()

    asyncio.run(scenario())


def test_status_counts_the_reviews_its_reader_may_see(over: Over) -> None:
    s, run = over
    run(s.engine.remember(WHO, Draft("agent", "semantic", "x"), approval={"content": "x"}))
    for who, count in ((WHO, 1), (Principal("a", role="reviewer"), 1), (Principal("a", role="reader"), 0)):
        assert run(s.engine.upkeep.status(who))["pending_reviews"] == count


def test_agents_are_named_without_being_counted(over: Over) -> None:
    s, run = over
    ids = {agent: run(s.remember("x", agent)) for agent in ("b", "a", "c")}
    run(s.forget(ids["b"], agent="b"))
    run(s.forget(ids["c"], agent="c", hard_delete=True))
    assert run(s.store.agent_names("local")) == ["a", "b"]
    assert run(s.engine.agent_names(Principal(agents=("a",)))) == ["a"]


def test_a_recall_that_is_refused_costs_no_agent_anything(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), clock=clock, settings=Settings(recalls_per_minute=1))
        await engine.recall(WHO, Query(("b",), "x"))
        with pytest.raises(RateLimited):
            await engine.recall(WHO, Query(("a", "b"), "x"))
        await engine.recall(WHO, Query(("a",), "x"))
        await engine.close()

    asyncio.run(scenario())


def test_the_shared_space_is_added_for_whoever_may_read_it(over: Over) -> None:
    subject, run = over
    run(subject.remember("the office has a blue door", "ada"))
    run(subject.remember("the office opens at nine", "shared"))
    only_ada = Principal("ada", "local", "reader", ("ada",))
    both = Principal("ada", "local", "reader", ("ada", "shared"))

    def agents(who: Principal, **options: bool) -> set[str]:
        found = run(subject.engine.recall(who, Query(("ada",), "the office", **options)))
        return {hit.memory.agent_id for hit in found.hits}

    assert agents(both) == {"ada"}
    assert agents(both, include_shared=True) == {"ada", "shared"}
    assert agents(only_ada, include_shared=True) == {"ada"}, "left out, not refused"
    searched = run(subject.engine.search(only_ada, Query(("ada",), "the office", include_shared=True), limit=5))
    assert [hit.memory.agent_id for hit in searched.hits] == ["ada"]
