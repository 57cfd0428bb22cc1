"""Writing: units of work of one tenant share commits, and several servers take turns by the tenant's row.

psycopg is used synchronously, in threads: a unit of work is a plain function that reads and writes as it goes. While
one commit is under way, what others ask for of the same tenant gathers and shares the next.
"""

from __future__ import annotations

import logging
import threading
from collections import ChainMap, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from commonplace.stores.commit_groups import Job, TenantState, deliver
from commonplace.stores.postgres.address import Address
from commonplace.stores.postgres.connections import Session, close_threads, committed_to, fault_of, sentence_of
from commonplace.stores.postgres.queries import read_meta
from commonplace.stores.postgres.transaction import BLOCK, Embedders, PostgresTransaction
from commonplace.stores.worker_threads import WorkerThreads
from commonplace.wire.errors import Fault, OperatorActionRequired, Unavailable, with_public
from commonplace.wire.record import Clock

T = TypeVar("T")
GROUP_WRITES = 256
THREADS = 4
_NOTHING = "nothing was written, try again"
_LOOK = "look whether it is there before you repeat it"
_LOCK = "SELECT id, seq, at, audit_n, audit_hash FROM tenants WHERE name = %s FOR UPDATE"

log = logging.getLogger("commonplace.postgres")

#: Told, after every commit, which scopes have how many live memories more, and where in the log it ends, if known.
OnCommit = Callable[[dict[int, int], int | None], None]


@dataclass(slots=True)
class _Queue:
    """What waits to be done for one tenant."""

    jobs: deque[Job] = field(default_factory=deque)
    served: bool = False  # a thread is at it


class Writer:
    def __init__(self, address: Address, clock: Clock, on_commit: OnCommit) -> None:
        self._address, self._clock, self._on_commit = address, clock, on_commit
        self._threads = WorkerThreads(min(THREADS, address.pool), "commonplace-writer")
        self._queues: dict[str, _Queue] = {}
        self._lock = threading.Lock()
        self._local = threading.local()
        self._all: list[Session] = []

    async def submit(self, tenant: str, work: Callable[[Any], Any]) -> Any:
        job = Job.of_caller(work, tenant)
        with self._lock:
            queue = self._queues.setdefault(tenant, _Queue())
            if not queue.served:
                self._threads.start(lambda: self._serve(tenant, queue))
                queue.served = True
            queue.jobs.append(job)
        return await job.future

    async def run_alone(self, work: Callable[[Session], T]) -> T:
        """Work in a transaction of its own, while nobody writes: every writer holds a row of this table."""
        return await self._threads.run(lambda: self._run_alone(work))

    async def run_outside(self, work: Callable[[Session], T]) -> T:
        """Work outside any transaction, beside whoever reads and writes."""
        return await self._threads.run(lambda: self._run_outside(work))

    def close(self, until: float) -> bool:
        return close_threads(self._threads, self._all, until)

    # on a writer's thread

    def _run_alone(self, work: Callable[[Session], T]) -> T:
        session, committing = None, False
        try:
            session = self._ready(_begin_alone)
            result = work(session)
            committing = True
            session.execute("COMMIT")
            self._on_commit({}, self._end_of_commit(session))
            return result
        except psycopg.Error as error:
            # A server that refuses a commit goes on answering. Of one whose answer is lost nothing in the tables tells
            # whether it was kept: there is no entry of the audit chain to look for.
            unsure = committing and session is not None and not session.usable
            if session is not None:
                session.roll_back()
            raise (self._unsure() if unsure else fault_of(error, self._address, "written", _NOTHING)) from error
        except BaseException:
            if session is not None:
                session.roll_back()
            raise

    def _run_outside(self, work: Callable[[Session], T]) -> T:
        try:
            return work(self._session())
        except psycopg.Error as error:
            raise fault_of(error, self._address, "maintained") from error

    def _serve(self, tenant: str, queue: _Queue) -> None:
        while True:
            with self._lock:
                jobs = [queue.jobs.popleft() for _ in range(min(len(queue.jobs), GROUP_WRITES))]
                if not jobs:
                    queue.served = False
                    self._queues.pop(tenant, None)
                    return
            wanted = [job for job in jobs if not job.future.cancelled()]
            try:
                if wanted:
                    self._commit(tenant, wanted)
            except BaseException as error:  # whoever waits must hear of it
                for job in wanted:
                    job.error = job.error or error
            deliver(jobs, log)
            # There are fewer threads than tenants, and of a busy one somebody always waits.
            if self._threads.start_behind(lambda: self._serve(tenant, queue)):
                return

    def _commit(self, tenant: str, jobs: list[Job]) -> None:
        group = _Group(tenant)
        session: Session | None = None
        position: int | None = None
        try:
            session = self._ready(lambda fresh: self._begin(fresh, tenant, group))
            for job in jobs:
                self._perform(session, group, job, shared=len(jobs) > 1)
            self._finish(session, group)
            position = self._end_of_commit(session)
        except BaseException as error:
            if session is not None:
                group.refused = session.usable  # a server that refuses a commit goes on answering
                session.roll_back()
            if (fault := self._after_failure(error, group)) is not None:
                for job in jobs:
                    job.error = job.error or fault
                return
        self._on_commit(group.grown, position)

    def _end_of_commit(self, session: Session) -> int | None:
        """Asked only where a standby may answer reads: it takes another round trip."""
        return committed_to(session) if self._address.reads_any else None

    def _ready(self, begin: Callable[[Session], None]) -> Session:
        """A connection that holds the lock it needs. One that was lost while nobody used it is made anew, once."""
        for last in (False, True):
            session = self._session()
            try:
                begin(session)
                return session
            except (psycopg.OperationalError, errors.ReadOnlySqlTransaction):
                # A server that was demoted goes on answering, but takes no writes: the next connection finds another.
                session.close()
                if last:
                    raise
        raise AssertionError

    def _begin(self, session: Session, tenant: str, group: _Group) -> None:
        with session.connection.pipeline():
            session.execute("BEGIN")
            locked = session.execute(_LOCK, (tenant,))
            # Statements of their own: they must see what was committed before the lock was given.
            numbers = session.execute("SELECT nextval('numbers')", ())
            meta = read_meta(session)
            row = locked.fetchone()
            number = numbers.fetchone()
        if row is None:
            session.execute("INSERT INTO tenants(name) VALUES(%s) ON CONFLICT DO NOTHING", (tenant,))
            row = session.one(_LOCK, (tenant,))
        assert number is not None
        group.state = TenantState(*row)
        group.begun_at = group.state.audit_n
        group.embedders = Embedders.of(meta)
        group.numbers = [*range(number[0], number[0] + BLOCK)]

    def _perform(self, session: Session, group: _Group, job: Job, shared: bool) -> None:
        assert group.state is not None
        assert group.embedders is not None
        before = group.state.copy()
        now, leapt = group.state.next_time(self._clock, group.tenant, log)
        scopes = ChainMap({}, group.scopes, session.scopes)
        tx = PostgresTransaction(session, group.state, now, group.embedders, group.numbers, scopes, shared, leapt)
        try:
            with session.connection.pipeline():
                job.result = job.work(tx)
        except psycopg.Error:
            raise  # the database itself failed: nobody in this group may be told it went well
        except BaseException as error:
            job.error = error
            group.state = before
            if tx.savepoint:
                session.execute("ROLLBACK TO work")
                session.execute("RELEASE work")
            elif tx.wrote:  # it was alone: nothing of this transaction is wanted
                session.execute("ROLLBACK")
                self._begin(session, group.tenant, group)
            return
        if tx.savepoint:
            session.execute("RELEASE work")
        group.scopes.update(scopes.maps[0])
        for scope, more in tx.grown.items():
            group.grown[scope] = group.grown.get(scope, 0) + more

    def _finish(self, session: Session, group: _Group) -> None:
        state = group.state
        assert state is not None
        if state.changed:
            session.execute(
                "UPDATE tenants SET seq = %s, at = %s, audit_n = %s, audit_hash = %s WHERE id = %s",
                (state.seq, state.at, state.audit_n, state.audit_hash, state.id),
            )
        group.committing = True
        session.execute("COMMIT")
        session.scopes.update(group.scopes)

    def _after_failure(self, error: BaseException, group: _Group) -> BaseException | None:
        """What the callers are told; None when their work was committed after all."""
        if not isinstance(error, psycopg.Error):
            return error
        state = group.state
        if not group.committing or group.refused or state is None or not state.changed:
            return fault_of(error, self._address, "written", _NOTHING)
        try:
            is_committed = self._is_committed(group.tenant, state, group.begun_at)
        except psycopg.Error as later:
            log.warning("nobody could be asked what became of a commit: %s", sentence_of(later))
            return self._unsure("whether this was kept shows when it answers again")
        if is_committed is None:
            return self._unsure()
        if is_committed:
            return None
        lost = f"the connection to {self._address} was lost"
        return with_public(Unavailable(lost, hint=_NOTHING), "the store could not be written", _NOTHING)

    def _unsure(self, unsure: str = "this may have been kept") -> Fault:
        lost = f"the connection to {self._address} was lost during a commit: {unsure}"
        public = f"the store stopped answering during a commit: {unsure}"
        return with_public(OperatorActionRequired(lost, hint=_LOOK), public, _LOOK)

    def _is_committed(self, tenant: str, state: TenantState, begun_at: int) -> bool | None:
        """Asked of whoever answers now. The tenant's lock comes first: a commit that is still under way has it. The
        hash of the last entry of the audit chain is nobody else's; work that began at it and added none has no such
        sign, as another's may have taken the number that it had, and None says so.

        Taking the lock is a write, so this commit waits for the standbys where commits do: a server on its own, whose
        commit no standby has, does not get to answer yes."""
        session = self._session()
        try:
            session.execute("BEGIN")
            row = session.row(_LOCK, (tenant,))
            found = session.row(
                "SELECT 1 FROM audit WHERE tenant_id = %s AND n = %s AND hash = %s",
                (state.id, state.audit_n, state.audit_hash),
            )
            session.execute("COMMIT")
        finally:
            session.roll_back()
        if row is None or row[1] < state.seq:
            return False
        return found is not None if state.audit_n > begun_at else None

    def _session(self) -> Session:
        session: Session | None = getattr(self._local, "session", None)
        if session is None or not session.usable:
            fresh = Session(self._address)
            with self._lock:
                if session is not None:
                    self._all.remove(session)
                self._all.append(fresh)
            self._local.session = session = fresh
        return session


def _begin_alone(session: Session) -> None:
    session.execute("BEGIN")
    session.execute("LOCK TABLE tenants IN EXCLUSIVE MODE")


@dataclass(slots=True)
class _Group:
    """Work that shares one commit."""

    tenant: str
    state: TenantState | None = None
    begun_at: int = 0  # the last entry of the ledger before it
    embedders: Embedders | None = None
    numbers: list[int] = field(default_factory=list)
    scopes: dict[tuple[int, str], int] = field(default_factory=dict)  # those met for the first time
    grown: dict[int, int] = field(default_factory=dict)
    committing: bool = False
    refused: bool = False  # by a server that is there
