"""The HTTP server beside an MCP process on stdio: trusty-memory's routes and its stream of events."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.datastructures import Headers

from commonplace.engine import require_role
from commonplace.serve.app import application
from commonplace.serve.context import RECORD, AppContext, RequestRecord, open_context
from commonplace.serve.http_io import disconnected, send_reply
from commonplace.serve.protocols.trusty import companion_protocol
from commonplace.serve.proxy_headers import without_prefix
from commonplace.serve.server import address, listen, uvicorn_config
from commonplace.serve.tls import check_certificate
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.strict_json import encode

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from commonplace.config import Config
    from commonplace.engine import Engine
    from commonplace.wire.record import Principal

Event = dict[str, Any]
CONNECTED: Event = {"type": "connected"}
_MAX_WAITING = 128  # events kept for a listener that does not read
STREAM = "/sse"
#: The stdio loop gives all of stopping less than two seconds.
_STOP_SECONDS = 1
_STREAM_HEADERS = {b"content-type": b"text/event-stream", b"cache-control": b"no-cache", b"x-accel-buffering": b"no"}


def parse_address(given: str) -> tuple[str, int]:
    """`127.0.0.1:3031`, `[::1]:3031`, `localhost:0`."""
    host, _, port = given.rpartition(":")
    bare = host.strip("[]")
    if not bare or (":" in bare and not host.startswith("[")) or not (port.isascii() and port.isdigit()):
        raise ValidationError(f"--http takes an address such as 127.0.0.1:3031, not {given[:80]!r}", field="http")
    if int(port) > 65535:
        raise ValidationError(f"--http: there is no port {port[:80]}", field="http")
    return bare, int(port)


@dataclass(slots=True, eq=False)
class _Listener:
    who: Principal
    queue: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    missed: int = 0


class Events:
    """What happens, sent to whoever listens, each shown only what is its own."""

    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()
        self._ended = False

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    def publish(self, who: Principal, agent: str, event: Event) -> None:
        for listener in self._listeners:
            if listener.who.tenant != who.tenant or not listener.who.may_use(agent):
                continue
            if listener.queue.qsize() >= _MAX_WAITING:
                listener.missed += 1
                continue
            if listener.missed:
                listener.queue.put_nowait({"type": "lag", "skipped": listener.missed})
                listener.missed = 0
            listener.queue.put_nowait(event)

    async def frames(self, who: Principal) -> AsyncGenerator[bytes]:
        """The first at once, until the server stops."""
        listener = _Listener(who)
        self._listeners.add(listener)
        try:
            yield _frame(CONNECTED)
            while not self._ended and (event := await listener.queue.get()) is not None:
                yield _frame(event)
        finally:
            self._listeners.discard(listener)

    def end(self) -> None:
        self._ended = True
        for listener in self._listeners:
            listener.queue.put_nowait(None)


def _frame(event: Event) -> bytes:
    return b"data: " + encode(event) + b"\n\n"


class Companion:
    """Listens from the moment it is made, so that an address already taken is known at once."""

    def __init__(self, config: Config, given: str, palace: str | None) -> None:
        self._config = config
        self._palace = palace
        check_certificate(config)
        self._host, port = parse_address(given)
        self._socket: socket.socket = listen(self._host, port, "--http")
        self.address = address(self._socket, tls=bool(config.tls_cert))
        self._events = Events()
        self._server: _Server | None = None
        self._stopping = False

    async def run(self, engine: Engine) -> None:
        """Until `stop`; raises what keeps it from serving."""
        try:
            protocols = (companion_protocol(self._palace, self._events),)
            context = await open_context(self._config, engine, protocols, self._host, "http")
            context.signpost = "/api/v1/status is a place to begin"
            print(f"commonplace: listening on {self.address}", file=sys.stderr, flush=True)
            app = _EventStreamApp(context, self._events)
            self._server = _Server(uvicorn_config(app, self._config, timeout_graceful_shutdown=_STOP_SECONDS))
            self._server.should_exit = self._stopping
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        self._stopping = True
        self._events.end()
        if self._server is not None:
            self._server.should_exit = True


class _Server(uvicorn.Server):
    """Signals belong to the stdio loop, which stops this server too."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _EventStreamApp:
    """The table of routes, and beside it the one answer that never ends."""

    def __init__(self, context: AppContext, events: Events) -> None:
        self._context = context
        self._events = events
        self._rest = application(context)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = without_prefix(scope.get("path", ""), self._context.prefix)
        if scope["type"] == "http" and path == STREAM and scope["method"] == "GET":
            await self._stream(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        scope[RECORD] = RequestRecord("stream")
        try:
            self._context.check_address(scope)
            who, _ = await self._context.authenticator.admit(headers.get("authorization"))
            require_role(who, "reader")
        except Fault as fault:
            await send_reply(scope, send, self._context.refusal(scope, fault))
            return
        await send({"type": "http.response.start", "status": 200, "headers": list(_STREAM_HEADERS.items())})
        sending = asyncio.create_task(self._send_all(send, who, headers.get("authorization")))
        leaving = asyncio.create_task(disconnected(receive))
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send_all(self, send: Send, who: Principal, authorization: str | None) -> None:
        async with contextlib.aclosing(self._events.frames(who)) as frames:
            # A stream outlives the look at its token: once that is revoked, nothing more is sent.
            with contextlib.suppress(Fault):
                async for frame in frames:
                    await self._context.authenticator.admit(authorization)
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
