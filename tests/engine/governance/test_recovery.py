"""Recovery from poisoning: everything that came from a bad source, and only that, is as it was before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commonplace.engine.governance.taint import BadSource
from commonplace.engine.lifecycle.consolidator import SETTLED_MS
from commonplace.engine.types import Draft, Expire, Fire, Forget, Merge, Update
from commonplace.stores.base import Reach
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, ValidationError
from commonplace.wire.record import EVERY_STATUS, Memory, Principal

MALLORY = Principal("mallory")
BAD = BadSource(principal="mallory")


def remember(subject: Subject, run: Any, content: str, who: Principal = WHO, **fields: Any) -> str:
    id: str = run(subject.engine.remember(who, Draft("agent", fields.pop("type", "semantic"), content, **fields))).id
    return id


def state(subject: Subject, run: Any) -> dict[str, Any]:
    """All that anyone can see: memories by id, and what is stated."""
    memories = {m.id: (m.content, m.status, sorted(m.aliases), m.demotion) for m in run(subject.list())}
    stated = run(subject.store.triples("local", "agent"))
    return memories | {"statements": {(t.subject, t.object, t.valid_from, t.valid_to) for t in stated if not t.empty}}


def actions(result: Any) -> dict[str, str]:
    return {each.id: each.action for each in result.affected}


def whole(subject: Subject, run: Any) -> None:
    verified = run(subject.engine.ledger.verify(WHO))
    assert verified.problem is None


def rows(subject: Subject, run: Any) -> dict[str, Memory]:
    page = run(subject.store.scan(Reach("local", ("agent",), statuses=EVERY_STATUS), limit=1000))
    return {m.id: m for m in page.memories}


def forget(subject: Subject, run: Any, id: str) -> None:
    run(subject.engine.forget(MALLORY, Forget("agent", [id])))


def update(subject: Subject, run: Any, id: str) -> None:
    run(subject.engine.update(MALLORY, Update("agent", id, content="poison")))


def archive(subject: Subject, run: Any, id: str) -> None:
    run(subject.engine.expire(MALLORY, Expire("agent", older_than_days=0, action="archive")))


def demote(subject: Subject, run: Any, id: str) -> None:
    run(subject.engine.expire(MALLORY, Expire("agent", older_than_days=0, action="demote")))


def write_anew(subject: Subject, run: Any, id: str) -> None:
    remember(subject, run, "poison", MALLORY)


def merge_good(subject: Subject, run: Any, id: str) -> None:
    other = next(each for each in rows(subject, run) if each != id)
    run(subject.engine.merge(MALLORY, Merge("agent", id, [other], "merge_content")))


def merge_bad(subject: Subject, run: Any, id: str) -> None:
    """A good agent, or the lifecycle, makes one memory of a good and a bad one."""
    bad = remember(subject, run, "poison", MALLORY, aliases=["bad-name"])
    run(subject.engine.merge(WHO, Merge("agent", id, [bad], "merge_content")))


def merge_into_bad(subject: Subject, run: Any, id: str) -> None:
    bad = remember(subject, run, "poison", MALLORY)
    run(subject.engine.merge(WHO, Merge("agent", bad, [id], "keep_canonical")))


def merge_twice(subject: Subject, run: Any, id: str) -> None:
    bad = remember(subject, run, "poison", MALLORY)
    middle = remember(subject, run, "in between")
    run(subject.engine.merge(WHO, Merge("agent", middle, [bad], "merge_content")))
    run(subject.engine.merge(WHO, Merge("agent", id, [middle], "merge_content")))
    run(subject.engine.forget(WHO, Forget("agent", [middle])))


def good_change_on_top(subject: Subject, run: Any, id: str) -> None:
    update(subject, run, id)
    run(subject.engine.update(WHO, Update("agent", id, tags=["good"])))


def state_anew(subject: Subject, run: Any, id: str) -> None:
    run(subject.engine.graph.assert_fact(MALLORY, "agent", subject="Bob", predicate="owes", object="Mallory"))


def state_over(subject: Subject, run: Any, id: str) -> None:
    for place in ("Nowhere", "Elsewhere"):
        subject.clock.advance(1000)
        run(subject.engine.graph.assert_fact(MALLORY, "agent", subject="Alice", predicate="lives in", object=place))


def retract(subject: Subject, run: Any, id: str) -> None:
    subject.clock.advance(1000)
    run(subject.engine.graph.retract(MALLORY, "agent", ("Alice", "lives in")))


def state_from_bad(subject: Subject, run: Any, id: str) -> None:
    bad = remember(subject, run, "poison", MALLORY)
    run(
        subject.engine.graph.assert_fact(
            WHO, "agent", subject="Alice", predicate="owes", object="Mallory", provenance=bad
        )
    )


POISONINGS = [
    forget, update, archive, demote, write_anew, merge_good, merge_bad, merge_into_bad, merge_twice,
    good_change_on_top, state_anew, state_over, retract, state_from_bad,
]  # fmt: skip


@pytest.mark.parametrize("poison", POISONINGS)
def test_every_poisoning_is_taken_back_and_the_taking_back_too(subject: Subject, run: Any, poison: Any) -> None:
    id = remember(subject, run, "Alice plays the violin", aliases=["alice"])
    remember(subject, run, "Bob plays chess")
    run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives in", object="Graz"))
    before = state(subject, run)
    subject.clock.advance(60_000)
    poison(subject, run, id)
    poisoned = state(subject, run)
    assert poisoned != before
    made_by_good = {i: seen for i, seen in poisoned.items() if i not in before and seen[0] == "in between"}
    looked = run(subject.engine.recovery.preview(WHO, BAD))
    assert state(subject, run) == poisoned, "looking changes nothing"
    done = run(subject.engine.recovery.recover(WHO, BAD))
    assert (looked.recovery_id, [*looked.affected]) == (None, [*done.affected])
    recovered = state(subject, run)
    if poison is merge_twice:
        recovered = {i: seen for i, seen in recovered.items() if i == "statements" or seen[0] != "in between"}
    assert recovered == before | made_by_good
    assert not [m for m in run(subject.recall("poison")) if "poison" in m.content]
    whole(subject, run)
    assert run(subject.store.audit("local", operation="recover"))[-1].principal == WHO.name
    again = run(subject.engine.recovery.recover(WHO, BAD))
    assert (again.affected, again.recovery_id) == ([], None), "there is nothing left to take back"
    undone = run(subject.engine.recovery.undo(WHO, done.recovery_id, "it was right after all"))
    assert (bool(undone.restored), undone.faults) == (True, {})
    assert state(subject, run) == poisoned
    whole(subject, run)
    with pytest.raises(Conflict, match="was undone already"):
        run(subject.engine.recovery.undo(WHO, done.recovery_id))


def test_consolidation_does_not_launder(subject: Subject, run: Any) -> None:
    """What lifecycle made of a good and a bad note says that it is its own; the ledger knows better."""
    told = {"metadata": {"short_term": True, "keep": True}, "type": "episodic"}
    good = remember(subject, run, "Alice is allergic to peanuts", **told)
    bad = remember(subject, run, "alice is allergic to peanuts!", MALLORY, **told)
    subject.clock.advance(SETTLED_MS)
    assert run(subject.engine.lifecycle.run(WHO, "consolidate")).counts["promoted"] == 1
    (promoted,) = (id for id in rows(subject, run) if id not in (good, bad))
    done = run(subject.engine.recovery.recover(WHO, BAD))
    assert actions(done) == {bad: "quarantine", promoted: "quarantine", good: "revert"}
    assert {each.id: each.direct for each in done.affected} == {bad: True, promoted: False, good: False}
    assert {id: m.status for id, m in rows(subject, run).items()} == {good: "live", bad: "deleted", promoted: "deleted"}
    whole(subject, run)
    run(subject.engine.recovery.undo(WHO, done.recovery_id))
    assert {id for id, m in rows(subject, run).items() if m.status == "live"} == {promoted}


def test_a_procedure_goes_back_to_the_state_before(subject: Subject, run: Any) -> None:
    machine = (
        '{"name": "door", "initial": "shut", "states": ["shut", "open"], '
        '"transitions": [{"trigger": "push", "source": "shut", "dest": "open"}]}'
    )
    id = remember(subject, run, machine, type="procedural")
    run(subject.engine.procedures.fire(MALLORY, Fire(id, "push", agent_id="agent")))
    done = run(subject.engine.recovery.recover(WHO, BAD))
    assert actions(done) == {id: "revert"}
    assert run(subject.engine.procedures.fire(WHO, Fire(id, "push", agent_id="agent"))).memory.version == 4


def test_by_source_and_since(subject: Subject, run: Any) -> None:
    old = remember(subject, run, "old mail", source="mail")
    cut = subject.clock.advance(1000)
    new = remember(subject, run, "new mail", source="mail")
    other = remember(subject, run, "new chat", source="chat")
    changed = remember(subject, run, "said in chat", source="chat")
    run(subject.engine.update_with(WHO, "agent", changed, lambda m: replace(m, content="said by mail", source="mail")))
    preview = subject.engine.recovery.preview
    assert actions(run(preview(WHO, BadSource(source="mail")))) == {
        old: "quarantine",
        new: "quarantine",
        changed: "revert",
    }
    assert actions(run(preview(WHO, BadSource(source="mail", since=cut)))) == {new: "quarantine", changed: "revert"}
    assert actions(run(preview(WHO, BadSource(since=cut)))) == dict.fromkeys((new, other, changed), "quarantine")
    assert actions(run(preview(WHO, BadSource(source="mail", principal="mallory")))) == {}
    assert actions(run(preview(WHO, BadSource(source="mail", agent_id="another")))) == {}


def test_what_changed_since_the_recovery_stays(subject: Subject, run: Any) -> None:
    first, second = (remember(subject, run, f"fact {n}") for n in range(2))
    for id in (first, second):
        run(subject.engine.update(MALLORY, Update("agent", id, content="poison")))
    done = run(subject.engine.recovery.recover(WHO, BAD))
    run(subject.engine.update(WHO, Update("agent", first, content="better")))
    run(subject.forget(second, hard_delete=True))
    undone = run(subject.engine.recovery.undo(WHO, done.recovery_id))
    assert (undone.restored, [*undone.faults]) == ([], [first, second])
    assert run(subject.get(first)).content == "better"
    whole(subject, run)


def test_what_they_erased_is_counted_and_gone(subject: Subject, run: Any) -> None:
    id = remember(subject, run, "a fact")
    run(subject.engine.forget(MALLORY, Forget("agent", [id], hard_delete=True)))
    assert run(subject.engine.recovery.recover(WHO, BAD)).erased == 1


@pytest.mark.parametrize("role", ["reader", "writer", "reviewer"])
def test_it_is_for_admins(subject: Subject, run: Any, role: Any) -> None:
    who = Principal("w", role=role)
    for work in (
        subject.engine.recovery.preview(who, BAD),
        subject.engine.recovery.recover(who, BAD),
        subject.engine.recovery.undo(who, "x"),
    ):
        with pytest.raises(Forbidden):
            run(work)


def test_an_admin_of_some_agents_recovers_those(subject: Subject, run: Any) -> None:
    remember(subject, run, "poison", MALLORY)
    some = Principal("a", role="admin", agents=("another",))
    with pytest.raises(Forbidden, match="may not use every agent"):
        run(subject.engine.recovery.recover(some, BAD))
    with pytest.raises(Forbidden, match="may not use agent 'agent'"):
        run(subject.engine.recovery.recover(some, replace(BAD, agent_id="agent")))
    assert run(subject.engine.recovery.recover(some, replace(BAD, agent_id="another"))).affected == []
    done = run(subject.engine.recovery.recover(WHO, replace(BAD, agent_id="agent")))
    with pytest.raises(NotFound, match="there is no recovery"):
        run(subject.engine.recovery.undo(some, done.recovery_id))
    own = Principal("b", role="admin", agents=("agent",))
    assert run(subject.engine.recovery.undo(own, done.recovery_id)).faults == {}


def test_nothing_named_is_a_mistake(subject: Subject, run: Any) -> None:
    with pytest.raises(ValidationError, match="name at least one"):
        run(subject.engine.recovery.recover(WHO, BadSource(agent_id="agent")))
    with pytest.raises(NotFound):
        run(subject.engine.recovery.undo(WHO, "nothing"))


@pytest.mark.parametrize("way", ["undo", "undelete"])
def test_what_is_quarantined_comes_back_by_an_admin_alone(subject: Subject, run: Any, way: str) -> None:
    writer, engine = Principal("mallory", role="writer"), subject.engine
    id = remember(subject, run, "poison", writer)
    recovery = run(engine.recovery.recover(WHO, BAD)).recovery_id

    def bring_back(who: Principal) -> Any:
        return run(engine.undo(who, [id]) if way == "undo" else engine.undelete(who, "agent", id))

    with pytest.raises(Conflict, match=f"`commonplace recover --undo {recovery}`"):
        bring_back(writer)
    assert rows(subject, run)[id].status == "deleted"
    bring_back(WHO)
    assert rows(subject, run)[id].status == "live"
    run(engine.forget(writer, Forget("agent", [id])))
    bring_back(writer)  # what is forgotten later is an ordinary thing
    assert rows(subject, run)[id].status == "live"
    whole(subject, run)


def test_a_quarantine_that_was_undone_leaves_no_mark(subject: Subject, run: Any) -> None:
    id = remember(subject, run, "poison", MALLORY)
    before = rows(subject, run)[id].provenance
    recovery = run(subject.engine.recovery.recover(WHO, BAD)).recovery_id
    run(subject.engine.recovery.undo(WHO, recovery))
    assert (rows(subject, run)[id].status, rows(subject, run)[id].provenance) == ("live", before)


@pytest.mark.parametrize("bad", [BAD, BadSource(source="mail")], ids=["principal", "source"])
def test_what_was_forgotten_after_the_poisoning_stays_forgotten(subject: Subject, run: Any, bad: BadSource) -> None:
    id = remember(subject, run, "Alice lives in Bern")
    poison = {"content": "Alice lives on Mars", "source": "mail"}
    run(subject.engine.update_with(MALLORY, "agent", id, lambda m: replace(m, **poison)))
    run(subject.engine.forget(WHO, Forget("agent", [id])))
    assert actions(run(subject.engine.recovery.recover(WHO, bad))) == {id: "revert"}
    row = rows(subject, run)[id]
    assert (row.status, row.content) == ("deleted", "Alice lives in Bern")
    with pytest.raises(NotFound):
        run(subject.engine.get(WHO, "agent", id))
    assert not run(subject.engine.recovery.recover(WHO, bad)).affected
    whole(subject, run)


def test_privacy_that_was_set_after_the_poisoning_stays(subject: Subject, run: Any) -> None:
    ids = [remember(subject, run, text, privacy={"share_with": ["*"]}) for text in ("one", "two", "three")]

    def change(who: Principal, id: str, **fields: Any) -> None:
        run(subject.engine.update_with(who, "agent", id, lambda m: replace(m, **fields)))

    for id in ids[:2]:
        change(MALLORY, id, content="poison")
    change(WHO, ids[0], privacy={})
    change(MALLORY, ids[2], privacy={"share_with": ["mallory"]})
    change(WHO, ids[2], tags=["later"])
    run(subject.engine.recovery.recover(WHO, BAD))
    found = rows(subject, run)
    assert [found[id].privacy for id in ids] == [{}, {"share_with": ["*"]}, {"share_with": ["*"]}]
    assert [found[id].content for id in ids] == ["one", "two", "three"]
