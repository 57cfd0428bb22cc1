"""A change of a memory and a statement of the graph wait for approval, whichever way they come in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from server_process import ServerProcess

from commonplace import RemoteMemory
from commonplace.wire.validate import check

pytestmark = pytest.mark.process
WAITS = {"approval_required": True, "reasoning": "she said so"}
_MCP = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}
Document = dict[str, Any]


def patch(server: ServerProcess, id: str, fields: Document) -> Document:
    return server.call("PATCH", f"/v0/memories/{id}", fields).json


def rpc(method: str) -> Callable[[ServerProcess, str, Document], Document]:
    def send(server: ServerProcess, id: str, fields: Document) -> Document:
        params = {"id": id, **fields} if method == "memory.update" else fields
        return server.post("/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json["result"]

    return send


def tool(name: str) -> Callable[[ServerProcess, str, Document], Document]:
    def send(server: ServerProcess, id: str, fields: Document) -> Document:
        arguments = {"id": id, **fields} if name == "update" else fields
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return server.post("/mcp/full", message, headers=_MCP).json["result"]["structuredContent"]

    return send


def remote(name: str) -> Callable[[ServerProcess, str, Document], Document]:
    def send(server: ServerProcess, id: str, fields: Document) -> Document:
        async def run() -> Document:
            async with RemoteMemory(server.url) as memory:
                return await getattr(memory, name)(**({"id": id, **fields} if name == "update" else fields))

        return asyncio.run(run())

    return send


UPDATES = {"PATCH": patch, "rpc": rpc("memory.update"), "MCP": tool("update"), "SDK": remote("update")}
STATEMENTS: dict[str, Callable[[ServerProcess, str, Document], Document]] = {
    "POST": lambda server, id, fields: server.post("/v0/kg/assert", fields).json,
    "rpc": rpc("memory.kg_assert"),
    "MCP": tool("graph_assert"),
    "SDK": remote("graph_assert"),
}


def waiting(server: ServerProcess, agent: str) -> Document:
    found = [r for r in server.get("/v0/reviews").json["reviews"] if r["agent_id"] == agent]
    assert len(found) == 1
    check("memorywire/types/review", found[0])
    assert found[0]["reasoning"] == "she said so"
    return found[0]


@pytest.mark.parametrize("way", UPDATES)
def test_a_change_waits_and_happens_when_it_is_approved(open_server: ServerProcess, way: str) -> None:
    agent = f"update-{way}"
    body = {"agent_id": agent, "type": "semantic", "content": "Alice likes tea"}
    id = open_server.post("/v0/remember", body).json["id"]
    answer = UPDATES[way](open_server, id, {"agent_id": agent, "content": "Alice likes coffee", **WAITS})
    check("memorywire/operations/update.response", answer)
    assert (answer["pending_approval"], answer["content"], answer["version"]) == (True, "Alice likes tea", 1)
    review = waiting(open_server, agent)
    assert answer["approval_url"].endswith(review["id"])
    assert answer["review_id"] == review["id"]
    decided = open_server.post(f"/v0/reviews/{review['id']}", {"approved": True})
    check("memorywire/operations/decide.response", decided.json)
    assert decided.json["outcome"]["id"] == id
    now = open_server.get(f"/v0/memories/{id}?agent_id={agent}").json
    assert (now["content"], now["version"]) == ("Alice likes coffee", 2)


@pytest.mark.parametrize("way", STATEMENTS)
def test_a_statement_waits_and_is_made_when_it_is_approved(open_server: ServerProcess, way: str) -> None:
    agent = f"state-{way}"
    said = {"agent_id": agent, "subject": "Alice", "predicate": "drinks", "object": "tea"}
    open_server.post("/v0/kg/assert", said)
    answer = STATEMENTS[way](open_server, "", {**said, "object": "coffee", **WAITS})
    check("memorywire/operations/kg.assert.response", answer)
    assert (answer["pending_approval"], answer["object"], answer["replaced"]["object"]) == (True, "coffee", "tea")
    about = f"/v0/kg?agent_id={agent}&subject=Alice"
    assert [t["object"] for t in open_server.get(about).json["triples"]] == ["tea"]
    review = waiting(open_server, agent)
    assert answer["review_id"] == review["id"]
    decided = open_server.post(f"/v0/reviews/{review['id']}", {"approved": True})
    check("memorywire/operations/decide.response", decided.json)
    (now,) = open_server.get(about).json["triples"]
    assert (now["object"], now["id"]) == ("coffee", answer["id"])


@pytest.mark.parametrize("operation", ["update", "statement"])
def test_approving_as_edited_takes_the_operations_own_request(open_server: ServerProcess, operation: str) -> None:
    agent = f"edited-{operation}"
    if operation == "update":
        body = {"agent_id": agent, "type": "semantic", "content": "Alice likes tea"}
        id = open_server.post("/v0/remember", body).json["id"]
        patch(open_server, id, {"agent_id": agent, "content": "Alice likes coffee", **WAITS})
        edited = {"agent_id": agent, "content": "Alice likes cocoa"}
    else:
        edited = {"agent_id": agent, "subject": "Alice", "predicate": "drinks", "object": "cocoa"}
        open_server.post("/v0/kg/assert", {**edited, "object": "coffee", **WAITS})
    review = waiting(open_server, agent)
    wrong = open_server.post(
        f"/v0/reviews/{review['id']}", {"approved": True, "request": {"agent_id": agent, "odd": 1}}
    )
    assert (wrong.status, wrong.code) == (400, "validation_error")
    done = open_server.post(f"/v0/reviews/{review['id']}", {"approved": True, "request": edited})
    assert done.status == 200, done.body
    kept = (
        open_server.get(f"/v0/memories?agent_id={agent}").json,
        open_server.get(f"/v0/kg?agent_id={agent}&subject=Alice").json,
    )
    assert "cocoa" in json.dumps(kept)
    assert "coffee" not in json.dumps(kept)


def test_a_change_that_moved_on_is_a_conflict_on_the_wire(open_server: ServerProcess) -> None:
    body = {"agent_id": "moved", "type": "semantic", "content": "Alice likes tea"}
    id = open_server.post("/v0/remember", body).json["id"]
    patch(open_server, id, {"agent_id": "moved", "content": "Alice likes coffee", **WAITS})
    patch(open_server, id, {"agent_id": "moved", "content": "Alice likes water"})
    review = waiting(open_server, "moved")
    refused = open_server.post(f"/v0/reviews/{review['id']}", {"approved": True})
    assert (refused.status, refused.code) == (409, "conflict")
    assert waiting(open_server, "moved")["diff"]["modified"][0]["before"]["content"] == "Alice likes water"
