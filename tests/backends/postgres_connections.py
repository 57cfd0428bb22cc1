"""Connections that the stores of one test have closed, for those of the next.

Each is a process of the server, which reads the catalogue anew for every table that it meets: that takes longer than
what most tests do with it. Tests of connections themselves are elsewhere, and a server in a process of its own makes
its own.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from commonplace.stores.postgres.address import Address
from commonplace.stores.postgres.connections import Session

#: The server takes 400: a test may use a hundred databases, each with a few.
MAX_IDLE = 64
_idle: list[tuple[dict[str, Any], psycopg.Connection[Any]]] = []  # with what was asked for; the last one closed is last
_lock = threading.Lock()  # a store's threads each ask for theirs
_open, _close = Session.__init__, Session.close


def reuse_connections() -> None:
    Session.__init__ = _take  # type: ignore[method-assign]
    Session.close = _give_back  # type: ignore[method-assign]


def idle_processes(database: str) -> list[int]:
    """The server's processes whose connections to this database nobody has."""
    with _lock:
        return [connection.info.backend_pid for asked, connection in _idle if asked["dbname"] == database]


def close_idle(database: str) -> None:
    with _lock:
        closed = [each for each in _idle if each[0]["dbname"] == database]
        for each in closed:
            _idle.remove(each)
    for _, connection in closed:
        connection.close()


class _Closed:
    """What a session has that was closed: used again it fails, as it would."""

    closed = broken = True

    def __getattr__(self, name: str) -> Any:
        raise psycopg.OperationalError("the connection is closed")


def _take(session: Session, address: Address) -> None:
    session.parameters = address.parameters  # type: ignore[attr-defined]
    with _lock:
        found = next((each for each in reversed(_idle) if each[0] == address.parameters), None)
        if found is not None:
            _idle.remove(found)
    if found is None:
        _open(session, address)
        return
    session.connection, session.scopes = found[1], {}
    session._cursors = functools.partial(session.connection.cursor, binary=True)


def _give_back(session: Session) -> None:
    connection, parameters = session.connection, session.parameters  # type: ignore[attr-defined]
    if isinstance(connection, _Closed):
        return
    try:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            raise psycopg.OperationalError("it is in the middle of something")
        connection._prepared.clear()  # they name tables that another test may make otherwise
        connection.execute("DISCARD ALL")  # settings and locks, but not the caches
    except psycopg.Error:
        _close(session)
        return
    session.connection = _Closed()  # type: ignore[assignment]
    session._cursors = lambda: session.connection.cursor()  # type: ignore[assignment]
    with _lock:
        _idle.append((parameters, connection))
        oldest = _idle.pop(0)[1] if len(_idle) > MAX_IDLE else None
    if oldest is not None:
        oldest.close()
