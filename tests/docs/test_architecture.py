"""docs/architecture.md against the code: its hop lists are followed by real calls, its tables by what there is."""

from __future__ import annotations

import asyncio
import importlib
import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from call_recorder import Calls, CountingStore, Response, recorded_calls, request

import commonplace
from commonplace.config import Config
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Engine, Settings
from commonplace.engine.governance import policies
from commonplace.engine.recall import recall_log
from commonplace.serve import auth
from commonplace.serve.app import application
from commonplace.serve.server import server_context
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing import FakeClock
from commonplace.testing.subject import WHO
from commonplace.wire.short_ids import shorten_id
from commonplace.wire.times import iso

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PACKAGE = Path(commonplace.__file__).parent

Document = dict[str, Any]


# what the document says


@dataclass
class HopList:
    hops: list[str]
    reads: list[str]
    transactions: list[str]


def hop_lists(text: str) -> dict[str, HopList]:
    """By heading: the numbered list of functions, and the line about the store below it."""
    chapter = text.split("## Five calls, hop by hop\n", 1)[1].split("\n## ", 1)[0]
    found = {}
    for part in chapter.split("\n### ")[1:]:
        heading, _, body = part.partition("\n")
        hops = re.findall(r"^\d+\. `([^`]+)`", body, re.MULTILINE)
        told = re.search(r"^Reads: (.*?)\. Write transactions: (.*)\.$", body, re.MULTILINE)
        assert told is not None, f"{heading} does not say what it asks of the store"
        found[heading] = HopList(hops, _counted(told[1]), _counted(told[2]))
    return found


def _counted(said: str) -> list[str]:
    """`2 (`a`, `b`)` as its names, which are as many as it says."""
    if said == "none":
        return []
    number, _, names = said.partition(" ")
    listed = re.findall(r"`([^`]+)`", names)
    assert int(number) == len(listed), said
    return listed


def resolve(name: str) -> Any:
    """What a dotted name within the package means."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(["commonplace", *parts[:end]]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            found = getattr(found, attribute)
        return found
    raise AttributeError(name)


# what really happens


@dataclass
class Server:
    """The server's own application over a store that counts."""

    app: Any
    store: CountingStore
    clock: FakeClock
    headers: dict[str, str]
    calls: Calls = field(default_factory=Calls)  # of the call that was recorded,
    reads: list[str] = field(default_factory=list)  # and what it asked of the store
    transactions: list[str] = field(default_factory=list)

    async def send(self, method: str, path: str, body: Document | None = None, **headers: str) -> Document:
        answer: Response = await request(self.app, method, path, body, {**self.headers, **headers})
        assert answer.status in (200, 201), answer.document
        document: Document = answer.document
        return document

    async def record(self, method: str, path: str, body: Document | None = None, **headers: str) -> Document:
        """The call that is looked at."""
        self.store.clear()
        with recorded_calls() as self.calls:
            answer = await self.send(method, path, body, **headers)
        self.reads, self.transactions = [*self.store.reads], [*self.store.transactions]
        return answer

    async def remember(self, content: str = "Alice is allergic to peanuts") -> str:
        body = {"agent_id": "alice", "type": "semantic", "content": content}
        return str((await self.send("POST", "/v0/remember", body))["id"])


async def remember_over_http(server: Server) -> None:
    body = {"agent_id": "alice", "type": "semantic", "content": "Alice is allergic to peanuts", "idempotency_key": "k"}
    assert (await server.record("POST", "/v0/remember", body))["id"]


async def recall_over_mcp(server: Server) -> None:
    id = await server.remember()
    params = {"name": "recall", "arguments": {"agent_id": "alice", "query": "what is Alice allergic to?"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    answer = await server.record("POST", "/mcp", message, **headers)
    assert answer["result"]["structuredContent"]["results"][0]["id"] == shorten_id(id)


async def amp_delete(server: Server) -> None:
    record = {"type": "lesson", "title": "Pruning", "content": "cut above the bud", "agent": "alice", "id": "lesson-1"}
    await server.send("POST", "/amp/store", {"record": record})
    assert (await server.record("DELETE", "/amp/records/lesson-1"))["deleted"] is True


async def mrp_ask(server: Server) -> None:
    await server.remember()

    def asked() -> Document:
        header = {"request_id": str(uuid.uuid4()), "timestamp": iso(server.clock())}
        message = {"type": "memory_request", "version": "0.1", "header": header, "requester": {"agent_id": "bob"}}
        return {**message, "query": {"natural": "what is Alice allergic to?"}}

    await server.send("POST", "/mrp/request?agent=alice", asked())  # the first of a minute drops what is over
    answer = await server.record("POST", "/mrp/request?agent=alice", asked())
    assert (answer["status"]["code"], len(answer["results"])) == ("success", 1)


async def openwop_run_read(server: Server) -> None:
    await server.remember()
    ref = (await server.send("POST", "/openwop/refs", {"agent": "alice"}))["memoryRef"]
    run = (await server.send("POST", "/openwop/runs", {"memoryRef": ref}))["runId"]
    assert len((await server.record("GET", f"/openwop/memory?runId={run}"))["entries"]) == 1


CALLS: dict[str, Callable[[Server], Awaitable[None]]] = {
    "Remember over HTTP": remember_over_http,
    "Recall over MCP": recall_over_mcp,
    "AMP delete": amp_delete,
    "MRP ask": mrp_ask,
    "OpenWOP run read": openwop_run_read,
}


def perform(
    call: Callable[[Server], Awaitable[None]], folder: Path, kind: str = "sqlite", token: bool = False
) -> Server:
    async def scenario() -> Server:
        clock = FakeClock()
        store = CountingStore(SqliteStore(folder / "commonplace.db", clock) if kind == "sqlite" else InMemory(clock))
        settings = Settings(folder=folder, store="as if it were opened by its URL")
        engine = await Engine.open(store, HashingEmbedder(), clock=clock, settings=settings)  # type: ignore[arg-type]
        headers = {}
        if token:
            headers["authorization"] = f"Bearer {(await engine.tokens.create(WHO, role='admin', name='owner'))[1]}"
        await engine.remember(WHO, Draft("before", "semantic", "a store in which no migration could begin any more"))
        await engine.policies.get(WHO)
        server = Server(application(await server_context(Config(folder), engine)), store, clock, headers)
        await call(server)
        await engine.close()
        return server

    return asyncio.run(scenario())


@pytest.fixture(autouse=True)
def no_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens by the clock on the wall does not happen meanwhile: a flush of the log, a look at the tokens."""
    monkeypatch.setattr(recall_log, "DELAY_SECONDS", 3600)
    monkeypatch.setattr(auth, "REFRESH_SECONDS", float("inf"))
    monkeypatch.setattr(policies, "REFRESH_SECONDS", float("inf"))


@pytest.fixture(scope="module")
def documented() -> dict[str, HopList]:
    return hop_lists(DOCUMENT)


def differences(listed: HopList, server: Server) -> list[str]:
    """Where the document and the call disagree."""
    wrong = [f"not called in this order: {hop}" for hop in server.calls.missing_in_order(listed.hops)]
    for what, said, done in (
        ("reads", listed.reads, server.reads),
        ("write transactions", listed.transactions, server.transactions),
    ):
        if said != done:
            wrong.append(f"{what}: {said} listed, {done} made")
    return wrong


def test_the_document_lists_these_calls(documented: dict[str, HopList]) -> None:
    assert documented.keys() == CALLS.keys()
    assert all(len(listed.hops) > 5 for listed in documented.values())


@pytest.mark.parametrize("call", CALLS)
def test_every_hop_exists(call: str, documented: dict[str, HopList]) -> None:
    assert all(callable(resolve(hop)) for hop in documented[call].hops)


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
@pytest.mark.parametrize("call", CALLS)
def test_the_call_goes_as_the_document_says(
    call: str, kind: str, documented: dict[str, HopList], tmp_path: Path
) -> None:
    server = perform(CALLS[call], tmp_path, kind)
    assert differences(documented[call], server) == []


@pytest.mark.parametrize("call", CALLS)
def test_a_document_that_is_wrong_is_noticed(call: str, documented: dict[str, HopList], tmp_path: Path) -> None:
    server, right = perform(CALLS[call], tmp_path, "memory"), documented[call]
    swapped = [right.hops[1], right.hops[0], *right.hops[2:]]
    uncalled = [*right.hops, "engine.memory.merge.merge"]
    for wrong in (
        HopList(swapped, right.reads, right.transactions),
        HopList(uncalled, right.reads, right.transactions),
        HopList(right.hops, [*right.reads, "get"], right.transactions),
        HopList(right.hops, right.reads, [*right.transactions, "engine.memory.write.remember"]),
    ):
        assert differences(wrong, server)


@pytest.mark.parametrize("call", ["Remember over HTTP", "AMP delete", "MRP ask", "OpenWOP run read"])
def test_with_tokens_no_call_writes_more_often(call: str, documented: dict[str, HopList], tmp_path: Path) -> None:
    server = perform(CALLS[call], tmp_path, token=True)
    assert differences(documented[call], server) == []


def test_the_tokens_are_one_read_when_they_are_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, documented: dict[str, HopList]
) -> None:
    monkeypatch.setattr(auth, "REFRESH_SECONDS", -1)
    server = perform(openwop_run_read, tmp_path)
    assert server.reads == ["records", *documented["OpenWOP run read"].reads]


# the same calls in other forms, as the remarks below the lists say


@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("/amp/records/lesson-1", ["agent_names", "find_alias"]),
        ("/amp/records/lesson-1?agent=alice", ["find_alias"]),
        ("/amp/records/MINTED", ["get"]),
        ("/amp/records/lesson_MINTED", ["get"]),
        ("/amp/records/MINTED?agent=alice", ["get"]),
    ],
)
def test_an_amp_delete_reads_the_row_once(path: str, reads: list[str], tmp_path: Path) -> None:
    async def call(server: Server) -> None:
        record = {"type": "lesson", "title": "Pruning", "content": "above the bud", "agent": "alice", "id": "lesson-1"}
        await server.send("POST", "/amp/store", {"record": record})
        minted = await server.remember()
        answer = await server.record("DELETE", path.replace("MINTED", minted))
        assert answer["deleted"] is True

    server = perform(call, tmp_path)
    assert (server.reads, len(server.transactions)) == (reads, 1)


@pytest.mark.parametrize(
    "query",
    ["", "&tag=food", "&tag=source:web", "&rank=relevance&query=peanuts", "&rank=relevance&query=peanuts&tag=food",
     "&backend=scratchpad", "&backend=conversation&tag=food"],
)  # fmt: skip
def test_a_list_within_a_run_asks_the_store_three_times_at_most(query: str, tmp_path: Path) -> None:
    async def call(server: Server) -> None:
        await server.remember()
        ref = (await server.send("POST", "/openwop/refs", {"agent": "alice"}))["memoryRef"]
        run = (await server.send("POST", "/openwop/runs", {"memoryRef": ref}))["runId"]
        await server.record("GET", f"/openwop/memory?runId={run}{query}")

    server = perform(call, tmp_path)
    assert (len(server.reads), server.transactions) == (3, [])


@pytest.mark.parametrize("backend", ["longTerm", "scratchpad"])
def test_an_entry_within_a_run_asks_the_store_three_times(backend: str, tmp_path: Path) -> None:
    async def call(server: Server) -> None:
        ref = (await server.send("POST", "/openwop/refs", {"agent": "alice"}))["memoryRef"]
        run = (await server.send("POST", "/openwop/runs", {"memoryRef": ref}))["runId"]
        body = {"runId": run, "backend": backend, "entry": {"content": "peanuts"}}
        kept = (await server.send("POST", "/openwop/memory", body))["entry"]["id"]
        if backend == "longTerm":  # a run does not see what was written after it began
            run = (await server.send("POST", "/openwop/runs", {"memoryRef": ref}))["runId"]
        await server.record("GET", f"/openwop/memory/{kept}?runId={run}&backend={backend}")

    server = perform(call, tmp_path)
    assert (len(server.reads), server.transactions) == (3, [])


@pytest.mark.parametrize("token", [False, True])
def test_a_question_to_the_whole_server_and_its_repetition(token: bool, tmp_path: Path) -> None:
    first: list[list[str]] = []

    async def call(server: Server) -> None:
        await server.remember()
        header = {"request_id": str(uuid.uuid4()), "timestamp": iso(server.clock())}
        message = {"type": "memory_request", "version": "0.1", "header": header, "requester": {"agent_id": "bob"}}
        asked = {**message, "query": {"natural": "what is Alice allergic to?"}}
        await server.record("POST", "/mrp/request", asked)
        first.append([*server.reads, *server.transactions])
        await server.record("POST", "/mrp/request", asked)

    server = perform(call, tmp_path, token=token)
    tidying = "records"  # the first of a minute
    kept = "engine.peers.request_dedup.RequestDedup.keep"
    assert first == [["records", "records", "agent_names", "record", "context", "search", tidying, kept]]
    assert server.reads == ["records", "records", "agent_names", "record", "record", "get"]
    assert server.transactions == []


def test_with_tokens_the_recall_of_a_peer_is_in_the_audit_before_the_answer(tmp_path: Path) -> None:
    told: list[str] = []

    async def call(server: Server) -> None:
        await mrp_ask(server)
        told.extend(entry.operation for entry in await server.store.store.audit("local", operation="recall"))

    perform(call, tmp_path, token=True)
    assert told == ["recall", "recall"]


# the tables


def table_names(heading: str) -> list[str]:
    chapter = DOCUMENT.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", chapter, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_the_layers_are_those_there_are() -> None:
    there = {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    there |= {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert sorted(table_names("Layers")) == sorted(there)


def test_the_rooms_are_those_there_are() -> None:
    engine = PACKAGE / "engine"
    assert sorted(table_names("The engine")) == sorted(p.parent.name for p in engine.glob("*/__init__.py"))
