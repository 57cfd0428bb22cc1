"""Keeps segments up with the rows, in the background, in whichever process happens to notice."""

from __future__ import annotations

import logging
import queue
import threading

import apsw

from commonplace.stores.sqlite.index import Catalogue
from commonplace.stores.sqlite.reader import Readers
from commonplace.stores.sqlite.source import rows_of

LOOK_AFTER = 512  # writes to a scope before its segments are looked at

log = logging.getLogger("commonplace.sqlite")


class Indexer:
    def __init__(self, readers: Readers, catalogue: Catalogue) -> None:
        self._readers = readers
        self._catalogue = catalogue
        self._due: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._queued: set[int] = set()
        self._writes: dict[int, int] = {}
        self._erased: set[int] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def changed(self, scopes: dict[int, int], erased: set[int]) -> None:
        """Called by the writer after each commit; must cost next to nothing."""
        self._erased |= erased
        for scope, writes in scopes.items():
            self._writes[scope] = self._writes.get(scope, 0) + writes
            if self._writes[scope] >= LOOK_AFTER:
                self._writes[scope] = 0
                self.look(scope)

    def look(self, scope: int) -> None:
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
        with self._lock:
            self._closed = True
        if self._thread is not None:
            self._due.put(None)
            self._thread.join()
        self.purge()

    def purge(self) -> None:
        """Take what was erased out of the segment files."""
        while self._erased:
            self._work(self._erased.pop(), purge=True)

    def _run(self) -> None:
        while (scope := self._due.get()) is not None:
            with self._lock:
                self._queued.discard(scope)
            self._work(scope)

    def _work(self, scope: int, *, purge: bool = False) -> None:
        def work(db: apsw.Connection) -> None:
            (self._catalogue.purge if purge else self._catalogue.maintain)(rows_of(db), scope)

        try:
            self._readers.now(work)
        except Exception:  # derived data: the next search rebuilds what this left undone
            log.exception("keeping the index of scope %d failed", scope)
