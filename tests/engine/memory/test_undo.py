"""Undo: everything short of erasing is taken back, once, by whoever may, and as rules allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from commonplace.engine.memory.expire import DEMOTION
from commonplace.engine.memory.undo import MAX_UNDONE
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Fault, Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.short_ids import shorten_id
from commonplace.wire.times import DAY_MS

TEXT = "Alice plays the violin"
UNKNOWN = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"


def forgotten(subject: Subject, run: Any, id: str) -> None:
    run(subject.forget(id))


def archived(subject: Subject, run: Any, id: str) -> None:
    run(subject.expire("archive", type="episodic"))


def demoted(subject: Subject, run: Any, id: str) -> None:
    run(subject.expire("demote", type="episodic"))


def archived_and_demoted(subject: Subject, run: Any, id: str) -> None:
    demoted(subject, run, id)
    archived(subject, run, id)


def merged(subject: Subject, run: Any, id: str) -> None:
    run(subject.merge(run(subject.remember("Alice plays violin")), id))


def joined(subject: Subject, run: Any, id: str) -> None:
    run(subject.merge(run(subject.remember("Bob plays the flute")), id, strategy="merge_content"))


def promoted(subject: Subject, run: Any, id: str) -> None:
    run(subject.update(id, metadata={"short_term": True, "keep": True}))
    subject.clock.advance(DAY_MS)
    assert run(subject.engine.lifecycle.run(WHO, "consolidate")).counts["promoted"] == 1


DONE: dict[str, Callable[[Subject, Any, str], None]] = {
    each.__name__: each for each in (forgotten, archived, demoted, archived_and_demoted, merged, joined, promoted)
}


def whole(subject: Subject, run: Any) -> None:
    """The ledger and the store agree on what there is."""
    assert run(subject.engine.ledger.verify(WHO)).problem is None
    if isinstance(subject.store, SqliteStore):
        assert all(finding.ok for finding in run(subject.engine.upkeep.doctor(WHO, repair=False)))


def undo(subject: Subject, run: Any, *ids: str, who: Principal = WHO, **more: Any) -> tuple[list[str], list[str]]:
    done = run(subject.engine.undo(who, ids, **more))
    assert not done.faults
    return done.restored, done.unchanged


@pytest.mark.parametrize("way", DONE)
def test_it_is_live_at_full_rank_and_by_its_own_names_again(subject: Subject, run: Any, way: str) -> None:
    id = run(subject.remember(TEXT, type="episodic", aliases=["a"], tags=["music"], user_id="alice"))
    DONE[way](subject, run, id)
    assert undo(subject, run, id, reason="a slip") == ([id], [])
    (back,) = run(subject.store.get(WHO.tenant, [id]))
    assert (back.status, back.demotion, back.merged_into, back.content) == ("live", 1.0, None, TEXT)
    assert (back.aliases, back.tags, back.user_id, back.type) == (["a"], ["music"], "alice", "episodic")
    assert id in {memory.id for memory in run(subject.recall("violin", min_score=0.0))}
    assert run(subject.get("a")).id == id
    last = run(subject.engine.ledger.entries(WHO))
    assert any("a slip" in str(entry) for entry in last)
    whole(subject, run)


@pytest.mark.parametrize("way", DONE)
def test_asked_twice_the_second_changes_nothing(subject: Subject, run: Any, way: str) -> None:
    id = run(subject.remember(TEXT, type="episodic"))
    DONE[way](subject, run, id)
    undo(subject, run, id)
    before = run(subject.store.sequence(WHO.tenant))
    assert undo(subject, run, id, id) == ([], [id])
    assert run(subject.store.sequence(WHO.tenant)) == before


def test_joined_words_are_told_apart_while_nothing_was_done_to_them(subject: Subject, run: Any) -> None:
    flute = run(subject.remember("Bob plays the flute", expires_at=subject.clock() + DAY_MS, metadata={"k": 1}))
    violin, tuba = run(subject.remember(TEXT, metadata={"k": 2})), run(subject.remember("Carol plays the tuba"))
    run(subject.merge(flute, violin, tuba, strategy="merge_content"))
    assert run(subject.get(flute)).content.count("plays") == 3
    undo(subject, run, violin)
    now = run(subject.get(flute))
    assert (now.content, now.metadata, now.expires_at) == ("Bob plays the flute\nCarol plays the tuba", {"k": 1}, None)
    assert [run(subject.get(id)).id for id in (violin, tuba)] == [violin, flute]
    whole(subject, run)


def test_what_a_merge_lent_the_survivor_goes_back(subject: Subject, run: Any) -> None:
    """A time to go, above all: what was to be gone tomorrow is gone tomorrow."""
    soon = subject.clock() + DAY_MS
    kept = run(subject.remember("tea", expires_at=soon))
    lost = run(subject.remember("some tea"))
    run(subject.merge(kept, lost))
    assert run(subject.get(kept)).expires_at is None
    undo(subject, run, lost)
    assert run(subject.get(kept)).expires_at == soon


def test_words_joined_into_what_was_changed_since_are_a_conflict(subject: Subject, run: Any) -> None:
    flute, violin = run(subject.remember("Bob plays the flute")), run(subject.remember(TEXT))
    run(subject.merge(flute, violin, strategy="merge_content"))
    run(subject.update(flute, tags=["band"]))
    with pytest.raises(Conflict, match="was changed since"):
        undo(subject, run, violin)


def test_a_promotion_goes_with_all_its_sources(subject: Subject, run: Any) -> None:
    noted = {"short_term": True, "keep": True}
    one, other = (run(subject.remember(TEXT, type="episodic", metadata=noted)) for _ in range(2))
    subject.clock.advance(DAY_MS)
    assert run(subject.engine.lifecycle.run(WHO, "consolidate")).counts["promoted"] == 1
    (promoted,) = [m for m in run(subject.list()) if m.type == "semantic"]
    assert set(undo(subject, run, one)[0]) == {one, other}
    assert run(subject.gone(promoted.id))
    assert sorted(m.id for m in run(subject.recall("violin", min_score=0.0))) == sorted([one, other])
    assert run(subject.engine.lifecycle.run(WHO, "consolidate")).counts == {"promoted": 0, "archived": 0, "waiting": 0}
    whole(subject, run)


def test_a_promoted_memory_that_was_changed_is_its_authors(subject: Subject, run: Any) -> None:
    id = run(subject.remember(TEXT, type="episodic", metadata={"short_term": True, "keep": True}))
    subject.clock.advance(DAY_MS)
    run(subject.engine.lifecycle.run(WHO, "consolidate"))
    (made,) = [m for m in run(subject.list()) if m.type == "semantic"]
    run(subject.update(made.id, content="Alice plays the viola"))
    with pytest.raises(Conflict, match=f"{made.id}, which was changed since; forget that one first"):
        undo(subject, run, id)
    run(subject.forget(made.id))
    assert undo(subject, run, id) == ([id], [])


def test_what_became_part_of_something_erased_can_be_brought_back(subject: Subject, run: Any) -> None:
    kept, lost = run(subject.remember("tea")), run(subject.remember("some tea", aliases=["t"]))
    run(subject.merge(kept, lost))
    run(subject.forget(kept, hard_delete=True))
    assert undo(subject, run, lost) == ([lost], [])
    assert run(subject.get("t")).id == lost


def _erased(subject: Subject, run: Any) -> str:
    id = run(subject.remember(TEXT))
    run(subject.forget(id, hard_delete=True))
    return str(id)


def _over(subject: Subject, run: Any) -> str:
    id = run(subject.remember(TEXT, expires_at=subject.clock() + 1))
    subject.clock.advance(1)
    return str(id)


def _others(subject: Subject, run: Any) -> str:
    id = run(subject.remember(TEXT, agent="secret"))
    run(subject.forget(id, agent="secret"))
    return str(id)


def test_one_refusal_for_everything_that_is_not_ones_own(subject: Subject, run: Any) -> None:
    mine = Principal("m", agents=("agent",))
    said = set()
    for id in (_erased(subject, run), _over(subject, run), _others(subject, run), UNKNOWN, "nothing"):
        for more in ({}, {"agent_id": "agent"}):
            with pytest.raises(NotFound) as refused:
                undo(subject, run, id, who=mine, **more)
            said.add(refused.value.summary.replace(id, "ID"))
    assert len(said) == 1
    with pytest.raises(NotFound):
        undo(subject, run, _others(subject, run), who=replace(WHO, tenant="acme"))
    with pytest.raises(Forbidden, match="may not use agent"):
        undo(subject, run, UNKNOWN, who=mine, agent_id="secret")
    with pytest.raises(Forbidden, match="writer"):
        undo(subject, run, UNKNOWN, who=Principal("r", role="reader"))


def test_each_its_own_outcome(subject: Subject, run: Any) -> None:
    gone, there = run(subject.remember(TEXT)), run(subject.remember("Bob plays the flute"))
    run(subject.forget(gone))
    done = run(subject.engine.undo(WHO, [gone, there, UNKNOWN, f"mem_{gone}"]))
    assert (done.restored, done.unchanged, [f.code for f in done.faults.values()]) == ([gone], [there], ["not_found"])


@pytest.mark.parametrize("ids", [[], [UNKNOWN] * (MAX_UNDONE + 1)])
def test_it_needs_some_ids_and_not_too_many(subject: Subject, run: Any, ids: list[str]) -> None:
    with pytest.raises(ValidationError, match="ids must name"):
        run(subject.engine.undo(WHO, ids))


@pytest.mark.parametrize("action", ["reject", "review"])
@pytest.mark.parametrize("way", DONE)
def test_rules_are_asked_and_nothing_happens_against_them(subject: Subject, run: Any, way: str, action: str) -> None:
    id = run(subject.remember(TEXT, type="episodic"))
    DONE[way](subject, run, id)
    rule = {"name": "no music", "when": {"content": "violin"}, "action": action}
    run(subject.engine.policies.replace(WHO, [rule]))
    before = run(subject.store.sequence(WHO.tenant))
    with pytest.raises(Forbidden, match="no music"):
        undo(subject, run, id)
    assert run(subject.store.sequence(WHO.tenant)) == before


@pytest.mark.parametrize("way", DONE)
def test_a_rule_that_redacts_does(subject: Subject, run: Any, way: str) -> None:
    id = run(subject.remember(TEXT, type="episodic"))
    DONE[way](subject, run, id)
    rule = {"name": "instruments", "when": {"content": "violin"}, "action": "redact"}
    run(subject.engine.policies.replace(WHO, [rule]))
    undo(subject, run, id)
    assert run(subject.get(id)).content == "Alice plays the <REDACTED:instruments>"
    whole(subject, run)


def test_what_changes_meanwhile_is_looked_at_again(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    id = run(subject.remember(TEXT))
    run(subject.forget(id))
    make_entries = subject.engine._core.make_entries

    async def slowly(*args: Any) -> Any:
        monkeypatch.undo()
        await subject.engine.undo(WHO, [id])
        return await make_entries(*args)

    monkeypatch.setattr(subject.engine._core, "make_entries", slowly)
    with pytest.raises(Conflict, match="is there"):
        undo(subject, run, id)
    assert run(subject.get(id)).version == 3


def test_a_standing_policy_leaves_alone_what_was_brought_back(subject: Subject, run: Any) -> None:
    from commonplace.engine.lifecycle.expire_job import LEFT_ALONE_MS, ExpireJob
    from commonplace.engine.types import Expire

    core, engine = subject.engine._core, subject.engine
    for action, status, rank in (("archive", "archived", 1.0), ("demote", "live", DEMOTION)):
        id = run(subject.remember(f"{TEXT} {action}", type="episodic"))
        policy = Expire("*", type="episodic", action=action)  # type: ignore[arg-type]
        engine.lifecycle.use(ExpireJob(core, engine._recall_log, engine.runs, engine.reviews, [policy]))
        run(engine.lifecycle.run(WHO, "expire"))
        undo(subject, run, id)
        assert run(engine.lifecycle.run(WHO, "expire")).counts["by_policy"] == 0
        subject.clock.advance(LEFT_ALONE_MS + 1)
        assert run(engine.lifecycle.run(WHO, "expire")).counts["by_policy"] >= 1
        assert (run(subject.get(id)).status, run(subject.get(id)).demotion) == (status, rank)


def test_faults_are_ours(subject: Subject, run: Any) -> None:
    with pytest.raises(Fault):
        undo(subject, run, "\x00")


@pytest.mark.parametrize("spelled", [shorten_id, lambda id: id])
def test_a_short_id_names_what_is_brought_back(subject: Subject, run: Any, spelled: Callable[[str], str]) -> None:
    first, second, third = (run(subject.remember(text)) for text in ("one", "two", "three"))
    run(subject.forget(first))
    assert run(subject.engine.undo(WHO, [spelled(first)])).restored == [first]
    run(subject.forget(first))
    assert run(subject.engine.undelete(WHO, "agent", spelled(first))).id == first
    run(subject.merge(second, third))
    assert run(subject.engine.unmerge(WHO, "agent", spelled(third))).id == third
