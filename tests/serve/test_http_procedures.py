"""Procedures on a running server, each answer checked against its schema, over HTTP, JSON-RPC and from Python."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from server_process import ServerProcess

from commonplace import Memory, Procedure, RemoteMemory
from commonplace.wire.errors import Conflict, ValidationError
from commonplace.wire.validate import check

DOOR = {
    "name": "door",
    "states": ["shut", "open"],
    "transitions": [
        {"trigger": "push", "source": "shut", "dest": "open", "unless": ["locked"]},
        {"trigger": "pull", "source": "open", "dest": "shut"},
    ],
}
RESPONSE = "memorywire/operations/procedure.response"


def keep(server: ServerProcess, content: Any = DOOR) -> str:
    body = {"agent_id": "doors", "type": "procedural", "content": json.dumps(content)}
    kept = server.post("/v0/remember", body)
    assert kept.status == 200, kept.body
    id: str = kept.json["id"]
    return id


def test_a_procedure_is_run_by_its_id_alone(open_server: ServerProcess) -> None:
    id = keep(open_server)
    shown = open_server.get(f"/v0/procedures/{id}?agent_id=doors").json
    check(RESPONSE, shown)
    assert shown == open_server.get(f"/v0/procedures/{id}").json
    assert (shown["state"], shown["possible"]) == ("shut", [{"trigger": "push", "dest": "open", "unless": ["locked"]}])
    moved = open_server.post(f"/v0/procedures/{id}/fire", {"trigger": "push", "facts": {"locked": False}})
    check(RESPONSE, moved.json)
    assert (moved.status, moved.json["state"], moved.json["version"]) == (200, "open", 2)
    drawn = open_server.get(f"/v0/procedures/{id}/draw?format=mermaid").json
    check("memorywire/operations/procedure.draw.response", drawn)
    reset = open_server.post(f"/v0/procedures/{id}/reset", {"agent_id": "doors", "approval_required": True}).json
    check(RESPONSE, reset)
    assert (reset["pending_approval"], reset["state"]) == (True, "open")
    call = {"jsonrpc": "2.0", "id": 1, "method": "memory.procedure_reset", "params": {"id": id}}
    assert open_server.post("/v0/rpc", call).json["result"]["state"] == "shut"


@pytest.mark.parametrize(
    ("body", "status", "details"),
    [
        ({"trigger": "kick"}, 409, {"state": "shut", "possible": ["push"]}),
        ({"trigger": "pull"}, 409, {"state": "shut", "possible": ["push"]}),
        ({"trigger": "push"}, 400, {"field": "facts.locked"}),
        ({"trigger": "push", "facts": {"locked": True}}, 409,
         {"state": "shut", "possible": ["push"], "guards": ["locked"]}),
        ({"trigger": "push", "facts": {"locked": False}, "expected_version": 3}, 409, {"version": 1}),
        ({"trigger": "push", "facts": {"locked": 1}}, 400, {"field": "facts.locked"}),
        ({"trigger": "push", "force": True}, 400, {"field": "force"}),
        ({}, 400, {"field": "trigger"}),
    ],
)  # fmt: skip
def test_what_cannot_be_fired_says_why(
    open_server: ServerProcess, body: dict[str, Any], status: int, details: dict[str, Any]
) -> None:
    id = keep(open_server)
    answer = open_server.post(f"/v0/procedures/{id}/fire", body)
    assert (answer.status, answer.json["error"]["details"]) == (status, details)
    assert open_server.get(f"/v0/procedures/{id}").json["version"] == 1


def test_a_procedure_object_is_the_same_here_and_there(open_server: ServerProcess, tmp_path: Any) -> None:
    async def story(memory: Any) -> list[Any]:
        kept = await memory.remember(json.dumps(DOOR), type="procedural")
        door = Procedure(memory, kept.id)
        told = [await door.state(), await door.possible(), await door.fire("push", locked=False)]
        told += [await door.reset(), (await door.draw("mermaid"))[:15], (await door.draw())[:5]]
        with pytest.raises(ValidationError, match=r"facts\.locked is required"):
            await door.fire("push")
        with pytest.raises(Conflict) as refused:
            await door.fire("kick")
        return [*told, refused.value.details, (await door.show())["version"]]

    async def tell() -> None:
        async with Memory("doors", data=tmp_path, embedder="hashing") as here, RemoteMemory(open_server.url) as there:
            told = await story(here)
            assert told == await story(there)
            assert told[:4] == ["shut", ["push"], "open", "shut"]

    asyncio.run(tell())


def test_two_clients_at_once_lose_no_fire(open_server: ServerProcess) -> None:
    states = [f"s{i}" for i in range(31)]
    steps = [{"trigger": "next", "source": a, "dest": b} for a, b in itertools.pairwise(states)]
    id = keep(open_server, {"name": "count", "states": states, "transitions": steps})

    async def crowd() -> None:
        async with RemoteMemory(open_server.url, agent_id="doors") as one, RemoteMemory(open_server.url) as two:
            each = [memory.procedure_fire(id, "next", agent_id="doors") for memory in (one, two) for _ in range(15)]
            await asyncio.gather(*each)

    asyncio.run(crowd())
    assert open_server.get(f"/v0/procedures/{id}").json["state"] == "s30"
