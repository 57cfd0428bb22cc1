"""The ways to the database: many readers, each read one consistent view, and writers (see `writer`); and what is said
when there is no way."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from commonplace.stores.base import Reach
from commonplace.stores.postgres import text_cells
from commonplace.stores.postgres.address import Address
from commonplace.stores.worker_threads import ReaderThreads
from commonplace.wire.errors import Fault, OperatorActionRequired, Unavailable, ValidationError

if TYPE_CHECKING:
    from commonplace.stores.postgres.writer import Writer

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="StorePart")
Rows = list[tuple[Any, ...]]

#: What a statement ends in whose tables another process has just replaced by those of another embedder.
_REPLACED = (errors.UndefinedTable, errors.UndefinedColumn)


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


class ReaderPool:
    """As many connections as there are threads that read, made when they are needed and again when they are lost."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._threads = ReaderThreads(address.pool)
        self._local = threading.local()
        self._all: list[Session] = []
        self._lock = threading.Lock()

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
            try:
                session = self._session()
                with session.connection.pipeline():
                    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    result = read(session)
                    session.execute("COMMIT")
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

    def close(self) -> None:
        self._threads.close()
        for session in self._all:
            session.close()

    def _session(self) -> Session:
        session: Session | None = getattr(self._local, "session", None)
        if session is None or not session.usable:
            if session is not None:
                self._local.session = None  # now: opening another may fail, and then the next call begins here again
                with self._lock:
                    self._all.remove(session)
            session = self._local.session = Session(self._address)
            with self._lock:
                self._all.append(session)
        return session


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
    """What a caller is told; the sentence names the database and never its password."""
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
