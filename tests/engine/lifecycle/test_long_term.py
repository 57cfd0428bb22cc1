"""What consolidation made stays bounded: what nobody needed goes, then the least worth of what is too much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from crash import gone_after

from commonplace.config import LifecycleConfig
from commonplace.engine.lifecycle.consolidate_job import ConsolidateJob
from commonplace.engine.lifecycle.consolidator import COLD_MS, SETTLED_MS
from commonplace.engine.lifecycle.long_term import UNUSED_MS, choose_for_archive, worth
from commonplace.engine.types import Draft, Expire
from commonplace.testing.subject import START, WHO, Subject
from commonplace.wire.errors import Conflict
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

NOW = START + 365 * DAY_MS
ARCHIVE = Expire("agent", type="semantic", action="archive")


def promoted(id: str, unused_days: int = 0, **fields: Any) -> Memory:
    at = NOW - unused_days * DAY_MS
    given = {"kind": "promoted", "created_at": START, "updated_at": at, "confidence": 0.5, **fields}
    return Memory(id, "local", "agent", "semantic", f"statement {id}", **given)


def gone(*memories: Memory, capacity: int = 0, authors: dict[str, str] | None = None) -> list[str]:
    return [memory.id for memory, _ in choose_for_archive(memories, capacity, NOW, authors or {})]


@pytest.mark.parametrize(
    ("unused_days", "fields", "goes"),
    [
        (29, {}, False),
        (30, {}, True),
        (300, {"confidence": 0.74}, False),
        (30, {"confidence": 0.73}, True),
        (300, {"metadata": {"keep": True}}, False),
        (300, {"provenance": {"restored_at": 1}}, False),
        (300, {"last_recalled_at": NOW - 29 * DAY_MS}, False),
        (300, {"recalls": 1}, False),
        (300, {"recalls": 1, "confidence": 0.4}, True),
        (300, {"recalls": 2, "confidence": 0.4}, False),
        (300, {"provenance": {"chain": ["a", "b"]}}, False),
        (300, {"provenance": {"chain": ["a"]}}, True),
        (300, {"provenance": {"chain": ["a"], "merged": ["b"]}}, False),
    ],
)
def test_what_was_not_sure_and_nobody_needed_for_a_month_goes(
    unused_days: int, fields: dict[str, Any], goes: bool
) -> None:
    assert gone(promoted("1", unused_days, **fields)) == (["1"] if goes else [])


def test_of_what_is_too_much_the_least_worth_goes_first() -> None:
    recalled = promoted("recalled", 200, confidence=0.8, recalls=3)
    fresh = promoted("fresh", 0, confidence=0.8)
    old = promoted("old", 200, confidence=0.8)
    older = promoted("older", 300, confidence=0.8)
    kept = promoted("kept", 300, metadata={"keep": True})
    restored = promoted("restored", 300, provenance={"restored_at": 1})
    everything = (kept, recalled, old, fresh, older, restored)
    assert gone(*everything) == [], "0 is without limit"
    assert gone(*everything, capacity=4) == []
    assert gone(*everything, capacity=3) == ["older"]
    assert gone(*everything, capacity=2) == ["older", "old"]
    assert gone(*everything, capacity=1) == ["older", "old", "fresh"], "what is new is no more than what was needed"


def test_one_recall_does_not_keep_chatter_before_a_fact_that_nobody_has_asked_for_yet() -> None:
    chatter = promoted("chatter", 20, confidence=0.5, recalls=1)
    fact = promoted("fact", 20, confidence=0.95)
    assert gone(chatter, fact, capacity=1) == ["chatter"]


@pytest.mark.parametrize("recalls", [0, 1])
def test_whoever_has_most_loses_the_least_worth_of_theirs_first(recalls: int) -> None:
    alices = [promoted(f"a{i}", 200, confidence=0.75 + i / 100, recalls=recalls) for i in range(3)]
    bobs = [promoted(f"b{i}", 0, confidence=0.95 + i / 100, recalls=recalls) for i in range(6)]
    authors = {memory.id: name for name, theirs in (("alice", alices), ("bob", bobs)) for memory in theirs}
    everything = {"authors": authors}
    assert gone(*alices, *bobs, capacity=6, **everything) == ["b0", "b1", "b2"]
    # From as many each on they take turns: who has no more than others is protected from them, and not from all.
    assert gone(*alices, *bobs, capacity=3, **everything)[3:] == ["a0", "b3", "a1"]


def test_why_is_told_by_the_parts_of_the_score() -> None:
    ((_, unneeded),) = choose_for_archive([promoted("1", 40)], 0, NOW, {})
    assert unneeded == {
        "recency": 0.0, "salience": 0.0, "confidence": 0.5, "flag": 0.0, "total": 0.15, "unused_days": 40
    }  # fmt: skip
    two = [promoted("1", 90, confidence=0.8), promoted("2", 0, confidence=0.8)]
    ((_, over),) = choose_for_archive(two, 1, NOW, {})
    assert over == {**worth(two[0], NOW).parts(), "capacity": 1}
    assert (over["recency"], over["total"]) == (0.5, 0.39)


# as the job does it


def note(subject: Subject, run: Any, text: str, **fields: Any) -> str:
    metadata = {"short_term": True, **fields.pop("metadata", {})}
    id: str = run(subject.remember(text, **{"type": "episodic", "metadata": metadata, **fields}))
    return id


def consolidate(subject: Subject, run: Any, *, dry_run: bool = False) -> dict[str, int]:
    done: dict[str, int] = run(ConsolidateJob(subject.engine._core).run(WHO, dry_run=dry_run))
    return done


def live(subject: Subject, run: Any) -> list[str]:
    return sorted(memory.content for memory in run(subject.list()) if memory.status == "live")


@pytest.fixture
def small(subject: Subject) -> None:
    """Room for two memories with each person."""
    core = subject.engine._core
    core.settings = replace(core.settings, lifecycle=LifecycleConfig(capacity=2))


@pytest.mark.usefixtures("small")
def test_each_person_has_the_same_room_and_nobody_elses_goes_for_theirs(subject: Subject, run: Any) -> None:
    for user in ("alice", "bob", None):
        for i in range(4):
            note(subject, run, f"{user} says {i}", user_id=user, confidence=0.8 + i / 100)
    own = run(subject.remember("written as long-term memory", user_id="alice"))
    flagged = note(subject, run, "keep this", user_id="alice", metadata={"keep": True})
    subject.clock.advance(COLD_MS)
    assert consolidate(subject, run, dry_run=True)["promoted"] == 13
    assert consolidate(subject, run) == {"promoted": 13, "archived": 6, "waiting": 0}
    best = [f"{user} says {i}" for user in ("alice", "bob", None) for i in (2, 3)]
    assert live(subject, run) == sorted([*best, "keep this", "written as long-term memory"])
    assert consolidate(subject, run) == {"promoted": 0, "archived": 0, "waiting": 0}
    assert run(subject.get(own)).status == "live"
    assert run(subject.get(flagged)).merged_into is not None


def test_a_flood_costs_its_own_author(subject: Subject, run: Any) -> None:
    """What is new, sure and said four times is worth more by its score than all that is old."""
    core = subject.engine._core
    core.settings = replace(core.settings, lifecycle=LifecycleConfig(capacity=8))
    facts = [f"Customer {i} is allergic to compound{i}" for i in range(4)]
    for fact in facts:
        note(subject, run, fact, confidence=0.8)
    subject.clock.advance(COLD_MS)
    assert consolidate(subject, run)["promoted"] == 4
    subject.clock.advance(60 * DAY_MS)
    bob = Principal("bob", "local", "writer", ("agent",))
    noise = {"metadata": {"short_term": True}, "confidence": 1.0}
    for text in (*(f"noise item{i} alpha{i} beta{i}" for i in range(8)), facts[0]):
        for _ in range(4):
            run(subject.engine.remember(bob, Draft("agent", "episodic", text, **noise)))
    subject.clock.advance(SETTLED_MS)
    done = consolidate(subject, run)
    assert (done["promoted"], done["archived"]) == (9, 5)
    assert [text for text in facts if text not in live(subject, run)] == []


@pytest.mark.usefixtures("small")
def test_what_was_put_away_can_be_read_and_brought_back_and_stays(subject: Subject, run: Any) -> None:
    for i in range(3):
        note(subject, run, f"statement {i}", confidence=0.8 + i / 100)
    subject.clock.advance(COLD_MS)
    report = run(subject.engine.lifecycle.run(WHO, "consolidate"))
    shown = run(subject.engine.lifecycle.show(WHO, report.run_id))
    (action,) = [each for each in shown["actions"] if each["action"] == "archived"]
    assert (action["content"], action["why"]["capacity"]) == ("statement 0", 2)
    assert run(subject.get(action["id"])).status == "archived"
    run(subject.engine.undo(WHO, [action["id"]]))
    assert len(live(subject, run)) == 3
    note(subject, run, "statement 3", confidence=0.9)
    subject.clock.advance(COLD_MS)
    assert consolidate(subject, run)["archived"] == 1
    assert live(subject, run) == ["statement 0", "statement 2", "statement 3"]


@pytest.mark.usefixtures("small")
def test_a_run_that_was_killed_before_it_put_away_what_is_too_much_is_made_good(subject: Subject, run: Any) -> None:
    for i in range(4):
        note(subject, run, f"statement {i}", confidence=0.8 + i / 100)
    subject.clock.advance(COLD_MS)
    note(subject, run, "still being said")
    with gone_after(subject, 4):
        consolidate(subject, run)
    assert len(live(subject, run)) == 5
    assert consolidate(subject, run) == {"promoted": 0, "archived": 2, "waiting": 1}
    assert live(subject, run) == ["statement 2", "statement 3", "still being said"]


def test_what_was_promoted_for_a_mention_and_never_needed_goes_a_month_later(subject: Subject, run: Any) -> None:
    for day in ("Monday", "Tuesday"):
        note(subject, run, f"the old printer jammed again {day}", confidence=0.5, user_id="alice")
    sure = note(subject, run, "Alice's printer is a Brother", confidence=0.9, user_id="alice")
    subject.clock.advance(COLD_MS)
    assert consolidate(subject, run)["promoted"] == 3
    subject.clock.advance(UNUSED_MS)
    assert consolidate(subject, run)["archived"] == 0, "nothing was said, so it cannot become more"
    note(subject, run, "Alice bought paper", user_id="alice", metadata={"keep": True})
    subject.clock.advance(SETTLED_MS)
    assert consolidate(subject, run) == {"promoted": 1, "archived": 2, "waiting": 0}
    assert live(subject, run) == ["Alice bought paper", "Alice's printer is a Brother"]
    assert sure


def test_a_promotion_that_was_put_away_is_taken_back_by_its_source(subject: Subject, run: Any) -> None:
    first = note(subject, run, "the soup was cold today", confidence=0.5)
    note(subject, run, "the soup was cold today", confidence=0.6)
    subject.clock.advance(COLD_MS)
    assert consolidate(subject, run)["promoted"] == 2
    (source,) = run(subject.store.get("local", [first]))
    long_term = source.merged_into
    run(subject.engine.expire(WHO, ARCHIVE))
    assert run(subject.get(long_term)).status == "archived"
    assert run(subject.engine.undo(WHO, [first])).restored == [first]
    assert run(subject.get(first)).status == "live"
    assert run(subject.gone(long_term))


def test_a_promotion_that_someone_changed_is_still_theirs(subject: Subject, run: Any) -> None:
    first = note(subject, run, "Bob's train is at 7:42", metadata={"keep": True})
    subject.clock.advance(SETTLED_MS)
    consolidate(subject, run)
    (long_term,) = [m.id for m in run(subject.list()) if m.status == "live"]
    run(subject.update(long_term, content="Bob's train is at 8:05"))
    run(subject.engine.expire(WHO, ARCHIVE))
    with pytest.raises(Conflict, match="which was changed since"):
        run(subject.engine.undo(WHO, [first]))
