"""No refusal names a memory that its reader could not read, nor an agent that they may not use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from commonplace.engine.types import Draft, Merge, Query, Update
from commonplace.stores.base import Entry
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Fault, NotFound
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS

BOB = Principal("bob", agents=("agent",), role="writer")
OPAQUE = (
    "memory {} has become part of another memory, which stands in the way of this; whoever may read all of the agent's "
    "memories is told which, and what to do"
)
Ask = Callable[[Subject, str], Awaitable[Any]]


@dataclass
class Situation:
    """A memory of which something is asked, and the one that stands in the way."""

    asked: str
    other: str


async def _merged(s: Subject) -> Situation:
    other, asked = await s.remember("Bob earns a salary"), await s.remember("Bob earns money")
    await s.merge(other, asked)
    return Situation(asked, other)


async def _survivor_gone(s: Subject) -> Situation:
    found = await _merged(s)
    await s.forget(found.other)
    return found


async def _words_joined(s: Subject) -> Situation:
    other, asked = await s.remember("Bob earns a salary"), await s.remember("Bob earns money")
    await s.merge(other, asked, strategy="merge_content")
    await s.update(other, tags=["pay"])
    return Situation(asked, other)


async def _promoted(s: Subject) -> Situation:
    draft = Draft("agent", "episodic", "Bob earns a salary of 90000", metadata={"short_term": True}, confidence=0.9)
    asked = (await s.engine.remember(WHO, draft)).id
    await s.engine.recall(WHO, _query("what does Bob earn?"))
    s.clock.advance(8 * DAY_MS)
    await s.engine.lifecycle.run(WHO, "consolidate")
    (source,) = await s.store.get("local", [asked])
    other = source.merged_into
    assert other is not None
    await s.update(other, tags=["pay"])
    await s.update(other, tags=["pay", "more"])
    return Situation(asked, other)


def _query(text: str) -> Any:
    return Query(("agent",), text, min_score=0.0)


Make = Callable[[Subject], Awaitable[Situation]]
#: What is asked of it, and what the sentence says to whom may know.
SITUATIONS: dict[str, tuple[Make, Ask, str]] = {
    "undelete": (_merged, lambda s, id: s.engine.undelete(BOB, "agent", id), "{}; read that one"),
    "update": (_merged, lambda s, id: s.engine.update(BOB, Update("agent", id, confidence=0.5)), "read that one and"),
    "staged update": (
        _merged,
        lambda s, id: s.engine.update(BOB, Update("agent", id, confidence=0.5, approval_required=True)),
        "read that one and",
    ),
    "unmerge of what is gone": (_survivor_gone, lambda s, id: s.engine.unmerge(BOB, "agent", id), "bring {} back"),
    "undo of what is gone": (_survivor_gone, lambda s, id: s.engine.undo(BOB, [id]), "bring {} back first"),
    "unmerge of joined words": (_words_joined, lambda s, id: s.engine.unmerge(BOB, "agent", id), "are part of {}"),
    "undo of joined words": (_words_joined, lambda s, id: s.engine.undo(BOB, [id]), "are part of {}"),
    "unmerge of a promotion": (_promoted, lambda s, id: s.engine.unmerge(BOB, "agent", id), "was promoted to {}"),
    "undo of a promotion": (_promoted, lambda s, id: s.engine.undo(BOB, [id]), "was promoted to {}"),
}


@pytest.mark.parametrize("withheld", [False, True], ids=["shown", "withheld"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_conflict_names_the_other_memory_to_whom_it_is_shown(
    subject: Subject, run: Any, situation: str, withheld: bool
) -> None:
    make, ask, said = SITUATIONS[situation]
    found = run(make(subject))
    if withheld:
        when = {"content": "salary", "operation": ["recall"], "principal": ["bob"]}
        run(subject.engine.policies.replace(WHO, [{"name": "pay", "when": when, "action": "reject"}]))
    with pytest.raises(Conflict) as refused:
        run(ask(subject, found.asked))
    if withheld:
        assert refused.value.message == OPAQUE.format(found.asked)
        assert found.other not in _told(refused.value)
    else:
        assert said.format(found.other) in refused.value.message
        assert refused.value.details == {"id": found.other}


def test_a_survivor_of_another_agent_is_not_named(subject: Subject, run: Any) -> None:
    """Merges keep to one agent, but a row that was imported may say anything."""
    asked, other = run(subject.remember("tea")), run(subject.remember("green tea", agent="secret"))
    (row,) = run(subject.store.get("local", [asked]))
    moved = replace(row, status="archived", merged_into=other)
    run(subject.store.transact("local", lambda tx: tx.put(Entry(moved, None, b""))))
    with pytest.raises(Conflict) as refused:
        run(subject.engine.undelete(BOB, "agent", asked))
    assert refused.value.message == OPAQUE.format(asked)
    assert other not in _told(refused.value)
    with pytest.raises(Conflict, match=other):
        run(subject.engine.undelete(WHO, "agent", asked))


def _told(fault: Fault) -> str:
    return repr((fault.message, fault.hint, fault.details))


HOLDER = Principal("bob", agents=("one", "two", "three"), role="writer")
NAMED: dict[str, Ask] = {
    "find": lambda s, ref: s.engine.find(HOLDER, ref),
    "delete": lambda s, ref: s.engine.delete(HOLDER, ref),
    "upsert": lambda s, ref: s.engine.upsert(HOLDER, Draft("", "semantic", "new"), ref, None),
    "procedure": lambda s, ref: s.engine.procedures.show(HOLDER, ref),
}


@pytest.mark.parametrize("way", NAMED)
def test_an_ambiguous_name_counts_only_what_is_shown(subject: Subject, run: Any, way: str) -> None:
    for agent, text in (("one", "fine"), ("two", "fine, too"), ("three", "a salary")):
        run(subject.remember(text, agent=agent, aliases=["note"]))
    when = {"content": "salary", "operation": ["recall"], "principal": ["bob"]}
    run(subject.engine.policies.replace(WHO, [{"name": "pay", "when": when, "action": "reject"}]))
    with pytest.raises(Conflict) as refused:
        run(NAMED[way](subject, "note"))
    assert refused.value.message == "note names 2 records, of the agents one, two; say which agent's"
    run(subject.forget(run(subject.get("note", "two")).id, agent="two"))
    assert run(subject.engine.find(HOLDER, "note")).agent_id == "one", "of what is shown there is one"
    run(subject.remember("another salary", agent="two", aliases=["note"]))
    run(subject.forget(run(subject.get("note", "one")).id, agent="one"))
    if way == "delete":
        assert run(NAMED[way](subject, "note")).ids == []
        return
    with pytest.raises(NotFound, match=r"^no record note$"):
        run(NAMED[way](subject, "note"))


def test_storing_under_the_id_of_what_is_withheld_does_not_say_whose_it_is(subject: Subject, run: Any) -> None:
    id = run(subject.remember("a salary", agent="three"))
    when = {"content": "salary", "operation": ["recall"], "principal": ["bob"]}
    run(subject.engine.policies.replace(WHO, [{"name": "pay", "when": when, "action": "reject"}]))
    with pytest.raises(Conflict) as refused:
        run(subject.engine.upsert(HOLDER, Draft("", "semantic", "new"), id, "one"))
    assert "three" not in _told(refused.value)


def test_a_refusal_to_merge_names_only_what_was_named(subject: Subject, run: Any) -> None:
    found = run(_merged(subject))
    kept = run(subject.remember("Bob likes tea"))
    when = {"content": "salary", "operation": ["recall"], "principal": ["bob"]}
    run(subject.engine.policies.replace(WHO, [{"name": "pay", "when": when, "action": "reject"}]))
    for canonical, duplicate in ((kept, found.asked), (found.asked, kept)):
        with pytest.raises(NotFound) as refused:
            run(subject.engine.merge(BOB, Merge("agent", canonical, [duplicate])))
        assert found.other not in _told(refused.value)
