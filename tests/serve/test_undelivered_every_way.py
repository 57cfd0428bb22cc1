"""A store beside the first is down: every way to change a memory that has a place for it says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from protocol_caller import Caller, Document
from server_process import run_server, store_url

pytestmark = pytest.mark.process

AGENT = "alices"
DOWN = "memorywire+http://127.0.0.1:9?name=other"
STEP = {"trigger": "boil", "source": "cold", "dest": "hot"}
TEA = json.dumps({"name": "tea", "initial": "cold", "states": ["cold", "hot"], "transitions": [STEP]})


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    data = tmp_path_factory.mktemp("undelivered")
    with run_server(data, "--store", store_url(data / "own.db"), "--store", DOWN) as server:
        yield Caller(server, None, AGENT)  # type: ignore[arg-type]


def _kept(at: Caller, content: str = "Alice drinks tea", **fields: Any) -> str:
    body = {"agent_id": AGENT, "type": "semantic", "content": content, **fields}
    return str(at.call("POST", "/v0/remember", body).json["id"])


def _forgotten(at: Caller) -> str:
    id = _kept(at)
    at.call("POST", "/v0/forget", {"agent_id": AGENT, "ids": [id]})
    return id


def _policy(at: Caller) -> Document:
    _kept(at, confidence=0.1)
    return {"policy": {"confidence_below": 0.5}, "action": "archive"}


#: Each operation that a protocol has, with its request; `id` is in the path by HTTP.
REQUESTS: dict[str, Callable[[Caller], Document]] = {
    "remember": lambda at: {"type": "semantic", "content": "Alice sings"},
    "update": lambda at: {"id": _kept(at), "content": "Alice drinks green tea"},
    "forget": lambda at: {"ids": [_kept(at)]},
    "forget for good": lambda at: {"ids": [_kept(at)], "hard_delete": True},
    "merge": lambda at: {"canonical": _kept(at), "duplicates": [_kept(at, "Alice likes tea")]},
    "expire": _policy,
    "undo": lambda at: {"ids": [_forgotten(at)]},
    "procedure_fire": lambda at: {"id": _kept(at, TEA, type="procedural"), "trigger": "boil"},
    "remember_batch": lambda at: {"items": [{"agent_id": AGENT, "type": "semantic", "content": "Bob sings"}]},
}
PATHS = {
    "update": ("PATCH", "/v0/memories/{id}"),
    "procedure_fire": ("POST", "/v0/procedures/{id}/fire"),
    "remember_batch": ("POST", "/v0/remember/batch"),
}


def _http(at: Caller, operation: str, request: Document) -> Any:
    method, path = PATHS.get(operation, ("POST", f"/v0/{operation}"))
    return at.call(method, path.format(**request), {n: v for n, v in request.items() if n != "id"}).json


WAYS: dict[str, Callable[[Caller, str, Document], Any]] = {
    "HTTP": _http,
    "JSON-RPC": lambda at, operation, request: at.rpc(operation, request),
    "MCP": lambda at, operation, request: at.tool("/mcp", operation, request),
    "MCP, all tools": lambda at, operation, request: at.tool("/mcp/full", operation, request),
}
#: What a set of tools does not have.
NONE = {"MCP": {"undo", "procedure_fire", "remember_batch"}, "MCP, all tools": {"remember_batch"}}
ASKED = [(way, operation) for way in WAYS for operation in REQUESTS if operation not in NONE.get(way, ())]


@pytest.mark.parametrize(("way", "operation"), ASKED)
def test_each_answer_names_the_store_that_has_not_done_it(at: Caller, way: str, operation: str) -> None:
    request = REQUESTS[operation](at)
    if operation not in ("undo", "remember_batch"):
        request["agent_id"] = AGENT
    answer = WAYS[way](at, operation.removesuffix(" for good"), request)
    assert answer is not None, at.transcript[-1]
    said = {**answer, **answer.get("results", [{}])[0]}
    told = [each for name in ("errors", "stores") for each in said.get(name) or () if isinstance(each, dict)]
    assert [each["store"] for each in told if "it is kept and tried again" in (each.get("error") or "")] == ["other"]
