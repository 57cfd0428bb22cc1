"""What a stranger can do to the server's connections before anyone asks who they are: each attack ends, and meanwhile
`/healthz` answers. Each prints its figure."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from attacks import dialled, dribble, flood, handles, memory_mb, rest, status
from server_process import ServerProcess, run_server

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at the server's process in /proc"),
]

HEADER_BYTES, HEADERS, CONNECTIONS, PER_ADDRESS = 16_384, 50, 400, 300
LIMITS = {
    "HEADER_BYTES": HEADER_BYTES,
    "HEADERS": HEADERS,
    "FIRST_BYTE_SECONDS": 1,
    "HEADER_SECONDS": 1,
    "REQUEST_SECONDS": 2,
    "IDLE_SECONDS": 1,
    "CONNECTIONS": CONNECTIONS,
    "CONNECTIONS_PER_ADDRESS": PER_ADDRESS,
}
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"POST /v0/recall HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
_MAX_SENT = 64 << 20  # bytes an attacker sends before the test gives up
_GROWTH_MB = 32


@pytest.fixture(scope="module", params=["httptools", "h11"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """With each parser that uvicorn may find; the second where the first is not installed."""
    data = tmp_path_factory.mktemp(request.param)
    settings = {f"COMMONPLACE_LIMITS_{name}": str(value) for name, value in LIMITS.items()}
    if request.param == "h11":
        (data / "without").mkdir()
        (data / "without" / "httptools.py").write_text("raise ImportError('left out')\n")
        settings["PYTHONPATH"] = os.pathsep.join([str(data / "without"), os.environ.get("PYTHONPATH", "")])
    with run_server(data, "--log-level", "warning", **settings) as server:
        yield server


def assert_alive(server: ServerProcess) -> None:
    assert server.get("/healthz").status == 200


def ask(line: socket.socket) -> None:
    """One request and its whole answer."""
    line.sendall(GET + b"\r\n")
    said = b""
    while not said.endswith(b'"ok"}'):
        data = line.recv(65_536)
        assert data, said
        said += data
    assert status(said) == 200


def refused(said: bytes) -> str:
    """The code, in our own envelope."""
    code: str = json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"]
    return code


ENDLESS = {
    "a header": GET + b"X-Endless: ",
    "an address": b"GET /",
    "blank lines": b"",
    "a header of a chunked body": CHUNKED + b"0\r\nX-Endless: ",
    "a chunk's extension": CHUNKED + b"5;x=",
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_is_refused_without_being_kept(server: ServerProcess, what: str) -> None:
    before = memory_mb(server)
    with dialled(server) as line:
        line.sendall(ENDLESS[what])
        sent, said = flood(line, b"\r\n" * 4096 if what == "blank lines" else b"a" * 8192, _MAX_SENT)
    assert_alive(server)
    print(f"{what}: {sent:,} bytes taken, answered {status(said)}, {memory_mb(server) - before:+.1f} MB")
    assert sent < _MAX_SENT
    assert status(said) in (431, 400)
    assert refused(said) == "validation_error"
    assert memory_mb(server) - before < _GROWTH_MB


@pytest.mark.parametrize("count", [HEADERS, HEADERS + 1, 20_000])
def test_only_so_many_headers_are_taken(server: ServerProcess, count: int) -> None:
    before = memory_mb(server)
    with dialled(server) as line:
        line.sendall(
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * (count - 2) + b"Connection: close\r\n"
        )
        _, said = flood(line, b"\r\n", 2)
    assert_alive(server)
    print(f"{count:,} headers: answered {status(said)}, {memory_mb(server) - before:+.1f} MB")
    assert status(said) == (200 if count <= HEADERS else 431)
    assert memory_mb(server) - before < _GROWTH_MB


def test_trailers_are_counted_too(server: ServerProcess) -> None:
    before = memory_mb(server)
    with dialled(server) as line:
        line.sendall(CHUNKED + b"0\r\n")
        sent, said = flood(line, b"a:b\r\n" * 1000, _MAX_SENT)
    assert_alive(server)
    print(f"trailers: {sent:,} bytes taken, answered {status(said)}, {memory_mb(server) - before:+.1f} MB")
    assert sent < _MAX_SENT
    assert memory_mb(server) - before < _GROWTH_MB


SLOW = {
    "header": GET + b"X-Slow: " + b"a" * 10_000,
    "first line": b"GET /" + b"a" * 10_000,
    "blank lines": b"\r\n" * 5_000,
}


@pytest.mark.parametrize("what", SLOW)
def test_a_head_that_comes_a_byte_at_a_time_is_given_up(server: ServerProcess, what: str) -> None:
    with dialled(server) as line:
        sent, said = dribble(line, SLOW[what])
    assert_alive(server)
    print(f"slow {what}: {sent} bytes, answered {status(said)}")
    if what == "blank lines" and status(said) == 400:
        return  # this parser takes none of them
    assert (status(said), refused(said)) == (408, "unavailable")


def test_a_body_that_comes_a_byte_at_a_time_is_given_up(server: ServerProcess) -> None:
    with dialled(server) as line:
        line.sendall(b"POST /v0/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        sent, said = dribble(line, b"{" + b" " * 10_000)
    assert_alive(server)
    print(f"slow body: {sent} bytes, answered {status(said)}")
    assert status(said) == 408
    assert refused(said) == "unavailable"


def test_a_second_request_is_held_to_the_same_limits(server: ServerProcess) -> None:
    with dialled(server) as line:
        ask(line)
        sent, said = dribble(line, SLOW["header"])
    print(f"slow second head: {sent} bytes, answered {status(said)}")
    assert status(said) == 408


def test_an_idle_connection_is_closed(server: ServerProcess) -> None:
    with dialled(server) as line:
        ask(line)
        assert rest(line) == b""


def test_a_silent_connection_is_closed(server: ServerProcess) -> None:
    with dialled(server) as line:
        assert rest(line) == b""


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: "], ids=["silent", "begun"])
def test_a_crowd_that_only_occupies_connections_shuts_nobody_out(server: ServerProcess, sent: bytes) -> None:
    before = memory_mb(server)
    with ExitStack() as held:
        crowd: list[socket.socket] = []
        most = answered = 0
        for number in range(1_100):
            crowd.append(held.enter_context(dialled(server)))
            crowd[-1].sendall(sent)
            if number % 100 == 99:
                assert_alive(server)
                answered += 1
                most = max(most, handles(server))
        kind = "begun" if sent else "silent"
        print(f"1,100 {kind} connections: {answered} probes answered, at most {most} handles, "
              f"{memory_mb(server) - before:+.1f} MB")  # fmt: skip
        assert most < PER_ADDRESS + 100
        for line in crowd:
            rest(line)  # all of them are ended
    assert memory_mb(server) - before < _GROWTH_MB


def test_pipelined_requests_are_bounded(server: ServerProcess) -> None:
    before = memory_mb(server)
    with dialled(server) as line:
        sent, said = flood(line, b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000, _MAX_SENT)
    assert_alive(server)
    grown = memory_mb(server) - before
    print(f"pipelined: {sent:,} bytes taken, {len(said):,} answered, {grown:+.1f} MB")
    assert grown < _GROWTH_MB


@pytest.mark.timeout(60)
def test_a_reader_who_reads_nothing_is_given_up(server: ServerProcess) -> None:
    with dialled(server) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(1)  # an answer: from now on the connection is among the server's handles
        before = handles(server)
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in range(200):
            if not select.select([], [line], [], 0)[1]:
                break
            line.sendall(asked)
        while handles(server) >= before:  # ended by the server: its handle goes, although nobody has read
            assert_alive(server)
