"""HTTP to servers of ours and of products over kept connections, and what is said of one that does not answer.

No redirect is ever followed: it would carry the token and the texts to a host nobody named.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import select
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from commonplace.wire.errors import Unavailable, ValidationError, fault_of
from commonplace.wire.shown_urls import shown_url

_DEFAULT_PORT = 8420
DEFAULT_URL = f"http://127.0.0.1:{_DEFAULT_PORT}"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_NO_CONTENT = 204
_TOKEN_NOT_TAKEN = (401, 403)
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
_PATH = re.compile(r"[A-Za-z0-9._~/-]*")
_EXCHANGE_TIMEOUTS = 10  # so many times the timeout of one step is what a whole exchange may take
_IDLE_SECONDS = 2.0  # after which a kept connection is not used again


class AnswerTooLarge(Unavailable):
    """More than was to be read of one answer; of what asks for less there may be less."""


class JsonClient:
    """A few kept connections to one server, each used by one thread at a time; an error answer becomes its fault.

    Not more than `max_bytes` of an answer are read. Unless `is_quoted` (as `Fault.is_quoted`) an error tells its kind
    and not its words, for those who show it to others: it may quote a memory. `token_advice` is what to do where the
    token is not taken, and `ours` a server that is started as ours is.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        timeout: float,
        connections: int,
        max_bytes: int | None = None,
        *,
        is_quoted: bool = True,
        token_advice: str | None = None,
        ours: bool = True,
    ) -> None:
        self._is_quoted = is_quoted
        self._token_advice = token_advice
        self._ours = ours
        # What follows a colon or comes before an @ may be a password.
        shown = "this" if "@" in url or ":" in url.partition("://")[2] else repr(shown_url(url, ()))
        wrong = ValidationError(f"{shown} is not a server's address; write for example {DEFAULT_URL}", field="url")
        try:
            parts = urlsplit(url)
            self._port = parts.port
        except ValueError:  # a port or an address that cannot be one
            raise wrong from None
        if "@" in f"{parts.path}?{parts.query}#{parts.fragment}":
            # Half of a password would be taken for the host, and the token be sent there.
            raise ValidationError(
                "this is not a server's address: an @ stands behind its host; / ? and # in a user name or password "
                "must be percent-encoded, such as %2F for /",
                field="url",
            )
        if not is_server_url(url) or parts.hostname is None:
            raise wrong
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise ValidationError("the token holds a character that no token has; copy it again", field="token")
        self._host, self._base = parts.hostname, parts.path.rstrip("/")
        self._secure = parts.scheme == "https"
        self._origin = _origin(parts)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix="commonplace-remote")
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []  # each with when it was last used
        self._under_way: dict[_Exchange, asyncio.Future[Any]] = {}
        self._lock = threading.Lock()
        self._closed = False

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        max_bytes: int | None = None,
        read: Callable[[Any], Any] | None = None,
    ) -> dict[str, Any]:
        """The object that it answers with."""
        document = await self.exchange(method, path, body, max_bytes=max_bytes, read=read)
        if not isinstance(document, dict):
            raise Unavailable(f"{self._host} answered with something that is no object")
        return document

    async def exchange(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        max_bytes: int | None = None,
        read: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Whatever JSON it answers with; None where it has nothing to say. What an error of another kind than ours says
        may quote a memory, so only its number is told.

        `max_bytes` is for an answer that must be smaller than any. `read` makes something of a good one, in the thread
        that has received it: what takes long for a large answer must not keep the event loop from everyone else.
        """
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if self._closed:
            raise self._closed_fault()
        loop = asyncio.get_running_loop()
        limit = self._max_bytes if max_bytes is None else max_bytes
        exchange = _Exchange()
        answer = loop.run_in_executor(self._pool, self._answer, exchange, method, path, data, limit, read)
        self._under_way[exchange] = answer
        # The timeout is of each step, and a server that sends a byte now and then would never exceed it.
        deadline = loop.call_later(self._timeout * _EXCHANGE_TIMEOUTS, exchange.abort)
        try:
            return await answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and not (task and task.cancelling()):  # it was in the queue when the pool was shut down
                raise self._closed_fault() from None
            raise
        finally:
            deadline.cancel()
            del self._under_way[exchange]
            exchange.abort()  # whoever gave up waiting must not leave a thread to wait for ever

    def _closed_fault(self) -> Unavailable:
        return Unavailable(f"the connections to {self._host} are closed; open them anew")

    def _answer(
        self,
        exchange: _Exchange,
        method: str,
        path: str,
        data: bytes | None,
        max_bytes: int | None,
        read: Callable[[Any], Any] | None,
    ) -> Any:
        status, answer, location = self._exchange(exchange, method, self._base + path, data, max_bytes)
        if status == _NO_CONTENT:
            return None if read is None else read(None)
        if 300 <= status < 400:  # whatever document comes with it: nothing was done
            raise self._redirected(status, path, location)
        advice = self._token_advice if status in _TOKEN_NOT_TAKEN else None
        try:
            document = json.loads(answer)
        except (ValueError, RecursionError):
            said = f"{self._host} answered {status} with something that is not JSON"
            raise Unavailable(f"{said}; {advice or 'are the port and the path those of the server?'}") from None
        if status >= 400:
            ours = isinstance(document, dict) and isinstance(document.get("error"), dict)
            fault = fault_of(document) if ours else Unavailable(f"{self._host} answered {status}", status=status)
            if ours and not self._is_quoted:
                fault = type(fault)(f"{self._host} answered {status}: {fault.code}", hint=advice, status=status)
            elif advice is not None:
                fault = Unavailable(f"{self._host} answered {status}; {advice}", status=status)
            raise fault
        return document if read is None else read(document)

    def _redirected(self, status: int, path: str, location: str | None) -> Unavailable:
        to = None if location is None else _redirect_address(f"{self._origin}{self._base}{path}", path, location)
        if to is None or to == f"{self._origin}{self._base}":
            return Unavailable(f"{self._host} answered {status}", status=status)
        return Unavailable(
            f"{self._host} answered {status}, a redirect to {to}, which is not followed",
            hint="if that is the server you mean, give that address",
            status=status,
        )

    def _exchange(
        self, exchange: _Exchange, method: str, path: str, data: bytes | None, max_bytes: int | None
    ) -> tuple[int, bytes, str | None]:
        connection = self._connection()
        try:
            if connection.sock is None:
                connection.connect()
            exchange.begin(connection.sock)
            try:
                connection.request(method, path, data, self._headers)
                response = connection.getresponse()
                try:
                    answer = response.read(None if max_bytes is None else max_bytes + 1)
                finally:
                    # Of an answer that ends with the connection the connection knows nothing any more: its socket would
                    # stay open until somebody collects what is left of it.
                    if response.will_close:
                        response.close()
            finally:
                exchange.end()  # what it read, or failed with, after it was aborted is no answer
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if self._closed and exchange.aborted:
                raise self._closed_fault() from None
            why = unreachable(error, self._host, connection.port, secure=self._secure, ours=self._ours)
            raise Unavailable(why) from error
        if max_bytes is not None and len(answer) > max_bytes:
            connection.close()
            raise AnswerTooLarge(f"{self._host} answered with more than {max_bytes:,} bytes")
        if response.length:  # what was announced and did not come; http.client says so only where no limit is given
            connection.close()
            raise Unavailable(f"{self._host} broke off in the middle of its answer; ask again")
        with self._lock:
            # One that has failed may hang up without having said so: the next request would be lost.
            if response.will_close or self._closed or response.status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
                connection.close()
            else:
                self._idle.append((connection, time.monotonic()))
        return response.status, answer, response.headers["Location"]

    def _connection(self) -> http.client.HTTPConnection:
        with self._lock:
            while self._idle:
                connection, used = self._idle.pop()
                # Readable before anything was asked means the server has hung up: a request sent now would be lost. One
                # that was idle for long may be about to: many servers do after five seconds.
                fresh = time.monotonic() - used < _IDLE_SECONDS
                if fresh and connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                    return connection
                connection.close()
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
        return _NoDelayConnection(self._host, self._port, timeout=self._timeout)

    async def finish(self) -> None:
        """Close once what is under way has its answers; nothing new is begun meanwhile."""
        self._closed = True
        if self._under_way:
            await asyncio.wait(list(self._under_way.values()))
        self.close()

    def close(self) -> None:
        """At once: what is under way fails. To wait here for a server that never ends its answer would stop the event
        loop with it."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        self._pool.shutdown(wait=False, cancel_futures=True)
        for exchange in list(self._under_way):
            exchange.abort()
        for connection, _ in idle:
            connection.close()


class _Exchange:
    """One request and its answer in a thread of the pool, which another thread may end."""

    def __init__(self) -> None:
        self.aborted = False
        # Not the connection, which lets go of it before the answer is read where the server says that it will hang up.
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def begin(self, line: socket.socket) -> None:
        with self._lock:
            self._raise_if_aborted()
            self._socket = line

    def end(self) -> None:
        """From here on the connection is another's to use, and not to be taken away."""
        with self._lock:
            self._socket = None
            self._raise_if_aborted()

    def _raise_if_aborted(self) -> None:
        if self.aborted:
            raise TimeoutError

    def abort(self) -> None:
        with self._lock:
            self.aborted = True
            if self._socket is not None:
                with suppress(OSError):
                    # Of the socket beneath: that of TLS would forget its keys under the thread that reads.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def is_server_url(url: str) -> bool:
    """Whether it can be a server's address, as far as can be seen without asking anybody."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:  # a port or an address that cannot be one
        return False
    plain = url.isprintable() and " " not in url and parts.path.isascii()
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port and plain


def _origin(parts: SplitResult) -> str:
    """Without who logs in."""
    host = parts.hostname or ""
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _redirect_address(asked: str, path: str, location: str) -> str | None:
    """The server that a redirect of what was asked leads to, with what comes before the path there; None where it is
    none. Nothing else of it is told: what logs in, a query and another path may be secrets."""
    try:
        parts = urlsplit(urljoin(asked, location))
        origin = _origin(parts)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.hostname or ""):
        return None
    plain = path.partition("?")[0]
    before = parts.path.removesuffix(plain) if parts.path.endswith(plain) and _PATH.fullmatch(parts.path) else ""
    same = origin == _origin(urlsplit(asked))
    return None if same and not parts.path.endswith(plain) else origin + before


def unreachable(error: Exception, host: str, port: int, *, secure: bool, ours: bool = True) -> str:
    """Which host and port did not answer, why, and what to do; `ours` is a server that is started as ours is."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    why = getattr(error, "strerror", None) or type(error).__name__
    if isinstance(error, TimeoutError):
        return f"{where} could not be reached: no answer in time; is a server running there, and not too busy?"
    if isinstance(error, socket.gaierror):
        return f"{where} could not be reached: {why}; is the name of the host right?"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{where} could not be reached: its certificate is not trusted here ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"{where} could not be reached: it does not speak TLS; write http:// if that is meant"
    if isinstance(error, ConnectionRefusedError) and host in LOCAL_HOSTS and ours:
        start = f"`commonplace serve{'' if port == _DEFAULT_PORT else f' --port {port}'}` starts one"
        return f"{where} could not be reached: {why}; is a server running there? {start}"
    if isinstance(error, http.client.HTTPException) and not secure:
        return f"{where} could not be reached: {why}; is that a server's port, and is https:// meant?"
    return f"{where} could not be reached: {why}; is a server running there?"


def unreachable_url(error: Exception, url: str, *, ours: bool = True) -> str:
    """The same of an address that was checked before."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    return unreachable(error, parts.hostname or url, parts.port or (443 if secure else 80), secure=secure, ours=ours)


class _NoDelayConnection(http.client.HTTPConnection):
    """Headers and body leave at once: waiting to fill a packet would cost tens of milliseconds a call."""

    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry a token, or what is sent, to a host that nobody named."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None
