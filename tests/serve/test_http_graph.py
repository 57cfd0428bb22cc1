"""The knowledge graph on a running server, each answer checked against its schema, over HTTP and JSON-RPC alike."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

import pytest
from conftest import TokenServer
from server_process import Answer, ServerProcess

from commonplace import Memory, RemoteMemory
from commonplace.wire.errors import NotFound
from commonplace.wire.validate import check

OPERATIONS = "memorywire/operations/"


def ok(answer: Answer, name: str) -> Any:
    assert answer.status == 200, answer.body
    check(f"memorywire/{name}", answer.json)
    return answer.json


def state(server: ServerProcess, agent: str, subject: str, predicate: str, object: str, **more: Any) -> Any:
    body = {"agent_id": agent, "subject": subject, "predicate": predicate, "object": object, **more}
    made = ok(server.post("/v0/kg/assert", body), "operations/kg.assert.response")
    return {name: value for name, value in made.items() if name != "replaced"}


def ask(server: ServerProcess, path: str, name: str, **query: Any) -> Any:
    return ok(server.get(f"/v0/{path}?{urlencode(query)}"), f"operations/{name}.response")


def test_a_statement_lives(open_server: ServerProcess) -> None:
    first = state(open_server, "kg", "Alice", "works_at", "Acme", valid_from=1000, confidence=0.5, provenance="cv")
    assert (first["valid_from"], first["valid_to"], first["confidence"], first["provenance"]) == (1000, None, 0.5, "cv")
    second = state(open_server, "kg", "Alice", "works_at", "Bolt", valid_from=2000)
    assert "provenance" not in second
    found = ask(open_server, "kg", "kg", agent_id="kg", subject="Alice")
    assert found == {"subject": "Alice", "triples": [second]}
    then = ask(open_server, "kg", "kg", agent_id="kg", subject="Alice", as_of=1999)["triples"]
    assert then == [{**first, "valid_to": 2000}]
    past = ask(open_server, "kg/history", "kg", agent_id="kg", subject="Alice", predicate="works_at")
    assert past["triples"] == [*then, second]
    state(open_server, "kg", "bolt", "located_in", "Oslo")
    way = ask(open_server, "kg/path", "kg.path", agent_id="kg", start="Alice", end="oslo")
    assert [t["object"] for t in way["triples"]] == ["Bolt", "Oslo"]
    assert ask(open_server, "kg/path", "kg.path", agent_id="kg", start="Alice", end="oslo", max_hops=1)["triples"] == []
    ended = open_server.post("/v0/kg/retract", {"agent_id": "kg", "subject": "Alice", "predicate": "works_at"})
    assert ok(ended, "types/triple")["valid_to"] > 2000
    again = open_server.post("/v0/kg/retract", {"agent_id": "kg", "subject": "Alice", "predicate": "works_at"})
    assert (again.status, again.code) == (404, "not_found")
    whole = {"agent_id": "kg", "subject": "Alice"}
    would = ok(open_server.post("/v0/preview/kg/erase", whole), "operations/kg.response")
    assert [t["object"] for t in would["triples"]] == ["Acme", "Bolt"]
    gone = ok(open_server.post("/v0/kg/erase", whole), "operations/kg.erase.response")
    assert gone["erased"] == [first["id"], second["id"]]
    assert ask(open_server, "kg/history", "kg", agent_id="kg", subject="Alice")["triples"] == []


def test_hops_over_http(open_server: ServerProcess) -> None:
    ids = []
    for content, metadata in (
        ("a glaze for the kiln", {"entity_name": "Kiln"}),
        ("the clay of the pot", {"entity_name": "Pot"}),
        ("a note on the glaze", {"references": []}),
    ):
        if metadata == {"references": []}:
            metadata = {"references": [ids[0]]}
        body = {"agent_id": "hops", "type": "semantic", "content": content, "metadata": metadata}
        ids.append(open_server.post("/v0/remember", body).json["id"])
    state(open_server, "hops", "pot", "fired_in", "kiln")
    asked = {"agent_id": "hops", "query": "glaze", "min_score": 0}
    plain = ok(open_server.post("/v0/recall", asked), "operations/recall.response")["results"]
    assert not [hit for hit in plain if "supporting" in hit]
    raised = ok(open_server.post("/v0/recall", {**asked, "hops": 2}), "operations/recall.response")["results"]
    supporting = {hit["id"]: hit["supporting"] for hit in raised}
    assert supporting == {ids[0]: [ids[2], ids[1]], ids[1]: [ids[0], ids[2]], ids[2]: [ids[0], ids[1]]}
    assert {hit["id"] for hit in raised} == {hit["id"] for hit in plain}
    near = ask(open_server, "kg/neighbors", "kg.neighbors", agent_id="hops", memory_id=ids[1], hops=2)
    assert near["neighbors"] == [{"id": ids[0], "distance": 1}, {"id": ids[2], "distance": 2}]
    assert "graph" in open_server.get("/v0/health").json["capabilities"]


@pytest.mark.parametrize(("body", "field"), [
    ({"subject": "x", "predicate": "y"}, "object"),
    ({"subject": " ", "predicate": "y", "object": "z"}, "subject"),
    ({"subject": "x", "predicate": "y", "object": "z" * 1025}, "object"),
    ({"subject": "x", "predicate": "y", "object": "z", "confidence": 1.5}, "confidence"),
    ({"subject": "x", "predicate": "y", "object": "z", "valid_from": -1}, "valid_from"),
    ({"subject": "x", "predicate": "y", "object": "z", "valid_from": 10**15}, "valid_from"),
    ({"subject": "x", "predicate": "y", "object": "z", "until": 1}, "until"),
])  # fmt: skip
def test_what_is_wrong_is_named(open_server: ServerProcess, body: dict[str, Any], field: str) -> None:
    refused = open_server.post("/v0/kg/assert", {"agent_id": "wrong", **body})
    assert (refused.status, refused.code) == (400, "validation_error")
    assert field in refused.json["error"]["message"]
    assert ask(open_server, "kg/history", "kg", agent_id="wrong", subject="x")["triples"] == []


@pytest.mark.parametrize("query", [
    "subject=x", "agent_id=a", "agent_id=a&subject=", "agent_id=a&subject=x&as_of=-1",
    "agent_id=a&subject=x&as_of=soon", "agent_id=a&subject=x&when=1", f"agent_id=a&subject={'x' * 1025}",
])  # fmt: skip
def test_a_question_that_cannot_be_asked_is_refused(open_server: ServerProcess, query: str) -> None:
    refused = open_server.get(f"/v0/kg?{query}")
    assert (refused.status, refused.code) == (400, "validation_error")


def test_an_answer_says_what_it_replaced(open_server: ServerProcess) -> None:
    fact = {"agent_id": "replaced", "subject": "Bob", "predicate": "likes"}
    tea = open_server.post("/v0/kg/assert", {**fact, "object": "tea", "valid_from": 1000}).json
    assert "replaced" not in tea
    coffee = open_server.post("/v0/kg/assert", {**fact, "object": "coffee", "valid_from": 2000})
    assert ok(coffee, "operations/kg.assert.response")["replaced"] == {**tea, "valid_to": 2000}
    assert "replaced" not in state(open_server, "replaced", "Bob", "likes_also", "tea")


def test_json_rpc_has_the_same_operations(open_server: ServerProcess) -> None:
    def call(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": f"memory.{method}", "params": {"agent_id": "rpc-kg", **params}}
        return open_server.post("/v0/rpc", body).json

    made = call("kg_assert", subject="Alice", predicate="knows", object="Bob")["result"]
    assert call("kg_query", subject="Alice", as_of=made["valid_from"])["result"]["triples"] == [made]
    assert call("kg_path", start="bob", end="alice", max_hops=1)["result"]["triples"] == [made]
    assert call("kg_retract", subject="Alice", predicate="hates")["error"]["data"]["code"] == "not_found"
    assert call("kg_erase", subject="Alice")["result"]["erased"] == [made["id"]]


def test_a_reader_asks_and_does_not_state(guarded: TokenServer) -> None:
    fact = {"agent_id": "ada", "subject": "Alice", "predicate": "sees", "object": "Bob"}
    reader, writer = guarded.tokens["acme/reader"], guarded.tokens["acme/writer"]
    for path in ("assert", "retract", "erase"):
        body = {k: v for k, v in fact.items() if path == "assert" or k in ("agent_id", "subject")}
        body |= {"predicate": "sees"} if path == "retract" else {}
        assert guarded.server.post(f"/v0/kg/{path}", body, token=reader).status == 403
    assert guarded.server.post("/v0/kg/assert", fact, token=writer).json["asserted_by"] == "acme-writer"
    assert len(guarded.server.get("/v0/kg?agent_id=ada&subject=Alice", token=reader).json["triples"]) == 1
    assert guarded.server.get("/v0/kg?agent_id=ada&subject=Alice").status == 401
    guarded.server.post("/v0/kg/erase", {"agent_id": "ada", "subject": "Alice"}, token=writer)


def test_remote_memory_tells_the_same(open_server: ServerProcess, tmp_path: Any) -> None:
    async def story(memory: Any) -> list[Any]:
        made = await memory.graph_assert("Alice", "works_at", "Acme", valid_from=1000, agent_id="remote-kg")
        await memory.graph_assert("Acme", "located_in", "Oslo", agent_id="remote-kg")
        found = await memory.graph_query("Alice", as_of=1000, agent_id="remote-kg")
        way = await memory.graph_path("alice", "oslo", agent_id="remote-kg")
        kept = await memory.remember("tea", metadata={"entity_name": "Alice"}, agent_id="remote-kg")
        also = await memory.remember("snow", metadata={"entity_name": "Acme"}, agent_id="remote-kg")
        near = await memory.neighbors(kept.id, hops=1, agent_id="remote-kg")
        await memory.graph_retract("Alice", "works_at", agent_id="remote-kg")
        past = await memory.graph_history("Alice", agent_id="remote-kg")
        would = await memory.preview_graph_erase("Acme", mentions=True, agent_id="remote-kg")
        gone = await memory.graph_erase("Acme", mentions=True, agent_id="remote-kg")
        with pytest.raises(NotFound) as missing:
            await memory.graph_retract("Alice", "works_at", agent_id="remote-kg")
        assert found["triples"] == [made]
        assert near["neighbors"] == [{"id": also.id, "distance": 1}]
        return [made["object"], [t["object"] for t in way["triples"]], [t["valid_from"] for t in past["triples"]],
                [t["object"] for t in would["triples"]], len(gone["erased"]), missing.value.message]  # fmt: skip

    async def tell() -> None:
        async with Memory(data=tmp_path, embedder="hashing") as here, RemoteMemory(open_server.url) as there:
            assert await story(there) == await story(here)

    asyncio.run(tell())
