"""The suite with PostgreSQL as the primary: wherever a test opens a store of its own, in this process or in another, it
gets a database instead of a file. `make test STORE=postgresql` asks for it.

What is about SQLite's files, or about a store without any, or about no store, is left out: `ELSEWHERE` says why.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest
from postgres_connections import reuse_connections
from postgres_databases import database_for, drop_databases, return_database, server, take_database

import commonplace.stores.memory
import commonplace.stores.sqlite
from commonplace.config import DATABASE
from commonplace.stores.base import StoreSettings
from commonplace.stores.postgres import schema
from commonplace.stores.postgres.store import PostgresStore
from commonplace.wire.record import Clock, system_clock

#: What the primary is not: stores beside it keep their copies in memory, as in the suite without a database.
IN_MEMORY = commonplace.stores.memory.InMemory

#: Tests that say something of another store or of none, by the part of their name that says so.
ELSEWHERE: dict[str, str] = {
    "redaction/test_scanner.py": "it reads texts and opens no store",
    "redaction/test_registered_secrets.py": "it reads texts and opens no store",
    "dialects/test_mrp_comments.py": "it reads texts and opens no store",
    "serve/test_behind_proxy.py": "what a proxy does to addresses is not kept",
    "serve/test_jwks.py": "keys of an issuer are not kept",
    "serve/test_tls.py": "certificates are not kept",
    "serve/test_mcp_node.py": "it looks at schemas and messages; test_mcp_clients.py keeps something",
    "test_any_interleaving_shows_each_run_its_start_in_memory": "the one in SQLite does the same to a database",
    "entry_is_found_and_the_first_bad_one_named[plainly-insert]": "two entries of one number are in no table",
    "entry_is_found_and_the_first_bad_one_named[plainly-swap]": "rows have no order but their numbers",
    "outbox/test_resync_notices.py": "it names the primary, a file",
    "test_a_server_on_another_store_is_promised_to_no_session": "it names two primaries, both files",
    "outbox/test_store_names.py": "it names the primary, a file, and looks for a text in files",
    "test_engine_write_faults.py": "the disk that fails is under SQLite's own file layer",
    "upkeep/test_restore.py": "PostgreSQL is backed up and restored by its own means",
    "test_upkeep.py::test_a_backup_": "PostgreSQL is backed up by its own means",
    "test_a_store_without_files_looks_after_itself": "it is about `InMemory`, which has no files",
    "test_mrp_docs.py::test_what_bob_is_told_and_what_not": "one command of it names two folders, each with its file",
    "test_mcp_stdio.py::test_a_clients_configuration_is_printed": "a store's password is not written into settings",
    "test_a_store_that_cannot_be_opened_is_explained_to_the_model": "the file is damaged before it is opened",
    "test_an_opening_that_failed_is_tried_again": "the file is damaged before it is opened",
    "test_what_goes_wrong_is_logged_on_stderr": "the file is damaged before it is opened",
}


class DatabaseForFile(PostgresStore):
    """What `SqliteStore` is asked with: the database that belongs to a file."""

    def __init__(self, database: Path, clock: Clock = system_clock, settings: StoreSettings | None = None) -> None:
        path = Path(database)
        super().__init__(database_for(path), clock)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()  # commands look whether it is there before they read from it


class FreshDatabase(PostgresStore):
    """What `InMemory` is asked with: a database that nobody else has. Like that one it may be used again after it was
    closed, and need not be closed at all: it goes with its test."""

    _of_this_test: ClassVar[list[FreshDatabase]] = []

    def __init__(self, clock: Clock = system_clock) -> None:
        self._database, self._clock = take_database(), clock
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
            return_database(store._database)


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> PostgresStore:
    path = url.partition("://")[2]
    return FreshDatabase(clock) if path in ("", ":memory:") else DatabaseForFile(Path(path), clock)


def install() -> None:
    """Before any test is imported."""
    import postgres_tampering
    import server_process
    import tampering

    reuse_connections()
    schema.PARTITIONS = 2  # how many there are changes nothing that is tested, and making all takes longer than a test
    commonplace.stores.sqlite.SqliteStore = DatabaseForFile  # type: ignore[misc, assignment]
    commonplace.stores.sqlite.open_url = open_url  # type: ignore[assignment]
    commonplace.stores.memory.InMemory = FreshDatabase  # type: ignore[misc, assignment]
    commonplace.stores.memory.open_url = open_url  # type: ignore[assignment]
    of_process = server_process.environment

    def environment(data: Path, **more: str) -> dict[str, str]:
        return {**of_process(data), "COMMONPLACE_STORE": database_for(data / "commonplace.db"), **more}

    server_process.environment = environment
    server_process.store_url = database_for
    for name in ("DISK_ERRORS", "RawDatabase", "rewrite_ledger", "traces"):
        setattr(tampering, name, getattr(postgres_tampering, name))


def left_out(item: pytest.Item) -> str | None:
    return next((why for part, why in ELSEWHERE.items() if part in item.nodeid), None)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: Any) -> None:
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is not None:
        drop_databases(folder)
    FreshDatabase.drop_all()
    if folder is not None:
        check_no_file(folder)


def check_no_file(folder: Path) -> None:
    """A process that was told the folder and not the database would test SQLite, and pass."""
    used = [path for path in folder.rglob(DATABASE) if path.stat().st_size]
    assert not used, f"{used[0]} was written: this tested SQLite, and not PostgreSQL"


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    server()  # now: no test may start a process that does not say so
    chosen = [item for item in items if left_out(item) is None]
    config.hook.pytest_deselected(items=[item for item in items if left_out(item) is not None])
    items[:] = chosen
