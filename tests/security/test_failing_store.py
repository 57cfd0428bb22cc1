"""A first store that fails: where it is, and what it is called there, is for operators, by whatever way others ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_process import ServerProcess, run_server, token

pytestmark = pytest.mark.process

NOTE = {"agent_id": "ada", "type": "semantic", "content": "Alice is allergic to peanuts"}
RPC = {"jsonrpc": "2.0", "id": 1}
TOOL = {"name": "remember", "arguments": {"content": "Alice is allergic to peanuts"}}

#: What writes, by each way that says of itself what went wrong: path, body.
WRITES: dict[str, tuple[str, Any]] = {
    "memorywire": ("/v0/remember", NOTE),
    "memorywire batch": ("/v0/remember/batch", {"items": [NOTE]}),
    "memorywire rpc": ("/v0/rpc", {**RPC, "method": "memory.remember", "params": NOTE}),
    "amp": ("/amp/store", {"record": {"type": "lesson", "title": "peanuts", "content": "Alice is allergic"}}),
    "mcp": ("/mcp?agent=ada", {**RPC, "method": "tools/call", "params": TOOL}),
}

#: What says how the store is, by the routes that anyone with a token may ask.
LOOKS = {"health": "/v0/health", "amp status": "/amp/status", "stores": "/v0/stores", "audit": "/v0/audit/verify"}

#: The second where a file that is gone had to be opened first.
SAID = ("the store is gone, and nothing is written to it", "the store failed; its operator has to see to it")


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, dict[str, str]]]:
    """Its file was moved away while it is open."""
    data: Path = tmp_path_factory.mktemp("failing")
    tokens = {
        "operator": token(data, "--role", "admin"),
        "local writer": token(data, "--role", "writer"),
        "admin of another tenant": token(data, "--role", "admin", "--tenant", "acme"),
    }
    with run_server(data) as server:
        (data / "commonplace.db").rename(data / "elsewhere.db")
        yield server, tokens


def said(failing: tuple[ServerProcess, dict[str, str]], way: str, who: str) -> str:
    server, tokens = failing
    path, body = WRITES[way]
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return server.call("POST", path, body, token=tokens[who], headers=headers).body.decode()


@pytest.mark.parametrize("way", WRITES)
def test_an_operator_is_told_where_it_is(failing: Any, way: str) -> None:
    assert "commonplace.db" in said(failing, way, "operator")


@pytest.mark.parametrize("who", ["local writer", "admin of another tenant"])
@pytest.mark.parametrize("way", WRITES)
def test_everyone_else_is_told_that_it_fails(failing: Any, way: str, who: str) -> None:
    answer = said(failing, way, who)
    assert any(sentence in answer for sentence in SAID)
    assert "commonplace.db" not in answer


@pytest.mark.parametrize("who", ["local writer", "admin of another tenant"])
@pytest.mark.parametrize("way", LOOKS)
def test_who_looks_how_it_is_is_not_told_where(
    failing: tuple[ServerProcess, dict[str, str]], way: str, who: str
) -> None:
    server, tokens = failing
    assert "commonplace.db" in server.get(LOOKS[way], token=tokens["operator"]).body.decode()
    assert "commonplace.db" not in server.get(LOOKS[way], token=tokens[who]).body.decode()


def test_the_log_has_the_sentence(failing: tuple[ServerProcess, dict[str, str]]) -> None:
    said(failing, "memorywire", "local writer")
    assert failing[0].log_with("commonplace.db")
