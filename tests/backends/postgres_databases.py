"""A database for each test, copied from one that has the tables already, on one server for the whole process."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgres_server import PostgresServer

TEMPLATE = "empty_commonplace"
_folders: dict[Path, str] = {}


@functools.cache
def server() -> PostgresServer:
    started = PostgresServer().start()
    started.create_database(TEMPLATE)
    from commonplace.stores.postgres.address import parse_address
    from commonplace.stores.postgres.store import prepare_schema

    prepare_schema(parse_address(started.url(TEMPLATE)))
    return started


def database_for(folder: Path) -> str:
    """The URL of the database that belongs to this folder, made when it is first asked for."""
    if folder not in _folders:
        _folders[folder] = server().create_database(template=TEMPLATE)
    return server().url(_folders[folder])


def drop_databases(folder: Path) -> None:
    """Those of all that lies in this folder: each takes 8 MB of memory."""
    for each in [each for each in _folders if each.is_relative_to(folder)]:
        server().drop_database(_folders.pop(each))


@contextmanager
def empty_database() -> Iterator[str]:
    """The URL of a database with nothing in it, which is gone afterwards."""
    name = server().create_database(template=TEMPLATE)
    try:
        yield server().url(name)
    finally:
        server().drop_database(name)
