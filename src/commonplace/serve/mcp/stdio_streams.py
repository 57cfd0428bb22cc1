"""Bytes in lines over two descriptors, without ever making the event loop wait."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable

_CHUNK = 65_536
#: What a pipe that reports room takes without blocking.
_ATOMIC = 4096


class LineSplitter:
    """Cuts what arrives into lines; one that is too long is passed over up to its end, unkept."""

    def __init__(self, on_line: Callable[[bytes], None], on_too_long: Callable[[], None], limit: int) -> None:
        self._on_line = on_line
        self._on_too_long = on_too_long
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._line(data[start:end])
            start = end + 1
        if self._skipping:
            return
        self._rest += data[start:]
        if len(self._rest) > self._limit:
            self._rest.clear()
            self._skipping = True
            self._on_too_long()

    def end(self) -> None:
        """What is left without a line's end counts as a line."""
        if not self._skipping and self._rest:
            self._line(b"")

    def _line(self, last: bytes) -> None:
        if self._skipping:
            self._skipping = False
            return
        whole = bytes(self._rest) + last if self._rest else last
        self._rest.clear()
        if len(whole) > self._limit:
            self._on_too_long()
        elif whole and not whole.isspace():
            self._on_line(whole)


class InputStream:
    """Reads a descriptor whenever there is something; `None` is its end."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, on_data: Callable[[bytes | None], None]) -> None:
        self._fd = fd
        self._loop = loop
        self._on_data = on_data
        self._watching = False
        self._may_read = threading.Event()
        self._threaded = False

    def start(self) -> None:
        self._may_read.set()
        try:
            self._loop.add_reader(self._fd, self._read)
            self._watching = True
        except (NotImplementedError, OSError):  # a file can be read but not waited for; Windows can wait for neither
            self._threaded = True
            threading.Thread(target=self._read_in_thread, daemon=True, name="mcp-input").start()

    def pause(self) -> None:
        self._may_read.clear()
        if self._watching:
            self._loop.remove_reader(self._fd)
            self._watching = False

    def resume(self) -> None:
        self._may_read.set()
        if not self._threaded and not self._watching:
            self._loop.add_reader(self._fd, self._read)
            self._watching = True

    def _read(self) -> None:
        data = _read_some(self._fd)
        if not data:
            self.pause()
        self._on_data(data or None)

    def _read_in_thread(self) -> None:
        while True:
            self._may_read.wait()
            data = _read_some(self._fd)
            try:
                self._loop.call_soon_threadsafe(self._on_data, data or None)
            except RuntimeError:  # the loop is closed: nobody is left to read it
                return
            if not data:
                return


class OutputStream:
    """Writes whole messages in the order they were given, a bit at a time while the reader is slow."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._loop = loop
        self._on_broken = on_broken
        self._waiting = bytearray()
        self._blocked = False
        self._closed = False

    def send(self, message: bytes) -> None:
        if self._closed:
            return
        self._waiting += message
        if not self._blocked:
            self._write()

    @property
    def is_drained(self) -> bool:
        return not self._waiting or self._closed

    @property
    def has_reader(self) -> bool:
        """Whether the other end is open, as far as the system tells."""
        if self._closed or not hasattr(select, "poll"):  # Windows
            return not self._closed
        poll = select.poll()
        poll.register(self._fd, 0)  # which reports what is wrong with it, and nothing else
        return not poll.poll(0)

    def _write(self) -> None:
        try:
            while self._waiting and self._is_writable():
                written = os.write(self._fd, self._waiting[:_ATOMIC])
                del self._waiting[:written]
        except OSError:  # the reader is gone
            self._closed = True
            self._unblock()
            self._on_broken()
            return
        if self._waiting and not self._blocked:
            self._loop.add_writer(self._fd, self._write)
            self._blocked = True
        elif not self._waiting:
            self._unblock()

    def _is_writable(self) -> bool:
        return sys.platform == "win32" or bool(select.select((), (self._fd,), (), 0)[1])

    def _unblock(self) -> None:
        if self._blocked:
            self._loop.remove_writer(self._fd)
            self._blocked = False


def _read_some(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except OSError:  # a terminal that went away
        return b""
