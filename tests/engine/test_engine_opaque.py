"""Whatever is asked of an id that is someone else's, the answer is that of one that never was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from commonplace.engine import Engine
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.types import Draft, Forget, Merge
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Fault
from commonplace.wire.record import Principal

Ask = Callable[[Engine, Principal, str], Awaitable[Any]]
MINE = Principal("bob", role="admin", agents=("bob-*",))
OPERATIONS: dict[str, Ask] = {
    "get": lambda e, who, id: e.get(who, "bob-1", id),
    "get as of": lambda e, who, id: e.get(who, "bob-1", id, as_of=10**15),
    "find": lambda e, who, id: e.find(who, id),
    "find of an agent": lambda e, who, id: e.find(who, id, "bob-1"),
    "find by kind": lambda e, who, id: e.find(who, f"lesson_{id}"),
    "history": lambda e, who, id: e.history(who, "bob-1", id),
    "update": lambda e, who, id: e.update_with(who, "bob-1", id, lambda m: replace(m, content="mine")),
    "forget": lambda e, who, id: e.forget(who, Forget("bob-1", [id])),
    "erase": lambda e, who, id: e.forget(who, Forget("bob-1", [id], hard_delete=True)),
    "preview forget": lambda e, who, id: e.preview_forget(who, Forget("bob-1", [id])),
    "delete": lambda e, who, id: e.delete(who, id),
    "merge into": lambda e, who, id: e.merge(who, Merge("bob-1", id, ["own"])),
    "merge from": lambda e, who, id: e.merge(who, Merge("bob-1", "own", [id])),
    "neighbours": lambda e, who, id: e.graph.neighbours(who, "bob-1", id, 1),
    "run read": lambda e, who, id: e.runs.read(who, MemoryScope("bob-1"), id, None),
    "statement": lambda e, who, id: e.graph.retract(who, "bob-1", id),
    "review": lambda e, who, id: e.reviews.get(who, id),
    "decide": lambda e, who, id: e.reviews.decide(who, id, Decision(True, "bob")),
    "run": lambda e, who, id: e.runs.find(who, id),
}


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["another agent", "another tenant"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_foreign_id_and_a_missing_one_are_answered_alike(
    subject: Subject, run: Any, operation: str, whose: str
) -> None:
    engine = subject.engine
    owner = WHO if whose == "another agent" else Principal(tenant="other")
    agent = "alice" if whose == "another agent" else "bob-1"
    theirs = run(_there(engine, owner, agent, operation))
    run(engine.remember(MINE, Draft("bob-1", "semantic", "own", aliases=["own"])))
    before = run(engine.history(owner, agent, run(engine.find(owner, "theirs", agent)).id))

    def answer(id: str) -> str:
        try:
            said = repr(run(OPERATIONS[operation](engine, MINE, id)))
        except Fault as fault:
            said = repr((type(fault), fault.to_wire()))
        return said.replace(id, "…")

    missing = f"run_{'0' * 32}" if operation == "run" else mint_id(subject.clock())
    assert answer(theirs) == answer(missing)
    assert run(engine.history(owner, agent, before[0].id)) == before, "nothing was done to it"


async def _there(engine: Engine, owner: Principal, agent: str, operation: str) -> str:
    """The id of something of the kind that the operation takes."""
    kept = await engine.remember(owner, Draft(agent, "semantic", "secret plans", aliases=["theirs"]))
    if operation == "statement":
        fact = {"subject": "Alice", "predicate": "knows", "object": "Bob"}
        return (await engine.graph.assert_fact(owner, agent, **fact)).triple.id
    if operation in ("review", "decide"):
        staged = await engine.remember(owner, Draft(agent, "semantic", "wait"), approval={"content": "wait"})
        assert staged.review_id is not None
        return staged.review_id
    if operation == "run":
        return (await engine.runs.start(owner, ref=agent, scope=MemoryScope(agent))).id
    return kept.id
