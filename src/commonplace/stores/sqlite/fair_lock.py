"""A lock between processes that serves waiters in turn.

SQLite's own lock is a race: a process that writes without pause can starve the others. Here each waiter draws a
ticket, locks the byte of that number, and goes ahead when every lower byte is free. The kernel frees the byte of a
process that dies, so a crash never blocks the queue. Only the order is at stake: SQLite still guards the data, so
where the platform has no record locks (Windows) the lock is always free.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MUTEX = (1 << 62, 1)  # one byte far past any ticket guards the counter
_FIRST_TICKET = 16  # bytes below hold the counter itself
_LAST_TICKET = 1 << 61  # a million writes a second reach it in 70,000 years
_MIN_POLL, _MAX_POLL = 0.0002, 0.002
# Open-file-description locks keep two stores in one process apart; plain ones belong to the process.
_OFD = fcntl is not None and sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK")


class LockTimeout(Exception):
    """Other processes kept the lock for the whole of the allowed time."""


class FairLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._ticket: int | None = None

    def acquire(self, timeout: float) -> int:
        """Wait for our turn; the ticket number, which only ever grows, tells the order of service."""
        if fcntl is None:
            return 0
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + timeout
        self._poll(fcntl.F_WRLCK, *_MUTEX, deadline)
        try:
            ticket = int.from_bytes(os.pread(self._fd, 8, 0), "little")
            if not _FIRST_TICKET <= ticket < _LAST_TICKET:  # a new file, or one that something else has filled
                ticket = _FIRST_TICKET
            os.pwrite(self._fd, (ticket + 1).to_bytes(8, "little"), 0)
            self._set(fcntl.F_WRLCK, ticket, 1)
        finally:
            self._set(fcntl.F_UNLCK, *_MUTEX)
        self._ticket = ticket
        try:
            # A read lock on everything before us succeeds once no earlier ticket is held.
            self._poll(fcntl.F_RDLCK, _FIRST_TICKET, ticket - _FIRST_TICKET, deadline)
        except BaseException:
            self.release()
            raise
        return ticket

    def release(self) -> None:
        if self._ticket is not None:
            ticket, self._ticket = self._ticket, None
            try:
                # Our own byte and the read lock on those before it, which disturbs nobody meanwhile.
                self._set(fcntl.F_UNLCK, _FIRST_TICKET, ticket - _FIRST_TICKET + 1)
            except OSError:
                self.close()  # which frees them, too

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _poll(self, kind: int, start: int, length: int, deadline: float) -> None:
        if length == 0:  # to the kernel a length of 0 means "to the end of the file"
            return
        pause = _MIN_POLL
        while True:
            try:
                return self._set(kind, start, length)
            except (BlockingIOError, PermissionError):
                if time.monotonic() >= deadline:
                    raise LockTimeout from None
            time.sleep(pause)
            pause = min(pause * 1.5, _MAX_POLL)

    def _set(self, kind: int, start: int, length: int) -> None:
        if _OFD:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, struct.pack("hhqqixxxx", kind, os.SEEK_SET, start, length, 0))
        else:
            flags = {fcntl.F_WRLCK: fcntl.LOCK_EX, fcntl.F_RDLCK: fcntl.LOCK_SH, fcntl.F_UNLCK: fcntl.LOCK_UN}[kind]
            fcntl.lockf(self._fd, flags | (0 if kind == fcntl.F_UNLCK else fcntl.LOCK_NB), length, start)
