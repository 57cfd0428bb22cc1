"""The one writer of a process: it runs callers' work in groups, each group one transaction and one fsync."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import apsw

from commonplace.stores.commit_groups import Job, TenantState, deliver
from commonplace.stores.row_format import RowTypes
from commonplace.stores.sqlite import schema
from commonplace.stores.sqlite.connections import explained
from commonplace.stores.sqlite.fair_lock import FairLock, LockTimeout
from commonplace.stores.sqlite.files import StoreFiles, damaged, newer_schema, require_in_place
from commonplace.stores.sqlite.queries import fetch_one
from commonplace.stores.sqlite.transaction import SqliteTransaction
from commonplace.wire.errors import OperatorActionRequired, Unavailable, with_public
from commonplace.wire.record import Clock

GROUP_WRITES = 256
GROUP_SECONDS = 0.010
WAIT_SECONDS = 30.0
_NOTHING = "nothing was written"  # by this unit of work: whoever has done others before says the rest alone

log = logging.getLogger("commonplace.sqlite")

_STATE = RowTypes("tenant", {f.name: str(f.type) for f in fields(TenantState) if f.name != "changed"})

#: Told which scopes changed, by how many writes, and in which something was erased.
OnCommit = Callable[[dict[int, int], set[int]], None]


@dataclass(slots=True)
class _Group:
    """Work that shares one commit."""

    jobs: list[Job] = field(default_factory=list)
    states: dict[str, TenantState] = field(default_factory=dict)
    changed: dict[int, int] = field(default_factory=dict)
    erased: set[int] = field(default_factory=set)
    scopes: dict[tuple[int, str], int] = field(default_factory=dict)


class _UnsureCommit(Exception):
    """A commit that failed when all of it was in the log, from where the next to open the store may take it."""


@dataclass(slots=True)
class _CommittedState:
    """What the last commit left, worth reading again only once someone else has written."""

    data_version: int = -1
    generations: list[int] = field(default_factory=list)
    second: int = 0  # the generation of the second vectors
    states: dict[str, TenantState] = field(default_factory=dict)
    scopes: dict[tuple[int, str], int] = field(default_factory=dict)


class Writer:
    def __init__(self, db: apsw.Connection, files: StoreFiles, clock: Clock, on_commit: OnCommit) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._on_commit = on_commit
        self._lock = FairLock(files.lock)
        self._inbox: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._gathering: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        self._committed = _CommittedState()
        self._handover_lock = threading.Lock()  # nothing may be handed over after the order to stop
        self._closed = False
        self._stopping = False
        self._idle = False  # the thread waits for work
        self._thread = threading.Thread(target=self._run, name="commonplace-writer", daemon=True)
        self._thread.start()

    async def submit(self, tenant: str | None, work: Callable[[Any], Any]) -> Any:
        """Without a tenant it is maintenance, which runs alone and outside any transaction."""
        job = Job.of_caller(work, tenant)
        loop = job.loop
        with self._handover_lock:
            if self._closed:
                raise Unavailable("this store is closed")
            jobs = self._gathering.get(loop)
            if jobs is not None:
                jobs.append(job)
            elif self._idle and self._inbox.empty():
                self._inbox.put([job])  # nobody to share a commit with: a turn of the loop would be waited for in vain
            else:
                # Hand over only after every task that is ready now has run, so that they share one commit.
                self._gathering[loop] = [job]
                loop.call_soon(self._hand_over, loop)
        return await job.future

    def require_in_place(self) -> None:
        require_in_place(self._db, self._files)

    def close(self) -> None:
        with self._handover_lock:
            if self._closed:
                return
            self._closed = True
            for jobs in self._gathering.values():
                self._inbox.put(jobs)
            self._gathering.clear()
            self._inbox.put(None)
        self._thread.join()
        self._lock.close()

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._handover_lock:
            jobs = self._gathering.pop(loop, None)
            if jobs is not None:
                self._inbox.put(jobs)

    # the writer's thread

    def _run(self) -> None:
        while not self._stopping:
            self._idle = True
            waiting = self._inbox.get()
            self._idle = False
            if waiting is None:
                return
            while waiting:
                group = _Group()
                try:
                    if waiting[0].tenant is None:
                        group.jobs.append(waiting.pop(0))
                        self._run_exclusive(group.jobs[0])
                        deliver(group.jobs, log)
                    else:
                        self._commit_group(group, waiting)
                except BaseException as error:  # without this thread every later write would wait for ever
                    log.exception("the writer failed")
                    self._refuse(group.jobs + waiting, error)
                    waiting.clear()

    def _refuse(self, jobs: list[Job], error: BaseException) -> None:
        for job in jobs:
            job.error = job.error or self._fault(error)
        deliver(jobs, log)

    def _commit_group(self, group: _Group, waiting: list[Job]) -> None:
        """Commit one group off the front; what does not go into it stays waiting."""
        try:
            self._lock.acquire(WAIT_SECONDS)
        except (LockTimeout, OSError) as error:
            self._refuse(waiting, error)
            waiting.clear()
            return
        try:
            require_in_place(self._db, self._files)
            self._begin()
            self._fill(group, waiting)
            self._finish(group)
        except BaseException as error:
            self._roll_back()
            self._committed = _CommittedState()
            if _failed_in_sync(error) and not self._void_log():
                error = _UnsureCommit(str(error))
            if not group.jobs and waiting:  # not even begun: the first in line is told, the others try again
                group.jobs.append(waiting.pop(0))
            for job in group.jobs:
                job.error = job.error or self._fault(error)
            group.changed.clear()
        finally:
            self._lock.release()
        if group.changed:
            try:
                self._on_commit(group.changed, group.erased)
            except Exception:  # derived data: what is committed stands, and its callers must hear so
                log.exception("the index was not told of a commit")
        deliver(group.jobs, log)

    def _fill(self, group: _Group, waiting: list[Job]) -> None:
        deadline = time.monotonic() + GROUP_SECONDS
        while True:
            while waiting and waiting[0].tenant is not None:
                self._perform(waiting.pop(0), group)
                if len(group.jobs) >= GROUP_WRITES or time.monotonic() > deadline:
                    return
            if waiting:
                return
            try:
                more = self._inbox.get_nowait()
            except queue.Empty:
                return
            if more is None:
                self._stopping = True
                return
            waiting += more  # in place: what is left when an error breaks the group is still in the caller's hands

    def _begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        (version,) = fetch_one(self._db, "PRAGMA data_version")
        if version != self._committed.data_version:
            (there,) = fetch_one(self._db, "PRAGMA user_version")
            if there > schema.VERSION:  # a newer program has been here: what it derives from rows we would not
                raise newer_schema(self._files.database, there)
            keys = "'generation', 'next_generation', 'second_generation'"
            meta = dict(self._db.execute(f"SELECT key, value FROM meta WHERE key IN ({keys})"))
            generations = [meta["generation"], *([meta["next_generation"]] if "next_generation" in meta else [])]
            self._committed = _CommittedState(version, generations, meta.get("second_generation", 0))

    def _perform(self, job: Job, group: _Group) -> None:
        if job.future.cancelled():
            return
        assert job.tenant is not None
        group.jobs.append(job)
        shared = len(group.jobs) > 1
        state = group.states.get(job.tenant) or self._tenant_state(job.tenant)
        before = state.copy()
        now, leapt = state.next_time(self._clock, job.tenant, log)
        scopes: ChainMap[tuple[int, str], int] = ChainMap({}, group.scopes, self._committed.scopes)
        held = self._committed
        tx = SqliteTransaction(self._db, state, now, held.generations, held.second, scopes, shared, leapt)
        try:
            job.result = job.work(tx)
        except apsw.Error:
            raise  # the database itself failed: nobody in this group may be told it went well
        except BaseException as error:
            # Only what reading a row ends in is worth a look at the whole file: others' work fails for its own reasons.
            job.error = explained(self._db, self._files, error) if isinstance(error, ValueError) else error
            group.states[job.tenant] = before
            if tx.savepoint:
                self._db.execute("ROLLBACK TO work; RELEASE work")
            elif tx.wrote:
                self._db.execute("ROLLBACK")
                group.states.clear()
                group.scopes.clear()
                self._begin()
            return
        if tx.savepoint:
            self._db.execute("RELEASE work")
        group.states[job.tenant] = state
        group.scopes.update(scopes.maps[0])
        for scope, writes in tx.touched.items():
            group.changed[scope] = group.changed.get(scope, 0) + writes
        group.erased |= tx.erased

    def _tenant_state(self, tenant: str) -> TenantState:
        if tenant in self._committed.states:
            return self._committed.states[tenant].copy()
        sql = "SELECT id, seq, at, audit_n, audit_hash FROM tenants WHERE name = ?"
        for row in self._db.execute(sql, (tenant,)):
            return TenantState(*_STATE.checked(row))
        self._db.execute("INSERT INTO tenants(name) VALUES(?)", (tenant,))
        return TenantState(*fetch_one(self._db, sql, (tenant,)))

    def _finish(self, group: _Group) -> None:
        for state in group.states.values():
            if state.changed:
                self._db.execute(
                    "UPDATE tenants SET seq = ?, at = ?, audit_n = ?, audit_hash = ? WHERE id = ?",
                    (state.seq, state.at, state.audit_n, state.audit_hash, state.id),
                )
        self._db.execute("COMMIT")
        for tenant, state in group.states.items():
            self._committed.states[tenant] = state  # which is the group's alone, and it is done
            state.changed = False
        self._committed.scopes.update(group.scopes)

    def _run_exclusive(self, job: Job) -> None:
        try:
            self._lock.acquire(WAIT_SECONDS)
            self._committed = _CommittedState()
            try:
                require_in_place(self._db, self._files)
                job.result = job.work(self._db)
            finally:
                self._lock.release()
        except BaseException as error:
            self._roll_back()
            job.error = self._fault(error)

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            try:
                self._db.execute("ROLLBACK")
            except apsw.Error:
                log.exception("rollback failed")

    def _void_log(self) -> bool:
        """Write over what a failed commit left at the end of the log; False when that fails, too."""
        try:
            # SQLite writes no page that is as it was, so something must come and go.
            self._db.execute("BEGIN IMMEDIATE; INSERT INTO meta VALUES('void', 0); DELETE FROM meta WHERE key = 'void'")
            self._db.execute("COMMIT")
        except apsw.Error:
            log.exception("a commit failed, and what it left in the log could not be written over")
            self._roll_back()
            return False
        return True

    def _fault(self, error: BaseException) -> BaseException:
        path = self._files.database
        if isinstance(error, _UnsureCommit):
            unsure = "whether this was kept shows when it is opened again"
            look = "look whether it is there before you repeat it"
            fault = OperatorActionRequired(
                f"{path} could not be written ({error}): {unsure}", hint=f"free space or repair the disk, then {look}"
            )
            return with_public(fault, f"the store could not be written: {unsure}", look)
        if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
            return damaged(path, str(error))
        if isinstance(error, apsw.FullError):
            return _not_written(OperatorActionRequired(f"the disk that holds {path} is full", hint=_NOTHING))
        if isinstance(error, apsw.BusyError):
            return _not_written(Unavailable(f"{path} is locked by another program", hint=f"{_NOTHING}, try again"))
        if isinstance(error, LockTimeout):
            return _not_written(
                Unavailable(
                    f"other processes kept {path} locked for {WAIT_SECONDS:.0f} s",
                    hint=f"{_NOTHING}, try again (`commonplace status` shows the store)",
                )
            )
        if isinstance(error, (apsw.Error, OSError)):
            lasting = isinstance(error, (apsw.ReadOnlyError, apsw.CantOpenError))
            kind = OperatorActionRequired if lasting else Unavailable
            return _not_written(kind(f"{path} could not be written: {error}", hint=_NOTHING))
        return explained(self._db, self._files, error)


def _not_written(fault: Unavailable) -> Unavailable:
    return with_public(fault, "the store could not be written", _NOTHING)


def _failed_in_sync(error: BaseException) -> bool:
    """Whether everything was written, and only then the disk said that it may not stay. Else the log ends in the middle
    of a transaction, which nobody ever takes up."""
    return getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_FSYNC
