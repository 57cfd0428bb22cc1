"""The server that runs on a data directory: how other processes of its user find it, and what they ask it.

It says where it is in a file that only its owner can read, and holds a lock on it while it lives: a file that nobody
holds was left behind by a server that is gone, and whoever answers at that address now is a stranger.
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
from typing import TYPE_CHECKING, Any

from commonplace.config import Config
from commonplace.engine_factory import store_address
from commonplace.stores.urls import parse_store_url

if TYPE_CHECKING:
    import http.client

try:
    import fcntl
except ImportError:  # Windows: no server is found there
    fcntl = None  # type: ignore[assignment]

Document = dict[str, Any]

FILE = "server.json"
#: Whoever looks whether the lock is held holds it for a moment: a server that finds it taken looks again.
_LOCK_TRIES, _LOCK_PAUSE_SECONDS = 5, 0.002
#: A pipe put in the file's place must not make anyone wait.
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_REQUEST_SECONDS = 10.0
_STORES_SECONDS = 30.0  # it asks each of its stores how it is


@dataclass(slots=True)
class RunningServer:
    """Where it is, and the token that it takes from processes which can read its file."""

    url: str
    token: str
    certificate: str = ""  # the SHA-256 of the one it shows; "" where it speaks plain HTTP
    store: str = ""  # a hash of where its first store is

    def has_store_of(self, config: Config) -> bool:
        """Whether both have the same first store: a data directory may have a server that was given another."""
        return self.store == _store_of(config)


class Advertisement:
    """The server's side: published until it is withdrawn, or the process ends."""

    def __init__(self, folder: Path, certificate: str = "", store: str = "") -> None:
        self._path = folder / FILE
        self._certificate, self._store = certificate, store
        self.token = secrets.token_urlsafe(32)
        self._fd: int | None = None

    def publish(self, url: str) -> None:
        if fcntl is None:
            return
        try:
            # Where the store is a database, nobody else has made it.
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | _OPEN_FLAGS, 0o600)
        except OSError:
            return  # a folder that cannot be written to; the others load their own model
        try:
            if not _is_own(fd):
                raise PermissionError(f"{self._path} belongs to someone else, who could read the token")
            _lock(fd)
            if os.fstat(fd).st_nlink == 0:  # removed meanwhile, by the one that has just stopped: nobody would find it
                os.close(fd)
                return self.publish(url)
            os.ftruncate(fd, 0)  # first of all: what a server that was killed left is held now, and would be believed
            os.fchmod(fd, 0o600)
            document = {"url": url, "token": self.token, "certificate": self._certificate, "store": self._store}
            os.write(fd, json.dumps(document).encode())
        except OSError:  # another server on the same data shares its own already, or the disk is full
            os.close(fd)
            return
        self._fd = fd

    def withdraw(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with suppress(OSError):
                os.ftruncate(fd, 0)  # for whoever has it open already
                self._path.unlink()
            os.close(fd)


def advertisement_of(config: Config, certificate: str) -> Advertisement:
    return Advertisement(config.data, certificate, _store_of(config))


def _store_of(config: Config) -> str:
    return store_address(parse_store_url(config.store_url))


def running_server(folder: Path) -> RunningServer | None:
    """The one on this data directory, if one runs."""
    if fcntl is None:
        return None
    try:
        fd = os.open(folder / FILE, os.O_RDONLY | _OPEN_FLAGS)
    except OSError:
        return None
    try:
        if not _is_own(fd) or not _is_locked(fd):
            return None
        document: Any = json.loads(os.read(fd, 4096))
        told = (document.get(name, "") for name in ("certificate", "store"))
        return RunningServer(document["url"], document["token"], *told)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(fd)


def _is_own(fd: int) -> bool:
    found = os.fstat(fd)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()


def _lock(fd: int) -> None:
    for _ in range(_LOCK_TRIES - 1):
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_LOCK_PAUSE_SECONDS)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def connect_to(server: RunningServer, seconds: float = _REQUEST_SECONDS) -> http.client.HTTPConnection:
    import http.client  # here, because without a server it is not needed, and TLS alone takes megabytes
    from urllib.parse import urlsplit

    address = urlsplit(server.url)
    host, port = address.hostname or "", address.port
    if not server.certificate:
        return http.client.HTTPConnection(host, port, timeout=seconds)
    import hashlib
    import ssl

    # Its certificate is for the name others know it by, not for this machine's own: it must be the very one that it has
    # written into the file, which nobody else can write to.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
    connection.connect()
    shown = connection.sock.getpeercert(binary_form=True)
    if hashlib.sha256(shown or b"").hexdigest() != server.certificate:
        connection.close()
        raise ValueError("not the server that was announced")
    return connection


def stores_of(server: RunningServer) -> list[Document]:
    """The stores as a running server has them; raises OSError or ValueError where it does not say."""
    import http.client  # as in `connect_to`

    connection = connect_to(server, _STORES_SECONDS)
    try:
        connection.request("GET", "/v0/stores", headers={"Authorization": f"Bearer {server.token}"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except http.client.HTTPException as error:
        raise ValueError(f"it does not speak HTTP: {type(error).__name__}") from None
    except ValueError:
        raise ValueError("it answers with something that is no JSON") from None
    finally:
        connection.close()
    stores = answer.get("stores") if isinstance(answer, dict) else None
    if response.status != 200 or not isinstance(stores, list) or not all(map(_is_store, stores)):
        raise ValueError(f"it answers {response.status}, and not with stores")
    return stores


def _is_store(given: object) -> bool:
    return isinstance(given, dict) and isinstance(given.get("name"), str)
