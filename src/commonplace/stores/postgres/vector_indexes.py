"""Graphs (HNSW) of the scopes that have grown large, made beside whoever reads and writes.

Each is of one scope alone: no other agent's vectors are walked through, small agents cost nothing to write, and their
vectors are compared one by one.
"""

from __future__ import annotations

import logging
import threading

import psycopg

from commonplace.stores.postgres.address import Address
from commonplace.stores.postgres.connections import Session
from commonplace.stores.postgres.queries import read_meta
from commonplace.stores.postgres.search import EXACT
from commonplace.stores.worker_threads import join_until

log = logging.getLogger("commonplace.postgres")


def forget_indexes(db: Session, parts: str) -> None:
    """Of a table that is gone, and its graphs with it."""
    db.execute("DELETE FROM vector_indexes WHERE parts = %s", (parts,))


class VectorIndexer:
    """One thread that builds what is due, one graph after the other; of several servers one does it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._due: set[int] = set()
        self._known: dict[int, int] = {}  # live memories of a scope, as far as this process has heard
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def note_commit(self, grown: dict[int, int]) -> None:
        """Scopes that have so many more: those that may have grown large are looked at."""
        with self._lock:
            for scope, more in grown.items():
                self._known[scope] = self._known.get(scope, 0) + more
                # Others write, too: what they wrote is only heard of by asking now and then.
                if self._known[scope] >= EXACT // 10:
                    self._known[scope] = 0
                    self._due.add(scope)
            if self._due and self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="commonplace-vectors", daemon=True)
                self._thread.start()

    def build_all(self) -> None:
        """Look at every scope that is large: a migration may have left them without."""
        session = Session(self._address)
        try:
            large = session.rows("SELECT id FROM scopes WHERE documents > %s", (EXACT,))
        finally:
            session.close()
        self.note_commit({scope: EXACT for (scope,) in large})

    def close(self, until: float | None = None) -> None:
        with self._lock:
            self._closed = True
            self._due.clear()
            thread = self._thread
        if thread is not None:
            join_until(thread, until)

    def _run(self) -> None:
        try:
            session = Session(self._address)
            try:
                while (scope := self._next()) is not None:
                    build_indexes(session, scope)
            finally:
                session.close()
        except psycopg.Error as error:  # the search goes on one by one, and the next commit tries again
            log.warning("the graph of a large scope was not made: %s", error)
            with self._lock:
                self._thread = None

    def _next(self) -> int | None:
        with self._lock:
            if not self._due:
                self._thread = None
                return None
            return self._due.pop()


def build_indexes(session: Session, scope: int) -> list[str]:
    """Make the graphs that this scope is large enough for and has not; the tables that now have one."""
    (documents,) = session.row("SELECT documents FROM scopes WHERE id = %s", (scope,)) or (0,)
    if documents <= EXACT:
        return []
    meta = read_meta(session)
    tables = [f"parts_{meta['generation']}"] if "dimension" in meta else []
    tables += ["second_parts"] if meta.get("second_ready") else []
    made = []
    for table in tables:
        known = session.row("SELECT ready FROM vector_indexes WHERE parts = %s AND scope_id = %s", (table, scope))
        if known is None or not known[0]:
            made += [table] if _build(session, table, scope) else []
    return made


def _build(session: Session, table: str, scope: int) -> bool:
    # Two numbers, the first of them ours: of several servers one builds it, and the others have nothing to do.
    lock = (0x434D504C, scope)
    if not session.one("SELECT pg_try_advisory_lock(%s, %s)", lock)[0]:
        return False
    try:
        name = f"{table}_of_{scope}"
        session.execute("SET maintenance_work_mem = '512MB'")
        session.execute(f"DROP INDEX IF EXISTS {name}")  # one that was never finished
        # Of the partition that has the scope: PostgreSQL makes no index of all of them beside whoever writes.
        held = session.row(f"SELECT tableoid::regclass::text FROM {table} WHERE scope_id = %s LIMIT 1", (scope,))
        if held is None:
            return False
        session.execute(
            f"CREATE INDEX CONCURRENTLY {name} ON {held[0]} USING hnsw (embedding halfvec_ip_ops) "
            f"WHERE scope_id = {scope}"
        )
        session.execute(
            "INSERT INTO vector_indexes VALUES(%s, %s, true) ON CONFLICT(parts, scope_id) DO UPDATE SET ready = true",
            (table, scope),
        )
        return True
    finally:
        session.execute("SELECT pg_advisory_unlock(%s, %s)", lock)
