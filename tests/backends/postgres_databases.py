"""A database for each test, copied from one that has the tables already, on one server for the whole process."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgres_server import PostgresServer

_TEMPLATE = "empty_commonplace"
_folders: dict[Path, str] = {}


@functools.cache
def server() -> PostgresServer:
    started = PostgresServer().start()
    started.create_database(_TEMPLATE)
    from commonplace.stores.postgres.address import parse_address
    from commonplace.stores.postgres.store import prepare_schema

    prepare_schema(parse_address(started.url(_TEMPLATE)))
    return started


def database_for(folder: Path) -> str:
    """The URL of the database that belongs to this folder, made when it is first asked for."""
    if folder not in _folders:
        _folders[folder] = server().create_database(template=_TEMPLATE)
    return server().url(_folders[folder])


def fresh_database() -> str:
    """The URL of a database with nothing in it, which stays as long as the server."""
    return server().url(server().create_database(template=_TEMPLATE))


@contextmanager
def empty_database() -> Iterator[str]:
    """The URL of a database with nothing in it, which is gone afterwards."""
    name = server().create_database(template=_TEMPLATE)
    try:
        yield server().url(name)
    finally:
        server().drop_database(name)
