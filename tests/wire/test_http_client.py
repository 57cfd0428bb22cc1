"""What is said of a server that does not answer: which host and port, why, and what to do."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from jumping_loop import JumpingLoop, standing_still
from other_protocol import run_other_protocol

from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.http_client import JsonClient, unreachable, unreachable_url

REFUSED = ConnectionRefusedError(111, "Connection refused")
UNKNOWN = socket.gaierror(-2, "Name or service not known")
PLAIN = ssl.SSLError(1, "wrong version number")
ODD = http.client.BadStatusLine("x")
NOBODY = "Connection refused; is a server running there?"


def _untrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "host", "port", "where", "why"),
    [
        (REFUSED, "127.0.0.1", 8420, "127.0.0.1:8420", f"{NOBODY} `commonplace serve` starts one"),
        (REFUSED, "localhost", 9000, "localhost:9000", f"{NOBODY} `commonplace serve --port 9000` starts one"),
        (REFUSED, "::1", 8420, "[::1]:8420", f"{NOBODY} `commonplace serve` starts one"),
        (REFUSED, "memory.example.org", 80, "memory.example.org:80", NOBODY),
        (
            TimeoutError(),
            "10.0.0.1",
            80,
            "10.0.0.1:80",
            "no answer in time; is a server running there, and not too busy?",
        ),
        (UNKNOWN, "nohost", 80, "nohost:80", "Name or service not known; is the name of the host right?"),
        (PLAIN, "10.0.0.1", 443, "10.0.0.1:443", "it does not speak TLS; write http:// if that is meant"),
        (
            _untrusted(),
            "10.0.0.1",
            443,
            "10.0.0.1:443",
            "its certificate is not trusted here (self-signed certificate)",
        ),
        (ODD, "10.0.0.1", 22, "10.0.0.1:22", "BadStatusLine; is that a server's port, and is https:// meant?"),
        (OSError("odd"), "10.0.0.1", 80, "10.0.0.1:80", "OSError; is a server running there?"),
    ],
)
def test_the_sentence_names_host_and_port_and_what_to_do(
    error: Any, host: str, port: int, where: str, why: str
) -> None:
    assert unreachable(error, host, port, secure=False) == f"{where} could not be reached: {why}"


def test_a_server_of_others_is_not_started_like_ours() -> None:
    said = unreachable_url(REFUSED, "http://127.0.0.1:11434/v1/embeddings", ours=False)
    assert said == "127.0.0.1:11434 could not be reached: Connection refused; is a server running there?"
    assert unreachable_url(REFUSED, "https://example.org/v1").startswith("example.org:443 could")
    assert unreachable_url(REFUSED, "http://example.org/v1").startswith("example.org:80 could")


def _asked(url: str) -> str:
    async def ask() -> None:
        client = JsonClient(url, None, 5, 1)
        try:
            await client.call("GET", "/v0/health")
        finally:
            client.close()

    with pytest.raises(Unavailable) as refused:
        asyncio.run(ask())
    return refused.value.message


@pytest.mark.parametrize("sign", ["/", "?", "#", "/x?y#"])
@pytest.mark.parametrize("port", [":12", ""])
def test_a_password_that_cannot_be_read_is_not_taken_for_a_host(sign: str, port: str) -> None:
    with pytest.raises(ValidationError, match="an @ stands behind its host; ") as refused:
        JsonClient(f"http://alice{port}{sign}34@memory.example", "s3cret", 5, 1)
    assert "34" not in str(refused.value)
    assert "alice" not in str(refused.value)


def test_a_port_at_which_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        port = unused.getsockname()[1]
        assert f"127.0.0.1:{port} could not be reached" in _asked(f"http://127.0.0.1:{port}")


def test_a_port_that_speaks_something_else() -> None:
    with run_other_protocol() as port:
        assert f"127.0.0.1:{port} could not be reached" in _asked(f"http://127.0.0.1:{port}")
        assert "it does not speak TLS" in _asked(f"https://127.0.0.1:{port}")


@contextmanager
def _answering(status: int, location: str | None, body: bytes = b'{"status": "ok"}') -> Iterator[str]:
    """The address of a server that says the same to everyone, with a document as a good answer has it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(("status", "connections"), [(200, 1), (404, 1), (500, 2), (503, 2)])
def test_a_connection_is_not_used_again_after_a_server_has_failed(status: int, connections: int) -> None:
    """It may hang up without having said so, and the next request would be lost."""
    callers: set[Any] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            callers.add(self.client_address)
            self.send_response(status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    async def ask_twice(url: str) -> None:
        client = JsonClient(url, None, 5, 1)
        for _ in range(2):
            with suppress(Unavailable):
                await client.call("GET", "/v0/health")
        client.close()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asyncio.run(ask_twice(f"http://127.0.0.1:{server.server_address[1]}"))
        server.shutdown()
    assert len(callers) == connections


@pytest.mark.parametrize("status", [200, 404])
def test_whoever_is_answered_by_some_other_program_is_asked_whether_it_is_the_one(status: int) -> None:
    with _answering(status, None, b"<html>") as url:
        said = f"127.0.0.1 answered {status} with something that is not JSON"
        assert _asked(url) == f"{said}; are the port and the path those of the server?"


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308, 399])
def test_whatever_is_no_success_is_a_failure_also_with_a_document(status: int) -> None:
    with _answering(status, None) as url:
        assert _asked(url) == f"127.0.0.1 answered {status}"


@pytest.mark.parametrize(
    ("location", "address"),
    [
        ("https://memory.example/v0/health", "https://memory.example"),
        ("https://memory.example:8420/memory/v0/health?token=s3cret", "https://memory.example:8420/memory"),
        ("https://alice:s3cret@memory.example/v0/health", "https://memory.example"),
        ("https://login.example/s3cret?next=s3cret#s3cret", "https://login.example"),
        ("//other.example/v0/health", "http://other.example"),
        ("https://[::1]:8420/v0/health", "https://[::1]:8420"),
    ],
)
def test_a_redirect_is_told_with_the_address_to_give_instead_and_without_its_secrets(
    location: str, address: str
) -> None:
    with _answering(302, location) as url:
        said = _asked(url)
    assert said == (
        f"127.0.0.1 answered 302, a redirect to {address}, which is not followed; "
        "if that is the server you mean, give that address"
    )


@pytest.mark.parametrize(
    "location",
    ["/login?s3cret", "/v0/health/", "ftp://s3cret.example/", "https://[s3cret", "https://\x1b[2Js3cret/", ""],
)
def test_a_redirect_to_nowhere_else_is_told_as_that(location: str) -> None:
    with _answering(302, location) as url:
        said = _asked(url)
    assert said.startswith("127.0.0.1 answered 302")
    assert "s3cret" not in said
    assert " to http" not in said
    assert said.isprintable()


@contextmanager
def _dripping(headers: bytes = b"") -> Iterator[tuple[str, threading.Event, threading.Event]]:
    """A server whose answer never ends; when the first byte of one is sent, and when the other side has hung up."""
    begun, left = threading.Event(), threading.Event()

    def drip(line: socket.socket) -> None:
        with line:
            line.recv(65536)
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n" + headers + b"\r\n{")
            begun.set()
            line.recv(65536)  # nothing more is ever asked: it returns when the other side hangs up
            left.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):  # the end of the test
                while True:
                    line, _ = listening.accept()
                    threading.Thread(target=drip, args=(line,), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", begun, left
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


LONG = 3600.0  # seconds that no test waits for


@pytest.mark.parametrize("headers", [b"", b"Connection: close\r\n"])
def test_closing_ends_what_is_under_way_and_waits_for_nothing(headers: bytes) -> None:
    with _dripping(headers) as (url, begun, left):

        async def work() -> list[Any]:
            client = JsonClient(url, None, LONG, 1)
            calls = [
                asyncio.create_task(client.call("GET", "/v0/health")) for _ in range(2)
            ]  # one of them in the queue
            await asyncio.to_thread(begun.wait)
            client.close()
            return await asyncio.gather(*calls, return_exceptions=True)

        for fault in asyncio.run(work()):
            assert isinstance(fault, Unavailable)
            assert fault.message == "the connections to 127.0.0.1 are closed; open them anew"
        left.wait()


def test_whoever_gives_up_waiting_leaves_no_thread_behind() -> None:
    with _dripping() as (url, begun, left):

        async def work() -> None:
            client = JsonClient(url, None, LONG, 1)
            call = asyncio.create_task(client.call("GET", "/v0/health"))
            await asyncio.to_thread(begun.wait)
            call.cancel()
            await asyncio.to_thread(left.wait)
            with pytest.raises(asyncio.CancelledError):
                await call
            client.close()

        asyncio.run(work())


def test_an_exchange_that_does_not_end_is_ended() -> None:
    with _dripping() as (url, begun, left):

        async def work() -> None:
            client = JsonClient(url, None, LONG, 1)
            with standing_still():
                call = asyncio.create_task(client.call("GET", "/v0/health"))
                await asyncio.to_thread(begun.wait)
            with pytest.raises(Unavailable, match="could not be reached: no answer in time"):
                await call
            client.close()

        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(work())
        left.wait()


def test_who_closes_in_peace_has_what_is_under_way() -> None:
    async def work(url: str) -> Any:
        client = JsonClient(url, None, 5, 1)
        call = asyncio.create_task(client.call("GET", "/v0/health"))
        await asyncio.sleep(0)
        await client.finish()
        with pytest.raises(Unavailable, match="are closed"):
            await client.call("GET", "/v0/health")
        return await call

    with _answering(200, None) as url:
        assert asyncio.run(work(url)) == {"status": "ok"}
