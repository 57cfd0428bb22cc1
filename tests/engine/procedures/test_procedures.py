"""Procedures as memories: firing is an update, and none of those that come at once is lost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import Fire, Forget, Update
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Fault, Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal

COUNTER = {
    "name": "counter",
    "states": [f"s{i}" for i in range(41)],
    "transitions": [{"trigger": "next", "source": f"s{i}", "dest": f"s{i + 1}"} for i in range(40)],
    "metadata": {"note": "Zähler"},
}
DOOR = {
    "name": "door",
    "initial": "shut",
    "states": ["open", "shut"],
    "transitions": [
        {"trigger": "push", "source": "shut", "dest": "open", "unless": ["locked"]},
        {"trigger": "pull", "source": "open", "dest": "shut"},
        {"trigger": "knock", "source": "*", "dest": "="},
    ],
}
UNLOCKED = {"locked": False}


def keep(subject: Subject, run: Any, machine: Any = DOOR, **fields: Any) -> str:
    content = machine if isinstance(machine, str) else json.dumps(machine, ensure_ascii=False)
    id: str = run(subject.remember(content, type="procedural", **fields))
    return id


def fire(subject: Subject, id: str, trigger: str, facts: Any = None, **fields: Any) -> Any:
    who = fields.pop("who", WHO)
    return subject.engine.procedures.fire(who, Fire(id, trigger, facts or {}, **fields))


def state(subject: Subject, run: Any, id: str) -> tuple[str, int]:
    found = run(subject.engine.procedures.show(WHO, id))
    return found.machine.current, found.memory.version


def test_a_new_state_is_the_next_version_and_audited(subject: Subject, run: Any) -> None:
    id = keep(subject, run)
    assert state(subject, run, id) == ("shut", 1)
    subject.clock.advance(1000)
    moved = run(fire(subject, id, "push", UNLOCKED))
    assert (moved.machine.current, moved.memory.version, moved.review_id) == ("open", 2, None)
    assert run(fire(subject, id, "knock")).machine.current == "open"
    history = run(subject.engine.history(WHO, "agent", id))
    assert [json.loads(version.content).get("current") for version in history] == [None, "open", "open"]
    assert json.loads(history[-1].content) == {**DOOR, "current": "open"}
    entries = run(subject.engine.ledger.entries(WHO))
    assert [entry.operation for entry in entries] == ["remember", "update", "update"]
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_what_else_is_known_of_it_stays(subject: Subject, run: Any) -> None:
    id = keep(subject, run, COUNTER, tags=["a"], metadata={"k": 1}, title="T", confidence=0.5, aliases=["count"])
    moved = run(fire(subject, "count", "next")).memory
    assert (moved.id, moved.tags, moved.metadata, moved.title, moved.confidence) == (id, ["a"], {"k": 1}, "T", 0.5)
    assert "Zähler" in moved.content


def test_reset_leads_back_to_the_start_from_anywhere(subject: Subject, run: Any) -> None:
    id = keep(subject, run)
    run(fire(subject, id, "push", UNLOCKED))
    back = run(subject.engine.procedures.reset(WHO, Fire(id)))
    assert (back.machine.current, back.memory.version) == ("shut", 3)


@pytest.mark.parametrize(
    ("machine", "given", "fault", "sentence"),
    [
        (DOOR, {"trigger": "kick"}, Conflict, "there is no trigger 'kick' of 'door'; possible are knock, push"),
        (DOOR, {"trigger": "pull"}, Conflict, "'pull' is not possible in the state shut"),
        (DOOR, {"trigger": "push"}, ValidationError, "facts.locked is required"),
        (DOOR, {"trigger": "push", "facts": {"locked": 0}}, ValidationError, "facts.locked must be true or false"),
        (DOOR, {"trigger": "push", "facts": {"locked": True}}, Conflict, "is held back by locked"),
        (DOOR, {"trigger": "push", "facts": UNLOCKED, "expected_version": 2}, Conflict, "is at version 1, not 2"),
        (DOOR, {"trigger": "push", "facts": UNLOCKED, "agent_id": "other"}, NotFound, ""),
        ("Open the lid, then pour.", {"trigger": "push"}, ValidationError, "is a how-to in words"),
    ],
)
def test_what_cannot_be_fired_changes_nothing(
    subject: Subject, run: Any, machine: Any, given: dict[str, Any], fault: type[Fault], sentence: str
) -> None:
    id = keep(subject, run, machine)
    before = run(subject.get(id))
    with pytest.raises(fault) as refused:
        run(fire(subject, id, **given))
    assert sentence in refused.value.message
    assert run(subject.get(id)) == before
    assert len(run(subject.engine.ledger.entries(WHO))) == 1


@pytest.mark.parametrize("operation", ["show", "draw"])
def test_only_a_procedure_can_be_shown_and_drawn(subject: Subject, run: Any, operation: str) -> None:
    fact = run(subject.remember(json.dumps(DOOR)))
    call = getattr(subject.engine.procedures, operation)
    with pytest.raises(ValidationError, match="is semantic, not a procedure"):
        run(call(WHO, fact))
    id = keep(subject, run)
    run(call(WHO, id))
    run(subject.engine.forget(WHO, Forget("agent", [id])))
    for missing in (id, "nothing"):
        with pytest.raises(NotFound):
            run(call(WHO, missing))
        with pytest.raises(NotFound):
            run(fire(subject, missing, "push", UNLOCKED))


def test_who_may_not_update_may_not_fire(subject: Subject, run: Any) -> None:
    id = keep(subject, run)
    reader, stranger = Principal(name="bob", role="reader"), Principal(name="eve", agents=("other",))
    assert run(subject.engine.procedures.show(reader, id)).machine.current == "shut"
    with pytest.raises(Forbidden):
        run(fire(subject, id, "push", UNLOCKED, who=reader))
    with pytest.raises(Forbidden):
        run(subject.engine.procedures.reset(reader, Fire(id)))
    with pytest.raises(NotFound):
        run(fire(subject, id, "push", UNLOCKED, who=stranger))
    assert state(subject, run, id) == ("shut", 1)


def test_fires_at_once_are_all_done_each_from_where_the_last_one_led(subject: Subject, run: Any) -> None:
    id = keep(subject, run, COUNTER)

    async def crowd() -> list[Any]:
        return await asyncio.gather(*(fire(subject, id, "next") for _ in range(40)))

    moved = run(crowd())
    assert state(subject, run, id) == ("s40", 41)
    assert sorted(result.memory.version for result in moved) == list(range(2, 42))


def test_a_fire_meets_updates_that_come_between(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from another process: the version moves on after the procedure was read."""
    id = keep(subject, run, COUNTER)
    procedures = subject.engine.procedures
    update, others = procedures._update, iter(range(5))

    async def interrupted(who: Principal, change: Update) -> Any:
        if next(others, None) is not None:
            current = (await procedures.show(WHO, id)).machine
            ahead = current.at(f"s{int(current.current[1:]) + 1}")
            await subject.engine.update(WHO, Update("agent", id, content=ahead))
        return await update(who, change)

    monkeypatch.setattr(procedures, "_update", interrupted)
    moved = run(fire(subject, id, "next"))
    assert (moved.machine.current, moved.memory.version) == ("s6", 7)
    others = iter(range(1))
    with pytest.raises(Conflict, match="is at version 8, not 7"):
        run(fire(subject, id, "next", expected_version=7))
    assert state(subject, run, id) == ("s7", 8)


def test_a_fire_that_needs_approval_waits_like_an_update(subject: Subject, run: Any) -> None:
    id = keep(subject, run)
    staged = run(fire(subject, id, "push", UNLOCKED, approval_required=True, reasoning="the guest is here"))
    assert (staged.machine.current, state(subject, run, id)) == ("shut", ("shut", 1))
    (review,) = run(subject.engine.reviews.list(WHO))
    assert (review["id"], review["operation"], review["reasoning"]) == (staged.review_id, "update", "the guest is here")
    ((modified),) = review["diff"]["modified"]
    assert json.loads(modified["after"]["content"])["current"] == "open"
    run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(True)))
    assert state(subject, run, id) == ("open", 2)


@pytest.mark.parametrize("action", ["reject", "redact"])
def test_a_rule_that_hides_a_procedure_hides_it_from_who_would_draw_or_move_it(
    subject: Subject, run: Any, action: str
) -> None:
    id, engine = keep(subject, run), subject.engine
    rule = {"name": "hide", "when": {"content": "shut", "operation": ["recall"]}, "action": action}
    run(engine.policies.replace(WHO, [rule]))
    attempts = [
        lambda: engine.procedures.show(WHO, id),
        lambda: engine.procedures.draw(WHO, id, format="mermaid"),
        lambda: fire(subject, id, "push", UNLOCKED),
        lambda: engine.procedures.reset(WHO, Fire(id, "", {})),
    ]
    for attempt in attempts:
        try:
            said = repr(run(attempt()))
        except Fault as fault:
            said = repr(fault)
        assert "shut" not in said
    run(engine.policies.replace(WHO, []))
    assert run(engine.procedures.show(WHO, id)).machine.current == "shut"
