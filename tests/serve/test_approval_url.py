"""Every staged answer says where a person decides about it, whichever protocol it came by."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from conftest import TokenServer
from page_browser import Visitor, text_of
from server_process import ServerProcess, cli, command, environment, run_server

RULE = {"name": "all", "action": "review", "when": {"agent": ["staged-*"]}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with run_server(tmp_path_factory.mktemp("urls")) as server:
        known = server.post("/v0/remember", {"agent_id": "staged-a", "type": "semantic", "content": "known"}).json["id"]
        other = server.post("/v0/remember", {"agent_id": "staged-a", "type": "semantic", "content": "other"}).json["id"]
        assert (
            server.post(
                "/amp/store",
                {"record": {"type": "lesson", "title": "t", "content": "x", "agent": "staged-a", "id": "l-1"}},
            ).status
            < 300
        )
        assert server.call("PUT", "/v0/policies", {"rules": [RULE]}).status == 200
        yield server, known, other


def rpc(server: ServerProcess, path: str, tool: str, arguments: dict[str, Any]) -> Any:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    answer = server.post(path, call, headers=headers)
    (part,) = answer.json["result"]["content"]
    return json.loads(part["text"])


def test_every_protocol_says_where(server: tuple[ServerProcess, str, str]) -> None:
    at, known, other = server
    agent = "staged-a"
    answers = {
        "remember": at.post("/v0/remember", {"agent_id": agent, "type": "semantic", "content": "a"}).json,
        "update": at.call("PATCH", f"/v0/memories/{known}", {"agent_id": agent, "content": "b"}).json,
        "forget": at.post("/v0/forget", {"agent_id": agent, "ids": [known]}).json,
        "merge": at.post("/v0/merge", {"agent_id": agent, "canonical": known, "duplicates": [other]}).json,
        "assert": at.post("/v0/kg/assert", {"agent_id": agent, "subject": "a", "predicate": "is", "object": "b"}).json,
        "amp store": at.post(
            "/amp/store", {"record": {"type": "lesson", "title": "t", "content": "c", "agent": agent}}
        ).json,
        "amp replace": at.post(
            "/amp/store", {"record": {"type": "lesson", "title": "t", "content": "d", "agent": agent, "id": "l-1"}}
        ).json,
        "amp delete": at.call("DELETE", f"/amp/records/l-1?agent={agent}").json,
        "mcp": rpc(at, "/mcp", "remember", {"agent_id": agent, "type": "semantic", "content": "e"}),
        "mcp amp": rpc(
            at, "/mcp/amp", "amp_store", {"record": {"type": "lesson", "title": "t", "content": "f", "agent": agent}}
        ),
        "trusty": rpc(at, "/mcp/trusty", "memory_remember", {"palace": agent, "text": "g"}),
        "trusty forget": rpc(at, "/mcp/trusty", "memory_forget", {"palace": agent, "drawer_id": known}),
        "trusty assert": rpc(
            at, "/mcp/trusty", "kg_assert", {"palace": agent, "subject": "x", "predicate": "is", "object": "y"}
        ),
        "command": cli(at.data, "remember", "h", "--agent", agent),
    }
    for way, answer in answers.items():
        assert "approval_url" in answer, (way, answer)
        url = answer["approval_url"]
        assert url.startswith(f"{at.url}/ui/inbox/"), way
        page = Visitor(at).get(url.removeprefix(at.url))
        assert page.status == 200, way
        assert 'value="approve"' in page.body.decode(), way


def test_a_command_tells_a_person(server: tuple[ServerProcess, str, str]) -> None:
    at, _, _ = server
    done = subprocess.run(
        command("remember", "said", "--agent", "staged-b"),
        env=environment(at.data),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f", or {at.url}/ui/inbox/" in done.stdout


def test_without_a_server_nothing_is_promised(tmp_path: Any) -> None:
    assert cli(tmp_path, "remember", "x", "--approval")["approval_url"] is None


def test_a_public_address_is_what_people_are_given(tmp_path: Any) -> None:
    with run_server(tmp_path, COMMONPLACE_PUBLIC_URL="https://memory.example.org/") as server:
        request = {"agent_id": "a", "type": "semantic", "content": "x", "approval_required": True}
        url = server.post("/v0/remember", request).json["approval_url"]
        assert url.startswith("https://memory.example.org/ui/inbox/")
        assert server.out[0] == "Open https://memory.example.org/ui/ in a browser.\n"


def test_the_page_that_is_named_asks_for_the_token_first(guarded: TokenServer) -> None:
    request = {"agent_id": "ada", "type": "semantic", "content": "url", "approval_required": True}
    url = guarded.server.post("/v0/remember", request, token=guarded.tokens["acme"]).json["approval_url"]
    path = url.removeprefix(guarded.server.url)
    visitor = Visitor(guarded.server)
    assert visitor.get(path).status == 303
    visitor.log_in(guarded.tokens["acme/ada"])
    assert "url" in text_of(visitor.get(path))
