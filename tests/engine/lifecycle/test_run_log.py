"""What runs did and why can be seen by whoever may see the memories, and taken back as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from crash import gone_after

from commonplace.engine.lifecycle.consolidate_job import ConsolidateJob
from commonplace.engine.lifecycle.consolidator import COLD_MS, SETTLED_MS
from commonplace.engine.lifecycle.dream_job import PRUNED_AFTER_MS
from commonplace.engine.lifecycle.run_log import MAX_RUNS, SHOWN_ACTIONS, RunLog, new_log
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS

UNKNOWN = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"
KEEP = {"short_term": True, "keep": True}


def note(subject: Subject, run: Any, text: str, agent: str = "agent", keep: bool = True, **fields: Any) -> str:
    metadata = KEEP if keep else {"short_term": True}
    id: str = run(subject.remember(text, agent, type="episodic", metadata=metadata, **fields))
    return id


def drawer(subject: Subject, run: Any, text: str, **fields: Any) -> str:
    id: str = run(subject.remember(text, kind="drawer", **fields))
    return id


def perform(subject: Subject, run: Any, job: str, who: Principal = WHO, **more: Any) -> Any:
    report = run(subject.engine.lifecycle.run(who, job, **more))
    assert report.error is None
    return report


def live(subject: Subject, run: Any) -> list[str]:
    return sorted(memory.id for memory in run(subject.list(archived=False)))


def test_consolidation_says_what_it_did_and_why(subject: Subject, run: Any) -> None:
    one, again = note(subject, run, "Alice likes tea"), note(subject, run, "alice likes tea!")
    cold = note(subject, run, "the weather is mild", keep=False, confidence=0.1)
    subject.clock.advance(COLD_MS)
    report = perform(subject, run, "consolidate")
    (seen,) = run(subject.engine.lifecycle.runs(WHO))
    assert (seen["id"], seen["job"], seen["by"], seen["at"]) == (report.run_id, "consolidate", "local", report.at)
    assert (seen["counts"], seen["error"], seen["undone_at"]) == (report.counts, None, None)
    promoted, archived = seen["actions"]
    assert (promoted["action"], promoted["id"], promoted["sources"]) == ("promoted", one, [one, again])
    assert run(subject.get(promoted["into"])).content == "Alice likes tea" == promoted["content"]
    assert set(promoted["why"]) == {"recency", "salience", "confidence", "flag", "total"}
    assert promoted["why"]["flag"] == 1.0
    assert (archived["action"], archived["id"], archived["content"]) == ("archived", cold, "the weather is mild")
    assert archived["why"]["confidence"] == 0.1
    assert run(subject.engine.lifecycle.show(WHO, seen["id"])) == seen
    (listed,) = run(subject.engine.lifecycle.summaries(WHO))
    assert (listed["done"], listed["content"]) == ({"promoted": 1, "archived": 1}, "Alice likes tea")
    assert {name: listed[name] for name in ("id", "job", "at", "counts")} == {
        name: seen[name] for name in ("id", "job", "at", "counts")
    }
    assert run(subject.engine.lifecycle.summaries(Principal("bob", role="reader", agents=("other",)))) == []


def test_the_dreamer_says_what_it_did_and_why(subject: Subject, run: Any) -> None:
    kept, lost = drawer(subject, run, "Gateway validates tokens"), drawer(subject, run, "gateway validates tokens!")
    faded = drawer(subject, run, "a note nobody needs", importance=0.01)
    subject.clock.advance(PRUNED_AFTER_MS + 1)
    perform(subject, run, "dream")
    (seen,) = run(subject.engine.lifecycle.runs(WHO))
    merged, archived = seen["actions"]
    assert (merged["action"], merged["id"], merged["into"]) == ("merged", lost, kept)
    assert merged["why"]["cosine"] >= 0.95
    assert merged["content"] == "Gateway validates tokens", "of what is gone, what it became part of"
    assert (archived["action"], archived["id"]) == ("archived", faded)
    assert archived["why"]["importance"] < archived["why"]["below"]


def test_a_run_is_taken_back_as_a_whole_and_stays_so(subject: Subject, run: Any) -> None:
    note(subject, run, "Alice likes tea")
    note(subject, run, "alice likes tea!")
    note(subject, run, "the weather is mild", keep=False, confidence=0.1)
    for text in ("gateway validates tokens!", "Gateway validates tokens", "gateway validates tokens."):
        drawer(subject, run, text)
    subject.clock.advance(COLD_MS)
    before = live(subject, run)
    for job in ("consolidate", "dream"):
        at = live(subject, run)
        report = perform(subject, run, job)
        assert live(subject, run) != at
        done = run(subject.engine.lifecycle.undo(WHO, report.run_id, reason="not what I meant"))
        assert (live(subject, run), done.faults) == (at, {})
        assert run(subject.engine.lifecycle.show(WHO, report.run_id))["undone_by"] == "local"
        again = run(subject.engine.lifecycle.undo(WHO, report.run_id))
        assert (again.restored, set(again.unchanged) <= set(before)) == ([], True)
        assert perform(subject, run, job).run_id is None, "what was taken back is left alone"
    assert live(subject, run) == before
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_what_was_changed_since_is_left_and_named(subject: Subject, run: Any) -> None:
    one, other = (note(subject, run, text, keep=False, confidence=0.1) for text in ("mild weather", "a long queue"))
    subject.clock.advance(COLD_MS)
    report = perform(subject, run, "consolidate")
    run(subject.forget(one))
    done = run(subject.engine.lifecycle.undo(WHO, report.run_id))
    assert (done.restored, list(done.faults)) == ([other], [one])
    assert isinstance(done.faults[one], Conflict)
    assert run(subject.gone(one))


def test_one_memory_of_a_run_is_taken_back_by_itself(subject: Subject, run: Any) -> None:
    one, other = (note(subject, run, text, keep=False, confidence=0.1) for text in ("mild weather", "a long queue"))
    subject.clock.advance(COLD_MS)
    run_id = perform(subject, run, "consolidate").run_id
    done = run(subject.engine.lifecycle.undo(WHO, run_id, memory_id=one))
    assert (done.restored, live(subject, run)) == ([one], [one])
    assert run(subject.engine.lifecycle.show(WHO, run_id))["undone_at"] is None, "not all of it is"
    with pytest.raises(NotFound, match="did nothing to a memory"):
        run(subject.engine.lifecycle.undo(WHO, run_id, memory_id=UNKNOWN))
    run(subject.forget(one))
    with pytest.raises(Conflict, match="was changed since"):
        run(subject.engine.lifecycle.undo(WHO, run_id, memory_id=one))
    assert run(subject.engine.lifecycle.undo(WHO, run_id)).restored == [other]


def test_rules_hold_for_what_is_taken_back(subject: Subject, run: Any) -> None:
    note(subject, run, "the weather is mild", keep=False, confidence=0.1)
    subject.clock.advance(COLD_MS)
    report = perform(subject, run, "consolidate")
    run(subject.engine.policies.replace(WHO, [{"name": "r", "when": {"content": "weather"}, "action": "reject"}]))
    with pytest.raises(Forbidden, match="'r'"):
        run(subject.engine.lifecycle.undo(WHO, report.run_id))
    assert live(subject, run) == []


def test_one_refusal_for_what_is_not_ones_own(subject: Subject, run: Any) -> None:
    for agent in "ab":
        note(subject, run, "the weather is mild", agent, keep=False, confidence=0.1)
    subject.clock.advance(COLD_MS)
    report = perform(subject, run, "consolidate")
    mine = Principal("m", agents=("a",))
    (seen,) = run(subject.engine.lifecycle.runs(mine))
    assert ([each["agent_id"] for each in seen["actions"]], seen["counts"]) == (["a"], {})
    stranger = Principal("s", agents=("c",))
    assert run(subject.engine.lifecycle.runs(stranger)) == []
    said = set()
    for who, id in ((stranger, report.run_id), (replace(WHO, tenant="t"), report.run_id), (WHO, UNKNOWN), (WHO, "x")):
        for call in (subject.engine.lifecycle.show, subject.engine.lifecycle.undo):
            with pytest.raises(NotFound) as refused:
                run(call(who, id))
            said.add(refused.value.summary.replace(id, "ID"))
    assert len(said) == 1
    with pytest.raises(Forbidden):
        run(subject.engine.lifecycle.undo(Principal("r", role="reader"), report.run_id))
    done = run(subject.engine.lifecycle.undo(mine, report.run_id))
    assert [run(subject.get(id, "a")).status for id in done.restored] == ["live"]
    assert [memory.status for memory in run(subject.list("b"))] == ["archived"]


def test_what_is_withheld_is_not_shown_here_either(subject: Subject, run: Any) -> None:
    note(subject, run, "the weather is mild", keep=False, confidence=0.1)
    subject.clock.advance(COLD_MS)
    perform(subject, run, "consolidate")
    rule = {"name": "r", "when": {"content": "weather", "operation": ["recall"]}, "action": "reject"}
    run(subject.engine.policies.replace(WHO, [rule]))
    assert run(subject.engine.lifecycle.runs(WHO)) == []


def test_undoing_one_of_a_promotion_does_not_name_its_withheld_siblings(subject: Subject, run: Any) -> None:
    bob = Principal("bob")
    rule = {"name": "r", "when": {"content": "tea!", "operation": ["recall"], "principal": ["bob"]}, "action": "reject"}
    told, kept = note(subject, run, "Alice likes tea"), note(subject, run, "alice likes tea!")
    subject.clock.advance(COLD_MS)
    perform(subject, run, "consolidate")
    (action,) = [a for seen in run(subject.engine.lifecycle.runs(WHO)) for a in seen["actions"] if a.get("sources")]
    assert {told, kept} == set(action["sources"])
    run(subject.engine.policies.replace(WHO, [rule]))
    assert run(subject.engine.lifecycle.runs(bob)) == []
    assert run(subject.engine.undo(bob, [told])).restored == [told]


def test_what_is_erased_is_noted_nowhere(subject: Subject, run: Any) -> None:
    erased, kept = (note(subject, run, text, keep=False, confidence=0.1) for text in ("mild weather", "a long queue"))
    subject.clock.advance(COLD_MS)
    report = perform(subject, run, "consolidate")
    run(subject.forget(erased, hard_delete=True))
    assert [each["id"] for each in run(subject.engine.lifecycle.show(WHO, report.run_id))["actions"]] == [kept]
    assert run(subject.engine.lifecycle.undo(WHO, report.run_id)).restored == [kept]


def test_a_run_that_was_killed_has_noted_what_it_did(subject: Subject, run: Any) -> None:
    ids = [note(subject, run, f"statement {i}") for i in range(3)]
    subject.clock.advance(SETTLED_MS)
    log = new_log(subject.engine._core, WHO, "consolidate")
    with gone_after(subject, 2):
        run(ConsolidateJob(subject.engine._core).run(WHO, dry_run=False, log=log))
    (seen,) = run(subject.engine.lifecycle.runs(WHO))
    assert [each["id"] for each in seen["actions"]] == ids[:2]
    assert seen["duration_ms"] is None, "it has not ended"
    run(subject.engine.lifecycle.undo(WHO, seen["id"]))
    assert live(subject, run) == sorted(ids)


def test_a_dry_run_says_what_would_be_done_and_asks_the_rules(subject: Subject, run: Any) -> None:
    for text in ("Alice likes tea", "Bob likes tea"):
        note(subject, run, text)
    for text in ("mild weather", "bad weather in June"):
        note(subject, run, text, keep=False, confidence=0.1)
    for text in ("gateway validates tokens.", "Gateway validates tokens", "Bob signs tokens", "bob signs tokens."):
        drawer(subject, run, text)
    for text in ("a note nobody needs", "what Bob wrote once"):
        drawer(subject, run, text, importance=0.001)
    subject.clock.advance(PRUNED_AFTER_MS + 1)
    held = [{"name": "r", "when": {"content": "Bob|bob|June"}, "action": "review"}]
    before = run(subject.store.sequence(WHO.tenant))
    expected = {"consolidate": {"promoted": 2, "archived": 2, "waiting": 0}}
    expected["dream"] = {"merged": 2, "decayed": 6, "pruned": 2}
    for job, counts in expected.items():
        assert perform(subject, run, job, dry_run=True).counts == counts
    run(subject.engine.policies.replace(WHO, held))
    entries = len(run(subject.engine.ledger.entries(WHO)))
    expected = {"consolidate": {"promoted": 1, "archived": 1, "waiting": 2}}
    expected["dream"] = {"merged": 1, "decayed": 6, "pruned": 1}
    for job, counts in expected.items():
        report = perform(subject, run, job, dry_run=True)
        assert (report.counts, report.run_id) == (counts, None)
        first = "promoted" if job == "consolidate" else "merged"
        assert [each["action"] for each in report.actions] == [first, "archived"]
        assert all(each["why"] for each in report.actions)
    assert run(subject.store.sequence(WHO.tenant)) == before
    assert len(run(subject.engine.ledger.entries(WHO))) == entries, "not even a refusal is noted"
    for job, counts in expected.items():
        done = perform(subject, run, job).counts
        assert {**counts, **done, "decayed": 0} == {**counts, "decayed": 0}, "it does what it said"


def test_runs_come_page_by_page_and_by_job(subject: Subject, run: Any) -> None:
    for text in ("one", "two", "three"):
        note(subject, run, text)
        subject.clock.advance(SETTLED_MS)
        perform(subject, run, "consolidate")
    drawer(subject, run, "faded", importance=0.001)
    subject.clock.advance(PRUNED_AFTER_MS + 1)
    perform(subject, run, "dream")
    lifecycle = subject.engine.lifecycle
    newest = run(lifecycle.runs(WHO, limit=2))
    assert [each["job"] for each in newest] == ["dream", "consolidate"]
    rest = run(lifecycle.runs(WHO, before=newest[-1]["id"]))
    assert [each["actions"][0]["content"] for each in rest] == ["two", "one"]
    assert len(run(lifecycle.runs(WHO, job="consolidate"))) == 3
    for limit in (0, MAX_RUNS + 1):
        with pytest.raises(ValidationError, match="limit"):
            run(lifecycle.runs(WHO, limit=limit))


def test_runs_of_a_job_that_is_not_registered_any_more_are_found(subject: Subject, run: Any) -> None:
    own = ConsolidateJob(subject.engine._core)
    own.name = "tidy"
    lifecycle = subject.engine.lifecycle
    registered = lifecycle._jobs
    lifecycle.use(own)
    for text in ("one", "two"):
        note(subject, run, text)
        subject.clock.advance(SETTLED_MS)
        perform(subject, run, "tidy")
    lifecycle._jobs = registered  # as a process has it that knows nothing of this job
    for listed in (lifecycle.runs, lifecycle.summaries):
        newest, oldest = run(listed(WHO, job="tidy"))
        assert run(listed(WHO, job="tidy", before=newest["id"])) == [oldest]
        assert run(listed(WHO, job="tidy", before=oldest["id"])) == [], "the page after the last"
        stranger = Principal("bob", role="reader", agents=("other",))
        for who, job in ((WHO, "nothing"), (stranger, "tidy")):
            with pytest.raises(ValidationError, match=f"there is no job '{job}'; there are "):
                run(listed(who, job=job))


def test_many_actions_are_counted_and_the_first_are_shown(subject: Subject, run: Any) -> None:
    for i in range(SHOWN_ACTIONS + 3):
        note(subject, run, f"number {i}", keep=False, confidence=0.1)
    subject.clock.advance(COLD_MS)
    assert len(perform(subject, run, "consolidate", dry_run=True).actions) == SHOWN_ACTIONS
    perform(subject, run, "consolidate")
    (seen,) = run(subject.engine.lifecycle.runs(WHO))
    assert (len(seen["actions"]), seen["action_count"]) == (SHOWN_ACTIONS, SHOWN_ACTIONS + 3)


def test_runs_that_did_nothing_are_not_kept_and_others_not_for_ever(subject: Subject, run: Any) -> None:
    perform(subject, run, "consolidate")
    assert run(subject.engine.lifecycle.runs(WHO)) == []
    id = note(subject, run, "Alice likes tea")
    subject.clock.advance(SETTLED_MS)
    report = perform(subject, run, "consolidate")
    subject.clock.advance(90 * DAY_MS)
    perform(subject, run, "expire")
    assert len(run(subject.engine.lifecycle.runs(WHO))) == 1
    subject.clock.advance(DAY_MS)
    perform(subject, run, "expire")
    assert run(subject.engine.lifecycle.runs(WHO)) == []
    with pytest.raises(NotFound):
        run(subject.engine.lifecycle.undo(WHO, report.run_id))
    assert run(subject.engine.undo(WHO, [id])).restored == [id], "one by one it still goes"


def test_a_log_without_an_id_notes_nothing(subject: Subject, run: Any) -> None:
    note(subject, run, "Alice likes tea")
    subject.clock.advance(SETTLED_MS)
    run(ConsolidateJob(subject.engine._core).run(WHO, dry_run=False, log=RunLog()))
    assert run(subject.engine.lifecycle.runs(WHO)) == []
