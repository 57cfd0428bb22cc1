"""A server lends its embedder to processes on the same data directory, which then need not load the model.

The server says where it is in a file that only its owner can read, and holds a lock on it while it lives: a file that
nobody holds was left behind by a server that is gone, and whoever answers at that address now is a stranger.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: nothing is lent there
    fcntl = None  # type: ignore[assignment]

FILE = "server.json"
#: Whoever looks whether the lock is held holds it for a moment: a server that finds it taken looks again.
_TRIES, _AGAIN_SECONDS = 5, 0.002
#: A pipe put in the file's place must not make anyone wait.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(slots=True)
class Lender:
    url: str
    token: str


class Offer:
    """The server's side: stands until it is withdrawn, or the process ends."""

    def __init__(self, folder: Path, token: str) -> None:
        self._path = folder / FILE
        self.token = token
        self._fd: int | None = None

    def stand(self, url: str) -> None:
        if fcntl is None:
            return
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        except OSError:
            return  # a folder that cannot be written to; the others load their own model
        try:
            if not _ours(fd):
                raise PermissionError(f"{self._path} belongs to someone else, who could read the token")
            _lock(fd)
            os.ftruncate(fd, 0)  # first of all: what a server that was killed left is held now, and would be believed
            os.fchmod(fd, 0o600)
            os.write(fd, json.dumps({"url": url, "token": self.token}).encode())
        except OSError:  # another server on the same data lends already, or the disk is full
            os.close(fd)
            return
        self._fd = fd

    def withdraw(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with suppress(OSError):
                os.ftruncate(fd, 0)
            os.close(fd)


def offer(folder: Path) -> Offer:
    return Offer(folder, secrets.token_urlsafe(32))


def lender(folder: Path) -> Lender | None:
    """The server that lends on this data directory now."""
    if fcntl is None:
        return None
    try:
        fd = os.open(folder / FILE, os.O_RDONLY | _FLAGS)
    except OSError:
        return None
    try:
        if not _ours(fd) or not _held(fd):
            return None
        document: Any = json.loads(os.read(fd, 4096))
        return Lender(document["url"], document["token"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(fd)


def _ours(fd: int) -> bool:
    found = os.fstat(fd)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()


def _lock(fd: int) -> None:
    for _ in range(_TRIES - 1):
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_AGAIN_SECONDS)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _held(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
