"""MRP over HTTP: a real process, its answers and refusals, strangers and tokens."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from server_process import Answer, ServerProcess, cli, command, environment, run_server, token

from commonplace.dialects.mrp import signatures
from commonplace.serve.protocols.mrp import ROUTES
from commonplace.wire import keys
from commonplace.wire.validate import check

PRUNING = "Pruning as identity: what you forget defines you"
PRIVATE = keys.new_private()
PUBLIC = keys.public_of(PRIVATE)


def now(**shift: float) -> str:
    return (datetime.now(UTC) + timedelta(**shift)).isoformat()


def request(natural: str = "what about pruning?", requester: str = "bob", **more: Any) -> dict[str, Any]:
    made = {
        "type": "memory_request", "version": "0.1",
        "header": {"request_id": str(uuid.uuid4()), "timestamp": now()},
        "requester": {"agent_id": requester}, "query": {"natural": natural},
    }  # fmt: skip
    return {**made, **more}


def vouch(voucher: str, subject: str) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()), "created_at": now(), "voucher": {"agent_id": voucher},
        "subject": {"agent_id": subject}, "claim": {"domain": "memory", "statement": "good at it", "level": "expert"},
    }  # fmt: skip


def answered(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    document: dict[str, Any] = answer.json
    check({"memory_response": "mrp/response", "verify_result": "mrp/verify-result"}[document["type"]], document)
    return document


def refused(answer: Answer, status: int, code: str) -> dict[str, Any]:
    assert (answer.status, answer.code) == (status, code), answer.body
    check("memorywire/error", answer.json)
    error: dict[str, Any] = answer.json["error"]
    return error


def remember(server: ServerProcess, content: str, agent: str = "alice", **more: Any) -> str:
    body = {"agent_id": agent, "type": "semantic", "content": content}
    bearer = more.pop("token", None)
    id: str = server.post("/v0/remember", {**body, **more}, token=bearer).json["id"]
    return id


def test_every_route_is_in_the_table() -> None:
    assert {(b.method, b.path) for b in ROUTES} == {
        ("POST", "/mrp/request"), ("POST", "/mrp/verify"), ("POST", "/mrp/vouches"), ("GET", "/mrp/vouches"),
    }  # fmt: skip


# open local mode


def test_a_request_and_its_verification(open_server: ServerProcess) -> None:
    agent = f"alice-{uuid.uuid4().hex[:8]}"
    id = remember(open_server, PRUNING, agent)
    asked = request(response_preferences={"sign_response": True, "max_results": 1})
    response = answered(open_server.post(f"/mrp/request?agent={agent}", asked))
    assert response["status"]["code"] == "success"
    assert response["responder"]["agent_id"] == agent
    assert response["results"][0]["memory_id"] == id
    assert response["meta"]["trust_level_used"] == 3
    public = cli(open_server.data, "identity")["public_key"]
    assert signatures.verify_response(response, public)
    attestation = response["results"][0]["attestation"]
    assert signatures.verify_attestation(attestation, public)
    verification = {
        "type": "memory_verify", "version": "0.1", "header": {"verify_id": str(uuid.uuid4()), "timestamp": now()},
        "target": {"memory_id": id, "attestation_hash": attestation["signatures"]["hash"]}, "checks": ["signature"],
    }  # fmt: skip
    for path in ("/mrp/verify", "/mrp/request"):  # both take both
        result = answered(open_server.post(path, verification))
        assert result["aggregate"] == {"trust_score": 1.0, "recommendation": "accept"}
    again = answered(open_server.post("/mrp/verify?agent=nobody", request()))
    assert (again["type"], again["status"]["code"]) == ("memory_response", "no_match")


def test_statuses_are_answers_and_not_errors(open_server: ServerProcess) -> None:
    agent = f"alice-{uuid.uuid4().hex[:8]}"
    remember(open_server, "cutting without evidence", agent)
    remember(open_server, "cutting with evidence", agent, metadata={"references": ["a.md"]})
    path = f"/mrp/request?agent={agent}"
    query = {"natural": "cutting", "structured": {"filters": {"require_evidence": True}}}
    partial = answered(open_server.post(path, request(query=query)))
    assert partial["status"] == {"code": "partial", "message": "found 1 memory, but 1 more did not pass the filters"}
    once = request("cutting")
    first = answered(open_server.post(path, once))
    assert first["status"]["code"] == "success"
    assert answered(open_server.post(path, once)) == first
    declined = answered(open_server.post(path, {**once, "query": {"natural": "else"}}))
    assert (declined["status"]["code"], declined["results"]) == ("declined", [])
    assert answered(open_server.post("/mrp/request?agent=nobody", request()))["status"]["code"] == "no_match"


def _header(timestamp: str, **more: Any) -> dict[str, Any]:
    return {"request_id": str(uuid.uuid4()), "timestamp": timestamp, **more}


# Made when the test runs: a message is good for five minutes, and a suite may take longer.
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no question": (lambda: request(query={}), "query.natural"),
    "an id that is none": (lambda: request(header={"request_id": "x", "timestamp": now()}), "header.request_id"),
    "an old one": (lambda: request(header=_header(now(minutes=-20))), "header.ttl_seconds"),
    "a short life": (lambda: request(header=_header(now(seconds=-20), ttl_seconds=5)), "header.ttl_seconds"),
    "from the future": (lambda: request(header=_header(now(minutes=10))), "header.timestamp"),
    "nobody asks": (lambda: request(requester={}), "requester.agent_id"),
    "nothing": (dict, "type"),
    "a list": (lambda: ["memory_request"], "type"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_400_with_details(open_server: ServerProcess, wrong: str) -> None:
    body, field = WRONG[wrong]
    error = refused(open_server.post("/mrp/request", body()), 400, "validation_error")
    assert error["details"]["field"] == field


def test_other_refusals(open_server: ServerProcess) -> None:
    refused(open_server.post("/mrp/request", b"{"), 400, "validation_error")
    refused(open_server.post("/mrp/request", b""), 400, "validation_error")
    for wrong in ("limit=0", "limit=1001", "limit=x", "cursor=x", "subject="):
        refused(open_server.get(f"/mrp/vouches?{wrong}"), 400, "validation_error")
    refused(open_server.post("/mrp/request?agents=x", request()), 400, "validation_error")
    refused(open_server.get("/mrp/nothing"), 404, "not_found")
    forged = {**signatures.sign_request(request(), PRIVATE), "query": {"natural": "else"}}
    refused(open_server.post("/mrp/request", forged), 401, "unauthenticated")
    assert open_server.get("/mrp/request").status == 405


def test_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    with run_server(tmp_path, COMMONPLACE_MRP_REQUESTS_PER_MINUTE="3") as server:
        for _ in range(3):
            answered(server.post("/mrp/request", request()))
        answer = server.post("/mrp/request", request())
        refused(answer, 429, "rate_limited")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        answered(server.post("/mrp/request", request(requester="carol")))


def test_vouches_are_given_and_shown(open_server: ServerProcess) -> None:
    name = f"djclawd-{uuid.uuid4().hex[:8]}"
    cli(open_server.data, "trust", "add", name, "--level", "2", "--key", PUBLIC, "--voucher")
    subject = f"Babel-{uuid.uuid4().hex[:8]}"
    made = vouch(name, subject)
    made["subject"]["public_key"] = keys.public_of(keys.new_private())
    given = signatures.sign_vouch(made, PRIVATE)
    answer = open_server.post("/mrp/vouches", {"vouch": given})
    assert (answer.status, answer.json) == (201, {"vouch_id": given["id"], "counted": True})
    assert open_server.get(f"/mrp/vouches?subject={subject}").json == {"vouches": [given]}
    listed, cursor = [], ""
    while True:
        page = open_server.get(f"/mrp/vouches?limit=1{cursor}").json
        check("mrp/vouches.response", page)
        listed += page["vouches"]
        if "next_cursor" not in page:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert given in listed
    assert listed == open_server.get("/mrp/vouches").json["vouches"]
    stranger = vouch("stranger", subject)
    assert open_server.post("/mrp/vouches", {"vouch": stranger}).json["counted"] is False
    forged = {**given, "id": "other", "claim": {**given["claim"], "level": "authority"}}
    refused(open_server.post("/mrp/vouches", {"vouch": forged}), 400, "validation_error")
    refused(open_server.post("/mrp/vouches", {"vouch": {}}), 400, "validation_error")
    assert len(open_server.get(f"/mrp/vouches?subject={subject}").json["vouches"]) == 2


# where tokens are required


def test_a_requester_without_a_token_is_turned_away(tmp_path: Path) -> None:
    admin = token(tmp_path, "--role", "admin")
    reader = token(tmp_path, "--role", "reader", "--agents", "alice")
    with run_server(tmp_path) as server:
        answer = server.post("/mrp/request", request())
        refused(answer, 401, "unauthenticated")
        assert "bearer" in answer.headers["www-authenticate"].lower()
        refused(server.get("/mrp/vouches?subject=x"), 401, "unauthenticated")
        remember(server, PRUNING, token=admin)
        remember(server, PRUNING, "bea", token=admin)
        assert len(answered(server.post("/mrp/request", request(), token=admin))["results"]) == 2
        own = answered(server.post("/mrp/request", request(), token=reader))
        assert [r["attestation"]["agent"] for r in own["results"]] == ["alice"]
        other = answered(server.post("/mrp/request?agent=bea", request(), token=reader))
        assert (other["status"]["code"], other["meta"]["trust_level_used"]) == ("no_match", 0)
        refused(server.post("/mrp/vouches", {"vouch": vouch("alice", "bob")}, token=reader), 403, "forbidden")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, str]]:
    """A server that asks for tokens and lets peers in on the tenant acme."""
    data = tmp_path_factory.mktemp("public")
    (data / "commonplace.toml").write_text('[mrp]\npublic = true\ntenant = "acme"\nname = "library"\n')
    acme = token(data, "--role", "admin", "--tenant", "acme")
    globex = token(data, "--role", "admin", "--tenant", "globex")
    with run_server(data) as server:
        for content, shared in (("pruning in private", None), ("pruning for bob", ["bob"]), ("pruning for all", ["*"])):
            intent = {} if shared is None else {"privacy_intent": {"share_with": shared}}
            remember(server, content, token=acme, **intent)
        remember(server, "pruning elsewhere", token=globex, privacy_intent={"share_with": ["*"]})
        yield server, acme


def signed_by(server: ServerProcess, requester: str, **more: Any) -> dict[str, Any]:
    """What somebody is told who signs for this server."""
    made = request("what about pruning?", requester, audience=server.url, **more)
    return answered(server.post("/mrp/request", signatures.sign_request(made, PRIVATE)))


def contents(response: dict[str, Any]) -> set[str]:
    return {result["attestation"]["claim"]["content"] for result in response["results"]}


def test_peers_are_let_in_at_level_0_and_see_what_is_shared(public: tuple[ServerProcess, str]) -> None:
    server, acme = public
    bob = answered(server.post("/mrp/request", request("pruning")))
    assert contents(bob) == {"pruning for all"}, "a name alone proves nothing"
    assert bob["meta"] | {"processing_time_ms": 0} == {
        "total_matches": 1, "returned": 1, "processing_time_ms": 0, "trust_level_used": 0,
    }  # fmt: skip
    assert contents(signed_by(server, "bob")) == {"pruning for bob", "pruning for all"}
    assert contents(signed_by(server, "carol")) == {"pruning for all"}
    assert bob["responder"]["agent_id"] == "library"
    assert contents(answered(server.post("/mrp/request", request("pruning", "carol")))) == {"pruning for all"}
    assert len(contents(answered(server.post("/mrp/request", request("pruning"), token=acme)))) == 3
    refused(server.post("/mrp/request", request(), token="cp_wrong_token"), 401, "unauthenticated")
    assert server.post("/v0/recall", {"agent_id": "alice", "query": "pruning"}).status == 401, "only MRP is public"
    assert server.get("/mrp/vouches?subject=x").json == {"vouches": []}
    refused(server.post("/mrp/vouches", {"vouch": vouch("x", "y")}), 403, "forbidden")


def test_a_bound_key_raises_the_level_and_keeps_others_from_using_the_name(public: tuple[ServerProcess, str]) -> None:
    server, _ = public
    cli(server.data, "trust", "add", "bob", "--level", "2", "--key", PUBLIC, "--tenant", "acme")
    try:
        signed = answered(
            server.post("/mrp/request", signatures.sign_request(request("pruning", audience=server.url), PRIVATE))
        )
        assert signed["meta"]["trust_level_used"] == 2
        assert contents(signed) == {"pruning for bob", "pruning for all"}
        unsigned = answered(server.post("/mrp/request", request("pruning")))
        assert (unsigned["meta"]["trust_level_used"], contents(unsigned)) == (0, {"pruning for all"})
    finally:
        cli(server.data, "trust", "remove", "bob", "--tenant", "acme")


def test_where_identity_is_required_it_must_be_proved(tmp_path: Path) -> None:
    (tmp_path / "commonplace.toml").write_text("[mrp]\npublic = true\nrequire_identity = true\n")
    token(tmp_path)
    with run_server(tmp_path) as server:
        refused(server.post("/mrp/request", request()), 401, "unauthenticated")
        signed = answered(server.post("/mrp/request", signatures.sign_request(request(), PRIVATE)))
        assert signed["status"]["code"] == "no_match"


def test_a_key_that_cannot_be_used_is_a_status(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        (tmp_path / "identity.key").write_text("nonsense")
        (tmp_path / "identity.key").chmod(0o600)
        remember(server, PRUNING)
        response = answered(server.post("/mrp/request", request()))
        assert response["status"]["code"] == "error"
        assert "holds no key" in response["status"]["message"]


# the commands


def run(data: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*args), env=environment(data), capture_output=True, text=True, check=False)


def test_trust_and_identity_from_the_shell(tmp_path: Path) -> None:
    shown = cli(tmp_path, "identity")
    assert run(tmp_path, "identity").stdout.strip() == shown["public_key"]
    rotated = cli(tmp_path, "identity", "rotate", "--yes")
    assert rotated["retired"] == [{"public_key": shown["public_key"], "fingerprint": shown["fingerprint"]}]
    cli(tmp_path, "trust", "add", "Babel", "--level", "2", "--key", PUBLIC)
    listed = cli(tmp_path, "trust", "list")["peers"]
    assert [(p["agent_id"], p["level"], p["public_key"]) for p in listed] == [("Babel", 2, PUBLIC)]
    assert "Babel" in run(tmp_path, "trust", "list").stdout
    for wrong in (
        ("trust", "add", "Babel", "--level", "7"),
        ("trust", "add", "Babel", "--level", "2", "--key", "short"),
        ("trust", "add", "Babel"),
        ("trust", "remove", "nobody"),
    ):
        done = run(tmp_path, *wrong)
        assert done.returncode in (1, 2), wrong
        assert "Traceback" not in done.stderr
    cli(tmp_path, "trust", "remove", "Babel")
    assert cli(tmp_path, "trust", "list") == {"peers": []}


def test_a_memory_is_shared_from_the_shell(tmp_path: Path) -> None:
    assert cli(tmp_path, "remember", PRUNING, "--share-with", "bob", "--share-with", "carol")["id"]
    (tmp_path / "commonplace.toml").write_text("[mrp]\npublic = true\n")
    token(tmp_path)
    with run_server(tmp_path) as server:
        assert contents(signed_by(server, "carol")) == {PRUNING}
        assert contents(signed_by(server, "dave")) == set()


def test_whom_a_memory_is_shared_with_changes_from_the_shell(tmp_path: Path) -> None:
    id = cli(tmp_path, "remember", PRUNING)["id"]
    (tmp_path / "commonplace.toml").write_text("[mrp]\npublic = true\n")
    token(tmp_path)
    with run_server(tmp_path) as server:
        assert contents(signed_by(server, "dave")) == set()
        shared = cli(tmp_path, "update", id, "--share-with", "dave")
        assert shared["privacy_intent"] == cli(tmp_path, "get", id)["privacy_intent"] == {"share_with": ["dave"]}
        asked = signatures.sign_request(request(requester="dave", audience=server.url), PRIVATE)
        assert contents(answered(server.post("/mrp/request", asked))) == {PRUNING}
        cli(tmp_path, "update", id, "--no-share")
        assert contents(answered(server.post("/mrp/request", asked))) == set(), "not even again"
        assert "privacy_intent" not in cli(tmp_path, "get", id)
    assert run(tmp_path, "update", id, "--no-share", "--share-with", "bob").returncode == 1


def test_nothing_of_a_question_is_logged(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        answered(server.post("/mrp/request", request("what of quartzword?", "quartzname")))
        server.stop()
        said = "".join(server.out + server.err)
        assert "quartz" not in said
        assert json.dumps("mrp_request") in said or "mrp_request" in said
