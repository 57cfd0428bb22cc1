"""Keeps segments up with the rows, in the background, in whichever process happens to notice."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

import apsw

from commonplace.stores.sqlite.connections import ReaderPool

LOOK_AFTER = 512  # writes to a scope before its segments are looked at

log = logging.getLogger("commonplace.sqlite")

#: What is done for one scope, given a reader's connection inside a read transaction.
ScopeWork = Callable[[apsw.Connection, int], None]


class Indexer:
    """`maintain` writes and merges segments when that is due; `purge` takes what was erased out of them."""

    def __init__(self, readers: ReaderPool, maintain: ScopeWork, purge: ScopeWork) -> None:
        self._readers = readers
        self._maintain = maintain
        self._purge = purge
        self._due: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._queued: set[int] = set()
        self._writes: dict[int, int] = {}
        self._erased: set[int] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def note_commit(self, scopes: dict[int, int], erased: set[int]) -> None:
        """Called by the writer after each commit; must cost next to nothing."""
        self._erased |= erased
        for scope, writes in scopes.items():
            self._writes[scope] = self._writes.get(scope, 0) + writes
            if self._writes[scope] >= LOOK_AFTER:
                self._writes[scope] = 0
                self.schedule(scope)

    def schedule(self, scope: int) -> None:
        """Have the segments of a scope looked at, soon."""
        with self._lock:
            if scope in self._queued or self._closed:
                return
            self._queued.add(scope)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="commonplace-indexer", daemon=True)
                self._thread.start()
        self._due.put(scope)

    def close(self) -> None:
        """Finish what is queued, then take what was erased out of the segment files."""
        with self._lock:
            self._closed = True
        if self._thread is not None:
            self._due.put(None)
            self._thread.join()
        while self._erased:
            self._work(self._purge, self._erased.pop())

    def _run(self) -> None:
        while (scope := self._due.get()) is not None:
            with self._lock:
                self._queued.discard(scope)
            self._work(self._maintain, scope)

    def _work(self, work: ScopeWork, scope: int) -> None:
        try:
            self._readers.run_here(lambda db: work(db, scope))
        except Exception:  # derived data: the next search rebuilds what this left undone
            log.exception("keeping the index of scope %d failed", scope)
