"""A database for each test, on one server for the whole process.

The first are copied from one that has the tables already. One that was used is emptied and used again, which takes a
quarter of the time of dropping it and copying another.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from postgres_connections import close_idle, idle_processes
from postgres_server import PostgresServer

TEMPLATE = "empty_commonplace"
#: How often one is emptied before it is dropped: nothing is vacuumed here, and what was deleted is still walked past.
USES = 40
_folders: dict[Path, str] = {}
_idle: list[str] = []
_uses: dict[str, int] = {}
_spoilt: set[str] = set()
_emptying: dict[str, Any] = {}  # a connection to each, kept: making one takes longer than emptying

#: Whoever is still connected, but for those with these processes.
_DISCONNECT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> ALL(%s) AND backend_type = 'client backend'
"""

#: As if nobody had ever written to it, down to the triggers and the tables of its embedder. An error means that it is
#: not what we know how to empty.
_EMPTY = """
DO $$
DECLARE each record;
BEGIN
  SET LOCAL search_path = commonplace, public;
  SET LOCAL session_replication_role = replica;  -- the ledger refuses to be emptied
  FOR each IN SELECT oid, relname FROM pg_class WHERE relnamespace = 'commonplace'::regnamespace
    AND relkind IN ('r', 'p') AND NOT relispartition LOOP
    IF each.relname ~ '^(vectors_|parts_|second_parts)' AND each.relname <> 'vectors_1' THEN
      EXECUTE format('DROP TABLE %I', each.relname);
    ELSIF each.relname NOT IN ('migrations', 'meta') THEN
      EXECUTE format('DELETE FROM %I', each.relname);
    END IF;
  END LOOP;
  DELETE FROM meta;
  INSERT INTO meta(key, name) VALUES('store_id', gen_random_uuid()::text);
  INSERT INTO meta(key, number) VALUES('generation', 1);
  PERFORM 1 FROM vectors_1;
END $$
"""


@functools.cache
def server() -> PostgresServer:
    started = PostgresServer().start()
    started.create_database(TEMPLATE)
    from commonplace.stores.postgres.address import parse_address
    from commonplace.stores.postgres.store import prepare_schema

    prepare_schema(parse_address(started.url(TEMPLATE)))
    close_idle(TEMPLATE)  # nothing is copied that somebody is connected to
    return started


def take_database() -> str:
    """The name of one with the tables and nothing in them."""
    name = _idle.pop() if _idle else server().create_database(template=TEMPLATE)
    _uses[name] = _uses.get(name, 0) + 1
    return name


def return_database(name: str) -> None:
    """Whoever took it has closed it, or need not: what is still connected to it no longer is."""
    if name not in _spoilt and _uses[name] < USES and _empty(name):
        _idle.append(name)
        return
    _spoilt.discard(name)
    if (connection := _emptying.pop(name, None)) is not None:
        connection.close()
    close_idle(name)
    server().drop_database(name)


def spoil_database(url: str) -> None:
    """Somebody changes more than its rows: nobody else shall have it."""
    _spoilt.add(url.rpartition("/")[2])


def _empty(name: str) -> bool:
    import psycopg

    try:
        if name not in _emptying:
            _emptying[name] = psycopg.connect(server().url(name), autocommit=True)
        ours = _emptying[name]
        ours.execute(_DISCONNECT, ([ours.info.backend_pid, *idle_processes(name)],))
        ours.execute(_EMPTY)
    except psycopg.Error:
        return False
    return True


def database_for(folder: Path) -> str:
    """The URL of the database that belongs to this folder, made when it is first asked for."""
    if folder not in _folders:
        _folders[folder] = take_database()
    return server().url(_folders[folder])


def databases_in(folder: Path) -> list[str]:
    """The URLs of those that belong to it, or to what lies in it."""
    return [server().url(name) for each, name in _folders.items() if each.is_relative_to(folder)]


def drop_databases(folder: Path) -> None:
    """Those of all that lies in this folder."""
    for each in [each for each in _folders if each.is_relative_to(folder)]:
        return_database(_folders.pop(each))


@contextmanager
def empty_database() -> Iterator[str]:
    """The URL of a database with nothing in it, which is gone afterwards."""
    name = server().create_database(template=TEMPLATE)
    try:
        yield server().url(name)
    finally:
        server().drop_database(name)
