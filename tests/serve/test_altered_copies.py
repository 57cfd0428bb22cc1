"""A store beside the first has another text for a memory: no way to ask shows it, and each that has a place says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from page_browser import Visitor, text_of
from protocol_caller import Caller
from server_process import ServerProcess, cli, run_server, store_url

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Entry
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.sqlite.store import SqliteStore  # itself: the copy is a file, whatever the primary is
from commonplace.stores.text import terms

pytestmark = pytest.mark.process

TRUE, LIE, AGENT = "Alice drinks green tea at four", "Alice drinks green poison at four", "alices"
QUESTION = "what does Alice drink at four"
ASKED = {"agent_id": AGENT, "query": QUESTION, "min_score": 0}
SAID = "another text for 1 of the memories it named"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ServerProcess]]:
    data = tmp_path_factory.mktemp("altered")
    with run_server(data, COMMONPLACE_STORES=_stores(data)) as server:
        kept = server.post("/v0/remember", {"agent_id": AGENT, "type": "semantic", "content": TRUE}).json
        assert kept["stores"][1:] == ["spare"]
        asyncio.run(_alter(data / "copy.db", kept["id"]))
        yield data, server


def _stores(data: Path) -> str:
    return f"{store_url(data / 'commonplace.db')} sqlite://{data}/copy.db?name=spare"


async def _alter(path: Path, id: str) -> None:
    copy = PrimaryCopy(SqliteStore(path))
    (memory,) = await copy.get("local", [id])
    await copy.put([Entry(replace(memory, content=LIE), HashingEmbedder().embed([LIE]), terms(LIE))])
    await copy.close()


#: Every way to ask that has a place for it; each gives the whole answer as text.
TOLD: dict[str, Callable[[Path, Caller], Any]] = {
    "HTTP": lambda data, at: at.call("POST", "/v0/recall", ASKED).body,
    "HTTP, a line a hit": lambda data, at: (
        at.call("POST", "/v0/recall", ASKED, headers={"accept": "application/x-ndjson"}).body
    ),
    "JSON-RPC": lambda data, at: at.rpc("recall", ASKED),
    "MCP": lambda data, at: at.tool("/mcp", "recall", {"agent_id": AGENT, "query": QUESTION}),
    "MCP, all tools": lambda data, at: at.tool("/mcp/full", "recall", ASKED),
    "MCP, a resource": lambda data, at: at.mcp(
        "/mcp", "resources/read", uri=f"memory://{AGENT}/recall?{urlencode({'q': QUESTION})}"
    ),
    "AMP": lambda data, at: at.call("POST", "/amp/search", {"query": QUESTION, "agent": AGENT, "min_score": 0}).body,
    "AMP, every agent": lambda data, at: at.call("POST", "/amp/search", {"query": QUESTION, "min_score": 0}).body,
    "AMP by MCP": lambda data, at: at.tool("/mcp/amp", "amp_search", {"query": QUESTION, "agent": AGENT}),
    "the page": lambda data, at: text_of(
        Visitor(at.server).get(f"/ui/memories?{urlencode({'q': QUESTION, 'agent': AGENT, 'min_score': 0})}")
    ),
    "the command": lambda data, at: cli(
        data, "recall", QUESTION, "--agent", AGENT, "--min-score", "0", COMMONPLACE_STORES=_stores(data)
    ),
}

#: Those whose answers are closed: the log and `stores` tell instead.
SILENT: dict[str, Callable[[Path, Caller], Any]] = {
    "trusty-memory": lambda data, at: at.tool("/mcp/trusty", "memory_recall", {"palace": AGENT, "query": QUESTION}),
    "trusty-memory, deep": lambda data, at: at.tool(
        "/mcp/trusty", "memory_recall_deep", {"palace": AGENT, "query": QUESTION}
    ),
    "OpenWOP": lambda data, at: (
        at.call(
            "GET", f"/openwop/memory?{urlencode({'memoryRef': AGENT, 'rank': 'relevance', 'query': QUESTION})}"
        ).body
    ),
}


def _asked(place: tuple[Path, ServerProcess], way: Callable[[Path, Caller], Any]) -> str:
    data, server = place
    found = way(data, Caller(server, None, AGENT))  # type: ignore[arg-type]
    said = found.decode() if isinstance(found, bytes) else found if isinstance(found, str) else repr(found)
    assert TRUE in said
    assert "poison" not in said
    return said


@pytest.mark.parametrize("way", TOLD)
def test_each_way_to_ask_leaves_it_out_and_says_so(place: tuple[Path, ServerProcess], way: str) -> None:
    said = _asked(place, TOLD[way])
    assert SAID in said
    assert "commonplace stores resync spare" in said


@pytest.mark.parametrize("way", SILENT)
def test_what_has_no_place_for_it_leaves_it_out_and_the_server_tells(
    place: tuple[Path, ServerProcess], way: str
) -> None:
    before = place[1].get("/v0/stores").json["stores"][1]["altered"]
    _asked(place, SILENT[way])
    assert place[1].get("/v0/stores").json["stores"][1]["altered"] == before + 1
    assert place[1].log_with("spare has another text for memories than the first store")
