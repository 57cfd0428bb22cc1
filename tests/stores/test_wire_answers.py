"""Another server as a replica: how large its answers may be, and where they are read."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from commonplace.stores import wire
from commonplace.stores.wire import HttpMemoryStore
from commonplace.wire import http_client
from commonplace.wire.errors import Unavailable
from commonplace.wire.models import (
    ExpirePolicy,
    ExpireRequest,
    ForgetRequest,
    MergeRequest,
    RecallRequest,
    RecallResponse,
    RememberRequest,
)

HIT = {"id": "x", "type": "semantic", "content": "y", "score": 0.5}


def document(hits: int, content: str = "y") -> bytes:
    results = [{**HIT, "content": content}] * hits
    return json.dumps({"results": results, "fusion_used": "rrf", "stores_queried": ["x"], "latency_ms": 1}).encode()


@contextmanager
def server_answering(answer: bytes | Callable[[str], bytes], status: int = 200) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            said = answer if isinstance(answer, bytes) else answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked has read enough
                self.wfile.write(said)

        do_GET = do_POST

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
        with opened(url) as store:
            return await store.recall(RecallRequest(agent_id="agent", query="x", k=k))

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


async def _status(store: HttpMemoryStore) -> Any:
    return await store.status()


async def _list(store: HttpMemoryStore) -> Any:
    return await store.list_page(agent_id="agent", filter={}, limit=1000, cursor=None)


@contextmanager
def opened(url: str) -> Iterator[HttpMemoryStore]:
    store = HttpMemoryStore(url, None, 5, "")
    try:
        yield store
    finally:
        store.close()


#: Every operation, with how much of its answer is read.
OPERATIONS: dict[str, tuple[Callable[[HttpMemoryStore], Awaitable[Any]], int]] = {
    "health": (lambda store: store.health(), 64 << 10),
    "status": (_status, 4 << 20),
    "a listing": (_list, 4 << 20),
    "remember": (lambda s: s.remember(RememberRequest(agent_id="agent", type="semantic", content="x")), 1 << 20),
    "forget": (lambda s: s.forget(ForgetRequest(agent_id="agent", ids=["x"])), 1 << 20),
    "merge": (lambda s: s.merge(MergeRequest(agent_id="agent", canonical="x", duplicates=["y"])), 1 << 20),
    "expire": (lambda s: s.expire(ExpireRequest(agent_id="agent", policy=ExpirePolicy(older_than_days=1))), 1 << 20),
    "recall": (lambda s: s.recall(RecallRequest(agent_id="agent", query="x", k=5)), (4 << 20) + 5 * (16 << 10)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_answer_is_read_further_than_its_operation_needs(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, bound = OPERATIONS[operation]
    asked: list[int | None] = []
    read = http.client.HTTPResponse.read

    def noting(response: Any, amount: int | None = None) -> bytes:
        asked.append(amount)
        return read(response, amount)

    monkeypatch.setattr(http.client.HTTPResponse, "read", noting)
    monkeypatch.setattr(http_client, "json", OnlyDumps)

    async def run() -> None:
        with opened(url) as store:
            await ask(store)

    said = f"answered with more than {bound:,} bytes"
    with server_answering(b"[" + b"[]," * (3 << 20) + b"[]]") as url, pytest.raises(Unavailable, match=said):
        asyncio.run(run())
    assert asked[-1] == bound + 1
    assert max(filter(None, asked)) < 8_000_000


class OnlyDumps:
    dumps = staticmethod(json.dumps)


def test_a_page_that_is_too_large_is_asked_for_again_with_fewer() -> None:
    def page(path: str) -> bytes:
        limit = int(parse_qs(urlsplit(path).query)["limit"][0])
        limits.append(limit)
        return json.dumps({"memories": [{"id": "x", "content": "y" * 200_000}] * limit, "next_cursor": None}).encode()

    limits: list[int] = []

    async def ask() -> list[int]:
        with opened(url) as store:
            return [len((await _list(store))["memories"]) for _ in range(2)]

    with server_answering(page) as url:
        assert asyncio.run(ask()) == [12, 12]
    assert limits == [200, 100, 50, 25, 12, 24, 12]


def test_more_memories_than_were_asked_for_are_refused_before_any_is_looked_at() -> None:
    async def ask() -> None:
        with opened(url) as store:
            await _list(store)

    said = "it answers a listing with 201 memories, and was asked for at most 200"
    answer = json.dumps({"memories": [{}] * 201}).encode()
    with server_answering(answer) as url, pytest.raises(Unavailable, match=said):
        asyncio.run(ask())


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_content_is_no_answer_to_what_wants_one(operation: str) -> None:
    async def run() -> None:
        with opened(url) as store:
            await OPERATIONS[operation][0](store)

    by_get = operation in ("health", "status", "a listing")
    said = "that is no object" if by_get else f"it answers {operation}, but not as memorywire has it"
    with server_answering(b"", 204) as url, pytest.raises(Unavailable, match=said):
        asyncio.run(run())
