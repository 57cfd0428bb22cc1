"""The embedded store as the engine sees it: put together from its parts, opened and closed."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from commonplace.stores.base import CAPABILITIES, EmbedderInfo, StoreSettings, Transaction
from commonplace.stores.mixins import TransactVerbs
from commonplace.stores.row_format import DamagedCell
from commonplace.stores.sqlite import page_scrub, upkeep
from commonplace.stores.sqlite.connections import ReaderPool, exclusive
from commonplace.stores.sqlite.files import StoreFiles, close_writable, open_writable
from commonplace.stores.sqlite.generations import SqliteReindex
from commonplace.stores.sqlite.graph import SqliteGraphReads
from commonplace.stores.sqlite.index import SegmentIndex
from commonplace.stores.sqlite.indexer import Indexer
from commonplace.stores.sqlite.queries import embedder_of
from commonplace.stores.sqlite.reads import SqliteReads
from commonplace.stores.sqlite.scope_caches import ContextCache, ImportanceCache, SqliteScopeReads
from commonplace.stores.sqlite.search import SqliteSearch
from commonplace.stores.sqlite.second_vectors import SecondIndex, SqliteSecondVectors
from commonplace.stores.sqlite.upkeep import SqliteUpkeep
from commonplace.stores.sqlite.writer import Writer
from commonplace.stores.urls import database_file, split_options
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Clock, system_clock
from commonplace.wire.shown_urls import shown_url

T = TypeVar("T")
log = logging.getLogger("commonplace.sqlite")


class SqliteStore(
    SqliteReads,
    SqliteSearch,
    SqliteScopeReads,
    SqliteGraphReads,
    SqliteUpkeep,
    SqliteReindex,
    SqliteSecondVectors,
    TransactVerbs,
):
    """The protocols `Primary`, `FileUpkeep`, `Reindexable` and `SecondVectors` of `stores.base`."""

    name = "sqlite"
    capabilities = CAPABILITIES
    temporary = False  # whether its folder goes when it is closed

    def __init__(self, database: Path, clock: Clock = system_clock, settings: StoreSettings | None = None) -> None:
        self.files = StoreFiles(database.absolute())  # as SQLite has it: the program may change its folder
        self._db = open_writable(self.files)
        self._readers = ReaderPool(self._db, self.files)
        try:
            self.store_id: str = self._readers.run_here(_store_id)
        except BaseException:
            self._readers.close()
            close_writable(self._db)
            raise
        budget = (settings or StoreSettings()).index_mb << 20
        self.index = SegmentIndex(self.files.segments, self.store_id, budget)
        self.second = SecondIndex(self.files, self.store_id, budget, self.index)
        self._contexts = ContextCache()
        self._importance = ImportanceCache()
        self._indexer = Indexer(
            self._readers,
            maintain=lambda db, scope: self.maintain_index(db, scope),
            purge=lambda db, scope: self.purge_index(db, scope),
        )
        self._writer = Writer(self._db, self.files, clock, self._indexer.note_commit)
        self._closing = threading.Lock()
        self._closed = False

    async def transact(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        result: T = await self._writer.submit(tenant, work)
        return result

    @exclusive
    def adopt_embedder(self, db: apsw.Connection, name: str, dimension: int) -> EmbedderInfo:
        db.execute("BEGIN IMMEDIATE")
        if (there := embedder_of(db)) is None:
            db.execute("INSERT INTO meta VALUES('embedder', ?), ('dimension', ?)", (name, dimension))
            there = embedder_of(db)
        db.execute("COMMIT")
        assert there is not None
        return there

    async def close(self) -> None:
        """Finish what is under way, then leave no erased byte behind in any of our files."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        # In this order: the writer's last commits are told to the indexer, which still needs the readers.
        self._writer.close()
        if page_scrub.is_due(self._db):  # also what a process that never got to close has erased
            self._indexer.note_commit({}, set(upkeep.erased_scopes(self._db)))
        self._indexer.close()
        self._readers.close()
        self.index.close()
        self.second.index.close()
        try:
            if page_scrub.scrub_pages(self._db, self.files):
                upkeep.truncate_log(self._db)  # what another process's reading keeps, it clears when it closes
        except apsw.Error as error:  # a full disk, say: what was acknowledged is in the write-ahead log
            log.warning("%s could not be tidied up at its close, and is at the next: %s", self.files.database, error)
        close_writable(self._db)
        if self.temporary:
            shutil.rmtree(self.files.database.parent, ignore_errors=True)


def _store_id(db: apsw.Connection) -> str:
    meta = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('store_id', 'generation')"))
    if not isinstance(meta["generation"], int) or not isinstance(meta["store_id"], str):
        raise DamagedCell("meta")
    return str(meta["store_id"])


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> SqliteStore:
    """`sqlite://` followed by `:memory:`, `./relative` or `/absolute`."""
    path = database_path(url)
    if path is not None:
        return SqliteStore(path, clock, settings)
    store = SqliteStore(Path(tempfile.mkdtemp(prefix="commonplace-")) / "memory.db", clock, settings)
    store.temporary = True
    return store


def database_path(url: str) -> Path | None:
    """The file that a URL names; None for `:memory:`."""
    scheme, _, path = split_options(url)[0].partition("://")
    if not path:
        raise ValidationError(f"{shown_url(url)} names no file; write {scheme}://./memories.db or {scheme}://:memory:")
    return database_file(url)
