"""The job `retain`: promises are kept when they are due, for memories and for what only waits."""

from __future__ import annotations

from typing import Any

import pytest
from crash import gone_after

from commonplace.config import GovernanceConfig
from commonplace.engine.governance.reviews import Decision
from commonplace.engine.lifecycle.retain_job import RetainJob
from commonplace.engine.memory import expire
from commonplace.engine.memory.retention import PROMISE
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


def test_what_nobody_decided_in_time_is_erased_when_it_is_due(subject: Subject, run: Any) -> None:
    subject.engine.settings.governance = GovernanceConfig(review_days=1)
    stage(subject, run, "a secret address", privacy={"retain": 5})
    subject.clock.advance(2 * DAY_MS)
    run(subject.engine.lifecycle.run(WHO, "expire"))
    subject.clock.advance(3 * DAY_MS)
    assert retain(subject, run) == {"erased": 1, "overdue": 0, "late_ms": 0}
    assert "secret" not in repr(run(subject.store.records("local", "review")))


@pytest.mark.parametrize("action", ["review", "reject"])
def test_what_was_promised_to_be_gone_goes_whatever_rules_say(subject: Subject, run: Any, action: str) -> None:
    id = run(subject.remember("a secret address", privacy={"retain": 1}))
    stage(subject, run, "a secret name", privacy={"retain": 1})
    rule = {"name": "nothing goes", "when": {"operation": ["forget"]}, "action": action}
    run(subject.engine.policies.replace(WHO, [rule]))
    subject.clock.advance(DAY_MS)
    assert retain(subject, run) == {"erased": 2, "overdue": 0, "late_ms": 0}
    assert run(subject.store.get("local", [id])) == []
    assert "secret" not in repr(run(subject.store.records("local", "review")))


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


class _Counted:
    """How many records a store gave while a job ran."""

    def __init__(self, subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._inside = False  # of a read that a store makes of another of its reads
        for name in ("records", "records_page", "record"):
            monkeypatch.setattr(subject.store, name, self._counting(getattr(subject.store, name)))

    def _counting(self, read: Any) -> Any:
        async def counted(*args: Any, **named: Any) -> Any:
            counts, self._inside = not self._inside, True
            try:
                found = await read(*args, **named)
            finally:
                self._inside = not counts
            if counts:
                self.count += len(found) if isinstance(found, list) else found is not None
            return found

        return counted


def test_a_run_reads_what_is_due_however_many_wait(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(40):
        stage(subject, run, f"secret {i}", privacy={"retain": 30})
        stage(subject, run, f"no promise {i}")
    run(subject.engine.reviews.decide(WHO, stage(subject, run, "known", privacy={"retain": 1}), Decision(True)))
    retain(subject, run)
    subject.clock.advance(DAY_MS // 2)
    read = _Counted(subject, monkeypatch)
    assert retain(subject, run)["overdue"] == 0
    assert read.count <= 3, "the first promise, which is not due, and that promises are recorded"
    subject.clock.advance(DAY_MS)
    retain(subject, run)
    read.count = 0
    retain(subject, run)
    assert read.count <= 3, "what was approved keeps nobody busy"
    due = stage(subject, run, "soon", privacy={"retain": 1})
    subject.clock.advance(DAY_MS)
    read.count = 0
    assert retain(subject, run)["erased"] == 1
    assert read.count <= 20, "of those that are due, and no more than that of others"
    assert run(subject.engine.reviews.get(WHO, due))["status"] != "pending"
    assert "soon" not in repr(run(subject.store.records("local", "review")))


def test_an_edit_that_ends_earlier_is_kept_to(subject: Subject, run: Any) -> None:
    review = stage(subject, run, "a secret address", privacy={"retain": 30})
    retain(subject, run)
    until = subject.clock() + DAY_MS
    edited, request = run(subject.engine.reviews.with_changes(WHO, review, {"expires_at": until}))
    run(subject.engine.reviews.edit(WHO, review, edited, request))
    subject.clock.advance(DAY_MS - 1)
    assert retain(subject, run) == {"erased": 0, "overdue": 0, "late_ms": 0}
    subject.clock.advance(1)
    assert retain(subject, run)["erased"] == 1
    assert "secret" not in repr(run(subject.store.records("local", "review")))
    subject.clock.advance(40 * DAY_MS)
    assert retain(subject, run)["overdue"] == 0
    assert run(subject.store.records("local", PROMISE)) == []


def test_reviews_of_an_earlier_version_are_found_and_recorded(subject: Subject, run: Any) -> None:
    for i in range(3):
        stage(subject, run, f"secret {i}", privacy={"retain": i + 1})

    def forget_promises(tx: Any) -> None:
        for record in promises:
            tx.drop_record(PROMISE, record.key)

    promises = run(subject.store.records("local", PROMISE))
    assert len(promises) == 3
    run(subject.store.transact("local", forget_promises))
    subject.clock.advance(DAY_MS)
    assert retain(subject, run, dry_run=True)["overdue"] == 1
    assert retain(subject, run) == {"erased": 1, "overdue": 0, "late_ms": 0}
    assert [r.key for r in run(subject.store.records("local", PROMISE))] == [r.key for r in promises[1:]]
    subject.clock.advance(2 * DAY_MS)
    assert retain(subject, run)["erased"] == 2
    assert "secret" not in repr(run(subject.store.records("local", "review")))
