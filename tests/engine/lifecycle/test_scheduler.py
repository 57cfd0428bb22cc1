"""When jobs run: due or asked for, in one process at a time, paused, stopped and taken up again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from commonplace.engine.lifecycle import scheduler
from commonplace.engine.lifecycle.scheduler import LEASE_MS, NAME, Lifecycle
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, Unavailable
from commonplace.wire.record import Principal


class Count:
    """A job that counts its runs, and does what it is told meanwhile."""

    def __init__(self, name: str = "count", every: int = 60_000) -> None:
        self.name, self.every = name, every
        self.seen: list[tuple[str, bool]] = []
        self.meanwhile: Any = None

    async def run(self, who: Principal, *, dry_run: bool, asked: bool, log: Any) -> dict[str, int]:
        self.seen.append((f"{who.tenant}/{who.name}", dry_run))
        if self.meanwhile is not None:
            await self.meanwhile()
        return {"runs": len(self.seen)}


@pytest.fixture
def job(subject: Subject, run: Any) -> Count:
    run(subject.remember("something, so that there is a tenant"))
    return Count()


def lifecycle(subject: Subject, *jobs: Any, paused: tuple[str, ...] = ()) -> Lifecycle:
    return Lifecycle(subject.engine._core, jobs, paused)


def test_a_job_runs_when_it_is_due_and_says_what_it_did(subject: Subject, run: Any, job: Count) -> None:
    made = lifecycle(subject, job, Count("seldom", 3_600_000))
    assert run(made.status(WHO))[0]["last_run"] is None
    assert [report.job for report in run(made.tick())] == ["count", "seldom"]
    assert run(made.tick()) == []
    subject.clock.advance(59_999)
    assert run(made.tick()) == []
    subject.clock.advance(1)
    assert [report.counts for report in run(made.tick())] == [{"runs": 2}]
    assert job.seen == [(f"local/{NAME}", False)] * 2
    assert run(made.status(WHO))[0] == {
        "job": "count", "every_seconds": 60, "paused": False, "running": False,
        "last_run": {"at": subject.clock(), "duration_ms": 0, "counts": {"runs": 2}, "error": None},
    }  # fmt: skip


def test_of_several_processes_only_one_acts(subject: Subject, run: Any, job: Count) -> None:
    here, there = lifecycle(subject, job), lifecycle(subject, other := Count())
    assert len(run(here.tick())) == 1
    assert run(there.tick()) == [], "not due: the other process ran it"

    async def look() -> None:
        assert await there.tick() == []
        with pytest.raises(Conflict, match="another process is at this"):
            await there.run(WHO, "count")
        assert (await there.run(WHO, "count", dry_run=True)).counts == {"runs": 1}

    subject.clock.advance(60_000)
    job.meanwhile = look
    assert len(run(here.tick())) == 1
    assert other.seen == [("local/local", True)]
    assert run(there.run(WHO, "count")).counts == {"runs": 2}, "the lease was given back"


def test_the_work_of_a_process_that_was_killed_is_taken_up(subject: Subject, run: Any, job: Count) -> None:
    here, there = lifecycle(subject, job), lifecycle(subject, other := Count())

    async def die() -> None:
        raise asyncio.CancelledError

    async def never() -> None: ...

    job.meanwhile = die
    here._release = never  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        run(here.tick())
    assert run(there.tick()) == []
    subject.clock.advance(LEASE_MS)
    assert len(run(there.tick())) == 1
    assert len(other.seen) == 1


def test_a_job_that_takes_longer_than_a_lease_keeps_it(
    subject: Subject, run: Any, job: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "RENEW_SECONDS", 0)
    here, there = lifecycle(subject, job), lifecycle(subject, other := Count())

    async def take_long() -> None:
        for _ in range(3):
            subject.clock.advance(LEASE_MS - 1)
            now = subject.clock()
            while (await here._lease())["until"] < now + LEASE_MS:
                await asyncio.sleep(0)
            subject.clock.advance(1)
            assert await there.tick() == []

    job.meanwhile = take_long
    assert len(run(here.tick())) == 1
    assert other.seen == []
    subject.clock.advance(60_000)
    assert len(run(there.tick())) == 1, "given back at once, and no renewal comes after it"


def test_a_job_that_fails_is_reported_and_keeps_no_other_from_running(subject: Subject, run: Any, job: Count) -> None:
    async def fail() -> None:
        raise Unavailable("the disk is full")

    async def bug() -> None:
        raise KeyError("a secret")

    odd = Count("odd")
    job.meanwhile, odd.meanwhile = fail, bug
    reports = run(lifecycle(subject, job, odd, Count("fine")).tick())
    assert [report.error for report in reports] == ["the disk is full", "internal error; the log says where", None]


def test_a_paused_job_runs_only_by_hand(subject: Subject, run: Any, job: Count) -> None:
    made, other = lifecycle(subject, job), lifecycle(subject, job)
    run(made.pause(WHO, "count", True))
    assert (run(other.tick()), run(other.status(WHO))[0]["paused"]) == ([], True)
    assert run(other.run(WHO, "count")).counts == {"runs": 1}
    run(other.pause(WHO, "count", False))
    assert len(run(made.tick())) == 1
    configured = lifecycle(subject, Count("off"), paused=("off",))
    assert run(configured.tick()) == []
    with pytest.raises(Conflict, match="paused by the configuration"):
        run(configured.pause(WHO, "off", False))


def test_who_may_do_what(subject: Subject, run: Any, job: Count) -> None:
    made = lifecycle(subject, job)
    reader, writer = Principal("bob", role="reader"), Principal("alice", role="writer")
    assert run(made.status(reader))
    assert run(made.run(reader, "count", dry_run=True)).dry_run
    with pytest.raises(Forbidden):
        run(made.run(reader, "count"))
    assert run(made.run(writer, "count")).error is None
    with pytest.raises(Forbidden):
        run(made.pause(writer, "count", True))
    for call in (made.run(WHO, "nothing"), made.pause(WHO, "nothing", True)):
        with pytest.raises(NotFound, match="there is no job 'nothing'; there are count"):
            run(call)


def test_who_may_use_some_agents_is_not_told_what_was_done_to_all(subject: Subject, run: Any, job: Count) -> None:
    made = lifecycle(subject, job)
    run(made.tick())
    some = run(made.status(Principal("bob", role="reader", agents=("agent",))))[0]["last_run"]
    assert some == {**run(made.status(WHO))[0]["last_run"], "counts": {}}


def test_who_may_use_some_agents_is_not_told_why_a_job_failed_for_all(subject: Subject, run: Any, job: Count) -> None:
    """A problem may name another agent's memory."""

    async def fail() -> None:
        raise Unavailable("memory of bob cannot be read")

    job.meanwhile = fail
    made = lifecycle(subject, job)
    run(made.tick())
    (all_of_it,) = run(made.status(WHO))
    assert all_of_it["last_run"]["error"] == "memory of bob cannot be read"
    (told,) = run(made.status(Principal("bob", role="reader", agents=("agent",))))
    assert told["last_run"]["error"] == "it failed; whoever may read everything can see why"


def test_a_dry_run_leaves_no_trace(subject: Subject, run: Any, job: Count) -> None:
    made = lifecycle(subject, job)
    assert run(made.run(WHO, "count", dry_run=True)).counts == {"runs": 1}
    assert job.seen == [("local/local", True)]
    assert run(made.status(WHO))[0]["last_run"] is None


def test_it_stops_in_the_middle_of_a_job(subject: Subject, run: Any, job: Count) -> None:
    began = asyncio.Event()

    async def forever() -> None:
        began.set()
        await asyncio.Event().wait()

    async def story() -> None:
        job.meanwhile = forever
        made = lifecycle(subject, job)
        made.start(0)
        await began.wait()
        await made.stop()
        assert made._task is None
        job.meanwhile = None
        subject.clock.advance(60_000)
        assert len(await lifecycle(subject, job).tick()) == 1, "its lease was given back"

    run(story())


def test_a_job_can_be_replaced_by_ones_own(subject: Subject, run: Any, job: Count) -> None:
    mine = Count("expire")
    subject.engine.lifecycle.use(mine)
    assert run(subject.engine.lifecycle.run(WHO, "expire")).counts == {"runs": 1}


def test_an_engine_has_its_jobs_and_starts_none_by_itself(subject: Subject, run: Any) -> None:
    assert subject.engine.lifecycle._task is None
    assert [job["job"] for job in run(subject.engine.lifecycle.status(WHO))] == [
        "expire",
        "retain",
        "dream",
        "consolidate",
    ]
