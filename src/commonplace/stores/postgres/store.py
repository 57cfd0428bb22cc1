"""The PostgreSQL store as the engine sees it: put together from its parts, opened and closed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

import psycopg

from commonplace.stores.base import CAPABILITIES, Transaction
from commonplace.stores.mixins import TransactVerbs
from commonplace.stores.postgres import schema
from commonplace.stores.postgres.address import Address, parse_address
from commonplace.stores.postgres.connections import ReaderPool, Session, fault_of
from commonplace.stores.postgres.generations import PostgresReindex, PostgresSecondVectors
from commonplace.stores.postgres.graph import PostgresGraphReads
from commonplace.stores.postgres.reads import PostgresReads
from commonplace.stores.postgres.scope_reads import PostgresScopeReads
from commonplace.stores.postgres.search import PostgresSearch
from commonplace.stores.postgres.upkeep import PostgresUpkeep
from commonplace.stores.postgres.vector_indexes import VectorIndexer
from commonplace.stores.postgres.writer import Writer
from commonplace.wire.errors import UnusableStore
from commonplace.wire.record import Clock, system_clock

T = TypeVar("T")
log = logging.getLogger("commonplace.postgres")

CLOSE_SECONDS = 5.0  # for what is under way, at most
_MIGRATING = 0x434D504C  # "CMPL": whoever holds this advisory lock changes the tables


class PostgresStore(
    PostgresReads,
    PostgresSearch,
    PostgresScopeReads,
    PostgresGraphReads,
    PostgresUpkeep,
    PostgresReindex,
    PostgresSecondVectors,
    TransactVerbs,
):
    """The protocols `Primary`, `FileUpkeep`, `LateVectors` and `SecondVectors` of `stores.base`."""

    name = "postgresql"
    capabilities = CAPABILITIES

    def __init__(self, url: str, clock: Clock = system_clock) -> None:
        self.address = parse_address(url)
        migrated = prepare_schema(self.address)
        self._start(clock)
        if migrated:
            self._indexer.build_all()

    def _start(self, clock: Clock) -> None:
        self._readers = ReaderPool(self.address)
        self._indexer = VectorIndexer(self.address)
        self._writer = Writer(self.address, clock, self._note_commit)
        self._closing = threading.Lock()
        self._closed = False

    async def transact(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        result: T = await self._writer.submit(tenant, work)
        return result

    def _note_commit(self, grown: dict[int, int], position: int | None) -> None:
        self._readers.note_commit(position)
        if grown:
            self._indexer.note_commit(grown)

    async def close(self) -> None:
        """Finish what is under way, unless the database answers nobody any more."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        until = time.monotonic() + CLOSE_SECONDS
        wrote, read = self._writer.close(until), self._readers.close(until)
        answers = wrote and read
        self._indexer.close(None if answers else until)  # a graph may take longer to build
        if not answers:
            log.warning("%s did not answer within %g s: closed without it", self.address, CLOSE_SECONDS)


def prepare_schema(address: Address) -> bool:
    """Make the tables, or bring them up to date; of several servers that start at once, one does. Whether they were
    not what they should be."""
    with open_session(address) as session:
        if outdated := _version(session, address) != schema.VERSION:
            _migrate(session, address)
        return outdated


def has_tables(address: Address) -> bool:
    """Whether there is a store; nothing is made, nor brought up to date."""
    with open_session(address) as session:
        return _version(session, address) > 0


def try_to_begin(address: Address) -> None:
    """Make the tables as a new store would, and take all of it back: whether it may is known only by doing it."""
    with open_session(address) as session:
        _make_tables(session, address)
        session.execute("ROLLBACK")


def identity(address: Address) -> str | None:
    """By when its server was started, to the microsecond: copies of one cluster have all else in common."""
    quick = replace(address, parameters={**address.parameters, "connect_timeout": "2"})
    with suppress(psycopg.Error), closing(Session(quick)) as session:
        asked = "SELECT extract(epoch FROM pg_postmaster_start_time())::text, oid::text FROM pg_database"
        started, database = session.one(f"{asked} WHERE datname = current_database()")
        return f"{started}/{database}/{address.schema}"
    return None


@contextmanager
def open_session(address: Address) -> Iterator[Session]:
    try:
        with closing(Session(address)) as session:
            yield session
    except psycopg.Error as error:
        raise fault_of(error, address, "opened") from error


def _migrate(session: Session, address: Address) -> None:
    _make_tables(session, address)
    session.execute("COMMIT")


def _make_tables(session: Session, address: Address) -> None:
    """In a transaction that whoever asked ends."""
    session.execute("BEGIN")
    session.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
    session.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    # To ask for one that is there takes the right to make others, too, which its owner need not have.
    if session.one("SELECT to_regnamespace(%s) IS NULL", (address.schema,))[0]:
        session.execute(f'CREATE SCHEMA "{address.schema}"')  # its name may be a word of SQL
    session.execute("CREATE TABLE IF NOT EXISTS migrations(version integer PRIMARY KEY)")
    (done,) = session.one("SELECT coalesce(max(version), 0) FROM migrations")
    if done > schema.VERSION:
        raise UnusableStore(
            f"{address} was written by a newer version (its tables are of version {done}, this one knows "
            f"{schema.VERSION})",
            hint="upgrade: pip install --upgrade 'commonplace-memory[postgresql]'",
        )
    for number, migrate in enumerate(schema.MIGRATIONS[done:], done + 1):
        migrate(session)
        session.execute("INSERT INTO migrations VALUES(%s)", (number,))


def _version(session: Session, address: Address) -> int:
    (there,) = session.one("SELECT to_regclass(%s) IS NOT NULL", (f"{address.schema}.migrations",))
    return int(session.one("SELECT coalesce(max(version), 0) FROM migrations")[0]) if there else 0
