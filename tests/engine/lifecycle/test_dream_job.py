"""The job `dream`: what lies twice is made one, what faded is put away, and no statement is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from crash import gone_after

from commonplace.engine.lifecycle import dream_job
from commonplace.engine.lifecycle.dream_job import BUDGET_MS, IDLE_MS, DreamJob, is_duplicate
from commonplace.engine.types import Draft
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

TEXT = "The gateway validates tokens"
NOTHING = {"merged": 0, "decayed": 0, "pruned": 0}


@pytest.fixture(autouse=True)
def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors made by hashing words are no judges of meaning: whatever shares most of its words is near."""
    monkeypatch.setattr(dream_job, "ALIKE", 0.5)


def put(subject: Subject, run: Any, text: str = TEXT, agent: str = "agent", **fields: Any) -> str:
    id: str = run(subject.remember(text, agent, **{"kind": "drawer", **fields}))
    return id


def dream(subject: Subject, run: Any, who: Principal = WHO, *, dry_run: bool = False, asked: bool = True) -> Any:
    return run(DreamJob(subject.engine._core).run(who, dry_run=dry_run, asked=asked))


def live(subject: Subject, run: Any, agent: str = "agent") -> list[str]:
    return sorted(m.id for m in run(subject.list(agent)) if m.status == "live")


def test_what_lies_twice_is_made_one(subject: Subject, run: Any) -> None:
    first, second = put(subject, run), put(subject, run, "the gateway validates tokens.")
    third = put(subject, run, "A gateway validates the tokens")
    other = put(subject, run, "The gateway logs requests")
    assert dream(subject, run, dry_run=True)["merged"] == 2
    assert live(subject, run) == sorted([first, second, third, other])
    assert dream(subject, run) == {**NOTHING, "merged": 2}
    assert live(subject, run) == sorted([first, other])
    assert run(subject.get(second)).id == first
    assert len(run(subject.store.history("local", second))) == 2, "kept in history"
    assert run(subject.engine.ledger.entries(WHO))[-1].operation == "merge"
    assert dream(subject, run) == NOTHING
    assert run(subject.engine.unmerge(WHO, "agent", second)).content == "the gateway validates tokens."
    assert dream(subject, run) == NOTHING, "what was taken apart by hand stays so"
    later = put(subject, run)
    assert dream(subject, run)["merged"] == 1, "what is new is compared with all that is there"
    assert later not in live(subject, run)


def test_the_more_important_one_stays_then_the_older(subject: Subject, run: Any) -> None:
    old, valued = put(subject, run), put(subject, run, importance=0.9)
    subject.clock.advance(1000)
    newest = put(subject, run)
    dream(subject, run)
    assert live(subject, run) == [valued]
    assert {run(subject.get(id)).id for id in (old, newest)} == {valued}


@pytest.mark.parametrize(
    "other",
    [
        "The gateway does not validate tokens", "The gateway validates no tokens", "The gateway validated tokens",
        "Tokens validate the gateway", "The gateway validates 3 tokens", "The gateway validates tokens?",
        "The gateway validates -tokens", "The gateways validates tokens", "The backend validates tokens",
    ],
)  # fmt: skip
def test_what_may_be_the_opposite_is_left_alone(subject: Subject, run: Any, other: str) -> None:
    put(subject, run), put(subject, run, other)
    assert dream(subject, run) == NOTHING
    assert len(live(subject, run)) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"user_id": "alice"}, {"project": "x"}, {"type": "episodic"}, {"tags": ["a"]},
        {"metadata": {"room": "Backend"}}, {"privacy": {"share_with": ["*"]}}, {"privacy": {"retain": 9}},
        {"expires_at": 2**52}, {"kind": "lesson"},
        {"speaker": "bob"}, {"event_time": 5},
    ],
)  # fmt: skip
def test_what_is_said_of_another_or_under_another_promise_is_left_alone(
    subject: Subject, run: Any, fields: dict[str, Any]
) -> None:
    put(subject, run), put(subject, run, **fields)
    assert dream(subject, run)["merged"] == 0
    assert len(live(subject, run)) == 2


def test_palaces_are_dreamt_of_one_by_one_and_only_when_idle(subject: Subject, run: Any) -> None:
    for agent in "ab":
        put(subject, run, agent=agent), put(subject, run, agent=agent)
    subject.clock.advance(IDLE_MS - 1)
    assert dream(subject, run, asked=False) == NOTHING
    put(subject, run, "something new", "b")
    subject.clock.advance(1)
    assert dream(subject, run, asked=False)["merged"] == 1
    assert (len(live(subject, run, "a")), len(live(subject, run, "b"))) == (1, 3)
    mine = Principal("x", agents=("a",))
    assert dream(subject, run, mine) == NOTHING
    assert dream(subject, run)["merged"] == 1


def test_only_what_has_faded_away_is_put_away(subject: Subject, run: Any) -> None:
    faded, kept = put(subject, run, "faded"), put(subject, run, "kept", metadata={"keep": True})
    valued, lesson = put(subject, run, "valued", importance=1.0), put(subject, run, "a lesson", kind="lesson")
    faint = put(subject, run, "hardly anything", importance=0.01)
    subject.clock.advance(30 * DAY_MS)
    assert dream(subject, run) == {**NOTHING, "decayed": 4}
    subject.clock.advance(1)
    assert dream(subject, run)["pruned"] == 1
    subject.clock.advance(270 * DAY_MS)
    assert dream(subject, run, dry_run=True)["pruned"] == 1
    assert dream(subject, run)["pruned"] == 1
    assert live(subject, run) == sorted([kept, valued, lesson])
    assert (run(subject.get(faded)).status, run(subject.get(faint)).status) == ("archived", "archived")
    assert dream(subject, run)["pruned"] == 0
    assert run(subject.engine.undelete(WHO, "agent", faded)).status == "live"
    assert dream(subject, run)["pruned"] == 0, "what was brought back stays for a while"


def test_it_gives_way_before_each_look_for_what_has_faded(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(3):
        put(subject, run, f"statement number {i}", importance=0.0)
    dream(subject, run)
    subject.clock.advance(31 * DAY_MS)
    dream(subject, run, dry_run=True)
    steps = list[str]()
    scan = subject.store.scan

    async def give_way() -> None:
        steps.append("give way")

    async def looked(reach: Any, **options: Any) -> Any:
        steps.append("look")
        return await scan(reach, **options)

    monkeypatch.setattr(dream_job, "_CHUNK", 2)
    monkeypatch.setattr(subject.engine._core.recall_priority, "give_way", give_way)
    monkeypatch.setattr(subject.store, "scan", looked)
    assert dream(subject, run)["pruned"] == 3
    assert steps[-4:] == ["give way", "look", "give way", "look"], "after what is new was compared"


def slow_passes(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Four comparisons use up the time of a pass; what was compared."""
    alike, seen = DreamJob._alike, list[str]()

    async def slowly(self: DreamJob, who: Principal, memory: Memory) -> Any:
        seen.append(memory.id)
        subject.clock.advance(BUDGET_MS // 4)
        return await alike(self, who, memory)

    monkeypatch.setattr(DreamJob, "_alike", slowly)
    return seen


def test_a_pass_keeps_its_budget_and_the_next_goes_on(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dream_job, "_PAGE", 4)
    for i in range(10):
        put(subject, run, f"statement number {i} of many")
        subject.clock.advance(1)
    put(subject, run, "Statement number 3 of many")
    seen = slow_passes(subject, monkeypatch)
    assert dream(subject, run)["merged"] == 1
    assert len(seen) == 4
    for _ in range(3):
        dream(subject, run)
    assert len(set(seen)) == 10
    assert len(live(subject, run)) == 10


def test_what_came_in_one_batch_is_gone_through_from_pass_to_pass(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at one instant, so that only their ids tell which were looked at."""
    drafts = [Draft("agent", "semantic", f"statement number {i} of many", kind="drawer") for i in range(10)]
    run(subject.remember_all(drafts))
    seen = slow_passes(subject, monkeypatch)
    for _ in range(3):
        dream(subject, run)
    assert len(seen) == len(set(seen)) == 10


def test_what_is_written_or_changed_while_a_round_goes_on_is_the_next_ones(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [put(subject, run, f"statement number {i} of many") for i in range(8)]
    seen = slow_passes(subject, monkeypatch)
    dream(subject, run)
    run(subject.update(ids[0], content="statement number 5 of many"))
    old = put(subject, run, "an older one", importance=0.2)
    assert len(seen) == 4
    for _ in range(3):
        dream(subject, run)
    assert {*ids, old} == set(seen)
    assert len(live(subject, run)) == 8, "what it was changed to lay there already"


def test_what_was_gone_through_is_not_looked_at_again(subject: Subject, run: Any) -> None:
    put(subject, run), put(subject, run, "The gateway logs requests")
    subject.clock.advance(1)
    dream(subject, run)
    before = run(subject.engine.ledger.entries(WHO)), run(subject.store.record("local", dream_job.DREAM, "agent"))
    subject.clock.advance(1000)
    assert dream(subject, run) == NOTHING
    after = run(subject.engine.ledger.entries(WHO)), run(subject.store.record("local", dream_job.DREAM, "agent"))
    assert after == before


def test_looking_for_what_has_faded_keeps_the_budget_too(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    valued = [put(subject, run, f"statement number {i}", importance=0.9) for i in range(4)]
    for i in range(4, 10):
        put(subject, run, f"statement number {i}", importance=0.0)
    dream(subject, run)
    subject.clock.advance(31 * DAY_MS)
    dream(subject, run, dry_run=True)
    monkeypatch.setattr(dream_job, "_CHUNK", 4)
    scan, reach = subject.store.scan, []

    async def slowly(found: Any, **options: Any) -> Any:
        reach.append(found)
        subject.clock.advance(BUDGET_MS // 2)
        return await scan(found, **options)

    monkeypatch.setattr(subject.store, "scan", slowly)
    assert dream(subject, run)["pruned"] == 0, "one look for what is new, one at the first that may have faded"
    assert dream(subject, run)["pruned"] == 4, "and on from there"
    assert dream(subject, run)["pruned"] == 2
    assert live(subject, run) == sorted(valued)


def test_the_surer_and_what_was_asked_to_be_kept_stay(subject: Subject, run: Any) -> None:
    ids = []
    for confidence, keep in ((0.5, False), (0.9, False), (0.4, True)):
        metadata = {"keep": True} if keep else {}
        ids.append(put(subject, run, kind="promoted", confidence=confidence, metadata=metadata))
        subject.clock.advance(1)
    assert dream(subject, run)["merged"] == 2
    assert live(subject, run) == [ids[2]]
    first, second = (put(subject, run, "Bob keeps bees", kind="promoted", confidence=c) for c in (0.5, 0.9))
    dream(subject, run)
    assert (first in live(subject, run), second in live(subject, run)) == (False, True)


def test_a_crash_in_the_middle_is_made_good_by_the_next_run(subject: Subject, run: Any) -> None:
    for i in range(3):
        put(subject, run, f"statement {i}"), put(subject, run, f"Statement {i}.")
    with gone_after(subject, 2):
        dream(subject, run)
    assert len(live(subject, run)) == 4
    assert dream(subject, run)["merged"] == 1
    assert len(live(subject, run)) == 3
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_without_vectors_nothing_is_taken_for_the_same(subject: Subject, run: Any) -> None:
    put(subject, run), put(subject, run)
    subject.engine._core.embedding = None
    assert dream(subject, run) == NOTHING


def test_the_same_words_in_the_same_order_are_the_same() -> None:
    one = Memory("1", "local", "agent", "semantic", TEXT)
    assert is_duplicate(one, replace(one, id="2", content="the Gateway, validates tokens!"))
    assert not is_duplicate(one, replace(one, id="2", content=f"{TEXT} twice"))


@pytest.mark.parametrize("action", ["review", "reject"])
def test_what_a_rule_holds_back_is_neither_merged_nor_put_away(subject: Subject, run: Any, action: str) -> None:
    held = [put(subject, run), put(subject, run, f"{TEXT}!")]
    faded = put(subject, run, "Bob likes tea", importance=0.0)
    others = [put(subject, run, "It is raining"), put(subject, run, "It is raining.")]
    when = {"content": "gateway|tea", "operation": ["merge", "forget"]}
    run(subject.engine.policies.replace(WHO, [{"name": "held", "when": when, "action": action}]))
    subject.clock.advance(31 * DAY_MS)
    assert dream(subject, run)["merged"] == 1, "a rule about two drawers stops no others"
    assert {*held, faded} <= {*live(subject, run)}
    assert len(live(subject, run)) == 4
    assert others


def test_what_consolidation_made_again_and_again_is_made_one(subject: Subject, run: Any) -> None:
    for day in range(3):
        noted = {"short_term": True, "keep": True, "session_id": f"s{day}"}
        run(subject.remember("Alice lives in Lisbon", type="episodic", metadata=noted, session_id=f"s{day}"))
        subject.clock.advance(DAY_MS)
        run(subject.engine.lifecycle.run(WHO, "consolidate"))
    assert len(live(subject, run)) == 3
    assert dream(subject, run)["merged"] == 2
    assert len(live(subject, run)) == 1
    run(subject.remember("Alice lives in Lisbon", kind="drawer"))
    assert dream(subject, run)["merged"] == 0, "a drawer is its author's"


def test_what_says_the_same_in_another_spelling_is_made_one(subject: Subject, run: Any) -> None:
    put(subject, run, "Alice does not have 2 old grey cats"), put(subject, run, "Alice does not have two old grey cats")
    assert dream(subject, run)["merged"] == 1
