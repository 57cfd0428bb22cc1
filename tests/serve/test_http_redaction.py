"""Redaction over real HTTP: every protocol on the port, and what the log says."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from server_process import ServerProcess, run_server
from tampering import traces

HEX = "0123456789abcdef"


def made(seed: int) -> str:
    """A token that is put together here, so that none is in this file."""
    return "gh" + "p_" + "".join(Random(seed).choices(HEX, k=36))


def remember(server: ServerProcess, content: str, **more: Any) -> Any:
    return server.post("/v0/remember", {"agent_id": "ada", "type": "semantic", "content": content, **more})


def test_every_protocol_on_the_port_replaces_secrets(tmp_path: Path) -> None:
    secret, value = made(1), "words only the operator knows"
    with run_server(tmp_path, COMMONPLACE_REDACTION_SECRETS_ENV="BANK", BANK=value) as server:
        kept = remember(server, f"use {secret}, or {value}", metadata={"tags": [secret]})
        assert kept.status == 200
        assert kept.json["redacted"] == ["github_token", "BANK"]
        assert "redacted" not in remember(server, "nothing of the kind").json
        batch = {"items": [{"agent_id": "ada", "type": "semantic", "content": value}]}
        assert server.post("/v0/remember/batch", batch).json["results"][0]["redacted"] == ["BANK"]
        record = {"type": "lesson", "agent": "ada", "title": value, "content": secret, "id": "lesson-1"}
        assert server.post("/amp/store", {"record": record}).status == 200
        id = kept.json["id"]
        patched = server.call("PATCH", f"/v0/memories/{id}", {"agent_id": "ada", "content": f"now {value}"})
        assert patched.json["content"] == "now <REDACTED:BANK>"
        staged = remember(server, secret, approval_required=True, reasoning=value)
        assert staged.json["redacted"] == ["github_token"]
        triple = {"agent_id": "ada", "subject": "Bob", "predicate": "has", "object": secret}
        server.post("/v0/kg/assert", triple)
        read = [
            server.get(path).body.decode()
            for path in (
                "/v0/memories?agent_id=ada", "/v0/reviews", "/v0/audit", f"/v0/memories/{id}/history?agent_id=ada",
                "/amp/list?agent=ada", "/v0/kg?agent_id=ada&subject=Bob",
            )
        ]  # fmt: skip
        assert not any(hidden in page for page in read for hidden in (secret, value))
        server.stop()
        assert not any(hidden in "".join(server.out + server.err) for hidden in (secret, value))
    assert traces(tmp_path, "<REDACTED:BANK>")
    assert traces(tmp_path, secret, value) == []


def test_a_server_that_refuses_secrets_says_so_and_logs_none(tmp_path: Path) -> None:
    secret = made(2)
    with run_server(tmp_path, COMMONPLACE_REDACTION_MODE="reject") as server:
        refused = remember(server, f"use {secret}", metadata={"tags": [secret]})
        assert (refused.status, refused.code) == (422, "secret_leakage")
        assert refused.json["error"]["details"] == {
            "labels": ["github_token"],
            "fields": ["content", "tags", "metadata"],
        }
        amp = server.post("/amp/store", {"record": {"type": "lesson", "title": "t", "content": secret}})
        assert (amp.status, amp.json["error"]["code"]) == (422, "secret_leakage")
        # A request that is wrong in itself is answered with what is wrong; the log never hears of it.
        wrong = server.post("/v0/remember", {"agent_id": "ada", "type": secret, "content": "x", secret: 1})
        assert wrong.status == 400
        assert server.get("/v0/memories?agent_id=ada").json["memories"] == []
        server.stop()
        assert secret not in "".join(server.out + server.err)
        assert secret not in json.dumps(refused.json)
