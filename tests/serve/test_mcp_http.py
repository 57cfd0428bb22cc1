"""MCP at /mcp, /mcp/amp, /mcp/trusty and /mcp/all: behind the same door and gate as every other protocol."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp_process import MODERN, enveloped, greeting
from server_process import Answer, ServerProcess

if TYPE_CHECKING:
    from conftest import TokenServer

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PATHS = ["/mcp", "/mcp/amp", "/mcp/trusty", "/mcp/all"]


def post(
    server: ServerProcess, path: str, method: str, params: Any = None, era: str = "2025-11-25", **more: Any
) -> Answer:
    headers = {**HEADERS, "Mcp-Protocol-Version": era, **more.pop("headers", {})}
    if era == MODERN:
        headers["Mcp-Method"] = method
        params = enveloped(params)
        if named := params.get("name", params.get("uri")):
            headers["Mcp-Name"] = named
    message = {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}
    return server.post(path, message, headers=headers, **more)


def call(server: ServerProcess, tool: str, arguments: dict[str, Any], path: str = "/mcp", **more: Any) -> Any:
    answer = post(server, path, "tools/call", {"name": tool, "arguments": arguments}, **more)
    assert answer.status == 200, answer.body
    return answer.json["result"]


@pytest.mark.parametrize("path", PATHS)
def test_every_set_has_its_address(open_server: ServerProcess, path: str) -> None:
    answer = post(open_server, path, "initialize", greeting("2025-06-18"))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["result"]["protocolVersion"] == "2025-06-18"
    assert "mcp-session-id" not in answer.headers, "every request stands alone"
    assert post(open_server, path, "tools/list").json["result"]["tools"]


def test_the_stateless_era(open_server: ServerProcess) -> None:
    found = post(open_server, "/mcp", "server/discover", era=MODERN)
    assert (found.status, found.json["result"]["supportedVersions"]) == (200, [MODERN])
    result = call(open_server, "list", {}, era=MODERN)
    assert result["resultType"] == "complete"
    unknown = post(open_server, "/mcp", "memory/all", era=MODERN)
    assert (unknown.status, unknown.json["error"]["code"]) == (404, -32601)
    future = post(open_server, "/mcp", "tools/list", headers={"Mcp-Protocol-Version": "2031-01-01"})
    assert (future.status, future.json["error"]["code"]) in ((400, -32602), (400, -32022))


def test_a_notification_is_taken_and_not_answered(open_server: ServerProcess) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = open_server.post("/mcp", message, headers=HEADERS)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
@pytest.mark.parametrize("path", PATHS)
def test_there_is_no_stream_to_open(open_server: ServerProcess, path: str, method: str) -> None:
    answer = open_server.call(method, path, headers={"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


BAD = {
    "no JSON": (b"hello", 400, -32700),
    "broken UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', 400, -32700),
    "nothing": (b"", 400, -32700),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
    "a string": (b'"ping"', 400, -32600),
    "no version": (b'{"id":7,"method":"ping"}', 400, -32600),
    "an id of null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
    "an endless id": (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', 400, -32600),
    "an unknown method": (b'{"jsonrpc":"2.0","id":7,"method":"memory/all"}', 200, -32601),
    "params that are wrong": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}', 200, -32602),
    "10 MB": (b'{"jsonrpc":"2.0","id":7,"method":"' + b"x" * 10_000_000 + b'"}', 413, -32600),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_the_code_it_gets_on_stdio(open_server: ServerProcess, what: str) -> None:
    body, status, code = BAD[what]
    answer = open_server.post("/mcp", body, headers=HEADERS)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert post(open_server, "/mcp", "ping").json["result"] == {}


def test_what_the_sdk_asks_of_headers(open_server: ServerProcess) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert open_server.post("/mcp", message, headers={**HEADERS, "Accept": "text/html"}).status == 406
    for sent in ("text/plain", "application/jsonp", ""):
        wrong = open_server.post("/mcp", message, headers={**HEADERS, "Content-Type": sent})
        assert (wrong.status, wrong.headers["content-type"]) == (415, "application/json")
        assert (wrong.json["id"], wrong.json["error"]["code"]) == (None, -32600)
        assert "application/json" in wrong.json["error"]["message"]
    fine = {**HEADERS, "Content-Type": "application/json; charset=utf-8"}
    assert open_server.post("/mcp", message, headers=fine).json["result"] == {}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_foreign_pages_and_names_are_refused(open_server: ServerProcess, path: str, headers: dict[str, str]) -> None:
    answer = post(open_server, path, "tools/list", headers=headers)
    assert answer.status == 403
    assert answer.json["error"]["data"]["code"] == "forbidden"


def test_a_token_is_needed_and_says_who_asks(guarded: TokenServer) -> None:
    server, tokens = guarded.server, guarded.tokens
    missing = post(server, "/mcp", "tools/list")
    assert missing.status == 401
    assert missing.headers["www-authenticate"].startswith("Bearer")
    assert missing.json["error"]["data"]["code"] == "unauthenticated"
    assert post(server, "/mcp", "tools/list", token="cp_wrong").status == 401
    ada = tokens["acme/ada"]
    kept = call(server, "remember", {"content": "Ada keeps bees"}, token=ada)["structuredContent"]
    found = call(server, "get", {"id": kept["id"]}, token=ada)["structuredContent"]
    assert found["agent_id"] == "ada", "whoever may use one agent means that one"


def test_tenants_and_agents_stay_apart(guarded: TokenServer) -> None:
    server, tokens = guarded.server, guarded.tokens
    id = call(server, "remember", {"content": "Cid likes rain"}, token=tokens["acme/cid"])["structuredContent"]["id"]
    for other in ("acme/bea", "globex/cid", "globex"):
        result = call(server, "get", {"id": id, "agent_id": "cid"}, token=tokens[other])
        assert result["isError"] is True
        assert "rain" not in json.dumps(result)
        read = post(server, "/mcp", "resources/read", {"uri": f"memory://cid/{id}"}, token=tokens[other])
        assert "error" in read.json
    refused = call(server, "remember", {"content": "x"}, token=tokens["acme/reader"])
    assert refused["isError"] is True


def _beyond_the_wall(id: str) -> dict[str, dict[str, Any]]:
    """Every tool, asked for what is Cid's."""
    cid, theirs, palace = {"agent_id": "cid"}, {"agent_id": "cid", "id": id}, {"palace": "cid"}
    fact = {"subject": "auth", "predicate": "runs", "object": "2.4.1"}
    return {
        "remember": {"content": "x", **cid}, "recall": {"query": "rain", **cid}, "forget": {"ids": [id], **cid},
        "merge": {"canonical": id, "duplicates": ["x"], **cid}, "expire": {"policy": {"type": "semantic"}, **cid},
        "get": theirs, "list": cid, "update": {"content": "x", **theirs}, "history": theirs,
        "procedure_show": theirs, "procedure_draw": theirs, "procedure_reset": theirs,
        "procedure_fire": {"trigger": "push", **theirs},
        "undo": {"ids": [id]},
        "graph_assert": {**fact, **cid}, "graph_query": {"subject": "auth", **cid}, "review_pending": cid,
        "amp_store": {"record": {"type": "lesson", "title": "x", "content": "x", "agent": "cid"}},
        "amp_search": {"query": "rain", "agent": "cid"}, "amp_get": {"id": id}, "amp_delete": {"id": id},
        "amp_list": {"agent": "cid"}, "amp_status": {}, "amp_agent_status": {"agent": "cid"},
        "memory_remember": {"text": "x", **palace}, "memory_recall": {"query": "rain", **palace},
        "memory_recall_deep": {"query": "rain", **palace}, "palace_create": {"name": "cid"}, "palace_list": {},
        "kg_assert": {**fact, **palace}, "kg_query": {"subject": "auth", **palace}, "memory_list": palace,
        "memory_forget": {"drawer_id": id, **palace}, "palace_info": palace,
    }  # fmt: skip


def test_no_tool_resource_or_completion_reaches_another_agent(guarded: TokenServer) -> None:
    server, tokens = guarded.server, guarded.tokens
    mine, other = tokens["acme/cid"], tokens["acme/bea"]
    kept = call(server, "remember", {"content": "Cid walks in the rain", "metadata": {"tags": ["wet"]}}, token=mine)
    id = kept["structuredContent"]["id"]
    call(server, "remember", {"content": "Cid waits for rain", "approval_required": True}, token=mine)
    call(server, "graph_assert", {"subject": "auth", "predicate": "likes", "object": "rain"}, token=mine)
    before = call(server, "history", {"id": id}, token=mine)["structuredContent"]
    asked = _beyond_the_wall(id)
    listed = post(server, "/mcp/all", "tools/list", token=other).json["result"]["tools"]
    assert {tool["name"] for tool in listed} == asked.keys(), "a new tool is to be tried here, too"
    uris = [f"memory://cid/{id}", f"memory://bea/{id}", "memory://cid/recall?q=rain", "memory://c%69d/recall?q=rain"]
    offered = {
        "ref": {"type": "ref/resource", "uri": "memory://{agent}/{id}"},
        "argument": {"name": "agent", "value": ""},
    }
    for path in ("/mcp/all", "/mcp/all?agent=cid&palace=cid"):
        answers = [post(server, path, "tools/call", {"name": tool, "arguments": arguments}, token=other).json
                   for tool, arguments in asked.items()]  # fmt: skip
        answers += [post(server, path, "resources/read", {"uri": uri}, token=other).json for uri in uris]
        told = json.dumps([answer.get("result", answer["error"]["message"] if "error" in answer else None)
                           for answer in answers])  # fmt: skip
        assert not [word for word in ("walks", "waits", "wet", "likes") if word in told]
        names = post(server, path, "completion/complete", offered, token=other).json["result"]["completion"]["values"]
        assert "cid" not in names
        status = post(server, path, "resources/read", {"uri": "memory://status"}, token=other).json["result"]
        assert "cid" not in json.loads(status["contents"][0]["text"])["agents"]
    assert call(server, "history", {"id": id}, token=mine)["structuredContent"] == before, "nor changes it"


def test_the_address_may_name_the_agent_and_the_palace(open_server: ServerProcess) -> None:
    id = call(open_server, "remember", {"content": "Bob moved"}, "/mcp?agent=bob")["structuredContent"]["id"]
    assert call(open_server, "get", {"id": id, "agent_id": "bob"})["structuredContent"]["agent_id"] == "bob"
    greeted = post(open_server, "/mcp/trusty?palace=atlas", "initialize", greeting("2024-11-05"))
    assert greeted.json["result"]["serverInfo"]["default_palace"] == "atlas"
    assert "drawers" in call(open_server, "memory_list", {}, "/mcp/trusty?palace=atlas")["content"][0]["text"]
    assert "atlas" not in call(open_server, "palace_list", {}, "/mcp/trusty")["content"][0]["text"]
    wrong = post(open_server, "/mcp?colour=red", "ping")
    assert (wrong.status, wrong.json["error"]["code"]) == (400, -32600)


def test_what_one_protocol_writes_another_finds(open_server: ServerProcess) -> None:
    call(open_server, "remember", {"content": "The staging port is 5433", "agent_id": "mixed"})
    body = {"agent_id": "mixed", "query": "staging port"}
    assert open_server.post("/v0/recall", body).json["results"][0]["content"] == "The staging port is 5433"
    listed = call(open_server, "memory_list", {"palace": "mixed"}, "/mcp/trusty")
    assert "5433" in listed["content"][0]["text"]
    found = call(open_server, "amp_search", {"query": "staging port", "agent": "mixed"}, "/mcp/amp")
    # The search covers the shared space, too, where other tests may have left something.
    assert "The staging port is 5433" in found["content"][0]["text"]


@pytest.mark.parametrize("more", [{"method": "ping"}, {"result": {}}])
def test_an_id_that_answers_repeat_is_short(open_server: ServerProcess, more: dict[str, Any]) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    for path in ("/mcp", "/v0/rpc"):
        refused = open_server.post(path, {"jsonrpc": "2.0", "id": "x" * 1025, **more}, headers=headers).json
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    if "method" in more:
        kept = open_server.post("/mcp", {"jsonrpc": "2.0", "id": "x" * 1024, **more}, headers=headers).json
        assert kept["id"] == "x" * 1024
