"""What the HTTP interface says of itself and of its answers, over every way in."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from server_process import PROTOCOLS, ServerProcess

from commonplace.serve import openapi

pytestmark = pytest.mark.process
HALF = "a\ud800b"
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def remember(content: Any, **more: Any) -> dict[str, Any]:
    return {"agent_id": "truth", "type": "semantic", "content": content, **more}


def rpc(server: ServerProcess, method: str, params: Any) -> Any:
    return server.post("/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": f"memory.{method}", "params": params}).json


def tool(server: ServerProcess, name: str, arguments: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    answer = server.post("/mcp", message, headers=_JSON)
    assert answer.status < 500
    return answer.json


@pytest.mark.parametrize("wrong", [
    {}, {"agent_id": "truth"}, remember(HALF), remember("x", metadata={HALF: 1}), remember("x", user_id="n" * 300),
    remember(""), remember(5), 5, None, "text", [1], remember("x", unknown=1), remember("x", expires_at=1),
    remember("x", metadata=json.loads("[" * 150 + "]" * 150)),
    remember("x", metadata={"a": json.loads('{"b":' * 150 + "1" + "}" * 150)}),
], ids=lambda w: str(w)[:40].encode("ascii", "replace").decode())  # fmt: skip
def test_a_batch_with_a_wrong_item_keeps_the_others(open_server: ServerProcess, wrong: Any) -> None:
    items = [remember("first of a batch"), wrong, remember("last of a batch")]
    over_http = open_server.post("/v0/remember/batch", {"items": items})
    assert over_http.status == 200, over_http.body
    over_rpc = rpc(open_server, "remember_batch", {"items": items})["result"]
    for results in (over_http.json["results"], over_rpc["results"]):
        assert ["id" in result for result in results] == [True, False, True]
        assert results[1]["error"]["code"] == "validation_error"


@pytest.mark.parametrize("question", ["who paid 300?", "in March 2024", "v1.2.3", 'the "bike" of LP-2217', "who paid?"])
def test_an_explained_recall_names_rank_and_score_of_each_store(open_server: ServerProcess, question: str) -> None:
    open_server.post("/v0/remember", remember("Alice paid 300 for v1.2.3 of the bike LP-2217 in March 2024"))
    request = {"agent_id": "truth", "query": question, "explain": True, "min_score": 0}
    answers = [
        open_server.post("/v0/recall", request).json,
        rpc(open_server, "recall", request)["result"],
        json.loads(tool(open_server, "recall", request)["result"]["content"][0]["text"]),
    ]
    for answer in answers:
        assert answer["results"]
        for rank, hit in enumerate(answer["results"]):
            (store,) = answer["stores_queried"]
            assert hit["explain"]["stores"][store] == {"rank": rank, "score": hit["explain"]["blend"]}


def test_a_review_carries_its_reasoning(open_server: ServerProcess) -> None:
    id = open_server.post("/v0/remember", remember("one")).json["id"]
    other = open_server.post("/v0/remember", remember("two")).json["id"]
    asked = {"approval_required": True, "reasoning": "because Alice said so"}
    requests = {
        "remember": remember("three", **asked),
        "forget": {"agent_id": "truth", "ids": [id], **asked},
        "merge": {"agent_id": "truth", "canonical": id, "duplicates": [other], **asked},
    }
    for operation, request in requests.items():
        open_server.post(f"/v0/{operation}", request)
        rpc(open_server, operation, request)
        tool(open_server, operation, request)
    reviews = [r for r in open_server.get("/v0/reviews").json["reviews"] if r["agent_id"] == "truth"]
    assert sorted(r["operation"] for r in reviews) == ["forget"] * 3 + ["merge"] * 3 + ["remember"] * 3
    for review in reviews:
        assert review["reasoning"] == "because Alice said so"
        assert open_server.get(f"/v0/reviews/{review['id']}").json["reasoning"] == "because Alice said so"
        open_server.post(f"/v0/reviews/{review['id']}", {"approved": False})


@pytest.mark.parametrize("name", ["n" * 300, HALF])
def test_a_name_that_cannot_be_one_is_refused_everywhere(open_server: ServerProcess, name: str) -> None:
    requests: dict[str, Any] = {
        "remember": {**remember("x"), "agent_id": name}, "recall": {"agent_id": name, "query": "x"},
        "forget": {"agent_id": name, "ids": ["x"]}, "expire": {"agent_id": name, "policy": {"older_than_days": 1}},
        "merge": {"agent_id": name, "canonical": "a", "duplicates": ["b"]}, "list": {"agent_id": name},
        "kg_assert": {"agent_id": name, "subject": "a", "predicate": "b", "object": "c"},
        "kg_query": {"agent_id": name, "subject": "a"}, "get": {"agent_id": name, "id": "x"},
    }  # fmt: skip
    for method, params in requests.items():
        said = rpc(open_server, method, params)
        assert said["error"]["data"]["code"] == "validation_error", (method, said)
    for operation in ("remember", "recall", "forget", "merge", "expire"):
        assert open_server.post(f"/v0/{operation}", requests[operation]).status == 400
        told = tool(open_server, operation, requests[operation])
        assert "error" in told or told["result"]["isError"]
        assert "internal error" not in json.dumps(told)


def test_openapi_tells_the_truth_about_batches_of_calls(open_server: ServerProcess) -> None:
    made = openapi.document(PROTOCOLS)
    operation = made["paths"]["/v0/rpc"]["post"]

    def valid(part: dict[str, Any], document: Any) -> bool:
        rules = {**part["content"]["application/json"]["schema"], "components": made["components"]}
        return jsonschema_rs.Draft202012Validator(rules).is_valid(document)

    one = {"jsonrpc": "2.0", "id": 1, "method": "memory.health"}
    for body in (one, [one], [one, {**one, "method": "memory.nothing"}], [one, {"jsonrpc": "2.0", "method": "x"}]):
        assert valid(operation["requestBody"], body), body
        answer = open_server.post("/v0/rpc", body)
        assert valid(operation["responses"]["200"], answer.json), answer.json
        assert isinstance(answer.json, list) is isinstance(body, list)
    for body in ([], [5], 5, [one] * 1001, {**one, "jsonrpc": "1.0"}):
        assert not valid(operation["requestBody"], body), body
        assert valid(operation["responses"]["200"], open_server.post("/v0/rpc", body).json)
