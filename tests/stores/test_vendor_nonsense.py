"""Servers that answer with anything but what was asked for: each verb fails with a sentence, and nothing else does."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from replica_house import AGENT, house

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Forget, Query, Update
from commonplace.plugins import open_replica
from commonplace.stores.base import Entry, Reach, Search, StoreSettings
from commonplace.stores.documents import to_document
from commonplace.stores.foreign_copies import to_metadata
from commonplace.stores.letta import instant_of
from commonplace.stores.optional import AgentListing, CopyListing, PerAgentStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Fault, Unavailable
from commonplace.wire.record import Memory

MEMORY = Memory("0199-a", "local", AGENT, "semantic", "Alice drinks tea", created_at=1)
TOKEN = "hunter22-hunter22"
URLS = ["memorywire+http://{}?token_env=THEIR_TOKEN", "letta://{}/notes?token_env=THEIR_TOKEN"]
QUOTING = f'{{"detail": "Alice drinks tea, says {TOKEN}"}}'.encode()


def _error(code: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": f"Alice drinks tea, says {TOKEN}"}}).encode()


#: Status, body, and headers beside its length.
Answer = tuple[int, bytes, dict[str, str]]
NONSENSE: dict[str, Answer] = {
    "no JSON": (200, b"<html>Welcome, Alice!</html>", {}),
    "nothing": (200, b"", {}),
    "null": (200, b"null", {}),
    "a number": (200, b"7", {}),
    "a text": (200, b'"Alice drinks tea"', {}),
    "a list of numbers": (200, b"[1, 2]", {}),
    "a list of other things": (200, b'[{"passage": {"id": 7}, "id": 3}]', {}),
    "a list without ids": (200, b'[{"passage": {"text": "Alice drinks tea"}, "name": "notes/local/agent"}]', {}),
    "an empty object": (200, b"{}", {}),
    "other fields": (200, b'{"results": 5, "memories": {"a": 1}, "id": [], "status": "fine"}', {}),
    "memories that are none": (200, b'{"results": [{"x": 1}], "memories": ["x"], "id": "a"}', {}),
    "memories without ids": (200, b'{"memories": [{"content": "Alice drinks tea"}], "results": [{}]}', {}),
    "bytes that are no text": (200, b'{"status": "\xff\xfe"}', {}),
    "half of a document": (200, b'{"status": "ok", "memories": [{"id": "Ali', {}),
    "less than it said": (200, b'{"status": "ok"}', {"Content-Length": "400"}),
    "a document without end": (200, b"[" * 100_000, {}),
    "a failure": (500, QUOTING, {}),
    "a failure without a word": (500, b"", {}),
    "a failure in words": (502, b"Bad Gateway for Alice", {}),
    "a failure as a page": (500, b"<html>Traceback: Alice drinks tea</html>", {}),
    "a refusal": (401, QUOTING, {}),
    "a failure in our words": (503, _error("unavailable"), {}),
    "a conflict in our words": (409, _error("conflict"), {}),
    "nothing found in our words": (404, _error("not_found"), {}),
    "a failure as OpenAI has it": (500, _error("server_error"), {}),
    "too many questions": (429, QUOTING, {}),
    "a redirect": (302, b"", {"Location": f"https://thief.example/?token={TOKEN}"}),
    "a redirect with a document": (307, b'{"status": "ok"}', {"Location": "https://thief.example/"}),
}


@contextmanager
def answering(answer: Callable[[str, str, bytes], Answer]) -> Iterator[str]:
    """The address of a server that answers so: called with the method, the path and what was sent."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body, headers = answer(self.command, self.path, sent)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = do_PATCH = answer

        def log_message(self, *what: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def opened(url: str, address: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("THEIR_TOKEN", TOKEN)
    return open_replica(url.format(address), FakeClock(), StoreSettings(embed=HashingEmbedder().embed))


async def _listed(store: Any) -> None:
    assert isinstance(store, CopyListing)
    async for _ in store.copy_pages("local", AGENT):
        pass


async def _refusal(work: Awaitable[object]) -> str:
    try:
        await work
    except Fault as fault:
        return str(fault)
    return ""


#: What is asked of a store.
VERBS: dict[str, Callable[[Any], Any]] = {
    "write": lambda store: store.put([Entry(MEMORY, None, b"")]),
    "get": lambda store: store.get_of("local", AGENT, ["0199-a"]),
    "delete": lambda store: store.delete_of("local", AGENT, ["0199-a"]),
    "delete many": lambda store: store.delete_of("local", AGENT, [f"0199-{n}" for n in range(60)]),
    "search": lambda store: store.search(Search(Reach("local", (AGENT,)), "tea", HashingEmbedder().embed(["tea"])[0])),
    "scan": lambda store: store.scan(Reach("local", (AGENT,))),
    "list": _listed,
    "agents": lambda store: store.agent_names("local"),
    "health": lambda store: store.health(),
}
#: Where a server may say nothing of it: a server of the binding need not say whose memories it has.
SILENT = {("memorywire", "agents")}


@pytest.mark.parametrize("url", URLS, ids=["memorywire", "letta"])
@pytest.mark.parametrize("nonsense", NONSENSE)
def test_each_verb_fails_with_a_sentence_that_quotes_nothing(
    nonsense: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(address: str) -> None:
        store = opened(url, address, monkeypatch)
        assert isinstance(store, PerAgentStore)
        assert isinstance(store, AgentListing)
        for verb, ask in VERBS.items():
            said = await _refusal(ask(store))
            assert said or (store.name, verb) in SILENT, verb
            # What it says may quote a memory, and what is sent to it may not be told to others.
            assert not [each for each in ("Alice", TOKEN, "thief.example/?") if each in said], verb
        await store.close()

    with answering(lambda *_: NONSENSE[nonsense]) as address:
        asyncio.run(work(address))


@pytest.mark.parametrize("url", URLS, ids=["memorywire", "letta"])
@pytest.mark.parametrize("nonsense", NONSENSE)
def test_every_operation_goes_on_and_says_whose_answer_is_missing(
    nonsense: str, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(address: str) -> None:
        store = opened(url, address, monkeypatch)
        async with house(stores=[store]) as h:
            kept, gone = await h.remember("Alice drinks tea"), await h.remember("Alice drank milk")
            await h.engine.update(WHO, Update(AGENT, kept, content="Alice drinks green tea"))
            await h.engine.forget(WHO, Forget(AGENT, [gone], hard_delete=True))
            await h.settled()
            found = await h.engine.recall(WHO, Query((AGENT,), "tea"))
            assert [hit.memory.content for hit in found.hits] == ["Alice drinks green tea"]
            (shown,) = [each for each in await h.engine.stores.list(WHO) if each["role"] == "replica"]
            with pytest.raises(Fault) as refused:
                await h.engine.stores.resync(WHO, store.name)
            # Nothing of it is lost: both wait, the erasure too, and the primary is as it was.
            assert set(await h.waiting()) == {kept, gone}
            assert [memory.content for memory in await h.live()] == ["Alice drinks green tea"]
            waiting = [each["error"] for each in (await h.waiting()).values()]
            said = [found.errors[store.name], shown["error"], shown["last_error"], str(refused.value), *waiting]
            assert not [each for each in said if not each or "Alice" in each or TOKEN in each]

    with answering(lambda *_: NONSENSE[nonsense]) as address, caplog.at_level(logging.INFO):
        asyncio.run(work(address))
    assert [record.message for record in caplog.records if record.exc_info] == []
    assert not [each for each in ("Alice", TOKEN) if each in caplog.text]


def test_an_archive_that_is_gone_is_no_fault_of_the_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    archives = ["archive-1"]

    def answer(method: str, path: str, sent: bytes) -> Answer:
        if path == "/v1/passages/search":
            is_there = json.loads(sent)["archive_id"] in archives
            return (200, b"[]", {}) if is_there else (404, b'{"detail": "Archive not found"}', {})
        held = [{"id": id, "name": "notes/local/agent"} for id in archives]
        return 200, json.dumps(held if path.startswith("/v1/archives/?") else {"status": "ok"}).encode(), {}

    async def work(address: str) -> None:
        store = opened(URLS[1], address, monkeypatch)
        assert await store.get_of("local", AGENT, ["0199-a"]) == []
        archives[:] = ["archive-2"]
        assert await store.health() == {"status": "ok"}
        archives.clear()
        assert await store.health() == {"status": "ok"}
        assert await store.get_of("local", AGENT, ["0199-a"]) == []
        await store.close()

    with answering(answer) as address:
        asyncio.run(work(address))


OTHERS = Memory("0199-others", "another", "their-agent", "semantic", "Bob is ill", created_at=1)


def _of_letta(method: str, path: str, sent: bytes) -> Any:
    """A server whose searches know neither archives nor times: everything is somebody else's."""
    if path.startswith("/v1/archives/?"):
        return [{"id": "archive-1", "name": "notes/local/agent"}]
    if path == "/v1/passages/search":
        held = {"commonplace": to_document(OTHERS, without=frozenset({"content"}))}
        at = instant_of(OTHERS.id).isoformat()
        return [{"passage": {"id": "passage-9", "text": OTHERS.content, "metadata": held, "created_at": at}}]
    return {"id": "passage-1", "status": "ok"}


def _of_memorywire(method: str, path: str, sent: bytes) -> Any:
    theirs = {"id": "theirs-9", "type": "semantic", "content": OTHERS.content, "metadata": to_metadata(OTHERS)}
    if path.startswith("/v0/memories"):
        return {"memories": [theirs], "next_cursor": None}
    if path == "/v0/recall":
        return {"results": [{**theirs, "score": 1.0}], "fusion_used": "rrf", "stores_queried": ["x"], "latency_ms": 1}
    return {"status": "ok", "agents": {AGENT: 1}}


@pytest.mark.parametrize(
    ("url", "answer"), [*zip(URLS, (_of_memorywire, _of_letta), strict=True)], ids=["memorywire", "letta"]
)
def test_what_is_somebody_elses_is_neither_given_nor_deleted(
    url: str, answer: Callable[[str, str, bytes], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, bytes]] = []

    def noted(method: str, path: str, sent: bytes) -> Answer:
        asked.append((method, path, sent))
        return 200, json.dumps(answer(method, path, sent)).encode(), {}

    async def work(address: str) -> None:
        store = opened(url, address, monkeypatch)
        assert await VERBS["get"](store) == []
        assert await VERBS["search"](store) == []
        assert (await VERBS["scan"](store)).memories == []
        with suppress(Unavailable):  # that server answers a forget with nothing that says what became of it
            assert await VERBS["delete"](store) == 0
        async with house(stores=[store]) as h:
            await h.remember("Alice drinks tea")
            found = await h.engine.recall(WHO, Query((AGENT,), "tea"))
            assert [hit.memory.content for hit in found.hits] == ["Alice drinks tea"]

    with answering(noted) as address:
        asyncio.run(work(address))
    assert [each for each in asked if each[0] == "DELETE" or b"theirs-9" in each[2] or b"passage-9" in each[2]] == []


@pytest.mark.parametrize("body", [b'{"detail": "Unauthorized"}', b"<html>Who are you?</html>", b""])
@pytest.mark.parametrize("url", URLS)
def test_a_token_that_is_not_taken_is_said_with_the_variable_to_set(
    url: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(url: str, address: str) -> str:
        store = opened(url, address, monkeypatch)
        try:
            return await _refusal(store.health())
        finally:
            await store.close()

    with answering(lambda *_: (401, body, {})) as address:
        assert "; set THEIR_TOKEN, which token_env names, to a token " in asyncio.run(ask(url, address))
        without = asyncio.run(ask(url.partition("?")[0], address))
        assert "; put token_env=NAME into its URL, the variable NAME holding a token " in without


def test_a_letta_that_is_not_there_is_not_started_by_a_command_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened("letta://{}/notes", "127.0.0.1:9", monkeypatch)
    said = asyncio.run(_refusal(store.health()))
    asyncio.run(store.close())
    assert said == "127.0.0.1:9 could not be reached: Connection refused; is a server running there?"
