"""When many texts wait to be embedded: who comes now is told when to come again; who leaves takes its text along."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from server_process import PROTOCOLS, SECONDS, ServerProcess

from commonplace.config import load as configure
from commonplace.embedders import text_queue
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.embedders.text_queue import Lane, TextQueue
from commonplace.engine import Engine, Settings
from commonplace.engine_factory import open_engine
from commonplace.serve.app import application
from commonplace.serve.companion import Events
from commonplace.serve.protocols import trusty
from commonplace.serve.server import address, listen, server_context, uvicorn_config
from commonplace.wire.record import system_clock
from commonplace.wire.times import iso

NOW = iso(system_clock())
_UUID = "0198c1f2-7b3e-7d10-9a55-3f2a9c1e4b7d"
#: One request for every route that embeds what it is asked for.
ASKING: dict[str, tuple[str, str, Any]] = {
    "POST /v0/recall": ("POST", "/v0/recall", {"agent_id": "ada", "query": "$"}),
    "POST /amp/search": ("POST", "/amp/search", {"query": "$", "agent": "ada"}),
    "POST /mrp/request": ("POST", "/mrp/request?agent=ada", {
        "type": "memory_request", "version": "0.1",
        "header": {"request_id": _UUID, "timestamp": NOW, "ttl_seconds": 3600},
        "requester": {"agent_id": "ada"}, "query": {"natural": "$"},
    }),
    "GET /openwop/memory": ("GET", "/openwop/memory?memoryRef=ada&rank=relevance&query=$", None),
    "POST /v1/embeddings": ("POST", "/v1/embeddings", {"model": "any", "input": "$"}),
}  # fmt: skip


class GatedEmbedder(HashingEmbedder):
    """Embeds only while its gate is open, and notes what."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.entered, self.texts = threading.Event(), threading.Event(), list[str]()

    def _encode(self, texts: list[str]) -> Any:
        self.texts += texts
        self.entered.set()
        assert self.gate.wait(SECONDS)
        return super()._encode(texts)


@dataclass
class BusyServer:
    """A server whose embedder is held at one text, and the events of its queue."""

    place: ServerProcess
    engine: Engine
    embedder: GatedEmbedder
    added: threading.Semaphore
    withdrawn: threading.Semaphore
    asked: list[socket.socket] = field(default_factory=list)

    def ask(self, request: tuple[str, str, Any], text: str) -> socket.socket:
        """Send a request, without waiting for its answer; back once its text is in the queue."""
        method, path, body = request
        data = b"" if body is None else json.dumps(body).replace("$", text).encode()
        head = (
            f"{method} {path.replace('$', quote(text))} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n"
        )
        connection = socket.create_connection(("127.0.0.1", self.place.port), timeout=SECONDS)
        connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + data)
        self.asked.append(connection)
        assert self.added.acquire(timeout=SECONDS)
        return connection


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BusyServer]:
    import uvicorn

    added, withdrawn = threading.Semaphore(0), threading.Semaphore(0)
    add, withdraw = TextQueue.add, TextQueue.withdraw

    def counted_add(self: TextQueue, pending: Any) -> None:
        add(self, pending)
        added.release()

    def counted_withdraw(self: TextQueue, pending: Any) -> bool:
        was = withdraw(self, pending)
        withdrawn.release()
        return was

    monkeypatch.setattr(text_queue, "MAX_WAITING", {Lane.QUERY: (1, 1), Lane.WRITE: (1, 1)})
    loop, embedder = asyncio.new_event_loop(), GatedEmbedder()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(SECONDS)

    async def start() -> tuple[Engine, Any, Any, ServerProcess]:
        config = configure(data=tmp_path, embedder="hashing")
        engine = await open_engine(config, embedder=embedder, settings=Settings(embeds_behind=True))
        sock = listen("127.0.0.1", 0)
        app = application(await server_context(config, engine))
        server = uvicorn.Server(uvicorn_config(app, config))
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        return engine, server, serving, ServerProcess(None, address(sock), tmp_path, [], [])  # type: ignore[arg-type]

    engine, server, serving, place = run(start())
    embedder.gate.set()
    place.post("/v0/remember", {"agent_id": "ada", "type": "semantic", "content": "Alice keeps bees"})
    embedder.gate.clear()
    embedder.entered.clear()
    monkeypatch.setattr(TextQueue, "add", counted_add)
    monkeypatch.setattr(TextQueue, "withdraw", counted_withdraw)
    found = BusyServer(place, engine, embedder, added, withdrawn)
    found.ask(ASKING["POST /v0/recall"], "the first question")
    assert embedder.entered.wait(SECONDS)
    while withdrawn.acquire(blocking=False):  # taken up by the worker
        pass

    async def stop() -> None:
        server.should_exit = True
        await serving
        await engine.close()

    try:
        yield found
    finally:
        embedder.gate.set()
        for connection in found.asked:
            connection.close()
        run(stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS)
        loop.close()


def test_the_table_names_every_route_that_embeds_a_question() -> None:
    routes = [r for p in (*PROTOCOLS, trusty.companion_protocol(None, Events())) for r in p.routes if r.embeds]
    assert {f"{r.method} {r.path}" for r in routes} == {*ASKING, "GET /api/v1/palaces/{id}/recall"}


def test_a_full_queue_is_told_before_anything_is_accepted(busy: BusyServer) -> None:
    busy.ask(ASKING["POST /v0/recall"], "the second question")
    for name, (method, path, body) in ASKING.items():
        told = json.loads(json.dumps(body).replace("$", f"a question by {name}")) if body is not None else None
        answer = busy.place.call(method, path.replace("$", quote(f"a question by {name}")), told)
        assert answer.status == 429, (name, answer.body)
        assert 1 <= int(answer.headers["retry-after"]) <= 60, name
        assert b"wait to be embedded" in answer.body, name
    assert busy.engine.queues()["embeddings"] == 1


def test_a_full_queue_keeps_no_write_waiting(busy: BusyServer) -> None:
    busy.ask(ASKING["POST /v0/recall"], "the second question")
    body = {"agent_id": "ada", "type": "semantic", "content": "Bob keeps hens"}
    kept = busy.place.post("/v0/remember", body)
    assert kept.status == 200, kept.body
    assert busy.place.get(f"/v0/memories/{kept.json['id']}?agent_id=ada").json["content"] == "Bob keeps hens"


@pytest.mark.parametrize("name", ASKING)
def test_a_client_that_leaves_takes_its_text_with_it(busy: BusyServer, name: str) -> None:
    leaving = busy.ask(ASKING[name], "a question nobody waits for")
    assert busy.engine.queues()["embeddings"] == 1
    leaving.close()
    assert busy.withdrawn.acquire(timeout=SECONDS), "still in the queue"
    assert busy.engine.queues()["embeddings"] == 0
    busy.embedder.gate.set()
    answer = busy.place.post("/v0/recall", {"agent_id": "ada", "query": "who keeps bees?"})
    assert answer.status == 200
    assert "a question nobody waits for" not in busy.embedder.texts
