"""Undo and the end of an expiry, by every way in: the same outcome, the same refusals."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_process import run_mcp
from page_browser import Visitor, text_of
from server_process import ServerProcess, command, environment, run_server

from commonplace import Memory, RemoteMemory, SyncMemory, SyncRemoteMemory
from commonplace.wire.errors import Fault

pytestmark = pytest.mark.process
Document = dict[str, Any]
_MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
UNKNOWN = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"


class Place:
    """A server, and the other ways to its data."""

    def __init__(self, server: ServerProcess, data: Path) -> None:
        self.server, self.data = server, data

    def remember(self, **fields: Any) -> str:
        body = {"agent_id": "agent", "type": "semantic", "content": "Alice plays the violin", **fields}
        return str(self.server.post("/v0/remember", body).json["id"])

    def forget(self, id: str) -> None:
        assert self.server.post("/v0/forget", {"agent_id": "agent", "ids": [id]}).json["forgotten_ids"] == [id]

    def get(self, id: str) -> Document:
        found: Document = self.server.get(f"/v0/memories/{id}?agent_id=agent").json
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    data = tmp_path_factory.mktemp("undone")
    policy = "agent=agent type=emotional action=archive"
    (data / "commonplace.toml").write_text(f'[lifecycle]\ninterval = 0\nexpire = ["{policy}"]\n', "utf-8")
    with run_server(data) as server:
        yield Place(server, data)


# the ways: each takes a request of an operation, and answers as the wire does


def _http(at: Place, operation: str, request: Document) -> Document:
    if operation == "undo":
        return dict(at.server.post("/v0/undo", request).json)
    id = request.pop("id")
    answer = at.server.call("PATCH", f"/v0/memories/{id}", {"agent_id": "agent", **_null_expiry(request)})
    return dict(answer.json)


def _null_expiry(request: Document) -> Document:
    kept = {name: value for name, value in request.items() if name != "remove_expiry"}
    return {**kept, "expires_at": None} if request.get("remove_expiry") else kept


def _rpc(at: Place, operation: str, request: Document) -> Document:
    params = request if operation == "undo" else {"agent_id": "agent", **_null_expiry(request)}
    said = at.server.post(
        "/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": f"memory.{operation}", "params": params}
    ).json
    return dict(said["result"]) if "result" in said else {"error": {**said["error"], **said["error"]["data"]}}


def _tool_answer(said: Document) -> Document:
    result = said["result"]
    if result.get("isError"):
        text = result["content"][0]["text"]
        return {"error": {"code": "not_found" if "can be brought back" in text else "", "message": text}}
    return dict(json.loads(result["content"][0]["text"]))


def _mcp(at: Place, operation: str, request: Document) -> Document:
    arguments = request if operation == "undo" else {"agent_id": "agent", **request}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": operation, "arguments": arguments}}
    return _tool_answer(json.loads(at.server.post("/mcp/full", message, headers=_MCP).body.decode()))


def _stdio(at: Place, operation: str, request: Document) -> Document:
    arguments = request if operation == "undo" else {"agent_id": "agent", **request}
    with run_mcp(at.data, "--tools", "full") as process:
        process.greet()
        return _tool_answer(process.ask("tools/call", {"name": operation, "arguments": arguments}))


def _command(at: Place, operation: str, request: Document) -> Document:
    if operation == "undo":
        args = ["undo", *request.get("ids", ()), *(["--reason", request["reason"]] if "reason" in request else ())]
        args += ["--run", request["run_id"]] if "run_id" in request else []
    else:
        args = ["update", request["id"], "--agent", "agent", "--no-expires"]
    ran = subprocess.run(
        command(*args, "--json"), env=environment(at.data), capture_output=True, text=True, check=False
    )
    return dict(json.loads(ran.stdout))


def _python(open_memory: Callable[[Place], Any]) -> Callable[[Place, str, Document], Document]:
    def call(at: Place, operation: str, request: Document) -> Document:
        async def run() -> Document:
            async with open_memory(at) as memory:
                return dict(await getattr(memory, operation)(**request))

        try:
            return asyncio.run(run())
        except Fault as fault:
            return fault.to_wire()

    return call


def _blocking(open_memory: Callable[[Place], Any]) -> Callable[[Place, str, Document], Document]:
    def call(at: Place, operation: str, request: Document) -> Document:
        try:
            with open_memory(at) as memory:
                return dict(getattr(memory, operation)(**request))
        except Fault as fault:
            return fault.to_wire()

    return call


def _page(at: Place, operation: str, request: Document) -> Document:
    """By its forms; what it says is put as the wire would put it."""
    visitor = Visitor(at.server)
    if operation == "update":
        answer = visitor.post(f"/ui/memories/{request['id']}/keep", {})
        return {"version": at.get(request["id"])["version"] if answer.headers["location"].endswith("said=kept") else 0}
    if "run_id" in request:
        said = text_of(visitor.post(f"/ui/lifecycle/{request['run_id']}/undo", {}))
        (id,) = {each[-36:] for each in re.findall(r"/ui/memories/[0-9a-f-]{36}", _run_page(visitor, request))}
        return {"restored_ids": [id] if "1 memory brought back." in said else [], "unchanged_ids": []}
    (id,) = request["ids"]
    answer = visitor.post(f"/ui/memories/{id}/undo", {"reason": request.get("reason", "")})
    if answer.status == 404:
        return {"error": {"code": "not_found", "message": text_of(answer).replace("No memory", "no memory")}}
    restored = answer.headers["location"].endswith("said=restored")
    return {"restored_ids": [id] if restored else [], "unchanged_ids": [] if restored else [id]}


def _run_page(visitor: Visitor, request: Document) -> str:
    return visitor.get(f"/ui/lifecycle/{request['run_id']}").body.decode()


WAYS: dict[str, Callable[[Place, str, Document], Document]] = {
    "http": _http,
    "rpc": _rpc,
    "mcp": _mcp,
    "stdio": _stdio,
    "command": _command,
    "Memory": _python(lambda at: Memory("agent", data=at.data, embedder="none")),
    "SyncMemory": _blocking(lambda at: SyncMemory("agent", data=at.data, embedder="none")),
    "RemoteMemory": _python(lambda at: RemoteMemory(at.server.url, agent_id="agent")),
    "page": _page,
    "SyncRemoteMemory": _blocking(lambda at: SyncRemoteMemory(at.server.url, agent_id="agent")),
}


@pytest.mark.parametrize("way", WAYS)
def test_undo(place: Place, way: str) -> None:
    id = place.remember()
    place.forget(id)
    assert WAYS[way](place, "undo", {"ids": [id], "reason": "a slip"}) == {"restored_ids": [id], "unchanged_ids": []}
    assert place.get(id)["status"] == "live"
    assert WAYS[way](place, "undo", {"ids": [id]}) == {"restored_ids": [], "unchanged_ids": [id]}
    refused = WAYS[way](place, "undo", {"ids": [UNKNOWN]})["error"]
    assert refused["code"] == "not_found"
    assert f"no memory {UNKNOWN} can be brought back" in refused["message"]


@pytest.mark.parametrize("way", WAYS)
def test_undo_of_a_run(place: Place, way: str) -> None:
    id = place.remember(type="emotional", content=f"Alice enjoys {way}")
    run_id = place.server.post("/v0/lifecycle/expire/run", {}).json["run_id"]
    assert place.get(id)["status"] == "archived"
    assert WAYS[way](place, "undo", {"run_id": run_id}) == {"restored_ids": [id], "unchanged_ids": []}
    assert place.get(id)["status"] == "live"


@pytest.mark.parametrize("way", WAYS)
def test_an_expiry_is_taken_away(place: Place, way: str) -> None:
    id = place.remember(expires_at=4_000_000_000_000)
    assert "expires_at" in place.get(id)
    answer = WAYS[way](place, "update", {"id": id, "remove_expiry": True})
    assert answer["version"] == 2, answer
    assert "expires_at" not in place.get(id)


def test_an_expiry_is_taken_away_by_storing_a_record_without_one(place: Place) -> None:
    record = {"type": "lesson", "agent": "agent", "id": "l1", "title": "t", "content": "c"}
    place.server.post("/amp/store", {"record": {**record, "expires_at": 4_000_000_000_000}})
    assert "expires_at" in place.server.get("/amp/records/l1").json["record"]
    place.server.post("/amp/store", {"record": record})
    assert "expires_at" not in place.server.get("/amp/records/l1").json["record"]


def test_a_null_of_a_models_changes_no_expiry(place: Place) -> None:
    id = place.remember(expires_at=4_000_000_000_000)
    _mcp(place, "update", {"id": id, "content": "new", "expires_at": None, "remove_expiry": None})
    assert place.get(id)["expires_at"] == 4_000_000_000_000


def test_a_promise_is_not_taken_away(place: Place) -> None:
    id = place.remember(privacy_intent={"retain": 30})
    said = _http(place, "update", {"id": id, "remove_expiry": True})["error"]
    assert (said["code"], "is a promise" in said["message"]) == ("validation_error", True)


WRONG = [
    {}, {"ids": []}, {"ids": [UNKNOWN], "run_id": UNKNOWN}, {"ids": UNKNOWN}, {"run_id": UNKNOWN, "agent_id": "agent"},
    {"ids": [UNKNOWN], "all": True},
]  # fmt: skip


@pytest.mark.parametrize("given", WRONG, ids=str)
def test_what_is_asked_wrongly_is_said(place: Place, given: Document) -> None:
    assert _http(place, "undo", given)["error"]["code"] == "validation_error"
