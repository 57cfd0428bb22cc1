"""The staging table: every operation × every way that has it × asked for by its author or by a rule.

Each row must say that it waits and where it is decided, change nothing on any protocol until it is approved, refuse an
approval when what the reviewer was shown has changed since, and happen when it is approved as it is shown then.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from governed_place import Document, Place, everything, fact, keep_attestation, lesson, run_place, said
from trusty_process import http_call, run_trusty

pytestmark = pytest.mark.process
RULES = """
[mrp]
requests_per_minute = 100000
[[policy]]
name = "asks"
action = "review"
when = { content = "okapi" }
[[policy]]
name = "keeps"
action = "review"
when = { content = "heron", operation = ["forget", "merge"] }
"""
#: By who asks for the review: what is proposed, and what is there and would go.
WORDS = {"author": ("ibis", "egret"), "rule": ("okapi", "heron")}
WAIT = {"approval_required": True}
QUESTION = "what did Alice see by the lake"


class Row(NamedTuple):
    """`send(at, agent, target, text, wait)` asks for it; `wait` is what its author says who wants a review, if
    anything can be said."""

    send: Callable[[Place, str, Document, str, Document], str]
    by_author: bool = True


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with run_place(tmp_path_factory.mktemp("staged"), RULES) as governed:
        yield governed


def _flags(wait: Document) -> list[str]:
    return ["--approval"] if wait else []


def _companion(at: Place, agent: str, method: str, path: str, body: Document | None = None) -> str:
    """Over the HTTP server that trusty-memory's tools have beside them."""
    at.tool("/mcp/trusty", "palace_create", {"name": agent})
    with run_trusty(at.data, "--http", "127.0.0.1:0") as client:
        return http_call(client.port, method, f"/api/v1/palaces/{agent}/{path}", body).body.decode()


def _import(at: Place, agent: str, target: Document, text: str, wait: Document) -> str:
    file = at.data / f"{agent}.json"
    file.write_text(json.dumps([{"id": agent, "memory": text, "agent_id": agent}]), "utf-8")
    done = at.command("import", "--format", "mem0", str(file), *_flags(wait))
    (review,) = at.reviews(agent)
    return f"{done} pending {at.server.url}/ui/inbox/{review['id']}"  # a report of many, which names none of them


def _fire(at: Place, agent: str, target: Document, text: str, wait: Document) -> str:
    """A procedure that is moved is changed."""
    return at.post(f"/v0/procedures/{target['machine']}/fire", {"agent_id": agent, "trigger": "go", **wait})


REMEMBER: dict[str, Row] = {
    "memorywire": Row(lambda at, a, t, x, w: at.post("/v0/remember", {**said(a, x), **w})),
    "memorywire batch": Row(lambda at, a, t, x, w: at.post("/v0/remember/batch", {"items": [{**said(a, x), **w}]})),
    "JSON-RPC": Row(lambda at, a, t, x, w: at.rpc("remember", {**said(a, x), **w})),
    "MCP": Row(lambda at, a, t, x, w: at.tool("/mcp", "remember", {**said(a, x), **w})),
    "MCP on stdio": Row(lambda at, a, t, x, w: at.stdio("remember", {**said(a, x), **w})),
    "AMP": Row(lambda at, a, t, x, w: at.post("/amp/store", {"record": lesson(a, x), **w})),
    "AMP tool": Row(lambda at, a, t, x, w: at.tool("/mcp/amp", "amp_store", {"record": lesson(a, x), **w})),
    "OpenWOP": Row(lambda at, a, t, x, w: at.post("/openwop/memory", {"memoryRef": a, "entry": {"content": x}}), False),
    "trusty": Row(lambda at, a, t, x, w: at.trusty(a, "memory_remember", text=x), False),
    "trusty companion": Row(lambda at, a, t, x, w: _companion(at, a, "POST", "drawers", {"content": x}), False),
    "SDK": Row(lambda at, a, t, x, w: at.local(lambda memory: memory.remember(x, agent_id=a, **w))),
    "SDK of a server": Row(lambda at, a, t, x, w: at.remote(lambda memory: memory.remember(x, agent_id=a, **w))),
    "CLI": Row(lambda at, a, t, x, w: at.command("remember", x, "--agent", a, *_flags(w))),
    "CLI import": Row(_import),
}
UPDATE: dict[str, Row] = {
    "memorywire": Row(
        lambda at, a, t, x, w: at.server.call(
            "PATCH", f"/v0/memories/{t['id']}", {"agent_id": a, "content": x, **w}
        ).body.decode()
    ),
    "JSON-RPC": Row(lambda at, a, t, x, w: at.rpc("update", {"agent_id": a, "id": t["id"], "content": x, **w})),
    "MCP": Row(
        lambda at, a, t, x, w: at.tool("/mcp/full", "update", {"agent_id": a, "id": t["id"], "content": x, **w})
    ),
    "AMP replace": Row(lambda at, a, t, x, w: at.post("/amp/store", {"record": lesson(a, x, id=t["amp_id"]), **w})),
    "AMP tool replace": Row(
        lambda at, a, t, x, w: at.tool("/mcp/amp", "amp_store", {"record": lesson(a, x, id=t["amp_id"]), **w})
    ),
    "SDK": Row(lambda at, a, t, x, w: at.local(lambda memory: memory.update(t["id"], content=x, agent_id=a, **w))),
    "SDK of a server": Row(
        lambda at, a, t, x, w: at.remote(lambda memory: memory.update(t["id"], content=x, agent_id=a, **w))
    ),
    "CLI": Row(lambda at, a, t, x, w: at.command("update", t["id"], "--content", x, "--agent", a, *_flags(w))),
}
FORGET: dict[str, Row] = {
    "memorywire": Row(lambda at, a, t, x, w: at.post("/v0/forget", {"agent_id": a, "ids": [t["id"]], **w})),
    "memorywire, for good": Row(
        lambda at, a, t, x, w: at.post("/v0/forget", {"agent_id": a, "ids": [t["id"]], "hard_delete": True, **w})
    ),
    "JSON-RPC": Row(lambda at, a, t, x, w: at.rpc("forget", {"agent_id": a, "ids": [t["id"]], **w})),
    "MCP": Row(lambda at, a, t, x, w: at.tool("/mcp", "forget", {"agent_id": a, "ids": [t["id"]], **w})),
    "AMP": Row(lambda at, a, t, x, w: at.server.call("DELETE", f"/amp/records/{t['id']}").body.decode(), False),
    "AMP tool": Row(lambda at, a, t, x, w: at.tool("/mcp/amp", "amp_delete", {"id": t["id"], "agent": a}), False),
    "OpenWOP": Row(
        lambda at, a, t, x, w: at.server.call("DELETE", f"/openwop/memory/{t['id']}?memoryRef={a}").body.decode(), False
    ),
    "trusty": Row(lambda at, a, t, x, w: at.trusty(a, "memory_forget", drawer_id=t["id"]), False),
    "trusty companion": Row(lambda at, a, t, x, w: _companion(at, a, "DELETE", f"drawers/{t['id']}"), False),
    "SDK": Row(lambda at, a, t, x, w: at.local(lambda memory: memory.forget([t["id"]], agent_id=a, **w))),
    "SDK of a server": Row(lambda at, a, t, x, w: at.remote(lambda memory: memory.forget([t["id"]], agent_id=a, **w))),
    "CLI": Row(lambda at, a, t, x, w: at.command("forget", t["id"], "--agent", a, *(_flags(w) or ["--yes"]))),
}
MERGE: dict[str, Row] = {
    "memorywire": Row(lambda at, a, t, x, w: at.post("/v0/merge", {**_merge(a, t), **w})),
    "JSON-RPC": Row(lambda at, a, t, x, w: at.rpc("merge", {**_merge(a, t), **w})),
    "MCP": Row(lambda at, a, t, x, w: at.tool("/mcp", "merge", {**_merge(a, t), **w})),
    "SDK": Row(lambda at, a, t, x, w: at.local(lambda memory: memory.merge(t["other"], [t["id"]], agent_id=a, **w))),
    "SDK of a server": Row(
        lambda at, a, t, x, w: at.remote(lambda memory: memory.merge(t["other"], [t["id"]], agent_id=a, **w))
    ),
    "CLI": Row(lambda at, a, t, x, w: at.command("merge", t["other"], t["id"], "--agent", a, *_flags(w))),
}
STATEMENT: dict[str, Row] = {
    "memorywire": Row(lambda at, a, t, x, w: at.post("/v0/kg/assert", {"agent_id": a, **fact(x), **w})),
    "JSON-RPC": Row(lambda at, a, t, x, w: at.rpc("kg_assert", {"agent_id": a, **fact(x), **w})),
    "MCP": Row(lambda at, a, t, x, w: at.tool("/mcp/full", "graph_assert", {"agent_id": a, **fact(x), **w})),
    "trusty": Row(lambda at, a, t, x, w: at.trusty(a, "kg_assert", **fact(x)), False),
    "trusty companion": Row(lambda at, a, t, x, w: _companion(at, a, "POST", "kg", fact(x)), False),
    "SDK": Row(lambda at, a, t, x, w: at.local(lambda memory: memory.graph_assert("it", "is", x, agent_id=a, **w))),
    "SDK of a server": Row(
        lambda at, a, t, x, w: at.remote(lambda memory: memory.graph_assert("it", "is", x, agent_id=a, **w))
    ),
    "CLI": Row(lambda at, a, t, x, w: at.command("kg", "assert", "it", "is", x, "--agent", a, *_flags(w))),
}
ATTESTATION = {"MRP": Row(lambda at, a, t, x, w: keep_attestation(at, a, x, **w))}
TABLE: dict[str, dict[str, Row]] = {
    "remember": REMEMBER, "update": UPDATE, "forget": FORGET, "merge": MERGE, "statement": STATEMENT,
    "attestation": ATTESTATION,
}  # fmt: skip
CASES = [
    pytest.param(operation, way, by, id=f"{operation} by {way}, asked for by its {by}" if by == "author" else
                 f"{operation} by {way}, asked for by a rule")
    for operation, ways in TABLE.items() for way, row in ways.items() for by in ("author", "rule")
    if by == "rule" or row.by_author
]  # fmt: skip


def _merge(agent: str, target: Document) -> Document:
    return {"agent_id": agent, "canonical": target["other"], "duplicates": [target["id"]]}


def _there(at: Place, agent: str, operation: str, going: str) -> Document:
    """What is there before: a memory that would go or be changed, and one beside it."""
    text = f"Alice saw it by the lake: {going if operation in ('forget', 'merge') else 'a moose'}"
    answer = at.server.post("/amp/store", {"record": lesson(agent, text, id=f"lesson/{agent}")}).json
    id = at.server.get(f"/v0/memories/lesson%2F{agent}?agent_id={agent}").json["id"]
    other = at.server.post("/v0/remember", said(agent, f"Alice saw it by the lake: {going} again")).json["id"]
    assert at.server.post("/v0/kg/assert", {"agent_id": agent, **fact("a moose")}).status == 200
    return {"id": id, "amp_id": answer["id"], "other": other}


def _change(at: Place, agent: str, operation: str, target: Document) -> None:
    """Of what the reviewer was shown."""
    if operation == "statement":
        assert at.server.post("/v0/kg/assert", {"agent_id": agent, **fact("an elk")}).status == 200
        return
    change = {"agent_id": agent, "confidence": 0.5}
    assert at.server.call("PATCH", f"/v0/memories/{target['id']}", change).status == 200


@pytest.mark.parametrize(("operation", "way", "by"), CASES)
def test_it_waits_is_invisible_and_happens_as_it_was_shown(place: Place, operation: str, way: str, by: str) -> None:
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    word, going = WORDS[by]
    target = _there(place, agent, operation, going)
    told = (target["id"], target["other"], "moose")
    before = everything(place, agent, QUESTION)
    counted = [before.count(each) for each in told]
    assert counted[0] >= 7, "lists, lookups and recalls name it"
    assert counted[2] >= 1
    row, wait = TABLE[operation][way], WAIT if by == "author" else {}
    answer = row.send(place, agent, target, f"Alice saw it by the lake: an {word}", dict(wait))

    (review,) = place.reviews(agent)
    assert (review["operation"], review["status"]) == (operation, "pending")
    assert review.get("rule") == (None if by == "author" else "keeps" if operation in ("forget", "merge") else "asks")
    assert "pending" in answer, answer
    assert f"{place.server.url}/ui/inbox/{review['id']}" in answer, "it says where a person decides"

    shown = everything(place, agent, QUESTION)
    assert word not in shown, "on no protocol"
    assert [shown.count(each) for each in told] == counted, "on every protocol what is there is as it was"
    _change(place, agent, operation, target)
    refused = place.server.post(f"/v0/reviews/{review['id']}", {"approved": True})
    assert (refused.status, refused.code) == (409, "conflict"), refused.body
    fresh = refused.json["error"]["details"]["review"]
    assert (fresh["id"], fresh["status"], fresh["revision"]) == (review["id"], "pending", 2)
    shown = everything(place, agent, QUESTION)
    assert word not in shown
    assert target["id"] in shown

    decided = place.server.post(f"/v0/reviews/{review['id']}", {"approved": True, "revision": 2})
    assert decided.status == 200, decided.body
    shown = everything(place, agent, QUESTION)
    now = place.server.get(f"/v0/memories/{target['id']}?agent_id={agent}")
    if operation == "forget":
        assert (now.status, target["id"] in shown) == (404, False)
    elif operation == "merge":
        assert now.json["id"] == target["other"]
    else:
        assert word in shown
    assert place.reviews(agent) == []


def test_a_procedure_that_is_moved_waits_like_any_change(place: Place) -> None:
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    machine = {"name": "m", "initial": "a", "states": ["a", "b"],
               "transitions": [{"trigger": "go", "source": "a", "dest": "b"}]}  # fmt: skip
    body = {"agent_id": agent, "type": "procedural", "content": json.dumps(machine)}
    id = place.server.post("/v0/remember", body).json["id"]
    answer = _fire(place, agent, {"machine": id}, "", WAIT)
    (review,) = place.reviews(agent)
    assert f"{place.server.url}/ui/inbox/{review['id']}" in answer
    assert place.server.get(f"/v0/procedures/{id}?agent_id={agent}").json["state"] == "a"
    _change(place, agent, "update", {"id": id})
    assert place.server.post(f"/v0/reviews/{review['id']}", {"approved": True}).status == 409
    assert place.server.post(f"/v0/reviews/{review['id']}", {"approved": True}).status == 200
    assert place.server.get(f"/v0/procedures/{id}?agent_id={agent}").json["state"] == "b"
