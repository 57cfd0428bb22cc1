"""The jobs and when they run: in the background of a process that lives on, or when someone says so.

Of several processes on one store only the holder of the lease acts; one that is killed loses it when its time is over.
A job is a sequence of ordinary units of work, each right by itself, so that stopping between two of them harms nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from commonplace.engine.checks import require_operator, require_role
from commonplace.engine.core import SYSTEM, Core
from commonplace.engine.lifecycle import run_log
from commonplace.engine.lifecycle.run_log import RunLog, sees_all, without_numbers
from commonplace.engine.memory.undo import UndoResult
from commonplace.stores.base import Record, Transaction
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Conflict, Fault, NotFound, ValidationError
from commonplace.wire.record import Principal

log = logging.getLogger("commonplace.engine")

#: The kind of its records: the lease and what is paused are the store's own, each job's last run is a tenant's.
LIFECYCLE = "lifecycle"
LEASE_MS = 120_000
RENEW_SECONDS = 30.0
STOP_SECONDS = 1.5
NAME = "lifecycle"  # who the audit says it was
LEASE, _PAUSED = "lease", "paused"


class Job(Protocol):
    name: str
    every: int  # ms from one run to the next

    async def run(self, who: Principal, *, dry_run: bool, asked: bool, log: RunLog) -> dict[str, int]:
        """One pass over what `who` may use: how many of what were or would be done. To run it twice changes no more.
        `asked` is whether someone waits for it, and not only its time has come. What is done to a memory and can be
        undone is noted in the log by the unit of work that does it."""


@dataclass(slots=True)
class JobReport:
    job: str
    at: int
    duration_ms: int
    counts: dict[str, int] = field(default_factory=dict)
    dry_run: bool = False
    error: str | None = None
    run_id: str | None = None  # of what can be looked at and undone, where it did any such thing
    actions: list[dict[str, Any]] = field(default_factory=list)  # the first of what a dry run would do, and why


class Lifecycle:
    def __init__(self, core: Core, jobs: Sequence[Job], paused: Sequence[str] = ()) -> None:
        self._core = core
        self._jobs: Mapping[str, Job] = {job.name: job for job in jobs}
        self._off = frozenset(paused)  # by configuration
        self._me = mint_id(core.clock())
        self._acting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.running: str | None = None

    def use(self, job: Job) -> None:
        """Another job in place of the one of its name, such as a consolidator of one's own, or beside the others."""
        self._jobs = {**self._jobs, job.name: job}

    # in the background

    def start(self, seconds: float) -> None:
        """Look every so many seconds whether something is due, until `stop`."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(seconds))

    async def stop(self) -> None:
        """Within two seconds: what is being written is written or not, and the next process goes on from there."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=STOP_SECONDS)

    async def _run(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.tick()
            except Fault as fault:  # of the store; it is tried again
                log.warning("lifecycle: %s", fault.message)
            except Exception:
                log.exception("lifecycle: a bug")

    async def tick(self) -> list[JobReport]:
        """Run what is due, for every tenant, unless another process is at it."""
        async with self._acting:
            lease = await self._lease()
            now = self._core.clock()
            if lease.get("holder", self._me) != self._me and lease["until"] > now:
                return []
            ran: dict[str, int] = lease.get("ran", {})
            paused = await self._paused()
            ready = [job for job in self._jobs.values() if job.name not in paused]
            due = [job for job in ready if now - ran.get(job.name, -job.every) >= job.every]
            if not due or not await self._acquire():
                return []
            reports = []
            async with self._held():
                for job in due:
                    for tenant in await self._core.primary.tenants():
                        reports.append(await self._perform(job, Principal(NAME, tenant), asked=False))
                    ran = {**ran, job.name: now}
                    await self._core.transact(SYSTEM, lambda tx: _hold(tx, self._me, ran))  # noqa: B023
            return reports

    # by hand

    async def run(self, who: Principal, name: str, *, dry_run: bool = False) -> JobReport:
        """Now, for what the caller may use; the lease is waited for here, and refused where another process has it."""
        job = self._job(name)
        require_role(who, "reader" if dry_run else "writer")
        if dry_run:
            return await self._told(who, await self._perform(job, who, dry_run=True))
        async with self._acting:
            if not await self._acquire():
                raise Conflict("another process is at this; try again in a minute")
            async with self._held():
                return await self._told(who, await self._perform(job, who))

    async def _told(self, who: Principal, report: JobReport) -> JobReport:
        """What whoever asked for a run is told of it. It was of what they may use, so that only a rule hides any."""
        if not await self._core.policies.withholds(who):
            return report
        run_id = report.run_id
        if run_id is not None:
            try:
                await run_log.run(self._core, who, run_id)
            except NotFound:  # all that it did is withheld
                run_id = None
        return replace(report, run_id=run_id, **without_numbers({"error": report.error}))

    async def status(self, who: Principal) -> list[dict[str, Any]]:
        """Each job: whether it is paused or at work, how often it is due, and what its last run did in this tenant."""
        require_role(who, "reader")
        last = {r.key: r.value for r in await self._core.primary.records(who.tenant, LIFECYCLE)}
        if not await sees_all(self._core, who):
            last = {name: without_numbers(value) for name, value in last.items()}
        paused = await self._paused()
        return [
            {
                "job": name,
                "every_seconds": job.every // 1000,
                "paused": name in paused,
                "running": self.running == name,
                "last_run": last.get(name),
            }
            for name, job in self._jobs.items()
        ]

    async def runs(
        self, who: Principal, *, job: str | None = None, limit: int = 20, before: str | None = None
    ) -> list[dict[str, Any]]:
        """What runs did to memories the caller may use and why, the newest first; `before` is the id of the last one
        seen. Each has its actions: `Engine.undo` takes one back by the memory's id, `undo` all of them."""
        found = await run_log.runs(self._core, who, job=job, limit=limit, before=before)
        if not found:
            await self._check_job(who, job)
        return found

    async def summaries(
        self, who: Principal, *, job: str | None = None, limit: int = 20, before: str | None = None
    ) -> list[dict[str, Any]]:
        """As `runs`, without the actions: `done` says how many of what, `content` the first text."""
        found = await run_log.summaries(self._core, who, job=job, limit=limit, before=before)
        if not found:
            await self._check_job(who, job)
        return found

    async def show(self, who: Principal, run_id: str) -> dict[str, Any]:
        """One of them."""
        return await run_log.run(self._core, who, run_id)

    async def undo(
        self, who: Principal, run_id: str, *, memory_id: str | None = None, reason: str | None = None
    ) -> UndoResult:
        """Take back all that a run did, or did to one memory, but what someone has changed since."""
        return await run_log.undo_run(self._core, who, run_id, reason, memory_id)

    async def pause(self, who: Principal, name: str, paused: bool) -> None:
        """For every process on this store, until it is resumed; it can still be run by hand."""
        require_operator(who, "pause what looks after everyone's memories")
        self._job(name)
        if not paused and name in self._off:
            raise Conflict(f"{name} is paused by the configuration; take it out of `paused` under [lifecycle]")

        def work(tx: Transaction) -> None:
            record = tx.record(LIFECYCLE, _PAUSED)
            names = set(record.value["jobs"]) if record is not None else set()
            kept = names | {name} if paused else names - {name}
            tx.put_record(Record(LIFECYCLE, _PAUSED, {"jobs": sorted(kept)}))

        await self._core.transact(SYSTEM, work)

    # the lease

    async def _lease(self) -> dict[str, Any]:
        record = await self._core.primary.record(SYSTEM, LIFECYCLE, LEASE)
        return record.value if record is not None else {}

    async def _paused(self) -> frozenset[str]:
        record = await self._core.primary.record(SYSTEM, LIFECYCLE, _PAUSED)
        return self._off | frozenset(record.value["jobs"] if record is not None else ())

    async def _acquire(self) -> bool:
        return await self._core.transact(SYSTEM, lambda tx: _hold(tx, self._me))

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        """The lease, which was acquired: kept for as long as it takes, then given back."""
        over = asyncio.Event()
        keeping = asyncio.create_task(self._renew(over))
        try:
            yield
        finally:
            over.set()
            await keeping  # a renewal on its way must not come after the lease was given back
            await self._release()

    async def _renew(self, over: asyncio.Event) -> None:
        """Many palaces take longer than a lease lasts; without this another process would act beside this one."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_SECONDS):
                    await over.wait()
                return
            with suppress(Fault):  # it is tried again, and a lease lasts for some tries
                if not await self._acquire():
                    return

    async def _release(self) -> None:
        def work(tx: Transaction) -> None:
            record = tx.record(LIFECYCLE, LEASE)
            if record is not None and record.value["holder"] == self._me:
                tx.put_record(Record(LIFECYCLE, LEASE, {**record.value, "until": 0}))

        with suppress(Fault):  # then it runs out by itself
            await self._core.transact(SYSTEM, work)

    async def _perform(self, job: Job, who: Principal, *, dry_run: bool = False, asked: bool = True) -> JobReport:
        started, self.running = self._core.clock(), job.name
        report = JobReport(job.name, started, 0, dry_run=dry_run)
        noted = RunLog() if dry_run else run_log.new_log(self._core, who, job.name)
        try:
            report.counts = await job.run(who, dry_run=dry_run, asked=asked, log=noted)
        except Fault as fault:
            log.warning("lifecycle: %s: %s", job.name, fault.message)
            report.error = fault.public or fault.message
        except Exception:
            log.exception("lifecycle: %s", job.name)
            report.error = "internal error; the log says where"
        finally:
            self.running = None
        report.duration_ms = self._core.clock() - started
        report.actions = [run_log.to_document(each) for each in await run_log.visible(self._core, who, noted.planned)]
        if not dry_run:
            value = {name: getattr(report, name) for name in ("at", "duration_ms", "counts", "error")}

            def work(tx: Transaction) -> bool:
                tx.put_record(Record(LIFECYCLE, job.name, value))
                return noted.finish(tx, value)

            if await self._core.transact(who.tenant, work):
                report.run_id = noted.id
        return report

    def _job(self, name: str) -> Job:
        if name not in self._jobs:
            raise NotFound(self._no_job(name))
        return self._jobs[name]

    async def _check_job(self, who: Principal, name: str | None) -> None:
        """As a condition of a list; None is all of them. One that only another process, or an earlier one, has is known
        by its runs."""
        if name is None or name in self._jobs:
            return
        if not await run_log.summaries(self._core, who, job=name, limit=1):
            raise ValidationError(self._no_job(name), field="job")

    def _no_job(self, name: str) -> str:
        return f"there is no job {name!r:.80}; there are {', '.join(self._jobs)}"


def _hold(tx: Transaction, holder: str, ran: Mapping[str, int] | None = None) -> bool:
    """Take or keep the lease; whether it could be had."""
    record = tx.record(LIFECYCLE, LEASE)
    value = record.value if record is not None else {"ran": {}}
    if value.get("holder", holder) != holder and value["until"] > tx.now:
        return False
    kept = {"holder": holder, "until": tx.now + LEASE_MS, "ran": dict(value["ran"] if ran is None else ran)}
    tx.put_record(Record(LIFECYCLE, LEASE, kept))
    return True
