"""Overwrites the unused space of every page, for the last byte of what was erased.

SQLite's `secure_delete` overwrites what is deleted, but when it spreads rows over pages anew it leaves copies of them
in the gap between a page's directory and its rows. A copy of an erased row could stay there for years.
"""

from __future__ import annotations

import logging
from pathlib import Path

import apsw

from commonplace.stores.sqlite.files import StoreFiles, require_in_place
from commonplace.stores.sqlite.queries import fetch_one
from commonplace.wire.errors import Unavailable

log = logging.getLogger("commonplace.sqlite")

#: The key in `meta` that says something was erased since the pages were last scrubbed.
DUE = "gaps_to_clear"
_CHUNK = 8 << 20
_HEADER = {2: 12, 5: 12, 10: 8, 13: 8}  # bytes, by the kind of b-tree page
_MAX_PAGES = 1 << 25  # from here on the page number that starts an overflow page could look like a kind


def is_due(db: apsw.Connection) -> bool:
    return bool(fetch_one(db, "SELECT count(*) FROM meta WHERE key = ?", (DUE,))[0])


def scrub_pages(db: apsw.Connection, files: StoreFiles) -> bool:
    """For the last moments of a connection. False when it could not be; the note stays for whoever closes next."""
    try:
        if not is_due(db):
            return True
        require_in_place(db, files)  # it is by its path that the pages are written
        if fetch_one(db, "PRAGMA wal_checkpoint(TRUNCATE)")[0]:
            return False  # others are reading what the log still holds
        db.execute("BEGIN IMMEDIATE")
        alone = files.wal.stat().st_size == 0  # with nothing in the log, nobody writes to the file itself
        if alone:
            _overwrite_gaps(files.database, db.pragma("page_size"))
            # A change in the log also makes every other process read its pages again, now without the copies.
            db.execute("DELETE FROM meta WHERE key = ?", (DUE,))
        db.execute("COMMIT")
        return alone
    except (apsw.Error, Unavailable) as error:
        log.warning("%s: erased content may be left in unused parts of pages: %s", files.database, error)
        if db.in_transaction:
            db.execute("ROLLBACK")
        return False


def _overwrite_gaps(path: Path, page_size: int) -> None:
    # Through SQLite's own file layer: closing a plain handle would drop every lock this process has on the file.
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        size = file.xFileSize()
        if size // page_size >= _MAX_PAGES:
            return
        for start in range(0, size, _CHUNK):
            data = file.xRead(min(_CHUNK, size - start), start)
            for page in range(0, len(data), page_size):
                first, last = _gap(data, page, page_size, 100 if start + page == 0 else 0)
                if data.count(0, first, last) < last - first:
                    file.xWrite(bytes(last - first), start + first)
        file.xSync(apsw.SQLITE_SYNC_FULL)
    finally:
        file.xClose()


def _gap(data: bytes, page: int, page_size: int, skip: int) -> tuple[int, int]:
    """Where the unused middle of a b-tree page begins and ends; nothing for other pages."""
    at = page + skip
    if data[at] not in _HEADER:
        return page, page
    cells = int.from_bytes(data[at + 3 : at + 5], "big")
    rows = int.from_bytes(data[at + 5 : at + 7], "big") or 65536
    first, last = at + _HEADER[data[at]] + 2 * cells, page + rows
    return (first, last) if first <= last <= page + page_size else (page, page)
