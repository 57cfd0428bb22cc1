"""The engine as a whole: who may call which operation, what each caller sees, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from commonplace.engine import Engine
from commonplace.engine.recall import recall_log
from commonplace.engine.types import Draft, Expire, Forget, Merge, Query
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Forbidden, NotFound
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
    "would forget": ("writer", lambda e, who: e.preview_forget(who, Forget("team-1", ["x"]))),
    "merge": ("writer", lambda e, who: e.merge(who, Merge("team-1", "x", ["y"]))),
    "expire": ("writer", lambda e, who: e.expire(who, Expire("team-1", older_than_days=1))),
    "update": ("writer", lambda e, who: e.update(who, "team-1", "nothing", lambda m: m)),
}  # fmt: skip
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
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    class ClosingStore(InMemory):
        async def close(self) -> None:
            closed.append(True)

    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    async def scenario() -> None:
        engine = await Engine.open(ClosingStore(clock), clock=clock)
        monkeypatch.setattr(recall_log, "DELAY_SECONDS", 0)
        monkeypatch.setattr(recall_log, "_write", broken)
        await engine.recall(WHO, Query(("agent",), "x"))
        while engine.queues()["recalls"]:
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError):
            await engine.close()
        assert closed == [True]

    asyncio.run(scenario())
