"""Against a real HTTP server in a thread of this process."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from other_protocol import GREETINGS, run_other_protocol

from commonplace import SyncMemory
from commonplace.embedders.openai import OpenAI, open_embedder
from commonplace.wire.errors import Fault, RateLimited, Unavailable, ValidationError

SECRET_TEXT = "Alice keeps the spare key under the blue pot"


class EndpointServer(ThreadingHTTPServer):
    """Answers [length of the text, 3, 4] per text, after the failures that were planned."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.failures: list[tuple[int, dict[str, str], bytes]] = []
        self.answer: bytes | None = None

    @property
    def spec(self) -> str:
        return f"openai://127.0.0.1:{self.server_port}/v1?model=small"


class Handler(BaseHTTPRequestHandler):
    server: EndpointServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, "key": self.headers["Authorization"], **body})
        if self.server.failures:
            return self.reply(*self.server.failures.pop(0))
        data = [{"index": n, "embedding": [len(text), 3, 4]} for n, text in enumerate(body["input"])]
        # Backwards: nothing in the protocol promises an order but the index.
        self.reply(200, {}, self.server.answer or json.dumps({"data": data[::-1]}).encode())

    def do_GET(self) -> None:
        self.server.requests.append({"path": self.path})
        self.reply(200, {}, b"{}")

    def reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[EndpointServer]:
    with EndpointServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def opened(endpoint: EndpointServer, extra: str = "") -> tuple[OpenAI, list[float]]:
    waits: list[float] = []
    return open_embedder(endpoint.spec + extra, sleep=waits.append), waits


def test_texts_become_unit_vectors_in_order(endpoint: EndpointServer) -> None:
    embedder, waits = opened(endpoint)
    vectors = embedder.embed(["x" * 12, "", "abc"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors[0], [12 / 13, 3 / 13, 4 / 13], atol=1e-6)
    (request,) = endpoint.requests
    assert request == {
        "path": "/v1/embeddings",
        "key": None,
        "model": "small",
        "input": ["x" * 12, " ", "abc"],
        "encoding_format": "float",
    }
    assert waits == []


def test_long_lists_go_in_several_requests(endpoint: EndpointServer) -> None:
    embedder, _ = opened(endpoint)
    texts = ["x" * (n + 1) for n in range(300)]
    vectors = embedder.embed(texts)
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1] * 3, np.arange(1, 301), rtol=1e-4)
    assert [len(request["input"]) for request in endpoint.requests] == [128, 128, 44]


def test_the_dimension_is_asked_once_unless_it_is_said(endpoint: EndpointServer) -> None:
    said, _ = opened(endpoint, "&dimension=3")
    assert said.dimension == 3
    assert endpoint.requests == []
    asks, _ = opened(endpoint)
    assert (asks.dimension, asks.dimension) == (3, 3)
    assert len(endpoint.requests) == 1
    assert asks.embed([]).shape == (0, 3)
    with pytest.raises(Unavailable, match="3 dimensions, not 5"):
        opened(endpoint, "&dimension=5")[0].embed(["tea"])


def test_shortened_vectors_are_asked_for_and_are_part_of_the_name(endpoint: EndpointServer) -> None:
    embedder, _ = opened(endpoint, "&dimension=3&shorten=yes")
    embedder.embed(["tea"])
    assert endpoint.requests[0]["dimensions"] == 3
    assert embedder.name == f"{endpoint.spec}&dimension=3&shorten=yes"
    assert open_embedder(embedder.name).name == embedder.name


def test_the_key_comes_from_the_named_variable(endpoint: EndpointServer, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, _ = opened(endpoint, "&key=EXAMPLE_KEY")
    with pytest.raises(Unavailable, match="EXAMPLE_KEY, which `key` names, is not set"):
        embedder.embed(["tea"])
    monkeypatch.setenv("EXAMPLE_KEY", "k-123")
    embedder.embed(["tea"])
    assert endpoint.requests[0]["key"] == "Bearer k-123"
    assert "EXAMPLE_KEY" not in embedder.name


def test_it_tries_again_with_growing_waits(endpoint: EndpointServer) -> None:
    endpoint.failures = [(503, {}, b""), (429, {"Retry-After": "7"}, b""), (500, {}, b"oops")]
    embedder, waits = opened(endpoint)
    assert embedder.embed(["tea"]).shape == (1, 3)
    assert len(endpoint.requests) == 4
    assert waits[1] == 7
    assert 0.3 < waits[0] < 0.7 < 1.4 < waits[2] < 2.6


def test_an_absurd_retry_after_is_not_obeyed(endpoint: EndpointServer) -> None:
    endpoint.failures = [(429, {"Retry-After": "86400"}, b""), (429, {"Retry-After": "tomorrow"}, b"")]
    embedder, waits = opened(endpoint)
    embedder.embed(["tea"])
    assert max(waits) <= 20


@pytest.mark.parametrize(
    ("status", "fault", "message", "requests"),
    [
        (400, ValidationError, r"refused the text or a setting \(HTTP 400 too_long\)", 1),
        (401, Unavailable, r"refused a request without a key \(HTTP 401 too_long\)", 1),
        (404, Unavailable, "no such address or model", 1),
        (429, RateLimited, "limiting requests", 5),
        (500, Unavailable, r"failed \(HTTP 500", 5),
    ],
)
def test_refusals_say_why_and_never_quote_the_text(
    endpoint: EndpointServer, status: int, fault: type[Fault], message: str, requests: int
) -> None:
    quoting = json.dumps({"error": {"message": f"cannot embed {SECRET_TEXT}", "code": "too_long"}}).encode()
    endpoint.failures = [(status, {}, quoting)] * requests
    embedder, _ = opened(endpoint)
    with pytest.raises(fault, match=message) as caught:
        embedder.embed([SECRET_TEXT])
    assert type(caught.value) is fault
    assert SECRET_TEXT not in repr(caught.value.to_wire())
    assert len(endpoint.requests) == requests


@pytest.mark.parametrize("status", [301, 302, 307])
def test_redirects_are_not_followed(endpoint: EndpointServer, status: int) -> None:
    endpoint.failures = [(status, {"Location": "/elsewhere"}, b"")]
    with pytest.raises(Unavailable, match=f"HTTP {status}"):
        opened(endpoint)[0].embed(["tea"])
    assert [request["path"] for request in endpoint.requests] == ["/v1/embeddings"]


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"data": [{"index": 0}]}',
        b'{"data": []}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
        b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]}',
    ],
)
def test_an_answer_that_is_none(endpoint: EndpointServer, answer: bytes) -> None:
    endpoint.answer = answer
    with pytest.raises(Unavailable):
        opened(endpoint)[0].embed(["tea"])


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        waits: list[float] = []
        port = unused.getsockname()[1]
        spec = f"openai://127.0.0.1:{port}/v1?model=small"
        with pytest.raises(Unavailable, match=f"cannot be reached: 127.0.0.1:{port} .*Connection refused"):
            open_embedder(spec, sleep=waits.append).embed(["tea"])
    assert len(waits) == 4


@pytest.mark.parametrize("said", GREETINGS)
def test_a_server_that_speaks_something_else_or_stops_halfway(said: bytes) -> None:
    waits: list[float] = []
    with run_other_protocol(said) as port:
        spec = f"openai://127.0.0.1:{port}/v1?model=small"
        with pytest.raises(Unavailable, match=f"cannot be reached: 127.0.0.1:{port} .* is that a server's port"):
            open_embedder(spec, sleep=waits.append).embed(["tea"])
    assert len(waits) == 4


def remembering(data: Path, spec: str) -> tuple[SyncMemory, list[float]]:
    waits: list[float] = []
    return SyncMemory(data=data, embedder=open_embedder(spec, sleep=waits.append)), waits


def test_a_server_that_is_down_keeps_nobody_from_their_memories(endpoint: EndpointServer, tmp_path: Path) -> None:
    """How long its vectors are is known from the store: nobody need be asked before one is wanted."""
    with remembering(tmp_path, endpoint.spec)[0] as memory:
        memory.remember("Alice drinks tea")
    endpoint.shutdown()
    endpoint.server_close()
    memory, waits = remembering(tmp_path, endpoint.spec)
    with memory:
        assert [each["content"] for each in memory.list()["memories"]] == ["Alice drinks tea"]
        assert waits == []
        memory.remember("Bob drinks coffee")
        found = memory.recall("coffee")
        assert [hit.content for hit in found] == ["Bob drinks coffee"]
        assert "cannot be reached" in (found.note or "")


def test_a_store_is_begun_while_the_server_is_down(tmp_path: Path) -> None:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        spec = f"openai://127.0.0.1:{place.getsockname()[1]}/v1?model=small"
        with remembering(tmp_path, spec)[0] as memory:
            memory.remember("Alice drinks tea")
            found = memory.recall("tea")
            assert [hit.content for hit in found] == ["Alice drinks tea"]
            assert "cannot be reached" in (found.note or "")
            assert "keywords only" in (found.note or "")
    # Whichever comes first with a server that answers is the store's, and makes what is missing.
    with EndpointServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with remembering(tmp_path, server.spec)[0] as memory:
                assert memory.reindex(server.spec)["reindexed"] == 1
                assert memory.recall("tea").note is None
        finally:
            server.shutdown()
            thread.join()


def test_a_model_that_has_become_another_is_noticed_when_it_answers(endpoint: EndpointServer) -> None:
    embedder = opened(endpoint)[0]
    embedder.expect_dimension(5)
    assert (embedder.dimension, endpoint.requests) == (5, [])
    with pytest.raises(Unavailable, match="answered 3 dimensions, not 5"):
        embedder.embed(["tea"])
    said = opened(endpoint, "&dimension=3")[0]
    said.expect_dimension(5)
    assert said.dimension == 3, "what its spec says comes first"


@pytest.mark.parametrize(
    ("spec", "url"),
    [
        ("openai://api.example.com/v1?model=m", "https://api.example.com/v1/embeddings"),
        ("openai://localhost:11434/v1/?model=m", "http://localhost:11434/v1/embeddings"),
        ("openai://[::1]:80/v1?model=m", "http://[::1]:80/v1/embeddings"),
        ("openai://inside.example.com/v1?model=m&tls=no", "http://inside.example.com/v1/embeddings"),
    ],
)
def test_where_requests_go(spec: str, url: str) -> None:
    assert open_embedder(spec)._endpoint.url == url


@pytest.mark.parametrize(
    "spec",
    [
        "openai",
        "openai://host/v1",
        "openai:///v1?model=m",
        "openai://user:pass@host/v1?model=m",
        "openai://host:port/v1?model=m",
        "openai://host/v1?model=m&colour=red",
        "openai://host/v1?model=m&model=n",
        "openai://host/v1?model=m&dimension=-3",
        "openai://host/v1?model=m&shorten=yes",
    ],
)
def test_wrong_specs(spec: str) -> None:
    with pytest.raises(ValidationError):
        open_embedder(spec)
