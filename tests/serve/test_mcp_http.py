"""MCP at /mcp, /mcp/amp, /mcp/trusty and /mcp/all: behind the same door and gate as every other protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from running import Answer, Running, running
from spawned import MODERN, enveloped, greeting

if TYPE_CHECKING:
    from conftest import Guarded

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PATHS = ["/mcp", "/mcp/amp", "/mcp/trusty", "/mcp/all"]


def post(server: Running, path: str, method: str, params: Any = None, era: str = "2025-11-25", **more: Any) -> Answer:
    headers = {**HEADERS, "Mcp-Protocol-Version": era, **more.pop("headers", {})}
    if era == MODERN:
        headers["Mcp-Method"] = method
        params = enveloped(params)
        if named := params.get("name", params.get("uri")):
            headers["Mcp-Name"] = named
    message = {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}
    return server.post(path, message, headers=headers, **more)


def call(server: Running, tool: str, arguments: dict[str, Any], path: str = "/mcp", **more: Any) -> Any:
    answer = post(server, path, "tools/call", {"name": tool, "arguments": arguments}, **more)
    assert answer.status == 200, answer.body
    return answer.json["result"]


@pytest.mark.parametrize("path", PATHS)
def test_every_set_has_its_address(open_server: Running, path: str) -> None:
    answer = post(open_server, path, "initialize", greeting("2025-06-18"))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["result"]["protocolVersion"] == "2025-06-18"
    assert "mcp-session-id" not in answer.headers, "every request stands alone"
    assert post(open_server, path, "tools/list").json["result"]["tools"]


def test_the_stateless_era(open_server: Running) -> None:
    found = post(open_server, "/mcp", "server/discover", era=MODERN)
    assert (found.status, found.json["result"]["supportedVersions"]) == (200, [MODERN])
    result = call(open_server, "list", {}, era=MODERN)
    assert result["resultType"] == "complete"
    unknown = post(open_server, "/mcp", "memory/all", era=MODERN)
    assert (unknown.status, unknown.json["error"]["code"]) == (404, -32601)
    future = post(open_server, "/mcp", "tools/list", headers={"Mcp-Protocol-Version": "2031-01-01"})
    assert (future.status, future.json["error"]["code"]) in ((400, -32602), (400, -32022))


def test_a_notification_is_taken_and_not_answered(open_server: Running) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = open_server.post("/mcp", message, headers=HEADERS)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
@pytest.mark.parametrize("path", PATHS)
def test_there_is_no_stream_to_open(open_server: Running, path: str, method: str) -> None:
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
    "an unknown method": (b'{"jsonrpc":"2.0","id":7,"method":"memory/all"}', 200, -32601),
    "params that are wrong": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}', 200, -32602),
    "10 MB": (b'{"jsonrpc":"2.0","id":7,"method":"' + b"x" * 10_000_000 + b'"}', 413, -32600),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_the_code_it_gets_on_stdio(open_server: Running, what: str) -> None:
    body, status, code = BAD[what]
    answer = open_server.post("/mcp", body, headers=HEADERS)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert post(open_server, "/mcp", "ping").json["result"] == {}


def test_what_the_sdk_asks_of_headers(open_server: Running) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert open_server.post("/mcp", message, headers={**HEADERS, "Accept": "text/html"}).status == 406
    assert open_server.post("/mcp", message, headers={**HEADERS, "Content-Type": "text/plain"}).status in (400, 415)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_foreign_pages_and_names_are_refused(open_server: Running, path: str, headers: dict[str, str]) -> None:
    answer = post(open_server, path, "tools/list", headers=headers)
    assert answer.status == 403
    assert answer.json["error"]["data"]["code"] == "forbidden"


def test_a_token_is_needed_and_says_who_asks(guarded: Guarded) -> None:
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


def test_tenants_and_agents_stay_apart(guarded: Guarded) -> None:
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


def test_the_address_may_name_the_agent_and_the_palace(open_server: Running) -> None:
    id = call(open_server, "remember", {"content": "Bob moved"}, "/mcp?agent=bob")["structuredContent"]["id"]
    assert call(open_server, "get", {"id": id, "agent_id": "bob"})["structuredContent"]["agent_id"] == "bob"
    greeted = post(open_server, "/mcp/trusty?palace=atlas", "initialize", greeting("2024-11-05"))
    assert greeted.json["result"]["serverInfo"]["default_palace"] == "atlas"
    wrong = post(open_server, "/mcp?colour=red", "ping")
    assert (wrong.status, wrong.json["error"]["code"]) == (400, -32600)


def test_what_one_protocol_writes_another_finds(open_server: Running) -> None:
    call(open_server, "remember", {"content": "The staging port is 5433", "agent_id": "mixed"})
    body = {"agent_id": "mixed", "query": "staging port"}
    assert open_server.post("/v0/recall", body).json["results"][0]["content"] == "The staging port is 5433"
    listed = call(open_server, "memory_list", {"palace": "mixed"}, "/mcp/trusty")
    assert "5433" in listed["content"][0]["text"]
    found = call(open_server, "amp_search", {"query": "staging port", "agent": "mixed"}, "/mcp/amp")
    assert found["structuredContent"]["total"] == 1


def test_starting_the_server_does_not_load_the_sdk(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        assert server.get("/v0/health").status == 200
        mapped = Path(f"/proc/{server.process.pid}/maps")
        if not mapped.exists():
            pytest.skip("this system does not say what a process has loaded")
        assert "rpds" not in mapped.read_text(), "a library of the SDK's"
        assert post(server, "/mcp", "ping").json["result"] == {}
