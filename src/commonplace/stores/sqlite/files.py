"""The files of one store, opened with care: a damaged or newer one is refused and left as it is."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path

import apsw

from commonplace.stores.optional import Progress
from commonplace.stores.sqlite import schema
from commonplace.stores.sqlite.fair_lock import FairLock, LockTimeout
from commonplace.wire.durable import sync_file, sync_folder
from commonplace.wire.errors import Conflict, OperatorActionRequired, Unavailable, UnusableStore, with_public

log = logging.getLogger("commonplace.sqlite")
_MAGIC = b"SQLite format 3\x00"
_CHECKED_WHOLE = 16 << 20  # files up to this size are checked page by page at open; it takes milliseconds
BUSY_TIMEOUT_MS = 10_000
MIGRATION_SECONDS = 600  # that one process waits while another brings a large store up to date
#: It may be the data folder's own store, or one that a URL names, such as a copy. What is said further follows a
#: semicolon, so there is no full stop.
_CHOOSE_ANOTHER = "Choose another with --data or COMMONPLACE_DATA, or in the URL of the store"
_PUT_IT_BACK = "and nothing is written to it; stop, put back the right one and start again"

#: The files that this process has open for writing, by device and inode.
_open: dict[apsw.Connection, tuple[int, int]] = {}
_opening = threading.Lock()


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """Everything a store keeps lies beside its database file: under the stem of `name.db`, else the whole name."""

    database: Path

    @property
    def segments(self) -> Path:
        return self._beside(".segments")

    @property
    def second_segments(self) -> Path:
        return self._beside(".second-segments")

    @property
    def vec0(self) -> Path:
        """Where `sqlite-vec://` keeps its table, whoever has opened the store since."""
        return self._beside(".vec0.db")

    @property
    def backups(self) -> Path:
        return self._beside(".backups")

    @property
    def lock(self) -> Path:
        return self._beside(".lock")

    def _beside(self, suffix: str) -> Path:
        # Only .db is replaced: notes.db and notes.sqlite must not share files, nor x.lock become its own lock.
        is_db = self.database.suffix == ".db"
        return self.database.with_suffix(suffix) if is_db else Path(f"{self.database}{suffix}")

    @property
    def wal(self) -> Path:
        return Path(f"{self.database}-wal")

    def before_migration(self) -> list[Path]:
        """Copies of what was before a migration or a restore, and what is left of one that broke off."""
        return sorted(self.backups.glob("before-*.db*")) if self.backups.is_dir() else []


def connect(path: Path) -> apsw.Connection:
    try:
        # Never creates it: a database that someone has removed must not come back empty.
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError as error:
        hint = "Check that the folder exists and is writable."
        raise OperatorActionRequired(f"cannot open {path}: {error}. {hint}") from error
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    # Without this, statements that partial indexes concern are planned anew whenever a value is bound: 5 to 50 µs each.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.execute("PRAGMA foreign_keys=OFF; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-16000")
    return db


def open_writable(files: StoreFiles) -> apsw.Connection:
    """The writer's connection, on a database that is ours, whole, and of the current schema."""
    # First, because a name that is too long is seen only where its folder is there.
    make_private_folder(files.database.parent, f". {_CHOOSE_ANOTHER}")
    try:
        is_folder = files.database.is_dir()
    except OSError as error:  # a folder above may not be entered, or a name is too long
        said = f"cannot open {files.database}: {error.strerror}. {_CHOOSE_ANOTHER}"
        raise OperatorActionRequired(said) from error
    if is_folder:
        raise UnusableStore(f"{files.database} is a folder, and a store is a file; name one in it")
    with _opening:
        # Reading the bytes ends with closing a handle, which drops every lock this process has on the file: so never
        # while it is in use here. Whoever opened it first has looked.
        if not files.database.exists() or files.database.stat().st_size == 0:
            # Created and never written to, after a crash; but nothing is indexed that was not written.
            if files.database.exists() and any(files.segments.glob("*/*")):
                raise damaged(files.database, f"it is empty, but {files.segments.name} has an index of what was in it")
            _create_private(files.database)
        elif _identity(files) not in _open.values():
            _check_header(files)
        db = _open_checked(files)
        _open[db] = _identity(files)
    return db


def close_writable(db: apsw.Connection) -> None:
    with _opening:
        db.close()
        _open.pop(db, None)


def require_in_place(db: apsw.Connection, files: StoreFiles) -> None:
    """Refuse to go on in a file that its path no longer leads to: an open one can be written when it was deleted, or
    when a copy of it has taken its place, and all that is lost. With a write-ahead log SQLite itself does not look."""
    try:
        is_same = _identity(files) == _open[db]
    except (FileNotFoundError, NotADirectoryError):
        raise _out_of_place(f"{files.database} is gone") from None
    if not is_same:
        raise _out_of_place(f"{files.database} is another file than the one that was opened")


def _out_of_place(what: str) -> Unavailable:
    return with_public(Unavailable(f"{what}, {_PUT_IT_BACK}"), "the store is gone, and nothing is written to it")


def _identity(files: StoreFiles) -> tuple[int, int]:
    found = files.database.stat()
    return found.st_dev, found.st_ino


def _open_checked(files: StoreFiles) -> apsw.Connection:
    db, path = None, files.database
    try:
        db = connect(path)
        # Read to the end: a statement that answers with a row holds back those after it.
        db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON").fetchall()
        db.execute("PRAGMA wal_autocheckpoint=2000; PRAGMA journal_size_limit=67108864").fetchall()
        db.execute(
            "PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON"
        ).fetchall()  # as `wire.durable`, on macOS alone
        _migrate(db, files)
    except BaseException as error:
        if db is not None:
            db.close()
        if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
            raise damaged(path, str(error)) from error
        if isinstance(error, apsw.FullError):
            raise OperatorActionRequired(f"the disk that holds {path} is full; free some space first") from error
        if isinstance(error, apsw.Error):
            kind = Unavailable if isinstance(error, apsw.BusyError) else OperatorActionRequired
            hint = "is its folder, or the disk, read-only?"
            raise kind(f"{path} cannot be opened for writing ({error}); {hint}") from error
        raise
    return db


def require_unused(files: StoreFiles) -> None:
    """Raises unless no other process has the store open; one that is damaged nobody can use."""
    try:
        db = connect(files.database)
        db.set_busy_timeout(0)
        try:
            # Only who is alone can leave the write-ahead log, whose content goes into the file first.
            db.execute("PRAGMA journal_mode=DELETE").fetchall()
        finally:
            db.close()
    except (apsw.BusyError, apsw.LockedError):
        raise Conflict(
            f"{files.database} is in use; stop what uses it (a server, an agent's MCP process) first"
        ) from None
    except (apsw.Error, OperatorActionRequired):
        pass


def damaged(path: Path, why: str) -> UnusableStore:
    return UnusableStore(
        f"{path} is damaged ({why}). Nothing was changed. Put a backup in its place, or move it away to start anew; "
        "docs/upkeep.md says how."
    )


def make_private_folder(folder: Path, advice: str = "") -> None:
    if not folder.is_dir():
        try:
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        except OSError as error:
            sentence = f"cannot create the data folder {folder}: {error.strerror}{advice}"
            raise OperatorActionRequired(sentence) from error


def _create_private(path: Path) -> None:
    # Memories are nobody else's business; the log and shared memory files take the mode of the database.
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise OperatorActionRequired(f"cannot write {path}: {error.strerror}. {_CHOOSE_ANOTHER}") from error


def _check_header(files: StoreFiles) -> None:
    """Looks at the bytes alone, so that a file which is not ours is never even opened for writing."""
    path = files.database
    version, application = _read_header(path)
    fresh = version == 0 and application == 0  # created, but the first transaction never reached the file
    if not fresh and application != schema.APPLICATION_ID:
        raise _other_program(path)
    if version > schema.VERSION:
        raise newer_schema(path, version)
    # With a write-ahead log beside it the file alone may look torn; SQLite itself recovers that case.
    if not files.wal.exists():
        _check_pages(path, whole=path.stat().st_size <= _CHECKED_WHOLE, fresh=fresh)


def require_begun(path: Path) -> None:
    """Refuse what a new store may begin as, an empty file among others: nothing was ever written to it."""
    if _read_header(path)[1] != schema.APPLICATION_ID:
        raise _other_program(path)


def _read_header(path: Path) -> tuple[int, int]:
    """The version of the schema, and the number of the program that wrote it."""
    with open(path, "rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise damaged(path, "it is not an SQLite database")
    return int.from_bytes(header[60:64], "big"), int.from_bytes(header[68:72], "big")


def _check_pages(path: Path, *, whole: bool, fresh: bool) -> None:
    uri = f"file:{str(path.absolute()).replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?immutable=1"
    db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        problems = [row[0] for row in db.execute("PRAGMA quick_check(1)")] if whole else ["ok"]
        if db.execute("SELECT count(*) FROM sqlite_schema").fetchall() != [(0,)] and fresh:
            raise _other_program(path)  # few programs set the number by which ours are known
        page_count, page_size = db.pragma("page_count"), db.pragma("page_size")
        if problems == ["ok"] and page_count * page_size > path.stat().st_size:
            problems = ["the file is shorter than it says"]
    except (apsw.CorruptError, apsw.NotADBError) as error:
        problems = [str(error)]
    finally:
        db.close()
    if problems != ["ok"]:
        raise damaged(path, problems[0])


def _other_program(path: Path) -> UnusableStore:
    return UnusableStore(f"{path} is an SQLite database of another program. Choose another file with --data.")


def newer_schema(path: Path, version: int) -> UnusableStore:
    return UnusableStore(
        f"{path} was written by a newer Commonplace (schema {version}; this one knows {schema.VERSION}). "
        "Nothing was changed. Upgrade commonplace, or choose another folder with --data."
    )


def _migrate(db: apsw.Connection, files: StoreFiles) -> None:
    if db.pragma("user_version") == 0:
        _run_migrations(db, files)  # who gets the database's own lock first does it: there is nothing to copy
    elif db.pragma("user_version") < schema.VERSION:
        lock = FairLock(files.lock)
        try:
            # One process makes the copy and takes the steps; the others wait here and find it done.
            lock.acquire(MIGRATION_SECONDS)
            _run_migrations(db, files)
        except LockTimeout:
            waited = f"another process has been at work on {files.database} for {MIGRATION_SECONDS} s"
            raise Unavailable(f"{waited}; try again") from None
        finally:
            lock.release()
            lock.close()
    if db.pragma("user_version") > schema.VERSION:
        raise newer_schema(files.database, db.pragma("user_version"))


def _run_migrations(db: apsw.Connection, files: StoreFiles) -> None:
    before = db.pragma("user_version")
    due = list(enumerate(schema.MIGRATIONS, start=1))[before:]
    if before > 0 and due:  # what begins now has nothing to lose
        log.info("%s is brought up to date; a copy is made first", files.database)
        backup_to(db, files.backups / f"before-{due[0][1].__name__}.db")
    for number, step in due:
        db.execute("BEGIN IMMEDIATE")
        try:
            if db.pragma("user_version") < number:
                if number == 1 and db.execute("SELECT count(*) FROM sqlite_schema").fetchall() != [(0,)]:
                    raise _other_program(files.database)
                step(db)
                db.execute(f"PRAGMA application_id={schema.APPLICATION_ID}; PRAGMA user_version={number}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise


def backup_to(db: apsw.Connection, target: Path, progress: Progress | None = None) -> None:
    """A consistent copy while others read and write, put in place only when it is complete."""
    make_private_folder(target.parent)
    partial = target.with_name(target.name + ".partial")
    for left in (partial, Path(f"{partial}-journal")):  # by one that was killed: its journal must not be played back
        left.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # nobody else's from its first byte on
    try:
        copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            with copy.backup("main", db, "main") as work:
                while not work.done:
                    work.step(1024)
                    if progress:
                        progress(work.page_count - work.remaining, work.page_count)
            copy.execute("PRAGMA journal_mode=DELETE").fetchall()
        finally:
            copy.close()
        with partial.open("r+b") as file:
            sync_file(file.fileno())
        os.replace(partial, target)
        sync_folder(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
