"""The two ways to the database: many readers, each read one consistent view, and the one writer (see `writer`)."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import apsw

from commonplace.stores.base import Reach
from commonplace.stores.sqlite.cells import wrong_cell
from commonplace.stores.sqlite.files import StoreFiles, connect, damaged, require_in_place
from commonplace.stores.worker_threads import ReaderThreads, usable_cores
from commonplace.wire.errors import Fault, Unavailable, ValidationError, with_public

if TYPE_CHECKING:
    from commonplace.stores.sqlite.writer import Writer

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="StorePart")
Read = Callable[[apsw.Connection], T]
Method = Callable[Concatenate[S, apsw.Connection, P], T]
_MOST_THREADS = 4
#: What reading a cell that holds something else ends in.
_OF_CELLS = (ValueError, TypeError, LookupError, AttributeError, AssertionError, ArithmeticError)
AwaitedMethod = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


class ReaderPool:
    """A few threads, each with a connection that only ever reads."""

    def __init__(self, writable: apsw.Connection, files: StoreFiles) -> None:
        self._writable = writable
        self._files = files
        # More than there are cores wait for the interpreter, not for the disk: with 32 clients on two cores a recall
        # took a fifth more CPU with four threads than with two.
        self._threads = ReaderThreads(min(_MOST_THREADS, max(2, usable_cores())))
        self._local = threading.local()
        self._all: list[apsw.Connection] = []
        self._lock = threading.Lock()

    async def run(self, read: Read[T], before: Read[None] | None = None) -> T:
        return await self._threads.run(lambda: self.run_here(read, before))

    async def run_scan(self, tenant: str, read: Read[T], before: Read[None] | None = None) -> T:
        return await self._threads.run_scan(tenant, lambda: self.run_here(read, before))

    def run_here(self, read: Read[T], before: Read[None] | None = None) -> T:
        """Read on the calling thread, inside one read transaction; `before` runs ahead of it."""
        db = self._connection()
        try:
            if before is not None:
                before(db)
            db.execute("BEGIN")
            try:
                return read(db)
            finally:
                db.execute("COMMIT")
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise damaged(self._files.database, str(error)) from error
        except UnicodeEncodeError:  # of a name or an id that was asked for: nothing is kept that is not text
            raise ValidationError("what was asked for holds half of a surrogate pair, which is not text") from None
        except apsw.Error as error:
            fault = Unavailable(f"{self._files.database} could not be read: {error}")
            raise with_public(fault, "the store could not be read") from error
        except Fault:
            raise
        except Exception as error:
            raise explained(db, self._files, error) from error

    def close(self) -> None:
        self._threads.close()
        for db in self._all:
            db.close()

    def _connection(self) -> apsw.Connection:
        db: apsw.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = connect(self._files.database)
            try:  # each begins at its first read, and would see what has taken the place of the file since
                require_in_place(self._writable, self._files)
            except Unavailable:
                db.close()
                raise
            db.execute("PRAGMA query_only=ON")
            self._local.db = db
            with self._lock:
                self._all.append(db)
        return db


def explained(db: apsw.Connection, files: StoreFiles, error: BaseException) -> BaseException:
    """What went wrong in reading rows: a cell that holds what it cannot, if there is one, else the error itself."""
    why = wrong_cell(db) if isinstance(error, _OF_CELLS) else None
    return error if why is None else damaged(files.database, why)


class StorePart:
    """What the parts of a store have in common; `read` and `exclusive` make their methods."""

    files: StoreFiles
    _readers: ReaderPool
    _writer: Writer


def read(method: Method[S, P, T]) -> AwaitedMethod[S, P, T]:
    """A method that is awaited and runs on a reader's thread, given its connection inside one read transaction."""

    @functools.wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._readers.run(lambda db: method(self, db, *args, **kwargs))

    return run


def scan_read(
    method: Callable[Concatenate[S, apsw.Connection, Reach, P], T],
) -> Callable[Concatenate[S, Reach, P], Coroutine[Any, Any, T]]:
    """As `read`, for what may look at all that is in reach."""

    @functools.wraps(method)
    async def run(self: S, reach: Reach, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._readers.run_scan(reach.tenant, lambda db: method(self, db, reach, *args, **kwargs))

    return run


def exclusive(method: Method[S, P, T]) -> AwaitedMethod[S, P, T]:
    """A method that is awaited and runs alone on the writer's thread, given the writer's connection outside any
    transaction, while this process holds the write lock."""

    @functools.wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._writer.submit(None, lambda db: method(self, db, *args, **kwargs))
        return result

    return run
