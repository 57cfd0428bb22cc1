"""The job `retain`: promises are kept when they are due, for memories and for what only waits."""

from __future__ import annotations

from typing import Any

import pytest
from crash import gone_after

from commonplace.engine.governance.reviews import Decision
from commonplace.engine.lifecycle.retain_job import RetainJob
from commonplace.engine.memory import expire
from commonplace.engine.types import Draft
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS


def retain(subject: Subject, run: Any, who: Principal = WHO, *, dry_run: bool = False) -> dict[str, int]:
    done: dict[str, int] = run(RetainJob(subject.engine._core).run(who, dry_run=dry_run))
    return done


def stage(subject: Subject, run: Any, content: str, **fields: Any) -> str:
    draft = Draft("agent", "semantic", content, **fields)
    staged = run(subject.engine.remember(WHO, draft, approval={"content": content}))
    assert staged.review_id is not None
    review: str = staged.review_id
    return review


def test_a_promise_is_kept_to_the_millisecond_and_reported(subject: Subject, run: Any) -> None:
    due = run(subject.remember("a secret address", privacy={"retain": 1}))
    later = run(subject.remember("another", privacy={"retain": 2}))
    subject.clock.advance(DAY_MS - 1)
    assert retain(subject, run) == {"erased": 0, "overdue": 0, "late_ms": 0}
    subject.clock.advance(6)
    assert retain(subject, run, dry_run=True) == {"erased": 0, "overdue": 1, "late_ms": 5}
    assert retain(subject, run) == {"erased": 1, "overdue": 0, "late_ms": 5}
    assert [memory.id for memory in run(subject.store.get("local", [due, later]))] == [later]
    assert retain(subject, run) == {"erased": 0, "overdue": 0, "late_ms": 0}
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_what_waits_for_approval_is_erased_and_its_review_closed(subject: Subject, run: Any) -> None:
    review = stage(subject, run, "a secret address", privacy={"retain": 1})
    other = stage(subject, run, "no promise")
    turned_down = stage(subject, run, "a secret name", privacy={"retain": 1})
    run(subject.engine.reviews.decide(WHO, turned_down, Decision(False)))
    subject.clock.advance(DAY_MS)
    assert retain(subject, run)["erased"] == 2
    assert "secret" not in repr(run(subject.store.records("local", "review")))
    assert [each["id"] for each in run(subject.engine.reviews.list(WHO, "pending"))] == [other]
    with pytest.raises(Conflict):
        run(subject.engine.reviews.decide(WHO, review, Decision(True)))


def test_of_many_that_wait_none_is_overlooked(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expire, "_REVIEWS_AT_ONCE", 2)
    for i in range(5):
        stage(subject, run, f"secret {i}", privacy={"retain": 1})
        stage(subject, run, f"no promise {i}")
    subject.clock.advance(DAY_MS)
    assert retain(subject, run)["erased"] == 5
    assert "secret" not in repr(run(subject.store.records("local", "review")))


def test_who_may_use_one_agent_learns_and_erases_nothing_of_another(subject: Subject, run: Any) -> None:
    run(subject.remember("theirs", "b", privacy={"retain": 1}))
    stage(subject, run, "also theirs", privacy={"retain": 1})
    subject.clock.advance(DAY_MS)
    mine = Principal("x", agents=("a",))
    for dry_run in (True, False):
        assert retain(subject, run, mine, dry_run=dry_run) == {"erased": 0, "overdue": 0, "late_ms": 0}
    assert retain(subject, run)["erased"] == 2


def test_a_crash_in_the_middle_is_made_good_by_the_next_run(subject: Subject, run: Any) -> None:
    for agent in "ab":
        run(subject.remember("promised", agent, privacy={"retain": 1}))
    stage(subject, run, "waiting", privacy={"retain": 1})
    subject.clock.advance(DAY_MS)
    with gone_after(subject, 2):
        retain(subject, run)
    assert retain(subject, run, dry_run=True)["overdue"] == 1
    assert retain(subject, run) == {"erased": 1, "overdue": 0, "late_ms": 0}
