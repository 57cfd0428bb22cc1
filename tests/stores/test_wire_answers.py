"""Another server as a replica: how large its answers may be, and where they are read."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from commonplace.stores import wire
from commonplace.stores.wire import HttpMemoryStore
from commonplace.wire import http_client
from commonplace.wire.errors import Unavailable
from commonplace.wire.models import RecallRequest, RecallResponse

HIT = {"id": "x", "type": "semantic", "content": "y", "score": 0.5}


def document(hits: int, content: str = "y") -> bytes:
    results = [{**HIT, "content": content}] * hits
    return json.dumps({"results": results, "fusion_used": "rrf", "stores_queried": ["x"], "latency_ms": 1}).encode()


@contextmanager
def server_answering(answer: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def recall(url: str, k: int = 5) -> RecallResponse:
    async def ask() -> RecallResponse:
        store = HttpMemoryStore(url, None, 5, "")
        try:
            return await store.recall(RecallRequest(agent_id="agent", query="x", k=k))
        finally:
            store.close()

    return asyncio.run(ask())


def test_an_answer_may_be_as_large_as_was_asked_for_and_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_MAX_RECALL", 1000)
    monkeypatch.setattr(wire, "_MAX_RECALL_HIT", 100)
    room = 1000 + 5 * 100 - len(document(1, ""))
    with server_answering(document(1, "y" * room)) as url:
        assert len(str(recall(url).results[0].content)) == room
    with server_answering(document(1, "y" * (room + 1))) as url:
        with pytest.raises(Unavailable, match="answered with more than 1,500 bytes"):
            recall(url)
        assert len(recall(url, k=6).results) == 1


def test_the_limit_of_a_recall_is_a_few_megabytes() -> None:
    assert wire._MAX_RECALL + 60 * wire._MAX_RECALL_HIT < 6_000_000
    assert wire._MAX_RECALL + 1000 * wire._MAX_RECALL_HIT < 25_000_000


def test_more_hits_than_were_asked_for_are_refused_before_any_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "parse", lambda *_: pytest.fail("it was looked at"))
    said = "it answers recall with 6 results, and was asked for at most 5"
    with server_answering(document(6)) as url, pytest.raises(Unavailable, match=said):
        recall(url)


def test_an_answer_is_parsed_and_validated_in_the_thread_that_has_received_it(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[threading.Thread] = []

    def noting(work: Any) -> Any:
        def noted(*args: Any) -> Any:
            readers.append(threading.current_thread())
            return work(*args)

        return noted

    class NotingJson:
        loads = staticmethod(noting(json.loads))
        dumps = staticmethod(json.dumps)

    monkeypatch.setattr(http_client, "json", NotingJson)
    monkeypatch.setattr(wire, "parse", noting(wire.parse))
    with server_answering(document(5)) as url:
        assert len(recall(url).results) == 5
    assert len(readers) == 2
    assert threading.main_thread() not in readers


@pytest.mark.parametrize("answer", [b"[]", b'"x"', b"{}", b'{"results": 5}', b'{"results": [1]}'])
def test_what_is_no_answer_to_a_recall_is_said(answer: bytes) -> None:
    said = "it answers recall, but not as memorywire has it; upgrade the older of the two"
    with server_answering(answer) as url, pytest.raises(Unavailable, match=said):
        recall(url)


def test_of_what_is_no_answer_nothing_is_quoted() -> None:
    with server_answering(b'{"results": [], "Alice\'s diagnosis": 1}') as url, pytest.raises(Unavailable) as refused:
        recall(url)
    assert refused.value.message == "it answers recall, but not as memorywire has it; upgrade the older of the two"
