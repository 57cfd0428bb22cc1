"""What a connection may cost before anyone knows whose it is: bytes, headers, time, and how many there are at once.

A layer around uvicorn's protocols, so that a request which never ends is refused before the application hears of it.
It knows nothing of tokens, routes or bodies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import IntEnum
from http import HTTPStatus
from typing import Any

from commonplace.config import LimitsConfig
from commonplace.wire import strict_json
from commonplace.wire.errors import Fault, Unavailable, ValidationError

#: Handles that the store, the logs and the listening socket need beside the connections.
_RESERVED_HANDLES = 128
#: Requests that one connection may have sent ahead of the answer it waits for: uvicorn queues each.
MAX_PIPELINED = 32
#: After a refusal a client may still be sending, and hears nothing if we close at once: so long, and so much, is
#: read and thrown away.
_LINGER_SECONDS, _LINGER_BYTES = 2.0, 4 << 20

_UNREADABLE = ValidationError("this is not a request that HTTP allows, or its address is longer than 65,535 bytes")


class Stage(IntEnum):
    """What a connection is waiting for. Where room is needed, the lower ones go first."""

    LINGERING = 0  # its end, after a refusal
    SILENT = 1  # its first byte
    HEAD = 2  # the end of the headers
    IDLE = 3  # another request
    BODY = 4  # the end of the body
    ANSWERING = 5  # us


class ConnectionGuard:
    """All connections of a server, and what they are held to."""

    def __init__(self, limits: LimitsConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.now = clock
        self.most = min(limits.connections, _usable_handles())
        self._all: dict[GuardedConnection, None] = {}  # in the order they came
        self._by_address: dict[str, dict[GuardedConnection, None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._seconds = {
            Stage.SILENT: limits.first_byte_seconds,
            Stage.HEAD: limits.header_seconds,
            Stage.BODY: limits.request_seconds,
            Stage.LINGERING: _LINGER_SECONDS,
        }
        self._interval = min(1.0, min(self._seconds.values()) / 4)

    def __len__(self) -> int:
        return len(self._all)

    def admit(self, connection: GuardedConnection, address: str) -> bool:
        """Whether there is room, or could be made by ending one that only waits: whoever speaks goes before it."""
        near = self._by_address.setdefault(address, {})
        near[connection] = self._all[connection] = None
        if self._timer is None:
            self._schedule()
        crowds = [(near, self.limits.connections_per_address), (self._all, self.most)]
        return all(len(crowd) <= most or self._make_room(crowd, connection) for crowd, most in crowds)

    def release(self, connection: GuardedConnection, address: str) -> None:
        self._all.pop(connection, None)
        near = self._by_address.get(address, {})
        near.pop(connection, None)
        if not near:
            self._by_address.pop(address, None)

    def _make_room(self, crowd: dict[GuardedConnection, None], newest: GuardedConnection) -> bool:
        # The first that has never said anything, which is found at once; else the one that has kept us waiting longest.
        victim: GuardedConnection | None = None
        for each in crowd:
            if each is newest or not each.can_be_dropped:
                continue
            if victim is None or (each.stage, each.since) < (victim.stage, victim.since):
                victim = each
            if each.stage <= Stage.SILENT:
                break
        if victim is not None:
            victim.drop()
        return victim is not None

    def sweep(self) -> None:
        """End what has taken too long."""
        now = self.now()
        for connection in list(self._all):
            limit = self._seconds.get(connection.stage)
            if limit is not None and now - connection.since > limit:
                connection.time_out()
            elif (blocked := connection.blocked_since) is not None and now - blocked > self.limits.request_seconds:
                connection.drop()  # a client that does not take its answer

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.sweep()
        if self._all:
            self._schedule()


class GuardedConnection:
    """Mixed into a protocol of uvicorn's, which tells it how far the request in hand has come."""

    guard: ConnectionGuard  # of the class: one for all connections of a server
    transport: Any
    cycle: Any
    client: Any
    server_state: Any

    stage = Stage.SILENT
    since = 0.0  # when the stage began; of a body, when its request did
    blocked_since: float | None = None  # since when the client takes nothing of what we send
    _address = ""
    _unparsed = 0  # bytes that came since the last part of a request was complete
    _chunk = 0  # bytes that came last
    _discarded = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        self.since = self.guard.now()
        self._address = self.client[0] if self.client else ""
        if not self.guard.admit(self, self._address):
            self._answer(503, Unavailable("this server has as many connections as it takes; try again"))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.release(self, self._address)
        super().connection_lost(exc)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        if self.stage is Stage.LINGERING:
            self._discarded += len(data)
            if self._discarded > _LINGER_BYTES:
                self.drop()
            return
        if self.stage is Stage.SILENT or self.stage is Stage.IDLE:
            self.enter(Stage.HEAD)
        self._chunk = len(data)
        self._unparsed += self._chunk
        super().data_received(data)  # type: ignore[misc]
        if self._unparsed > self.guard.limits.header_bytes:
            self.refuse_headers()

    def pause_writing(self) -> None:
        self.blocked_since = self.guard.now()
        super().pause_writing()  # type: ignore[misc]

    def resume_writing(self) -> None:
        self.blocked_since = None
        super().resume_writing()  # type: ignore[misc]

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():  # closing would wait for the client to take what is left
            self.drop()
        super().timeout_keep_alive_handler()  # type: ignore[misc]

    def send_400_response(self, msg: str) -> None:
        """uvicorn cannot read it, or one of our own hooks has refused it already."""
        self._refuse(400, _UNREADABLE)

    def enter(self, stage: Stage) -> None:
        if self.stage is Stage.LINGERING:
            return
        if stage is not self.stage:
            self.since = self.since if stage is Stage.BODY else self.guard.now()
            self.stage = stage
        self._unparsed = 0

    def check_headers(self, address: int, headers: Any) -> bool:
        """Whether a complete head, with an address so long, is within the limits."""
        limits = self.guard.limits
        bytes = max(self._unparsed, self._chunk)
        if bytes > limits.header_bytes:
            bytes = address + sum(len(name) + len(value) for name, value in headers)
        if bytes > limits.header_bytes or len(headers) > limits.headers:
            self.refuse_headers()
            return False
        return True

    def refuse_headers(self) -> None:
        limits = self.guard.limits
        most = f"{limits.headers} headers and {limits.header_bytes:,} bytes"
        self._refuse(431, ValidationError(f"a request's address and headers may have at most {most} together"))

    @property
    def answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def can_be_dropped(self) -> bool:
        """Whether ending it takes an answer from nobody."""
        if self.stage is Stage.BODY:
            return self.answered or not self.cycle.response_started
        return self.stage is not Stage.ANSWERING and (self.answered or self.stage is Stage.LINGERING)

    def time_out(self) -> None:
        """It took too long."""
        if self.stage <= Stage.SILENT or (self.stage is Stage.BODY and self.answered):
            self.drop()  # which has asked nothing that is not answered
        elif self.can_be_dropped:
            self._refuse(408, Unavailable("the request did not arrive in time; send it again, in one piece"))

    def drop(self) -> None:
        self.guard.release(self, self._address)  # at once: whoever takes its place is counted before it is gone
        self.stage = Stage.LINGERING
        self.transport.abort()

    def _refuse(self, status: int, fault: Fault) -> None:
        if self.stage is Stage.LINGERING:
            return
        if not self.can_be_dropped:
            self.drop()  # an earlier request's answer is on its way: another in between would be taken for it
            return
        self.enter(Stage.LINGERING)
        self._answer(status, fault)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if not self.answered:
            self.cycle.disconnected = True  # so that whoever reads the body is told, and answers no more
            self.cycle.message_event.set()

    def _answer(self, status: int, fault: Fault) -> None:
        own = b"".join(b"%b: %b\r\n" % header for header in self.server_state.default_headers)
        body = strict_json.encode(fault.to_wire())
        retry = "retry-after: 1\r\n" if status == 503 else ""
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{retry}connection: close\r\n\r\n"
        first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        self.transport.write(first.encode() + own + head.encode() + body)


class RefusedRequest(Exception):
    """Ends the parsing of what has been refused."""


def guarded_protocol(guard: ConnectionGuard) -> type[asyncio.Protocol]:
    """uvicorn's own protocol, the faster one where its parser is installed, under this guard."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol
    from uvicorn.protocols.http.h11_impl import H11Protocol

    found = _guarded_h11 if AutoHTTPProtocol is H11Protocol else _guarded_httptools
    return found(AutoHTTPProtocol, guard)


def _guarded_httptools(base: Any, shared: ConnectionGuard) -> type[asyncio.Protocol]:
    class HttptoolsConnection(GuardedConnection, base):  # type: ignore[misc]
        guard = shared

        def on_message_begin(self) -> None:
            if self.stage is not Stage.HEAD:
                self.enter(Stage.HEAD)
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            if not self.check_headers(len(self.url), self.headers):
                raise RefusedRequest
            if len(self.pipeline) >= MAX_PIPELINED:
                self.drop()
                raise RefusedRequest
            self.enter(Stage.BODY)
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._unparsed = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self.enter(Stage.IDLE if self.answered else Stage.ANSWERING)

        def on_response_complete(self) -> None:
            if self.stage is Stage.ANSWERING and not self.pipeline:
                self.enter(Stage.IDLE)
            super().on_response_complete()

    return HttptoolsConnection


def _guarded_h11(base: Any, shared: ConnectionGuard) -> type[asyncio.Protocol]:
    import h11

    class H11Connection(GuardedConnection, base):  # type: ignore[misc]
        guard = shared

        def handle_events(self) -> None:
            """Also called once an answer is complete, for what came meanwhile."""
            try:
                super().handle_events()
            except RefusedRequest:
                return
            state = self.conn.their_state
            waiting = len(self.conn.trailing_data[0])
            if state is h11.SEND_BODY:
                self.enter(Stage.BODY)
            elif state is h11.IDLE:
                self.enter(Stage.HEAD if waiting else Stage.IDLE)
            else:
                self.enter(Stage.ANSWERING)
            self._unparsed = 0 if self.stage is Stage.ANSWERING else waiting

        def send_400_response(self, msg: str) -> None:
            if len(self.conn.trailing_data[0]) > self.guard.limits.header_bytes:
                self.refuse_headers()  # h11 has counted them itself
            super().send_400_response(msg)

        def _should_upgrade(self) -> bool:
            # Called for each complete head, before the application is: there is no other hook.
            if not self.check_headers(len(self.scope["raw_path"] + self.scope["query_string"]), self.headers):
                raise RefusedRequest
            self.enter(Stage.BODY)
            return bool(super()._should_upgrade())

    return H11Connection


def _usable_handles() -> int:
    """As many connections as this process may have open beside its own files."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return 1 << 20
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else max(soft - _RESERVED_HANDLES, 1)
