"""Units of work that share a commit, and the counters they share, for every store that writes in groups: it knows no
database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from commonplace.stores.graph import commit_time
from commonplace.wire.record import Clock
from commonplace.wire.times import iso


@dataclass(slots=True)
class Job:
    """A unit of work that someone waits for."""

    work: Callable[[Any], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    tenant: str | None = None
    result: Any = None
    error: BaseException | None = None

    @classmethod
    def of_caller(cls, work: Callable[[Any], Any], tenant: str | None) -> Job:
        loop = asyncio.get_running_loop()
        return cls(work, loop, loop.create_future(), tenant)


def deliver(jobs: Iterable[Job], log: logging.Logger) -> None:
    """Tell everyone who waits what became of it, each on its own event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, ready in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, ready)
        except RuntimeError:  # that loop is gone, and with it whoever waited; the write itself stands
            log.debug("a caller went away before its answer")


def _resolve(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


@dataclass(slots=True)
class TenantState:
    """A tenant's counters, kept in memory during a group and written once at its end."""

    id: int
    seq: int
    at: int
    audit_n: int
    audit_hash: str
    changed: bool = False

    def copy(self) -> TenantState:
        return TenantState(self.id, self.seq, self.at, self.audit_n, self.audit_hash, self.changed)

    def next_time(self, clock: Clock, tenant: str, log: logging.Logger) -> tuple[int, bool]:
        """When the next unit of work is dated, and whether that is before the last, which no search by time may walk
        past."""
        now = commit_time(clock(), self.at)
        if leapt := now < self.at:
            log.warning(
                "the last write of tenant %s is dated %s, long after this clock's %s: time goes on by the clock; "
                "`commonplace doctor` finds and repairs what was dated so", tenant, iso(self.at), iso(now),
            )  # fmt: skip
        return now, leapt


def sequence_at(entry: Callable[[int], tuple[int, int]], last: int, leaps: Iterable[int], at: int) -> int:
    """The sequence of the last entry of a ledger that was made at or before an instant; 0 when none was.

    `entry` reads the time and the sequence of the entry with a number, of which the last is `last`; `leaps` are those
    before which the clock was set back. Between two of them times never decrease: each such stretch is halved, the
    latest first, until the instant is found.
    """
    starts = sorted({1, *leaps})
    for start, end in zip(reversed(starts), [last, *(n - 1 for n in reversed(starts[1:]))], strict=True):
        low, high, found = start, end, 0
        while low <= high:
            middle = (low + high) // 2
            when, seq = entry(middle)
            if when <= at:
                low, found = middle + 1, seq
            else:
                high = middle - 1
        if found:
            return found
    return 0
