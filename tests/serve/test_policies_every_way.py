"""One rule set for every way in: what a rule rejects, redacts or wants reviewed, whichever protocol it comes by."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from governed_place import Place, everything, fact, keep_attestation, lesson, run_place, said
from server_process import run_server

from commonplace.wire.short_ids import shorten_id

pytestmark = pytest.mark.process
RULES = """
[[policy]]
name = "kept"
action = "review"
when = { content = "heron", operation = "forget" }
[[policy]]
name = "rejected"
action = "reject"
when = { content = "zebra" }
[[policy]]
name = "reviewed"
action = "review"
when = { content = "okapi" }
[[policy]]
name = "redacted"
action = "redact"
when = { content = "quagga" }
[[policy]]
name = "joined"
action = "reject"
when = { content = 'night\\s*mare' }
[[policy]]
name = "unread"
action = "reject"
when = { content = "narwhal", operation = "recall" }
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with run_place(tmp_path_factory.mktemp("governed"), RULES) as governed:
        yield governed


def _harmless(at: Place, agent: str) -> str:
    return str(at.server.post("/v0/remember", said(agent, "harmless")).json["id"])


def _amp_replace(at: Place, agent: str, text: str) -> str:
    at.post("/amp/store", {"record": lesson(agent, "harmless", id="x")})
    return at.post("/amp/store", {"record": lesson(agent, text, id="x")})


def _update(at: Place, agent: str, text: str) -> str:
    id = _harmless(at, agent)
    return at.server.call("PATCH", f"/v0/memories/{id}", {"agent_id": agent, "content": text}).body.decode()


WAYS: dict[str, Callable[[Place, str, str], str]] = {
    "memorywire": lambda at, agent, text: at.post("/v0/remember", said(agent, text)),
    "memorywire batch": lambda at, agent, text: at.post("/v0/remember/batch", {"items": [said(agent, text)]}),
    "memorywire metadata": lambda at, agent, text: at.post(
        "/v0/remember", {**said(agent, "harmless"), "metadata": {"note": [text]}}
    ),
    "JSON-RPC": lambda at, agent, text: at.rpc("remember", said(agent, text)),
    "JSON-RPC update": lambda at, agent, text: at.rpc(
        "update", {"agent_id": agent, "id": _harmless(at, agent), "content": text}
    ),
    "JSON-RPC statement": lambda at, agent, text: at.rpc("kg_assert", {"agent_id": agent, **fact(text)}),
    "update": _update,
    "statement": lambda at, agent, text: at.post("/v0/kg/assert", {"agent_id": agent, **fact(text)}),
    "MCP": lambda at, agent, text: at.tool("/mcp/full", "remember", said(agent, text)),
    "MCP update": lambda at, agent, text: at.tool(
        "/mcp/full", "update", {"agent_id": agent, "id": _harmless(at, agent), "content": text}
    ),
    "MCP statement": lambda at, agent, text: at.tool("/mcp/full", "graph_assert", {"agent_id": agent, **fact(text)}),
    "MCP on stdio": lambda at, agent, text: at.stdio("remember", said(agent, text)),
    "AMP": lambda at, agent, text: at.post("/amp/store", {"record": lesson(agent, text)}),
    "AMP tool": lambda at, agent, text: at.tool("/mcp/amp", "amp_store", {"record": lesson(agent, text)}),
    "AMP replace": _amp_replace,
    "OpenWOP": lambda at, agent, text: at.post("/openwop/memory", {"memoryRef": agent, "entry": {"content": text}}),
    "trusty": lambda at, agent, text: at.trusty(agent, "memory_remember", text=text),
    "trusty statement": lambda at, agent, text: at.trusty(agent, "kg_assert", **fact(text)),
    "MRP": keep_attestation,
    "SDK": lambda at, agent, text: at.local(lambda memory: memory.remember(text, agent_id=agent)),
    "SDK of a server": lambda at, agent, text: at.remote(lambda memory: memory.remember(text, agent_id=agent)),
    "CLI": lambda at, agent, text: at.command("remember", text, "--agent", agent),
    "CLI statement": lambda at, agent, text: at.command("kg", "assert", "it", "is", text, "--agent", agent),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_rule_holds_whichever_way_it_comes(place: Place, way: str) -> None:
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    refused = WAYS[way](place, agent, "it is a zebra")
    assert "'rejected' refuses" in refused, refused
    assert "zebra" not in everything(place, agent)

    answer = WAYS[way](place, agent, "it is an okapi")
    assert "pending" in answer, answer
    (review,) = [review for review in place.reviews(agent) if review.get("rule") == "reviewed"]
    assert "okapi" not in everything(place, agent), "invisible on every protocol until it is approved"
    decided = place.server.post(f"/v0/reviews/{review['id']}", {"approved": True})
    assert decided.status == 200, decided.body
    assert "okapi" in everything(place, agent)

    if way == "MRP":
        assert "'redacted' refuses" in WAYS[way](place, agent, "it is a quagga")
    else:
        WAYS[way](place, agent, "it is a quagga")
        assert "REDACTED:redacted" in everything(place, agent)
    assert "quagga" not in everything(place, agent)


def _import(at: Place, data: bytes) -> str:
    file = at.data / f"{uuid.uuid4().hex}.jsonl"
    file.write_bytes(data)
    return at.command("import", str(file))


IMPORTS: dict[str, Callable[[Place, bytes], str]] = {
    "import": lambda at, data: at.server.post("/v0/import", data).body.decode(),
    "CLI import": _import,
}


@pytest.mark.parametrize("way", IMPORTS)
def test_a_rule_holds_for_what_is_imported(place: Place, tmp_path: Path, way: str) -> None:
    """A history cannot wait for a reviewer: what a rule wants reviewed is left out as well."""
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    with run_server(tmp_path) as elsewhere:
        for text in ("it is a zebra", "it is an okapi", "it is a quagga", "it is a yak"):
            elsewhere.post("/v0/remember", said(agent, text))
        data = elsewhere.get("/v0/export").body
    answer = IMPORTS[way](place, data)
    assert "'rejected' refuses" in answer, answer
    assert "reviewed" in answer, answer
    shown = everything(place, agent)
    assert "it is a yak" in shown
    assert "REDACTED:redacted" in shown
    assert not [word for word in ("zebra", "okapi", "quagga") if word in shown]
    assert place.reviews(agent) == []


FORGETS: dict[str, Callable[[Place, str, str], str]] = {
    "memorywire": lambda at, agent, id: at.post("/v0/forget", {"agent_id": agent, "ids": [id]}),
    "memorywire, for good": lambda at, agent, id: at.post(
        "/v0/forget", {"agent_id": agent, "ids": [id], "hard_delete": True}
    ),
    "memorywire, by filter": lambda at, agent, id: at.post(
        "/v0/forget", {"agent_id": agent, "filter": {"type": "semantic"}}
    ),
    "MCP": lambda at, agent, id: at.tool("/mcp/full", "forget", {"agent_id": agent, "ids": [id]}),
    "AMP": lambda at, agent, id: at.server.call("DELETE", f"/amp/records/{id}").body.decode(),
    "AMP tool": lambda at, agent, id: at.tool("/mcp/amp", "amp_delete", {"id": id, "agent": agent}),
    "OpenWOP": lambda at, agent, id: at.server.call("DELETE", f"/openwop/memory/{id}?memoryRef={agent}").body.decode(),
    "trusty": lambda at, agent, id: at.tool("/mcp/trusty", "memory_forget", {"palace": agent, "drawer_id": id}),
    "SDK": lambda at, agent, id: at.local(lambda memory: memory.forget([id], agent_id=agent)),
    "SDK of a server": lambda at, agent, id: at.remote(lambda memory: memory.forget([id], agent_id=agent)),
    "CLI": lambda at, agent, id: at.command("forget", id, "--agent", agent, "--yes"),
}


@pytest.mark.parametrize("way", FORGETS)
def test_what_a_rule_keeps_is_forgotten_only_when_approved_whichever_way(place: Place, way: str) -> None:
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    id = place.server.post("/v0/remember", said(agent, "it is a heron")).json["id"]
    answer = FORGETS[way](place, agent, id)
    assert "pending" in answer or '"removed":false' in answer, answer
    assert "heron" in everything(place, agent)
    (review,) = place.reviews(agent)
    assert (review["operation"], review["rule"]) == ("forget", "kept")
    assert place.server.post(f"/v0/reviews/{review['id']}", {"approved": True}).status == 200
    assert "heron" not in everything(place, agent)


#: By agent, the id of a memory, and a time before it became what the rule withholds.
UNREAD: dict[str, Callable[[Place, str, str, int], str]] = {
    "history": lambda at, a, id, then: at.server.get(f"/v0/memories/{id}/history?agent_id={a}").body.decode(),
    "JSON-RPC history": lambda at, a, id, then: at.rpc("history", {"agent_id": a, "id": id}),
    "CLI history": lambda at, a, id, then: at.command("history", id, "--agent", a),
    "SDK history": lambda at, a, id, then: at.local(lambda memory: memory.history(id, agent_id=a)),
    "SDK history of a server": lambda at, a, id, then: at.remote(lambda memory: memory.history(id, agent_id=a)),
    "get as of": lambda at, a, id, then: at.server.get(f"/v0/memories/{id}?agent_id={a}&as_of={then}").body.decode(),
    "list as of": lambda at, a, id, then: at.server.get(f"/v0/memories?agent_id={a}&as_of={then}").body.decode(),
    "recall as of": lambda at, a, id, then: at.post(
        "/v0/recall", {"agent_id": a, "query": "what does Alice earn", "min_score": 0, "as_of": then}
    ),
    "answer of an update": lambda at, a, id, then: at.server.call(
        "PATCH", f"/v0/memories/{id}", {"agent_id": a, "confidence": 0.5}
    ).body.decode(),
    "preview of a forget": lambda at, a, id, then: at.post("/v0/preview/forget", {"agent_id": a, "ids": [id]}),
    "preview of a graph erase": lambda at, a, id, then: at.post(
        "/v0/preview/kg/erase", {"agent_id": a, "subject": "Alice"}
    ),
    "JSON-RPC preview of a graph erase": lambda at, a, id, then: at.rpc(
        "preview_kg_erase", {"agent_id": a, "subject": "Alice"}
    ),
    "what a statement replaced": lambda at, a, id, then: at.post(
        "/v0/kg/assert", {"agent_id": a, "subject": "Alice", "predicate": "narwhal", "object": "x"}
    ),
    "MCP, what a statement replaced": lambda at, a, id, then: at.tool(
        "/mcp/full", "graph_assert", {"agent_id": a, "subject": "Alice", "predicate": "narwhal", "object": "x"}
    ),
    "answer of a retract": lambda at, a, id, then: at.post(
        "/v0/kg/retract", {"agent_id": a, "subject": "Alice", "predicate": "narwhal"}
    ),
    "CLI retract": lambda at, a, id, then: at.command("kg", "retract", "Alice", "narwhal", "--agent", a),
    "export": lambda at, a, id, then: at.server.get(f"/v0/export?agent_id={a}").body.decode(),
    "CLI export": lambda at, a, id, then: _export(at, a),
    "ledger": lambda at, a, id, then: at.server.get(f"/v0/audit?agent_id={a}").body.decode(),
    "the page's ledger": lambda at, a, id, then: at.server.get(f"/ui/audit?agent={a}").body.decode(),
}


@pytest.mark.parametrize("way", UNREAD)
def test_what_a_recall_rule_withholds_is_read_no_other_way(place: Place, way: str) -> None:
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    kept = place.server.post("/v0/remember", said(agent, "Alice earns 471100")).json
    place.server.call("PATCH", f"/v0/memories/{kept['id']}", {"agent_id": agent, "tags": ["narwhal"]})
    stated = {"agent_id": agent, "subject": "Alice", "predicate": "narwhal", "object": "471100"}
    assert place.server.post("/v0/kg/assert", stated).status == 200
    answer = UNREAD[way](place, agent, kept["id"], kept["stored_at"])
    assert answer
    assert "471100" not in answer
    assert "internal" not in answer


#: By agent: what tells of memories by their ids alone.
UNNAMED: dict[str, Callable[[Place, str], str]] = {
    "ledger": lambda at, a: at.server.get(f"/v0/audit?agent_id={a}").body.decode(),
    "the page's ledger": lambda at, a: at.server.get(f"/ui/audit?agent={a}").body.decode(),
    "JSON-RPC ledger": lambda at, a: at.rpc("audit", {"agent_id": a}),
    "CLI ledger": lambda at, a: at.command("audit", "list", "--agent", a),
    "SDK ledger": lambda at, a: at.local(lambda memory: memory.audit(agent_id=a)),
    "SDK ledger of a server": lambda at, a: at.remote(lambda memory: memory.audit(agent_id=a)),
}


@pytest.mark.parametrize("way", UNNAMED)
def test_what_a_recall_rule_withholds_is_named_no_other_way(place: Place, way: str) -> None:
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    shown, kept = (place.server.post("/v0/remember", said(agent, f"a {what}")).json for what in ("whale", "narwhal"))
    answer = UNNAMED[way](place, agent)
    assert shown["id"] in answer, answer
    assert kept["id"] not in answer


def _export(at: Place, agent: str) -> str:
    file = at.data / f"{agent}.jsonl"
    at.command("export", "--agent", agent, "-o", str(file))
    return file.read_text("utf-8")


#: By agent and id: every way to read a memory.
SHOWN: dict[str, Callable[[Place, str, str], str]] = {
    "recall, lists and search of every protocol": lambda at, a, id: everything(at, a, "what about a whale"),
    "get": lambda at, a, id: at.server.get(f"/v0/memories/{id}?agent_id={a}").body.decode(),
    "history": lambda at, a, id: at.server.get(f"/v0/memories/{id}/history?agent_id={a}").body.decode(),
    "JSON-RPC get": lambda at, a, id: at.rpc("get", {"agent_id": a, "id": id}),
    "JSON-RPC list": lambda at, a, id: at.rpc("list", {"agent_id": a}),
    "JSON-RPC history": lambda at, a, id: at.rpc("history", {"agent_id": a, "id": id}),
    "MCP get": lambda at, a, id: at.tool("/mcp/full", "get", {"agent_id": a, "id": id}),
    "MCP list": lambda at, a, id: at.tool("/mcp/full", "list", {"agent_id": a}),
    "MCP history": lambda at, a, id: at.tool("/mcp/full", "history", {"agent_id": a, "id": id}),
    "MCP, the small set": lambda at, a, id: at.tool("/mcp", "recall", {"agent_id": a, "query": "whale"}),
    "MCP on stdio": lambda at, a, id: at.stdio("get", {"agent_id": a, "id": id}),
    "AMP get": lambda at, a, id: at.server.get(f"/amp/records/{id}").body.decode(),
    "AMP tool": lambda at, a, id: at.tool("/mcp/amp", "amp_get", {"id": id}),
    "OpenWOP get": lambda at, a, id: at.server.get(f"/openwop/memory/{id}?memoryRef={a}").body.decode(),
    "SDK get": lambda at, a, id: at.local(lambda memory: memory.get(id, agent_id=a)),
    "SDK list": lambda at, a, id: at.local(lambda memory: memory.list(agent_id=a)),
    "SDK history of a server": lambda at, a, id: at.remote(lambda memory: memory.history(id, agent_id=a)),
    "CLI get": lambda at, a, id: at.command("get", id, "--agent", a),
    "CLI list": lambda at, a, id: at.command("list", "--agent", a),
    "CLI history": lambda at, a, id: at.command("history", id, "--agent", a),
    "CLI export": lambda at, a, id: _export(at, a),
    "export": lambda at, a, id: at.server.get(f"/v0/export?agent_id={a}").body.decode(),
    "the page of the memory": lambda at, a, id: at.server.get(f"/ui/memories/{id}").body.decode(),
    "the page's list": lambda at, a, id: at.server.get(f"/ui/memories?agent={a}").body.decode(),
    "preview of a forget": lambda at, a, id: at.post("/v0/preview/forget", {"agent_id": a, "ids": [id]}),
    "answer of an update": lambda at, a, id: at.server.call(
        "PATCH", f"/v0/memories/{id}", {"agent_id": a, "confidence": 0.5}
    ).body.decode(),
}


@pytest.mark.parametrize("way", SHOWN)
def test_a_memory_does_not_name_what_a_recall_rule_withholds_of_what_became_part_of_it(place: Place, way: str) -> None:
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    texts = ("a whale", "an orca", "a narwhal")
    shown, other, kept = (place.server.post("/v0/remember", said(agent, text)).json["id"] for text in texts)
    merged = place.post("/v0/merge", {"agent_id": agent, "canonical": shown, "duplicates": [other, kept]})
    assert '"merged_count":2' in merged, merged
    answer = SHOWN[way](place, agent, shown)
    assert "a whale" in answer, answer
    if way in ("get", "JSON-RPC get", "MCP get", "CLI get", "CLI export", "export", "the page of the memory"):
        assert other in answer, "what may be read is named"
    assert kept not in answer
    assert shorten_id(kept) not in answer


def test_a_rule_is_not_avoided_by_merging(place: Place) -> None:
    """Two halves that say it only together."""
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    one, two = (place.server.post("/v0/remember", said(agent, half)).json["id"] for half in ("night", "mare"))
    request = {"agent_id": agent, "canonical": one, "duplicates": [two], "strategy": "merge_content"}
    for refused in (
        place.post("/v0/merge", request),
        place.tool("/mcp", "merge", request),
        place.command("merge", one, two, "--strategy", "merge_content", "--agent", agent),
    ):
        assert "'joined' refuses this merge" in refused


def test_rules_are_read_and_replaced_over_http_and_survive_a_restart(tmp_path: Path) -> None:
    rule = {"name": "pay", "when": {"content": "salary"}, "action": "reject"}
    with run_server(tmp_path) as server:
        assert server.get("/v0/policies").json == {"rules": [], "configured": []}
        dry = server.post("/v0/policies/dry-run", {"rules": [rule], "days": 30})
        assert dry.json == {"looked_at": 0, "counts": {"pay": 0}, "caught": []}
        assert server.call("PUT", "/v0/policies", {"rules": [rule]}).json["rules"] == [rule]
        forbids = {"rules": [{"name": "x", "action": "forbid"}]}
        for wrong in (server.call("PUT", "/v0/policies", forbids), server.post("/v0/policies/dry-run", forbids)):
            assert (wrong.status, wrong.code) == (400, "validation_error")
            assert "rules[0].action must be one of" in wrong.json["error"]["message"]
            assert 'a rule looks like {"name": "salaries"' in wrong.json["error"]["message"]
        assert server.get("/v0/policies/learned").json == {"learned": []}
        assert server.call("DELETE", "/v0/policies/learned/nothing").status == 404
    with run_server(tmp_path) as server:
        refused = server.post("/v0/remember", said("a", "her salary"))
        assert (refused.status, refused.code) == (403, "forbidden")
