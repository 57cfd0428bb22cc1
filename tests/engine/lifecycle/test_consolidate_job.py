"""The job `consolidate`: what is worth it becomes long-term memory once, and nothing is said twice or lost."""

from __future__ import annotations

from typing import Any

import pytest
from crash import gone_after

from commonplace.engine.lifecycle import consolidate_job, long_term
from commonplace.engine.lifecycle.consolidate_job import ConsolidateJob
from commonplace.engine.lifecycle.consolidator import COLD_MS, SETTLED_MS, Plan, Score, ScoreConsolidator
from commonplace.engine.memory import expire
from commonplace.engine.types import Draft
from commonplace.testing.subject import START, WHO, Subject
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

TEXT = "Alice is allergic to peanuts"
NOTHING = {"promoted": 0, "archived": 0, "waiting": 0}


def note(subject: Subject, run: Any, text: str = TEXT, agent: str = "agent", **fields: Any) -> str:
    metadata = {"short_term": True, **fields.pop("metadata", {})}
    id: str = run(subject.remember(text, agent, **{"type": "episodic", "metadata": metadata, **fields}))
    return id


def consolidate(subject: Subject, run: Any, who: Principal = WHO, *, dry_run: bool = False) -> dict[str, int]:
    done: dict[str, int] = run(ConsolidateJob(subject.engine._core).run(who, dry_run=dry_run))
    return done


def live(subject: Subject, run: Any, agent: str = "agent") -> list[Memory]:
    return [memory for memory in run(subject.list(agent)) if memory.status == "live"]


def test_what_is_flagged_becomes_a_semantic_memory_that_names_its_sources(subject: Subject, run: Any) -> None:
    fields = {"user_id": "alice", "project": "x", "tags": ["food"], "confidence": 0.4, "session_id": "s1"}
    first = note(subject, run, metadata={"keep": True, "place": "kitchen"}, **fields)
    again = note(subject, run, "alice is allergic to peanuts!", metadata={"keep": True, "place": "kitchen"}, **fields)
    plain = run(subject.remember("no short-term memory", metadata={"keep": True}))
    assert consolidate(subject, run) == {**NOTHING, "waiting": 2}, "the conversation may still go on"
    subject.clock.advance(SETTLED_MS)
    assert consolidate(subject, run, dry_run=True) == {**NOTHING, "promoted": 1}
    assert consolidate(subject, run) == {**NOTHING, "promoted": 1}
    (promoted,) = [memory for memory in live(subject, run) if memory.id != plain]
    assert (promoted.type, promoted.content, promoted.metadata) == (
        "semantic",
        TEXT,
        {"keep": True, "place": "kitchen"},
    )
    assert {name: getattr(promoted, name) for name in fields} == fields
    assert promoted.provenance["chain"] == [first, again]
    assert set(promoted.provenance["score"]) == {"recency", "salience", "confidence", "flag", "total"}
    assert [run(subject.get(id)).status for id in (first, again)] == ["archived"] * 2
    assert next(memory.id for memory in run(subject.recall("peanuts", min_score=0.0))) == promoted.id
    assert consolidate(subject, run) == NOTHING
    operations = [entry.operation for entry in run(subject.engine.ledger.entries(WHO))]
    assert operations.count("consolidate") == 1
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_whoever_erases_a_source_hears_of_what_became_of_it(subject: Subject, run: Any) -> None:
    id = note(subject, run, metadata={"keep": True})
    subject.clock.advance(SETTLED_MS)
    consolidate(subject, run)
    (promoted,) = live(subject, run)
    assert run(subject.forget(id, hard_delete=True)).descendants == [promoted.id]
    other = note(subject, run, "Bob keeps bees", metadata={"keep": True})
    subject.clock.advance(SETTLED_MS)
    consolidate(subject, run)
    run(subject.forget(other, hard_delete=True, cascade=True))
    assert [memory.id for memory in live(subject, run)] == [promoted.id]


def test_a_promotion_is_taken_back_and_stays_so(subject: Subject, run: Any) -> None:
    id = note(subject, run, metadata={"keep": True})
    subject.clock.advance(SETTLED_MS)
    consolidate(subject, run)
    assert run(subject.engine.unmerge(WHO, "agent", id)).status == "live"
    assert consolidate(subject, run) == NOTHING


def test_promises_bind_what_is_promoted(subject: Subject, run: Any) -> None:
    note(subject, run, metadata={"keep": True}, privacy={"retain": 30})
    subject.clock.advance(SETTLED_MS)
    consolidate(subject, run)
    (promoted,) = live(subject, run)
    assert (promoted.privacy, promoted.expires_at) == ({"retain": 30}, START + 30 * DAY_MS)


def test_what_is_recalled_is_promoted_and_what_went_cold_is_archived(subject: Subject, run: Any) -> None:
    asked = note(subject, run, user_id="alice")
    cold = note(subject, run, "the weather is mild", user_id="bob", confidence=0.5)
    subject.clock.advance(SETTLED_MS)
    assert consolidate(subject, run) == {**NOTHING, "waiting": 2}
    for _ in range(3):
        run(subject.recall("peanuts", k=1, min_score=0.0))
    run(subject.engine.flush())
    assert consolidate(subject, run) == {**NOTHING, "promoted": 1, "waiting": 1}
    subject.clock.advance(COLD_MS)
    assert consolidate(subject, run) == {**NOTHING, "archived": 1}
    assert [run(subject.get(id)).status for id in (asked, cold)] == ["archived"] * 2
    assert [memory.content for memory in live(subject, run)] == [TEXT]
    assert run(subject.engine.undelete(WHO, "agent", cold)).status == "live"


def test_who_may_use_one_agent_moves_nothing_of_another(subject: Subject, run: Any) -> None:
    for agent in "ab":
        note(subject, run, agent=agent, metadata={"keep": True})
    subject.clock.advance(SETTLED_MS)
    assert consolidate(subject, run, Principal("x", agents=("a",)))["promoted"] == 1
    assert [memory.type for memory in live(subject, run, "b")] == ["episodic"]


def test_a_crash_in_the_middle_leaves_each_thing_said_once(subject: Subject, run: Any) -> None:
    for i in range(3):
        note(subject, run, f"statement {i}", metadata={"keep": True})
    subject.clock.advance(SETTLED_MS)
    with gone_after(subject, 2):
        consolidate(subject, run)
    assert sorted(memory.content for memory in live(subject, run)) == [f"statement {i}" for i in range(3)]
    assert consolidate(subject, run)["promoted"] == 1
    assert sorted(memory.content for memory in live(subject, run)) == [f"statement {i}" for i in range(3)]
    assert {memory.type for memory in live(subject, run)} == {"semantic"}


def test_another_consolidator_can_decide(subject: Subject, run: Any) -> None:
    class Everything:
        def plan(self, window: Any, now: int) -> Plan:
            return Plan([([memory], Score(1, 1, 1, 1)) for memory in window])

    note(subject, run)
    subject.engine.lifecycle.use(ConsolidateJob(subject.engine._core, Everything()))
    assert run(subject.engine.lifecycle.run(WHO, "consolidate")).counts["promoted"] == 1


@pytest.mark.parametrize("action", ["review", "reject"])
def test_what_a_rule_holds_back_is_neither_promoted_nor_put_away(subject: Subject, run: Any, action: str) -> None:
    note(subject, run, metadata={"keep": True})
    cold = note(subject, run, "Bob may have moved", confidence=0.1)
    rules = [
        {"name": "long-term", "when": {"type": ["semantic"], "operation": ["remember"]}, "action": action},
        {"name": "stays", "when": {"operation": ["forget"]}, "action": action},
    ]
    run(subject.engine.policies.replace(WHO, rules))
    subject.clock.advance(COLD_MS)
    assert consolidate(subject, run) == {"promoted": 0, "archived": 0, "waiting": 2}
    assert {(m.type, m.status) for m in run(subject.list("agent"))} == {("episodic", "live")}
    run(subject.engine.policies.replace(WHO, []))
    assert consolidate(subject, run) == {"promoted": 1, "archived": 1, "waiting": 0}
    assert cold


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_rule_about_the_job_itself_holds_for_it(subject: Subject, run: Any, dry_run: bool) -> None:
    note(subject, run, metadata={"keep": True})
    when = {"principal": ["lifecycle"], "operation": ["remember"]}
    run(subject.engine.policies.replace(WHO, [{"name": "by itself", "when": when, "action": "review"}]))
    subject.clock.advance(SETTLED_MS)
    itself = Principal("lifecycle")
    assert consolidate(subject, run, itself, dry_run=dry_run) == {**NOTHING, "waiting": 1}
    run(subject.engine.policies.replace(WHO, []))
    assert consolidate(subject, run, itself, dry_run=dry_run) == {**NOTHING, "promoted": 1}


def test_what_a_rule_redacts_is_redacted_when_it_becomes_long_term(subject: Subject, run: Any) -> None:
    note(subject, run, metadata={"keep": True})
    when = {"content": "peanuts", "type": ["semantic"], "operation": ["remember"]}
    run(subject.engine.policies.replace(WHO, [{"name": "food", "when": when, "action": "redact"}]))
    subject.clock.advance(SETTLED_MS)
    assert consolidate(subject, run)["promoted"] == 1
    (promoted,) = live(subject, run)
    assert promoted.content == "Alice is allergic to <REDACTED:food>"


def test_what_is_sure_is_never_put_away_for_want_of_a_question(subject: Subject, run: Any) -> None:
    sure = note(subject, run, "Bob's train leaves at 7:42", confidence=0.8)
    unsure = note(subject, run, "the soup was cold", confidence=0.5)
    subject.clock.advance(COLD_MS - 1)
    assert consolidate(subject, run) == {**NOTHING, "waiting": 2}
    subject.clock.advance(1)
    assert consolidate(subject, run) == {**NOTHING, "promoted": 1, "archived": 1}
    assert [memory.content for memory in live(subject, run)] == ["Bob's train leaves at 7:42"]
    assert [run(subject.get(id)).status for id in (sure, unsure)] == ["archived"] * 2


def test_a_window_of_thousands_is_planned_in_parts(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidate_job, "WINDOW", 2)
    for i in range(5):
        note(subject, run, f"statement {i}", metadata={"keep": True})
    subject.clock.advance(SETTLED_MS)
    assert consolidate(subject, run) == {**NOTHING, "promoted": 5}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_rule_about_who_writes_holds_for_whose_words_are_promoted(subject: Subject, run: Any, dry_run: bool) -> None:
    rule = {"name": "guests", "when": {"principal": ["guest"], "type": ["semantic"]}, "action": "review"}
    run(subject.engine.policies.replace(WHO, [rule]))
    draft = Draft("agent", "episodic", TEXT, metadata={"short_term": True, "keep": True})
    for who in (Principal("guest"), WHO):
        run(subject.engine.remember(who, draft))
    subject.clock.advance(SETTLED_MS)
    assert consolidate(subject, run, dry_run=dry_run) == {**NOTHING, "waiting": 2}
    run(subject.engine.policies.replace(WHO, []))
    assert consolidate(subject, run, dry_run=dry_run) == {**NOTHING, "promoted": 1}


def test_it_gives_way_before_each_step(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recall meanwhile meets one of them at most: the plan, each promotion, each chunk that is archived, the look at
    long-term memory."""
    core, steps = subject.engine._core, list[str]()
    plan, choose = ScoreConsolidator.plan, long_term.choose_for_archive

    async def give_way() -> None:
        steps.append("give way")

    def planned(self: ScoreConsolidator, window: Any, now: int) -> Plan:
        steps.append("plan")
        return plan(self, window, now)

    def written(tx: Any, *args: Any, **fields: Any) -> Any:
        steps.append("promote")
        return write(tx, *args, **fields)

    def chosen(*args: Any) -> Any:
        steps.append("choose")
        return choose(*args)

    def archived(*args: Any) -> Any:
        steps.append("archive")
        return archive(*args)

    write, archive = consolidate_job.write, expire.apply_expire
    monkeypatch.setattr(expire, "apply_expire", archived)
    monkeypatch.setattr(consolidate_job, "_CHUNK", 2)
    monkeypatch.setattr(core.recall_priority, "give_way", give_way)
    monkeypatch.setattr(ScoreConsolidator, "plan", planned)
    monkeypatch.setattr(consolidate_job, "write", written)
    monkeypatch.setattr(long_term, "choose_for_archive", chosen)
    for text in (TEXT, "Bob keeps bees"):
        note(subject, run, text, metadata={"keep": True})
    for text in ("it rains", "it snows", "it hails"):
        note(subject, run, text, confidence=0.1)
    subject.clock.advance(COLD_MS)
    done = consolidate(subject, run)
    assert (done["promoted"], done["archived"]) == (2, 3)
    taken = ("plan", "promote", "promote", "archive", "archive", "choose")
    assert steps == [each for step in taken for each in ("give way", step)]
