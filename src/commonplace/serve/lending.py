"""A server lends its embedder to processes on the same data directory, which then need not load the model.

The server says where it is in a file that only its owner can read, and holds a lock on it while it lives: a file that
nobody holds was left behind by a server that is gone, and whoever answers at that address now is a stranger.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: nothing is lent there
    fcntl = None  # type: ignore[assignment]

FILE = "server.json"


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
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError:
            return  # a folder that cannot be written to; the others load their own model
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another server on the same data lends already
            os.close(fd)
            return
        os.fchmod(fd, 0o600)
        os.ftruncate(fd, 0)
        os.write(fd, json.dumps({"url": url, "token": self.token}).encode())
        self._fd = fd

    def withdraw(self) -> None:
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


def offer(folder: Path) -> Offer:
    return Offer(folder, secrets.token_urlsafe(32))


def lender(folder: Path) -> Lender | None:
    """The server that lends on this data directory now."""
    if fcntl is None:
        return None
    try:
        fd = os.open(folder / FILE, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        if os.fstat(fd).st_uid != os.getuid() or not _held(fd):
            return None
        document: Any = json.loads(os.read(fd, 4096))
        return Lender(document["url"], document["token"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(fd)


def _held(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
