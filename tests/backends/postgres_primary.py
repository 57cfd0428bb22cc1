"""The suite with PostgreSQL as the primary: wherever a test opens a store of its own, in this process or in another, it
gets a database instead of a file. `make test STORE=postgresql` asks for it.

What is about SQLite's files, or about a store without any, is left out: `ELSEWHERE` says why.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest
from postgres_databases import TEMPLATE, database_for, drop_databases, server

import commonplace.stores.memory
import commonplace.stores.sqlite
from commonplace.stores.base import StoreSettings
from commonplace.stores.postgres import schema
from commonplace.stores.postgres.store import PostgresStore
from commonplace.wire.record import Clock, system_clock

#: What the primary is not: stores beside it keep their copies in memory, as in the suite without a database.
IN_MEMORY = commonplace.stores.memory.InMemory

#: Tests that say something of another store, by the part of their name that says so.
ELSEWHERE: dict[str, str] = {
    "test_a_damaged_chain_is_told_with_its_first_bad_entry": "it changes the ledger in SQLite's file",
    "test_a_file_changed_behind_our_back_is_found_out": "it changes the ledger in SQLite's file",
    "test_each_tenant_is_compared_with_its_own_ledger": "it changes the ledger in SQLite's file",
    "ledger/test_evidence.py": "it changes the ledger that `InMemory` holds",
    "test_a_ledger_that_is_another_is_not_appended": "it changes the ledger that `InMemory` holds",
    "test_every_tenants_ledger_is_exported_when_it_is_due": "it changes the ledger that `InMemory` holds",
    "test_a_memory_is_written_with_the_vectors_of_its_tokens": "it looks at the vectors that `InMemory` holds",
    "test_a_vector_that_was_given_has_no_tokens": "it looks at the vectors that `InMemory` holds",
    "test_a_secret_is_taken_out_of_everything_a_statement_says": "it reads the bytes of SQLite's file",
    "test_no_byte_of_an_erased_statement_is_left_after_closing": "it reads the bytes of SQLite's file",
    "test_no_file_holds_a_byte_of_what_was_erased": "it reads the bytes of SQLite's file",
    "test_of_many_processes_at_once_one_statement_stands": "its processes write into SQLite's file",
    "test_where_backups_lie_is_told_to_the_operator_alone": "PostgreSQL is backed up by its own means",
}


class DatabaseForFile(PostgresStore):
    """What `SqliteStore` is asked with: the database that belongs to a file."""

    def __init__(self, database: Path, clock: Clock = system_clock, settings: StoreSettings | None = None) -> None:
        super().__init__(database_for(Path(database)), clock)


class FreshDatabase(PostgresStore):
    """What `InMemory` is asked with: a database that nobody else has. Like that one it may be used again after it was
    closed, and need not be closed at all: it goes with its test."""

    _of_this_test: ClassVar[list[FreshDatabase]] = []

    def __init__(self, clock: Clock = system_clock) -> None:
        self._database, self._clock = server().create_database(template=TEMPLATE), clock
        super().__init__(server().url(self._database), clock)
        self._of_this_test.append(self)

    async def close(self) -> None:
        await super().close()
        self._start(self._clock)

    @classmethod
    def drop_all(cls) -> None:
        while cls._of_this_test:
            store = cls._of_this_test.pop()
            asyncio.run(PostgresStore.close(store))
            server().drop_database(store._database)


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> PostgresStore:
    path = url.partition("://")[2]
    return FreshDatabase(clock) if path in ("", ":memory:") else DatabaseForFile(Path(path), clock)


def install() -> None:
    """Before any test is imported."""
    import server_process

    schema.PARTITIONS = 2  # how many there are changes nothing that is tested, and making all takes longer than a test
    commonplace.stores.sqlite.SqliteStore = DatabaseForFile  # type: ignore[misc, assignment]
    commonplace.stores.sqlite.open_url = open_url  # type: ignore[assignment]
    commonplace.stores.memory.InMemory = FreshDatabase  # type: ignore[misc, assignment]
    commonplace.stores.memory.open_url = open_url  # type: ignore[assignment]
    of_process = server_process.environment

    def environment(data: Path, **more: str) -> dict[str, str]:
        return {**of_process(data), "COMMONPLACE_STORE": database_for(data / "commonplace.db"), **more}

    server_process.environment = environment


def left_out(item: pytest.Item) -> str | None:
    return next((why for part, why in ELSEWHERE.items() if part in item.nodeid), None)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: Any) -> None:
    if (folder := getattr(item, "funcargs", {}).get("tmp_path")) is not None:
        drop_databases(folder)
    FreshDatabase.drop_all()


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    server()  # now: no test may start a process that does not say so
    chosen = [item for item in items if left_out(item) is None]
    config.hook.pytest_deselected(items=[item for item in items if left_out(item) is not None])
    items[:] = chosen
