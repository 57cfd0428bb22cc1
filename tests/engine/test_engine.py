"""The engine as a whole: who may call which operation, what each caller sees, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import Any

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Engine
from commonplace.engine.core import Settings
from commonplace.engine.recall import recall_log
from commonplace.engine.types import Draft, Expire, Forget, Merge, Query, Statement, Update
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Forbidden, NotFound, Unavailable
from commonplace.wire.record import Principal

OPERATIONS = {
    "recall": ("reader", lambda e, who: e.recall(who, Query(("team-1",), "x"))),
    "list": ("reader", lambda e, who: e.list(who, ("team-1",))),
    "get": ("reader", lambda e, who: e.get(who, "team-1", "nothing")),
    "history": ("reader", lambda e, who: e.history(who, "team-1", "nothing")),
    "remember": ("writer", lambda e, who: e.remember(who, Draft("team-1", "semantic", "x"))),
    "stage": ("writer", lambda e, who: e.remember(who, Draft("team-1", "semantic", "x"), approval={})),
    "forget": ("writer", lambda e, who: e.forget(who, Forget("team-1", ["x"]))),
    "stage forget": (
        "writer", lambda e, who: e.forget(who, Forget("team-1", ["x"], approval_required=True))),
    "undelete": ("writer", lambda e, who: e.undelete(who, "team-1", "x")),
    "unmerge": ("writer", lambda e, who: e.unmerge(who, "team-1", "x")),
    "undo": ("writer", lambda e, who: e.undo(who, ["x"], agent_id="team-1")),
    "would forget": ("writer", lambda e, who: e.preview_forget(who, Forget("team-1", ["x"]))),
    "merge": ("writer", lambda e, who: e.merge(who, Merge("team-1", "x", ["y"]))),
    "expire": ("writer", lambda e, who: e.expire(who, Expire("team-1", older_than_days=1))),
    "update with": ("writer", lambda e, who: e.update_with(who, "team-1", "nothing", lambda m: m)),
    "search": ("reader", lambda e, who: e.search(who, Query(("team-1",), "x"), limit=1)),
    "find": ("reader", lambda e, who: e.find(who, "nothing", "team-1")),
    "page": ("reader", lambda e, who: e.page(who, ("team-1",), limit=1)),
    "count": ("reader", lambda e, who: e.count(who, ("team-1",))),
    "upsert": ("writer", lambda e, who: e.upsert(who, Draft("", "semantic", "x"), "x", "team-1")),
    "would merge": ("writer", lambda e, who: e.preview_merge(who, Merge("team-1", "x", ["y"]))),
    "stage merge": ("writer", lambda e, who: e.merge(who, Merge("team-1", "x", ["y"], approval_required=True))),
    "update": ("writer", lambda e, who: e.update(who, Update("team-1", "x", content="new"))),
    "stage update": (
        "writer", lambda e, who: e.update(who, Update("team-1", "x", content="new", approval_required=True))),
    "assert": ("writer", lambda e, who: e.assert_fact(who, Statement("team-1", "Bob", "likes", "tea"))),
    "would expire": ("writer", lambda e, who: e.preview_expire(who, Expire("team-1", older_than_days=1))),
}  # fmt: skip
#: Operations whose caller names no agent, or is answered item by item: each has a test of its own.
WITHOUT_AGENT = {"agent_names", "delete", "embed", "encode", "remember_many"}
#: Whoever asks may; how far they are told why a store fails is tested in outbox/test_shown_problems.py.
FOR_ALL = {"health", "reporting"}
ROLES = ["reader", "writer", "reviewer", "admin"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_who_may_do_what(subject: Subject, run: Any, name: str) -> None:
    needed, operation = OPERATIONS[name]
    for role in ROLES:
        for agents, usable in (
            (("*",), True),
            (("team-*",), True),
            (("x", "team-1"), True),
            (("team",), False),
            ((), False),
        ):
            who = Principal("someone", role=role, agents=agents)  # type: ignore[arg-type]
            if usable and ROLES.index(role) >= ROLES.index(needed):
                with contextlib.suppress(NotFound):
                    run(operation(subject.engine, who))
            else:
                with pytest.raises(Forbidden):
                    run(operation(subject.engine, who))


def test_every_operation_has_a_row_that_says_who_may() -> None:
    methods = {name: method for name, method in inspect.getmembers(Engine) if not name.startswith("_")}
    operations = {name for name, method in methods.items() if "who" in getattr(method, "__annotations__", ())}
    listed = {name for _, operation in OPERATIONS.values() for name in operation.__code__.co_names}
    assert operations - listed == WITHOUT_AGENT | FOR_ALL


@pytest.mark.parametrize("role", ROLES)
def test_each_item_of_a_batch_is_for_who_may_write_it(subject: Subject, run: Any, role: Any) -> None:
    who = Principal("someone", role=role, agents=("team-1",))
    items = [BatchItem(Draft(agent, "semantic", "x")) for agent in ("team-1", "team-2")]
    own, other = run(subject.engine.remember_many(who, items))
    assert isinstance(own, Forbidden) is (role == "reader")
    assert isinstance(other, Forbidden)


def test_a_caller_sees_only_the_agents_it_may_use(subject: Subject, run: Any) -> None:
    for agent in ("team-1", "team-2", "other"):
        run(subject.remember("x", agent))
    some = Principal("someone", role="reviewer", agents=("team-*",))
    assert run(subject.engine.upkeep.status(some))["agents"] == {"team-1": 1, "team-2": 1}
    assert {e.agent_id for e in run(subject.engine.ledger.entries(some))} == {"team-1", "team-2"}
    with pytest.raises(Forbidden):
        run(subject.engine.recall(some, Query(("team-1", "other"), "x")))


def test_agents_are_named_without_being_counted(subject: Subject, run: Any) -> None:
    ids = {agent: run(subject.remember("x", agent)) for agent in ("b", "a", "c")}
    run(subject.forget(ids["b"], agent="b"))
    run(subject.forget(ids["c"], agent="c", hard_delete=True))
    assert run(subject.store.agent_names("local")) == ["a", "b"]
    assert run(subject.engine.agent_names(Principal(agents=("a",)))) == ["a"]


def test_the_store_is_closed_whatever_became_of_what_was_written_behind(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    closed = []

    class ClosingStore(InMemory):
        async def close(self) -> None:
            closed.append(True)

    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    async def scenario() -> None:
        engine = await Engine.open(ClosingStore(clock), clock=clock)
        monkeypatch.setattr(recall_log, "_write", broken)
        await engine.recall(WHO, Query(("agent",), "x"))
        await engine.close()
        assert closed == [True]

    asyncio.run(scenario())
    assert "not in the ledger yet: RuntimeError: a bug" in caplog.text


def test_it_says_what_it_is(subject: Subject, run: Any) -> None:
    engine = subject.engine
    assert (engine.clock, engine.store_name) == (subject.clock, subject.store.name)
    assert engine.capabilities == subject.store.capabilities
    assert engine.embedder is not None
    assert (engine.embedder.name, engine.embeds, engine.note) == ("hashing-256", True, None)
    assert engine.settings.recalls_per_minute == 0
    assert engine.redactor.mode == "redact"
    health = run(engine.health())
    assert (health["status"], health["embedder"]) == ("ok", "hashing-256")
    assert engine.queues() == {"writes": 0, "embeddings": 0, "recalls": 0}
    sizes = run(engine.sizes())
    assert (sizes is None) is (subject.store.name == "memory")


def test_without_an_embedder_it_says_so_and_embeds_nothing(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), clock=clock)
        assert (engine.embedder, engine.embeds) == (None, False)
        note = "no embedder is configured: recall is by keywords only"
        assert (await engine.health())["note"] == engine.note == note
        with pytest.raises(Unavailable, match="no embedder is configured"):
            await engine.embed(WHO, ["x"])
        await engine.warm_embedder()
        await engine.warm_indexes()
        await engine.release_idle_models()
        await engine.close()

    asyncio.run(scenario())


def test_texts_are_embedded_for_readers_and_kept_unless_told_otherwise(subject: Subject, run: Any) -> None:
    cache = subject.engine._core.embedding
    assert cache is not None
    reader = Principal("r", role="reader")
    vectors = run(subject.engine.embed(reader, ["one", "two"]))
    assert vectors == pytest.approx(HashingEmbedder().embed(["one", "two"]))
    held = len(cache)
    run(subject.engine.embed(reader, ["three"], remember=False))
    assert len(cache) == held == 2


def test_warming_makes_indexes_and_model_ready_and_stores_nothing(subject: Subject, run: Any) -> None:
    run(subject.remember("x"))
    run(subject.engine.warm_indexes())
    run(subject.engine.warm_embedder())
    assert len(run(subject.list())) == 1


class UnloadedJudge:
    name = "judge"
    note: str | None = None
    unloaded = 0

    def judge(self, question: str, texts: Any) -> list[float]:
        return [0.0 for _ in texts]

    def unload(self) -> None:
        self.unloaded += 1


def test_a_judge_is_asked_only_where_relevance_is_calibrated(subject: Subject, run: Any) -> None:
    class Asked(UnloadedJudge):
        def judge(self, question: str, texts: Any) -> list[float]:
            raise AssertionError("not for this embedder")

    subject.engine.use_judge(Asked)
    run(subject.engine.remember(WHO, Draft("alice", "semantic", "Alice drinks tea")))
    found = run(subject.engine.recall(WHO, Query(("alice",), "What does Alice drink?", judge="always")))
    assert [hit.relevance for hit in found.hits] == [None]


def test_a_store_whose_embedder_is_missing_has_a_judge_for_when_it_is_reindexed(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), clock=clock)
        judge = UnloadedJudge()
        engine.use_judge(lambda: judge)
        assert engine._core.judge is judge
        await engine.close()

    asyncio.run(scenario())


def test_idle_models_are_given_back_together(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = UnloadedJudge()
    subject.engine._core.judge = judge
    cache = subject.engine._core.embedding
    for idle in (False, True):
        monkeypatch.setattr(cache, "unload_if_idle", lambda idle=idle: idle)
        run(subject.engine.release_idle_models())
        assert judge.unloaded == idle


def test_settings_are_the_callers(clock: FakeClock) -> None:
    async def scenario() -> None:
        settings = Settings(review_url="http://here/", recalls_per_minute=7)
        engine = await Engine.open(InMemory(clock), clock=clock, settings=settings)
        assert engine.settings is settings
        await engine.close()

    asyncio.run(scenario())
