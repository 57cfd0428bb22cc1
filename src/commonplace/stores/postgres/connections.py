"""The ways to the database: many readers, each read one consistent view, and writers (see `writer`); and what is said
when there is no way."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from commonplace.stores.base import Reach
from commonplace.stores.postgres import text_cells
from commonplace.stores.postgres.address import Address
from commonplace.stores.worker_threads import ReaderThreads, WorkerThreads
from commonplace.wire.errors import Fault, OperatorActionRequired, Unavailable, ValidationError, with_public

if TYPE_CHECKING:
    from commonplace.stores.postgres.writer import Writer

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="StorePart")
Rows = list[tuple[Any, ...]]

#: Seconds between two attempts to find the server that takes writes, while another answers the reads.
LOOK_AGAIN = 1.0

#: What a statement ends in whose tables another process has just replaced by those of another embedder.
_REPLACED = (errors.UndefinedTable, errors.UndefinedColumn)


class _WithoutBrokenPipelines(logging.Filter):
    """Leaves out what psycopg says of the end of a pipeline whose connection is lost: that it is lost is raised, and
    told where it is of use, and a line for each pipeline would bury that."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_end = isinstance(record.msg, str) and record.msg.startswith("error ignored terminating ")
        return not (is_end and "[BAD]" in record.getMessage().partition(": ")[0])


logging.getLogger("psycopg").addFilter(_WithoutBrokenPipelines())


class Session:
    """One connection, used by one thread at a time. Statements are sent ahead: only what is read is waited for."""

    def __init__(self, address: Address) -> None:
        self.connection = psycopg.connect(**address.parameters, autocommit=True)
        self.scopes: dict[tuple[int, str], int] = {}
        text_cells.register(self.connection)
        self._cursors = functools.partial(self.connection.cursor, binary=True)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        """Marks are %s. Without values several statements may be given at once."""
        cursor = self._cursors()
        if values:
            return cursor.execute(sql.encode(), values)
        return self.connection.cursor().execute(sql.encode())

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self._cursors().executemany(sql.encode(), rows)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self.execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        return self.execute(sql, values).fetchone()

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The row of a statement that always has one."""
        row = self.execute(sql, values).fetchone()
        assert row is not None
        return row

    @property
    def usable(self) -> bool:
        return not self.connection.closed and not self.connection.broken

    def roll_back(self) -> None:
        """Leave whatever transaction there is; the connection may be gone meanwhile."""
        try:
            if self.usable and self.connection.info.transaction_status != TransactionStatus.IDLE:
                self.connection.rollback()
        except psycopg.Error:
            self.close()

    def close(self) -> None:
        self.connection.close()


Read = Callable[[Session], T]

#: How far the log of a leader holds commits that others may see: where commits wait for the disk all of them are
#: flushed, and a standby gets no more than that.
_COMMITTED_TO = (
    "SELECT pg_wal_lsn_diff(CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() "
    "ELSE pg_current_wal_flush_lsn() END, '0/0')::bigint"
)
#: How far whoever takes no writes has come: a standby, or a leader that is told to take none.
_REPLAYED_TO = (
    "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
    "ELSE pg_current_wal_insert_lsn() END, '0/0')::bigint"
)


def committed_to(session: Session) -> int | None:
    """How far a standby must have come to know of the commit that was the last on this connection; None where that
    cannot be told any more."""
    try:
        return int(session.one(_COMMITTED_TO)[0])
    except psycopg.Error:
        session.roll_back()
        return None


class ReaderPool:
    """As many connections as there are threads that read, made when they are needed and again when they are lost.

    They go to the server that takes writes. Where the address allows it, another answers while there is none, if it has
    all that this process has committed or read there: what was erased must not come back, nor a token that was revoked.
    It is left again as soon as this process has seen more, and otherwise when one of the threads, each second, has
    found the other.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._threads = ReaderThreads(address.pool)
        self._local = threading.local()
        self._all: list[Session] = []
        self._lock = threading.Lock()
        self._commits = 0
        self._seen: int | None = None  # of the leader's log; None: nobody can tell what a standby must have
        self._standbys: dict[Session, int] = {}  # connections to one, and how much of the log it was known to have
        self._look_at = 0.0

    def note_commit(self, position: int | None) -> None:
        """Whoever reads from now on must see what was committed, which ends there in the log."""
        with self._lock:
            self._commits += 1
            # After one whose end is not known another's may be from before it: only a later read tells again.
            self._seen = None if position is None or self._seen is None else max(self._seen, position)

    def _note_read(self, position: int, commits: int) -> None:
        """What a leader showed must not be taken back. `commits` is how many were made before the read began: where
        nothing is known, it must have seen all of them."""
        with self._lock:
            if self._seen is not None or commits == self._commits:
                self._seen = max(self._seen or 0, position)

    async def run(self, read: Read[T]) -> T:
        return await self._threads.run(lambda: self.run_here(read))

    async def run_scan(self, tenant: str, read: Read[T]) -> T:
        return await self._threads.run_scan(tenant, lambda: self.run_here(read))

    def run_here(self, read: Read[T]) -> T:
        """Read on the calling thread, in one view of the database. What fails because the connection was lost, or
        because tables were replaced, is read again: nothing has come of it."""
        again = True
        while True:
            session: Session | None = None
            commits = self._commits
            try:
                session = self._session()
                of_leader = self._address.reads_any and session not in self._standbys
                with session.connection.pipeline():
                    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    result = read(session)
                    # After the view was taken, so that it ends behind every commit in it.
                    position = session.execute(_COMMITTED_TO) if of_leader else None
                    session.execute("COMMIT")
                if position is not None and (row := position.fetchone()) is not None:
                    self._note_read(int(row[0]), commits)
                return result
            except psycopg.Error as error:
                lost = session is not None and not session.usable
                if session is not None:
                    session.roll_back()
                if not again or not (lost or isinstance(error, _REPLACED)):
                    raise fault_of(error, self._address, "read") from error
                again = False
            except UnicodeEncodeError:  # of a name or an id that was asked for: nothing is kept that is not text
                self._roll_back(session)
                raise ValidationError("what was asked for holds half of a surrogate pair, which is not text") from None
            except BaseException:
                self._roll_back(session)
                raise

    @staticmethod
    def _roll_back(session: Session | None) -> None:
        if session is not None:
            session.roll_back()

    def close(self, until: float) -> bool:
        return close_threads(self._threads, self._all, until)

    def _session(self) -> Session:
        session: Session | None = getattr(self._local, "session", None)
        if session is not None and session.usable and not self._is_outdated(session):
            return session
        # Before anything is changed: it may fail, and then the next call begins here again.
        fresh, replayed = self._connect(session if session is not None and session.usable else None)
        with self._lock:
            if session is not None and session is not fresh:
                self._all.remove(session)
                self._standbys.pop(session, None)
                session.close()
            if session is not fresh:
                self._all.append(fresh)
            if replayed is not None:
                self._standbys[fresh] = replayed
        self._local.session = fresh
        return fresh

    def _connect(self, held: Session | None) -> tuple[Session, int | None]:
        """A connection, and how much of the log its server has where that takes no writes."""
        try:
            found = Session(self._address)
            self._look_at = 0.0  # the others need not wait
            return found, None
        except psycopg.OperationalError as error:
            if not self._address.reads_any:
                raise
            return self._connect_standby(held, error)

    def _connect_standby(self, held: Session | None, why: psycopg.OperationalError) -> tuple[Session, int]:
        """`held`, or one to the first server that has all that was seen: each is asked, since one may lag behind."""
        if held is not None and (replayed := self._replayed(held)) is not None:
            return held, replayed
        for address in self._address.of_each_server:
            try:
                session = Session(address)
            except psycopg.OperationalError:
                continue
            if (replayed := self._replayed(session)) is not None:
                return session, replayed
            session.close()
        said = " ".join(str(why).split())
        raise psycopg.OperationalError(
            f"no server takes writes, and none that only reads is known to have all that was seen here ({said})"
        )

    def _replayed(self, session: Session) -> int | None:
        """How much of the log the server has; None where that is less than this process has seen of it, or where
        that cannot be told. What was seen is taken first: it may become more meanwhile."""
        seen = self._seen
        try:
            (replayed,) = session.one(_REPLAYED_TO)
        except psycopg.Error:
            session.close()
            return None
        return replayed if seen is not None and replayed is not None and replayed >= seen else None

    def _is_outdated(self, session: Session) -> bool:
        if (replayed := self._standbys.get(session)) is None:
            return False
        if self._seen is None or replayed < self._seen:
            return True
        with self._lock:
            # One of the threads at a time: where a machine is gone without a word, each attempt takes seconds.
            now = time.monotonic()
            due = now >= self._look_at
            if due:
                self._look_at = now + LOOK_AGAIN
        return due


def close_threads(threads: WorkerThreads | ReaderThreads, sessions: Sequence[Session], until: float) -> bool:
    """Whether all that was asked is finished by then; what is not goes on, and nobody waits for it."""

    def close_sessions() -> None:
        for session in sessions:
            session.close()

    def close_later() -> None:
        threads.close()
        close_sessions()

    is_finished = threads.close(until)
    if is_finished:
        close_sessions()
    else:  # not while a thread waits at one
        threading.Thread(target=close_later, name="commonplace-closing", daemon=True).start()
    return is_finished


def sentence_of(error: psycopg.Error) -> str:
    """What the database says, without the row that it may quote: never its DETAIL, and nothing of an error in data."""
    if error.sqlstate is None:  # the client's own, such as of a server that is not there
        said = str(error) if isinstance(error, psycopg.OperationalError) else type(error).__name__
    elif error.sqlstate.startswith("22"):
        said = f"{type(error).__name__} ({error.sqlstate})"
    else:
        said = error.diag.message_primary or type(error).__name__
    return " ".join(said.split())


def fault_of(error: psycopg.Error, address: Address, verb: str, hint: str | None = None) -> Fault:
    """What an operator is told; the sentence names the database and never its password. `hint` is for everyone."""
    return with_public(_fault_of(error, address, verb, hint), f"the store could not be {verb}", hint)


def _fault_of(error: psycopg.Error, address: Address, verb: str, hint: str | None) -> Fault:
    said = sentence_of(error)
    lasting = {
        "password authentication failed": (f"refused user {address.user!r}: wrong password", "correct the store URL"),
        "no password supplied": ("wants a password", "write it into the store URL, or into PGPASSWORD or ~/.pgpass"),
        'extension "vector" is not available': ("lacks the extension pgvector", "install pgvector on that server"),
        "permission denied to create extension": (
            "has no extension pgvector", "have an administrator run: CREATE EXTENSION vector"
        ),
    }  # fmt: skip
    for part, (what, advice) in lasting.items():
        if part in said:
            return OperatorActionRequired(f"{address} {what}", hint=advice)
    if "does not exist" in said and ("database" in said or "role" in said) and error.sqlstate is None:
        return OperatorActionRequired(f"{address} has no such database or user ({said[-120:]})", hint="create it")
    if isinstance(error, errors.InsufficientPrivilege):  # whoever tries again is refused again
        hint = f"grant user {address.user!r} reading and writing in the schema {address.schema}"
        if said.startswith("permission denied for database"):
            hint = f"have an administrator make the schema {address.schema} for user {address.user!r}"
    kind = OperatorActionRequired if isinstance(error, (errors.DiskFull, errors.InsufficientPrivilege)) else Unavailable
    return kind(f"{address} could not be {verb}: {said[:300]}", hint=hint)


class StorePart:
    """What the parts of a store have in common; `read`, `scan_read` and `exclusive` make their methods."""

    address: Address
    _readers: ReaderPool
    _writer: Writer


Method = Callable[Concatenate[S, Session, P], T]
AwaitedMethod = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


def read(method: Method[S, P, T]) -> AwaitedMethod[S, P, T]:
    """A method that is awaited and runs on a reader's thread, given its connection inside one read transaction."""

    @functools.wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._readers.run(lambda db: method(self, db, *args, **kwargs))

    return run


def scan_read(
    method: Callable[Concatenate[S, Session, Reach, P], T],
) -> Callable[Concatenate[S, Reach, P], Coroutine[Any, Any, T]]:
    """As `read`, for what may look at all that is in reach."""

    @functools.wraps(method)
    async def run(self: S, reach: Reach, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._readers.run_scan(reach.tenant, lambda db: method(self, db, reach, *args, **kwargs))

    return run


def exclusive(method: Method[S, P, T]) -> AwaitedMethod[S, P, T]:
    """A method that is awaited and runs in one transaction of its own, while no process writes anything."""

    @functools.wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._writer.run_alone(lambda db: method(self, db, *args, **kwargs))
        return result

    return run
