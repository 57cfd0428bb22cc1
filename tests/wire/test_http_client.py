"""What is said of a server that does not answer: which host and port, why, and what to do."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import threading
from typing import Any

import pytest

from commonplace.wire.errors import Unavailable
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


def test_a_port_at_which_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        port = unused.getsockname()[1]
        assert f"127.0.0.1:{port} could not be reached" in _asked(f"http://127.0.0.1:{port}")


def test_a_port_that_speaks_something_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            for _ in range(2):
                line, _ = other.accept()
                with line:
                    line.sendall(b"SSH-2.0-something\r\n")
                    line.recv(65536)

        threading.Thread(target=greet, daemon=True).start()
        port = other.getsockname()[1]
        assert f"127.0.0.1:{port} could not be reached" in _asked(f"http://127.0.0.1:{port}")
        assert "it does not speak TLS" in _asked(f"https://127.0.0.1:{port}")
