"""Every route of memorywire on a running server, each answer checked against its schema."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any
from urllib.parse import quote

import pytest
import rfc8785
from server_process import PROTOCOLS, STORE, Answer, ServerProcess

from commonplace.engine.ledger.merkle import is_consistent, leaf_hash, root_by_inclusion
from commonplace.wire import keys
from commonplace.wire.validate import check, schema, schema_names

OPERATIONS = "memorywire/operations/"


def ok(answer: Answer, name: str) -> Any:
    assert answer.status == 200, answer.body
    check(name, answer.json)
    return answer.json


def remember(server: ServerProcess, content: str, agent: str, **fields: Any) -> Any:
    body = {"agent_id": agent, "type": "semantic", "content": content, **fields}
    return ok(server.post("/v0/remember", body), OPERATIONS + "remember.response")


def test_a_memory_lives(open_server: ServerProcess) -> None:
    kept = remember(open_server, "Alice is allergic to peanuts", "life", metadata={"tags": ["food"]}, user_id="alice")
    found = ok(open_server.post("/v0/recall", {"agent_id": "life", "query": "peanuts"}), OPERATIONS + "recall.response")
    assert [hit["id"] for hit in found["results"]] == [kept["id"]]
    one = ok(open_server.get(f"/v0/memories/{kept['id']}?agent_id=life"), "memorywire/types/memory")
    assert (one["content"], one["metadata"]["tags"], one["version"]) == ("Alice is allergic to peanuts", ["food"], 1)
    change = {"agent_id": "life", "content": "Alice is allergic to nuts", "expected_version": 1}
    changed = ok(open_server.call("PATCH", f"/v0/memories/{kept['id']}", change), "memorywire/types/memory")
    assert changed["version"] == 2
    assert open_server.call("PATCH", f"/v0/memories/{kept['id']}", change).code == "conflict"
    versions = ok(open_server.get(f"/v0/memories/{kept['id']}/history?agent_id=life"), OPERATIONS + "history.response")[
        "versions"
    ]
    assert [v["content"] for v in versions] == ["Alice is allergic to peanuts", "Alice is allergic to nuts"]
    then = open_server.get(f"/v0/memories/{kept['id']}?agent_id=life&as_of={kept['stored_at']}").json
    assert then["content"] == "Alice is allergic to peanuts"
    gone = ok(open_server.post("/v0/forget", {"agent_id": "life", "ids": [kept["id"]]}), OPERATIONS + "forget.response")
    assert gone["forgotten_ids"] == [kept["id"]]
    assert open_server.get(f"/v0/memories/{kept['id']}?agent_id=life").status == 404


def test_merge_and_expire_do_over_http_what_they_say(open_server: ServerProcess) -> None:
    keep, lose = (remember(open_server, text, "five")["id"] for text in ("Bob likes tea", "Bob likes green tea"))
    faint = remember(open_server, "Bob may like coffee", "five", confidence=0.1)["id"]
    merge = {"agent_id": "five", "canonical": keep, "duplicates": [lose], "strategy": "merge_content"}
    merged = ok(open_server.post("/v0/merge", merge), OPERATIONS + "merge.response")
    assert (merged["canonical"], merged["merged_count"], merged["strategy_used"]) == (keep, 1, "merge_content")
    expire = {"agent_id": "five", "policy": {"confidence_below": 0.5}}
    expired = ok(open_server.post("/v0/expire", expire), OPERATIONS + "expire.response")
    assert (expired["matched_count"], expired["action_taken"]) == (1, "forget")
    left = open_server.get("/v0/memories?agent_id=five").json["memories"]
    assert [(m["id"], m["content"]) for m in left] == [(keep, "Bob likes tea\nBob likes green tea")]
    assert open_server.get(f"/v0/memories/{faint}?agent_id=five").status == 404


def test_pages_follow_each_other(open_server: ServerProcess) -> None:
    ids = [remember(open_server, f"page fact {i}", "pages", metadata={"tags": ["p"], "n": i})["id"] for i in range(5)]
    remember(open_server, "of another tag", "pages", metadata={"tags": ["q"]})
    remember(open_server, "of another type", "pages", type="episodic", metadata={"tags": ["p"]})
    seen, cursor = [], ""
    while True:
        path = f"/v0/memories?agent_id=pages&tag=p&type=semantic&limit=2{cursor}"
        page = ok(open_server.get(path), OPERATIONS + "list.response")
        seen += [m["id"] for m in page["memories"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={quote(page['next_cursor'])}"
    assert seen == ids[::-1]
    filtered = open_server.get("/v0/memories?agent_id=pages&filter=" + quote('{"n": {"$gte": 3}}')).json
    assert [m["id"] for m in filtered["memories"]] == [ids[4], ids[3]]


def test_previews_change_nothing(open_server: ServerProcess) -> None:
    one, two = (remember(open_server, text, "previews")["id"] for text in ("Bob likes tea", "Bob likes green tea"))
    would = ok(
        open_server.post("/v0/preview/forget", {"agent_id": "previews", "ids": [one]}), OPERATIONS + "preview.response"
    )
    assert [m["id"] for m in would["memories"]] == [one]
    merge = {"agent_id": "previews", "canonical": one, "duplicates": [two], "strategy": "merge_content"}
    made = ok(open_server.post("/v0/preview/merge", merge), OPERATIONS + "preview.merge.response")
    assert made["survivor"]["content"] == "Bob likes tea\nBob likes green tea"
    expire = {"agent_id": "previews", "policy": {"type": "semantic"}, "action": "archive"}
    assert len(ok(open_server.post("/v0/preview/expire", expire), OPERATIONS + "preview.response")["memories"]) == 2
    assert len(open_server.get("/v0/memories?agent_id=previews").json["memories"]) == 2
    merged = ok(open_server.post("/v0/merge", merge), OPERATIONS + "merge.response")
    assert merged["merged_count"] == 1
    assert ok(open_server.post("/v0/expire", expire), OPERATIONS + "expire.response")["matched_count"] == 1


def test_each_item_of_a_batch_has_its_own_outcome(open_server: ServerProcess) -> None:
    items = [
        {"agent_id": "batch", "type": "semantic", "content": "kept"},
        {"agent_id": "batch", "type": "fact", "content": "wrong type"},
        {"agent_id": "batch", "type": "semantic", "content": "waits", "approval_required": True},
    ]
    answer = ok(open_server.post("/v0/remember/batch", {"items": items}), OPERATIONS + "remember.batch.response")
    first, second, third = answer["results"]
    assert first["stores"] == [STORE]
    assert second["error"]["code"] == "validation_error"
    assert third["pending_approval"] is True
    refused = open_server.post("/v0/remember/batch", {"items": [items[0]] * 1001})
    assert (refused.status, refused.json["error"]["message"]) == (
        400,
        "items must be a list of 1 to 1,000, not of 1,001",
    )


def test_recall_streams_one_hit_a_line(open_server: ServerProcess) -> None:
    for i in range(150):
        remember(open_server, f"harbour log entry {i}", "stream")
    body = {"agent_id": "stream", "query": "harbour log", "k": 150, "min_score": 0}
    answer = open_server.post("/v0/recall", body, headers={"Accept": "application/x-ndjson"})
    assert answer.headers["content-type"] == "application/x-ndjson"
    *hits, rest = [json.loads(line) for line in answer.body.splitlines()]
    assert len(hits) == 150
    check(OPERATIONS + "recall.response", {**rest, "results": hits})


def test_reviews_are_decided_once(open_server: ServerProcess) -> None:
    pending = remember(open_server, "Carol moved to Lyon", "review", approval_required=True, reasoning="she said so")
    assert (pending["pending_approval"], pending["stores"]) == (True, [])
    found = ok(open_server.get("/v0/reviews?status=pending"), OPERATIONS + "reviews.response")["reviews"]
    (review,) = [r for r in found if r["agent_id"] == "review"]
    assert pending["approval_url"] == f"{open_server.url}/ui/inbox/{review['id']}"
    path = f"/v0/reviews/{review['id']}"
    assert ok(open_server.get(path), "memorywire/types/review")["reasoning"] == "she said so"
    decision = {"approved": True, "reviewer": "bob", "reason": "checked"}
    decided = ok(open_server.post(path, decision), OPERATIONS + "decide.response")
    assert (decided["approved"], decided["reviewer"], decided["reason"]) == (True, "bob", "checked")
    assert decided["outcome"]["id"] == pending["id"]
    assert open_server.post(path, decision).code == "conflict"
    assert open_server.get("/v0/reviews?status=approved").json["reviews"]


def test_an_approval_may_merge_or_supersede(open_server: ServerProcess) -> None:
    old = remember(open_server, "Dan lives in Porto", "apply")["id"]
    new = remember(open_server, "Dan moved to Faro", "apply", approval_required=True)
    (review,) = [r for r in open_server.get("/v0/reviews").json["reviews"] if r["agent_id"] == "apply"]
    path = f"/v0/reviews/{review['id']}"
    refused = open_server.post(path, {"approved": True, "apply": {"forget": [new["id"]]}})
    assert refused.status == 404
    decided = ok(open_server.post(path, {"approved": True, "apply": {"forget": [old]}}), OPERATIONS + "decide.response")
    assert decided["outcome"] == {"id": new["id"], "stores": [STORE], "forgotten_ids": [old]}
    left = open_server.get("/v0/memories?agent_id=apply").json["memories"]
    assert [m["content"] for m in left] == ["Dan moved to Faro"]

    more = remember(open_server, "Dan likes Faro", "apply", approval_required=True)
    (review,) = [r for r in open_server.get("/v0/reviews").json["reviews"] if r["agent_id"] == "apply"]
    decided = open_server.post(
        f"/v0/reviews/{review['id']}", {"approved": True, "apply": {"merge_into": new["id"]}}
    ).json
    assert (decided["outcome"]["canonical"], decided["outcome"]["id"]) == (new["id"], more["id"])
    (left,) = open_server.get("/v0/memories?agent_id=apply").json["memories"]
    assert (left["id"], left["content"]) == (new["id"], "Dan moved to Faro\nDan likes Faro")


def test_the_audit_trail_is_whole(open_server: ServerProcess) -> None:
    id = remember(open_server, "an audited fact", "audited")["id"]
    page = ok(open_server.get("/v0/audit?agent_id=audited&limit=10"), OPERATIONS + "audit.response")
    assert [(e["operation"], e["payload"][0]["memory_id"]) for e in page["entries"]] == [("remember", id)]
    assert ok(open_server.get("/v0/audit/verify"), OPERATIONS + "audit.verify.response")["ok"] is True
    head = ok(open_server.get("/v0/audit/head"), OPERATIONS + "audit.head.response")
    change = {"agent_id": "audited", "confidence": 0.5}
    assert open_server.call("PATCH", f"/v0/memories/{id}", change).status == 200
    open_server.post("/v0/forget", {"agent_id": "audited", "ids": [id]})
    seen, cursor = [], ""
    for _ in range(3):
        page = ok(open_server.get(f"/v0/audit?agent_id=audited&limit=1{cursor}"), OPERATIONS + "audit.response")
        seen += [e["operation"] for e in page["entries"]]
        cursor = f"&cursor={page['next_cursor']}"
    assert page["next_cursor"] is None
    assert seen == ["remember", "update", "forget"]
    later = ok(open_server.get("/v0/audit/head"), OPERATIONS + "audit.head.response")
    asked = f"/v0/audit/consistency?from={head['size']}&to={later['size']}"
    since = ok(open_server.get(asked), OPERATIONS + "audit.consistency.response")
    assert since["from_root"] == head["root"]
    path = [bytes.fromhex(node) for node in since["path"]]
    roots = [bytes.fromhex(each["root"]) for each in (head, later)]
    assert since["to"] == later["size"] > head["size"]
    assert is_consistent(head["size"], later["size"], *roots, path)
    proof = ok(
        open_server.get(f"/v0/audit/proof?entry={page['entries'][0]['n']}&size={later['size']}"),
        OPERATIONS + "audit.proof.response",
    )
    leaf = leaf_hash(bytes.fromhex(page["entries"][0]["hash"]))
    path = [bytes.fromhex(node) for node in proof["path"]]
    assert (leaf.hex(), proof["root"]) == (proof["leaf_hash"], later["root"])
    assert root_by_inclusion(leaf, proof["entry"] - 1, proof["size"], path) == roots[1]
    key = ok(open_server.get("/v0/audit/key"), OPERATIONS + "audit.key.response")
    unsigned = {name: value for name, value in later.items() if name != "signature"}
    assert later["key_id"] == key["key_id"]
    assert keys.verify(key["public_key"], rfc8785.dumps(unsigned), later["signature"])
    (only,) = open_server.get("/v0/audit?agent_id=audited&operation=update").json["entries"]
    assert only["payload"][0]["memory_id"] == id


def test_what_is_no_entry_has_no_proof(open_server: ServerProcess) -> None:
    remember(open_server, "an audited fact", "proofs")
    for asked, sentence in (
        ("proof", "entry is required"),
        ("proof?entry=0", "entry must be a whole number of at least 1, not 0"),
        ("proof?entry=999999", "size must be at least 999999"),
        ("proof?entry=1&size=999999", "the ledger has no more entries"),
        ("consistency", "from is required"),
        ("consistency?from=x", "from must be a whole number"),
        ("consistency?from=2&to=1", "to must be at least 2, not 1"),
    ):
        answer = open_server.get(f"/v0/audit/{asked}")
        assert answer.status == 400
        assert sentence in answer.json["error"]["message"], answer.json


def test_idempotency_keys_give_the_first_answer_again(open_server: ServerProcess) -> None:
    one, two = (remember(open_server, "once", "keys", idempotency_key="k1") for _ in range(2))
    assert one == two
    body = {"agent_id": "keys", "type": "semantic", "content": "other", "idempotency_key": "k1"}
    assert open_server.post("/v0/remember", body).status == 409


# JSON-RPC


def rpc(server: ServerProcess, body: Any) -> Answer:
    return server.post("/v0/rpc", body)


def call(method: str, number: Any = 1, /, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": f"memory.{method}", "params": params}


def test_json_rpc_has_the_same_operations(open_server: ServerProcess) -> None:
    answer = rpc(open_server, call("remember", "a", agent_id="rpc", type="semantic", content="Eve plays chess"))
    kept = ok(answer, "memorywire/rpc.response")
    check(OPERATIONS + "remember.response", kept["result"])
    assert kept["id"] == "a"
    id = kept["result"]["id"]
    assert rpc(open_server, call("get", id=id, agent_id="rpc")).json["result"]["content"] == "Eve plays chess"
    assert rpc(open_server, call("list", agent_id="rpc", limit=1)).json["result"]["memories"][0]["id"] == id
    assert rpc(open_server, call("update", id=id, agent_id="rpc", confidence=0.5)).json["result"]["version"] == 2
    assert len(rpc(open_server, call("history", id=id, agent_id="rpc")).json["result"]["versions"]) == 2
    assert rpc(open_server, call("recall", agent_id="rpc", query="chess")).json["result"]["results"]
    assert rpc(open_server, call("health")).json["result"]["status"] == "ok"


def test_json_rpc_batches_and_notifications(open_server: ServerProcess) -> None:
    silent = {
        k: v for k, v in call("remember", agent_id="quiet", type="semantic", content="noted").items() if k != "id"
    }
    answer = rpc(open_server, silent)
    assert (answer.status, answer.body) == (204, b"")
    assert len(open_server.get("/v0/memories?agent_id=quiet").json["memories"]) == 1
    both = rpc(open_server, [silent, call("list", 7, agent_id="quiet"), 5, call("nothing", 8)]).json
    assert [a["id"] for a in both] == [7, None, 8]
    assert [a.get("error", {}).get("code") for a in both] == [None, -32600, -32601]
    assert rpc(open_server, [silent]).status == 204
    assert rpc(open_server, []).json["error"]["code"] == -32600


@pytest.mark.parametrize(
    ("body", "number", "code"),
    [
        ({"jsonrpc": "1.0", "method": "memory.recall"}, -32600, "validation_error"),
        ({**call("recall"), "params": [1]}, -32600, "validation_error"),
        ({**call("recall"), "id": True}, -32600, "validation_error"),
        ({**call("recall"), "extra": 1}, -32600, "validation_error"),
        (call("recall", agent_id="x"), -32602, "validation_error"),
        (call("get", agent_id="x"), -32602, "validation_error"),
        (call("get", id="none", agent_id="x"), -32004, "not_found"),
        (call("list", agent_id="x", limit="many"), -32602, "validation_error"),
    ],
)
def test_json_rpc_faults_carry_our_code(open_server: ServerProcess, body: Any, number: int, code: str) -> None:
    answer = rpc(open_server, body)
    assert answer.status == 200
    check("memorywire/rpc.response", answer.json)
    assert (answer.json["error"]["code"], answer.json["error"]["data"]["code"]) == (number, code)


def test_json_rpc_that_is_not_json_is_a_parse_error(open_server: ServerProcess) -> None:
    answer = open_server.post("/v0/rpc", b'{"jsonrpc"')
    assert (answer.status, answer.json["id"], answer.json["error"]["code"]) == (400, None, -32700)


# around the protocols


def test_embeddings_speak_openai(open_server: ServerProcess) -> None:
    one = ok(open_server.post("/v1/embeddings", {"input": "tea", "model": "any"}), "openai/embeddings.response")
    assert (one["model"], len(one["data"][0]["embedding"])) == ("hashing-256", 256)
    body = {"input": ["tea", "coffee"], "encoding_format": "base64", "dimensions": 256}
    two = ok(open_server.post("/v1/embeddings", body), "openai/embeddings.response")
    unpacked = struct.unpack("<256f", base64.b64decode(two["data"][0]["embedding"]))
    assert list(unpacked) == one["data"][0]["embedding"]
    assert open_server.post("/v1/embeddings", {"input": [1, 2]}).status == 400
    assert open_server.post("/v1/embeddings", {"input": "x", "dimensions": 3}).status == 400


def test_the_server_tells_how_it_is(open_server: ServerProcess) -> None:
    assert open_server.get("/healthz").json == {"status": "ok"}
    assert open_server.get("/readyz").json["checks"] == {"store": "ok", "indexes": "ok", "embedder": "ok"}
    ok(open_server.get("/v0/health"), OPERATIONS + "health.response")
    ok(open_server.get("/v0/status"), OPERATIONS + "status.response")
    remember(open_server, "counted", "metrics")
    ok(open_server.post("/v0/recall", {"agent_id": "metrics", "query": "counted"}), OPERATIONS + "recall.response")
    page = open_server.get("/metrics").body.decode()
    assert f'commonplace_requests_total{{operation="remember",status="200",store="{STORE}"}}' in page
    assert f'commonplace_request_seconds_bucket{{le="0.001",operation="recall",store="{STORE}"}}' in page
    for name in ('commonplace_queue_depth{queue="writes"}', f'commonplace_index_bytes{{store="{STORE}"}}'):
        assert name in page


def test_the_api_describes_itself_offline(open_server: ServerProcess) -> None:
    described = open_server.get("/openapi.json").json
    assert described["openapi"] == "3.1.0"
    listed = {op["operationId"] for methods in described["paths"].values() for op in methods.values()}
    assert listed == {route.operation for protocol in PROTOCOLS for route in protocol.routes}
    page = open_server.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    parts = [open_server.get(f"/docs/{name}") for name in ("api.js", "style.css")]
    assert [part.headers["content-type"].split(";")[0] for part in parts] == ["text/javascript", "text/css"]
    for part in (page, *parts):
        assert part.status == 200
        assert part.headers["x-content-type-options"] == "nosniff"
        assert b"http://" not in part.body
        assert b"https://" not in part.body
    for path in ("/docs/index.html", "/docs/..%2fopenapi.py", "/docs/nothing"):
        assert open_server.get(path).status == 404
    assert open_server.get("/").headers["location"] == "/docs"


def test_every_schema_is_served(open_server: ServerProcess) -> None:
    listed = open_server.get("/schemas").json["schemas"]
    assert listed == [f"/schemas/{name}.json" for name in schema_names()]
    for path in listed:
        assert open_server.get(path).json == schema(path.removeprefix("/schemas/").removesuffix(".json"))
    assert open_server.get("/schemas/../models.json").status == 404


def test_requests_have_ids(open_server: ServerProcess) -> None:
    assert open_server.get("/healthz", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    minted = open_server.get("/healthz", headers={"X-Request-Id": "not ok!"}).headers["x-request-id"]
    assert minted != open_server.get("/healthz").headers["x-request-id"]


def test_head_is_get_without_the_body(open_server: ServerProcess) -> None:
    get, head = open_server.get("/v0/health"), open_server.call("HEAD", "/v0/health")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


def test_a_review_of_what_has_moved_on_is_a_conflict_and_shows_it_afresh(open_server: ServerProcess) -> None:
    kept = open_server.post("/v0/remember", {"agent_id": "moved-on", "type": "semantic", "content": "old words"}).json
    staged = open_server.post("/v0/forget", {"agent_id": "moved-on", "ids": [kept["id"]], "approval_required": True})
    assert staged.json["pending_approval"] is True
    (review,) = [r for r in open_server.get("/v0/reviews").json["reviews"] if r["agent_id"] == "moved-on"]
    open_server.call("PATCH", f"/v0/memories/{kept['id']}", {"agent_id": "moved-on", "content": "new words"})
    refused = open_server.post(f"/v0/reviews/{review['id']}", {"approved": True})
    assert (refused.status, refused.code) == (409, "conflict")
    fresh = open_server.get(f"/v0/reviews/{review['id']}").json
    assert (fresh["status"], fresh["diff"]["removed"][0]["content"]) == ("pending", "new words")
    assert open_server.post(f"/v0/reviews/{review['id']}", {"approved": True}).status == 200


def test_what_came_from_a_bad_source_is_put_back_and_taken_back(open_server: ServerProcess) -> None:
    good = remember(open_server, "Alice plays the violin", "poisoned")["id"]
    bad = remember(open_server, "Bob is the admin", "poisoned", source="https://evil.example")["id"]
    request = {"source": "https://evil.example", "agent_id": "poisoned"}
    looked = ok(open_server.post("/v0/recover", {**request, "dry_run": True}), OPERATIONS + "recover.response")
    assert ([each["id"] for each in looked["affected"]], "recovery_id" in looked) == ([bad], False)
    done = ok(open_server.post("/v0/recover", request), OPERATIONS + "recover.response")
    listed = open_server.get("/v0/memories?agent_id=poisoned").json["memories"]
    assert [memory["id"] for memory in listed] == [good]
    undo = {"recovery_id": done["recovery_id"]}
    back = ok(open_server.post("/v0/undo", undo), OPERATIONS + "undo.response")
    assert back["restored_ids"] == [bad]
    assert len(open_server.get("/v0/memories?agent_id=poisoned").json["memories"]) == 2
    for wrong, status in ((undo, 409), ({"recovery_id": "nothing"}, 404), ({**undo, "ids": [bad]}, 400)):
        assert open_server.post("/v0/undo", wrong).status == status
    assert open_server.post("/v0/recover", {"agent_id": "poisoned"}).status == 400
