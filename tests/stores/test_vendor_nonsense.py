"""Servers that answer with anything but what was asked for: each verb fails with a sentence, and nothing else does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from replica_house import AGENT, house

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Query
from commonplace.plugins import open_replica
from commonplace.stores.base import Entry, Reach, Search, StoreSettings
from commonplace.stores.optional import PerAgentStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Fault, Unavailable
from commonplace.wire.record import Memory

MEMORY = Memory("0199-a", "local", AGENT, "semantic", "Alice drinks tea", created_at=1)
NONSENSE = {
    "no JSON": (200, b"<html>Welcome!</html>"),
    "nothing": (200, b""),
    "null": (200, b"null"),
    "a number": (200, b"7"),
    "a list of numbers": (200, b"[1, 2]"),
    "a list of other things": (200, b'[{"passage": {"id": 7}, "id": 3}]'),
    "an empty object": (200, b"{}"),
    "other fields": (200, b'{"results": 5, "memories": {"a": 1}, "id": [], "status": "fine"}'),
    "memories that are none": (200, b'{"results": [{"x": 1}], "memories": ["x"], "id": "a"}'),
    "a failure": (500, b'{"detail": "something is wrong with Alice"}'),
    "a failure in words": (502, b"Bad Gateway"),
}


@pytest.fixture(params=NONSENSE, ids=lambda name: name.replace(" ", "-"))
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    status, body = NONSENSE[request.param]

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = do_PATCH = answer

        def log_message(self, *what: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("url", ["memorywire+http://{}", "letta://{}/notes"])
def test_each_verb_fails_with_a_sentence_and_a_recall_goes_on(address: str, url: str) -> None:
    embedder = HashingEmbedder()
    store = open_replica(url.format(address), FakeClock(), StoreSettings(embed=embedder.embed))
    assert isinstance(store, PerAgentStore)
    reach = Reach("local", (AGENT,))
    verbs = (
        lambda: store.put([Entry(MEMORY, None, b"")]),
        lambda: store.get_of("local", AGENT, ["0199-a"]),
        lambda: store.delete_of("local", AGENT, ["0199-a"]),
        lambda: store.search(Search(reach, "tea", embedder.embed(["tea"])[0])),
        lambda: store.scan(reach),
        lambda: store.health(),
    )

    async def work() -> None:
        for verb in verbs:
            with pytest.raises(Unavailable) as refused:
                await verb()
            assert isinstance(refused.value, Fault)
            assert "Alice" not in refused.value.summary  # what it says may quote a memory
        async with house(stores=[store]) as h:
            await h.remember("Alice drinks tea")
            found = await h.engine.recall(WHO, Query((AGENT,), "tea"))
            assert [hit.memory.content for hit in found.hits] == ["Alice drinks tea"]
            assert list(found.errors) == [store.name]

    asyncio.run(work())
