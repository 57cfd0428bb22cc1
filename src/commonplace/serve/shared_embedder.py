"""A server's embedder, used by processes on the same data directory, which then need not load the model.

The server says where it is in a file that only its owner can read, and holds a lock on it while it lives: a file that
nobody holds was left behind by a server that is gone, and whoever answers at that address now is a stranger.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from commonplace.config import Config
from commonplace.embedders.base import Embedder, Encoding, TokenEmbedder, Unloadable, Vectors
from commonplace.embedders.registry import open_embedder
from commonplace.engine import Engine, Settings
from commonplace.engine_factory import open_engine, store_address
from commonplace.stores.urls import parse_store_url

if TYPE_CHECKING:
    import http.client

try:
    import fcntl
except ImportError:  # Windows: no embedder is shared there
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
Document = dict[str, Any]

FILE = "server.json"
#: Whoever looks whether the lock is held holds it for a moment: a server that finds it taken looks again.
_LOCK_TRIES, _LOCK_PAUSE_SECONDS = 5, 0.002
#: A pipe put in the file's place must not make anyone wait.
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_REQUEST_SECONDS = 10.0
_STORES_SECONDS = 30.0  # it asks each of its stores how it is
#: After a server could not help it is not asked again for so long.
_RETRY_SECONDS = 30.0


@dataclass(slots=True)
class RunningServer:
    """Where the server on a data directory is, and the token that its embedder takes."""

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
    """The server that shares its embedder on this data directory now."""
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


class SharedEmbedder:
    """Asks a running server first, and loads its own model only without one.

    Has the name of the embedder it stands for: a server whose embedder is another is never asked.
    """

    def __init__(self, own: Embedder, folder: Path) -> None:
        self._own = own
        self._folder = folder
        self._not_before = float("-inf")
        self.name = own.name
        self.concurrent = getattr(own, "concurrent", 1)
        self.reads_speakers = getattr(own, "reads_speakers", False)

    @property
    def dimension(self) -> int:
        return self._own.dimension

    def expect_dimension(self, dimension: int) -> None:
        if expect := getattr(self._own, "expect_dimension", None):
            expect(dimension)

    def embed(self, texts: Sequence[str]) -> Vectors:
        answer = self._ask_server(texts, self._vectors)
        return self._own.embed(texts) if answer is None else answer

    def unload(self) -> None:
        if isinstance(self._own, Unloadable):
            self._own.unload()

    def _ask_server(self, texts: Sequence[str], understand: Callable[[list[Document]], T], **more: bool) -> T | None:
        """None where there is no server that can help: the own model does."""
        if texts and time.monotonic() >= self._not_before:
            server = running_server(self._folder)
            if server is not None:
                try:
                    return understand(self._request(server, texts, more))
                except Exception:  # whatever it is, the own model does not depend on it
                    self._not_before = time.monotonic() + _RETRY_SECONDS
        return None

    def _request(self, server: RunningServer, texts: Sequence[str], more: Mapping[str, bool]) -> list[Document]:
        connection = _connection(server)
        try:
            body = json.dumps({"input": list(texts), "model": self.name, "encoding_format": "base64", **more})
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.token}"}
            connection.request("POST", "/v1/embeddings", body.encode("utf-8", "replace"), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200 or answer["model"] != self.name or len(answer["data"]) != len(texts):
            raise ValueError("not the embedder that was asked for")
        data: list[Document] = answer["data"]
        return data

    def _vectors(self, data: list[Document]) -> Vectors:
        return np.stack([_floats(row["embedding"], self.dimension)[0] for row in data])


class SharedTokenEmbedder(SharedEmbedder):
    """The same for an embedder with token vectors, which come in the same answer."""

    def __init__(self, own: TokenEmbedder, folder: Path) -> None:
        super().__init__(own, folder)
        self._own: TokenEmbedder = own

    @property
    def token_dimension(self) -> int:
        return self._own.token_dimension

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        answer = self._ask_server(texts, self._encodings, token_vectors=True)
        return self._own.encode(texts) if answer is None else answer

    def _encodings(self, data: list[Document]) -> list[Encoding]:
        return [self._encoding(row["embedding"], row["token_vectors"]) for row in data]

    def _encoding(self, embedding: str, more: Document) -> Encoding:
        tokens = _floats(more["tokens"], self.token_dimension)
        weights = _floats(more["weights"], len(tokens))[0]
        kept = _unpacked(more["kept"], "u1").astype(np.bool_)
        if len(kept) != len(tokens):
            raise ValueError("not the tokens of one text")
        return Encoding(_floats(embedding, self.dimension)[0], tokens, weights, kept)


def stores_of(server: RunningServer) -> list[Document]:
    """The stores as a running server has them; raises OSError or ValueError where it does not say."""
    import http.client  # as in `_connection`

    connection = _connection(server, _STORES_SECONDS)
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


def _connection(server: RunningServer, seconds: float = _REQUEST_SECONDS) -> http.client.HTTPConnection:
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


def _unpacked(text: str, form: str) -> NDArray[Any]:
    import base64  # as above

    return np.frombuffer(base64.b64decode(text), form)


def _floats(text: str, width: int) -> Vectors:
    rows: Vectors = _unpacked(text, "<f4").astype(np.float32).reshape(-1, width)
    if not len(rows) or not np.isfinite(rows).all():
        raise ValueError("not vectors of ours")
    return rows


def open_shared_embedder(config: Config) -> Embedder | None:
    """The configured embedder, which asks a server on the same data before it loads a model."""
    own = open_embedder(config.embedder)
    if own is None or not isinstance(own, Unloadable):  # without a model there is nothing to spare
        return own
    kind = SharedTokenEmbedder if hasattr(own, "encode") else SharedEmbedder
    return cast(Embedder, kind(cast(TokenEmbedder, own), config.data))


async def open_session_engine(config: Config) -> Engine:
    """With the embedder, and the address for reviews, of a server that runs on the same data: a model of its own
    would cost each session some 100 MB."""
    own = open_shared_embedder(config)
    server = running_server(config.data)
    review_url = config.review_url(server.url if server is not None and server.has_store_of(config) else "")
    settings = Settings(review_url=review_url, embeds_behind=True)
    return await open_engine(config, embedder=own, settings=settings)
