"""The job `expire`: what is over goes, what is not stays, and a second run changes no more."""

from __future__ import annotations

from typing import Any

import pytest
from stored_records import stored_records

from commonplace.config import GovernanceConfig
from commonplace.engine.lifecycle import expire_job
from commonplace.engine.lifecycle.expire_job import ExpireJob, parse_policy
from commonplace.engine.types import Draft, Expire
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import NotFound, Unavailable, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS


def job(subject: Subject, *policies: str) -> ExpireJob:
    engine = subject.engine
    parsed = [parse_policy(text) for text in policies]
    return ExpireJob(engine._core, engine._recall_log, engine.runs, engine.reviews, parsed)


def statuses(subject: Subject, run: Any, *ids: str) -> list[str]:
    return [memory.status for memory in run(subject.store.get("local", ids))]


def sweep(subject: Subject, run: Any, *policies: str, who: Principal = WHO, dry_run: bool = False) -> dict[str, int]:
    done: dict[str, int] = run(job(subject, *policies).run(who, dry_run=dry_run))
    return done


NOTHING = {"expired": 0, "by_policy": 0, "reviews": 0, "keys": 0, "runs": 0}


def test_what_is_over_by_its_own_time_is_forgotten(subject: Subject, run: Any) -> None:
    soon = [run(subject.remember(f"soon {i}", agent, expires_at=subject.clock() + 10)) for i, agent in enumerate("ab")]
    later = run(subject.remember("later", expires_at=subject.clock() + 11))
    kept = run(subject.remember("kept"))
    promised = run(subject.remember("promised", privacy={"retain": 1}, expires_at=subject.clock() + 10))
    assert sweep(subject, run) == NOTHING
    subject.clock.advance(10)
    assert sweep(subject, run, dry_run=True) == {**NOTHING, "expired": 2}
    assert sweep(subject, run) == {**NOTHING, "expired": 2}
    assert statuses(subject, run, *soon, later, kept, promised) == ["deleted"] * 2 + ["live"] * 3
    entries = len(run(subject.engine.ledger.entries(WHO)))
    assert sweep(subject, run) == NOTHING
    assert len(run(subject.engine.ledger.entries(WHO))) == entries
    assert run(subject.engine.ledger.verify(WHO)).problem is None
    with pytest.raises(NotFound):
        run(subject.get(soon[0], "a"))


def test_who_may_use_one_agent_expires_nothing_of_another(subject: Subject, run: Any) -> None:
    mine, theirs = (run(subject.remember("soon", agent, expires_at=subject.clock() + 1)) for agent in ("a", "b"))
    subject.clock.advance(1)
    assert sweep(subject, run, who=Principal("x", agents=("a",)))["expired"] == 1
    assert statuses(subject, run, mine, theirs) == ["deleted", "live"]


def test_reviews_that_nobody_decided_expire_of_ones_own_agents(subject: Subject, run: Any) -> None:
    subject.engine.settings.governance = GovernanceConfig(review_days=7, rejected="erase")
    for agent in "ab":
        draft = Draft(agent, "semantic", "zanzibar")
        run(subject.engine.remember(WHO, draft, approval={"content": draft.content}))
    subject.clock.advance(7 * DAY_MS)
    fresh = run(subject.engine.remember(WHO, Draft("a", "semantic", "tea"), approval={"content": "tea"})).review_id
    one = Principal("x", agents=("a",))
    assert sweep(subject, run, who=one, dry_run=True)["reviews"] == 1
    assert sweep(subject, run, who=one)["reviews"] == 1
    assert sweep(subject, run) == {**NOTHING, "reviews": 1}
    assert sweep(subject, run) == NOTHING
    assert len(run(subject.engine.ledger.entries(WHO, operation="expire_review"))) == 2
    assert "zanzibar" not in stored_records(subject, run), "as was asked of what expires"
    assert [each["id"] for each in run(subject.engine.reviews.list(WHO))] == [fresh]


def test_old_keys_go_and_fresh_ones_stay(subject: Subject, run: Any) -> None:
    run(subject.engine.remember(WHO, Draft("agent", "semantic", "tea"), idempotency_key="one"))
    subject.clock.advance(7 * DAY_MS)
    run(subject.engine.remember(WHO, Draft("agent", "semantic", "milk"), idempotency_key="two"))
    assert sweep(subject, run) == NOTHING
    subject.clock.advance(1)
    assert sweep(subject, run, dry_run=True)["keys"] == 1
    assert sweep(subject, run)["keys"] == 1
    assert [record.value["id"] for record in run(subject.store.records("local", "idempotency"))] != []


def test_keys_are_not_all_read_every_minute(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only when one may be due, and at most once an hour; whoever runs the job by hand need not wait."""
    monkeypatch.setattr(expire_job, "_PAGE", 2)
    looked: list[str | None] = []
    page = subject.store.records_page

    async def counted(tenant: str, kind: str, *args: Any, **options: Any) -> Any:
        if kind == "idempotency":
            looked.append(options["after"])
        return await page(tenant, kind, *args, **options)

    monkeypatch.setattr(subject.store, "records_page", counted)
    scheduled = job(subject)

    def keys_after(ms: int, *, asked: bool = False) -> tuple[int, int]:
        """How many keys went, and in how many pages all were read."""
        subject.clock.advance(ms)
        looked.clear()
        return run(scheduled.run(WHO, dry_run=False, asked=asked))["keys"], len(looked)

    def write(*keys: str) -> None:
        for key in keys:
            run(subject.engine.remember(WHO, Draft("agent", "semantic", key), idempotency_key=key))

    began = subject.clock()
    write("a", "b", "c")
    subject.clock.advance(60_000)
    write("d", "e")
    assert keys_after(0) == (0, 3)
    assert keys_after(60_000) == (0, 0), "none is due"
    assert keys_after(began + 7 * DAY_MS - subject.clock()) == (0, 0)
    assert run(scheduled.run(WHO, dry_run=True))["keys"] == 0
    assert keys_after(1) == (3, 3), "on the first millisecond"
    assert keys_after(60_000) == (0, 0), "others are due, at most once an hour"
    assert run(scheduled.run(WHO, dry_run=True))["keys"] == 2, "whoever asks is told"
    assert keys_after(0) == (0, 0)
    assert keys_after(3_600_000 - 60_000) == (2, 2)
    write("f")
    subject.clock.advance(7 * DAY_MS + 1)
    assert keys_after(0, asked=True) == (1, 1), "whoever asks need not wait"


def test_standing_policies_are_applied_to_whom_they_name(subject: Subject, run: Any) -> None:
    mine, theirs = (run(subject.remember("then", agent, type="episodic")) for agent in ("a", "b"))
    fact, faint = run(subject.remember("a fact", "a")), run(subject.remember("faint", "b", confidence=0.1))
    subject.clock.advance(91 * DAY_MS)
    policies = ("agent=a type=episodic older_than_days=90", "confidence_below=0.5 action=demote")
    assert sweep(subject, run, *policies, dry_run=True)["by_policy"] == 2
    assert sweep(subject, run, *policies)["by_policy"] == 2
    assert statuses(subject, run, mine, theirs, fact) == ["archived", "live", "live"]
    assert run(subject.get(faint, "b")).demotion == 0.25
    assert sweep(subject, run, *policies)["by_policy"] == 0


@pytest.mark.parametrize("action", ["archive", "demote"])
def test_standing_policies_leave_what_was_brought_back_alone_for_30_days(
    subject: Subject, run: Any, action: str
) -> None:
    policy = f"confidence_below=0.5 action={action}"
    id = run(subject.remember("faint", confidence=0.1))
    assert sweep(subject, run, policy)["by_policy"] == 1
    run(subject.engine.undo(WHO, [id]))
    subject.clock.advance(30 * DAY_MS)
    for dry_run in (True, False):
        assert sweep(subject, run, policy, dry_run=dry_run)["by_policy"] == 0
    subject.clock.advance(1)
    assert sweep(subject, run, policy)["by_policy"] == 1


def test_a_recall_of_a_moment_ago_counts(subject: Subject, run: Any) -> None:
    asked, other = run(subject.remember("Alice likes green tea")), run(subject.remember("Bob keeps bees"))
    subject.clock.advance(31 * DAY_MS)
    assert run(subject.recall("green tea", k=1, min_score=0.0))[0].id == asked
    assert sweep(subject, run, "no_recall_in_days=30")["by_policy"] == 1
    assert statuses(subject, run, asked, other) == ["live", "archived"]


def test_a_crash_in_the_middle_is_made_good_by_the_next_run(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [run(subject.remember(f"soon {i}", "a", expires_at=subject.clock() + 1)) for i in range(70)]
    ids += [run(subject.remember("soon", "b", expires_at=subject.clock() + 1))]
    subject.clock.advance(1)
    core, calls = subject.engine._core, iter(range(2))
    transact = core.transact

    async def dying(tenant: str, work: Any) -> Any:
        if next(calls, None) is None:
            raise Unavailable("gone")
        return await transact(tenant, work)

    with monkeypatch.context() as broken:
        broken.setattr(core, "transact", dying)
        with pytest.raises(Unavailable):
            run(job(subject).run(WHO, dry_run=False))
    gone = statuses(subject, run, *ids).count("deleted")
    assert 0 < gone < len(ids)
    assert sweep(subject, run)["expired"] == len(ids) - gone
    assert set(statuses(subject, run, *ids)) == {"deleted"}
    assert run(subject.engine.ledger.verify(WHO)).problem is None


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("type=episodic", Expire("*", type="episodic", action="archive")),
        ("agent=alice older_than_days=90 action=forget", Expire("alice", older_than_days=90)),
        ("no_recall_in_days=7 confidence_below=0.5 action=demote",
         Expire("*", no_recall_in_days=7, confidence_below=0.5, action="demote")),
    ],
)  # fmt: skip
def test_a_policy_as_it_is_configured(text: str, policy: Expire) -> None:
    assert parse_policy(text) == policy


@pytest.mark.parametrize(
    "text",
    ["", "agent=alice", "action=erase type=episodic", "type=odd", "older_than_days=0", "older_than_days=soon",
     "confidence_below=2", "older=9", "older_than_days"],
)  # fmt: skip
def test_a_policy_that_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match=r"lifecycle\.expire"):
        parse_policy(text)
