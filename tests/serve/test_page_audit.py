"""Signed heads, proofs and exports on the page: what is taken away there exposes what is changed later."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import TokenServer
from page_browser import Visitor, text_of
from server_process import ServerProcess, cli, run_server
from tampering import raw_database

from commonplace.wire import keys

pytestmark = pytest.mark.process


def wrote(server: ServerProcess, count: int) -> None:
    for n in range(count):
        body = {"agent_id": "a", "type": "semantic", "content": f"fact {n}"}
        assert server.post("/v0/remember", body).status == 200


def verified(visitor: Visitor, evidence: str = "", key: str = "") -> str:
    """What the page says once it is done."""
    answer = visitor.post("/ui/audit/verify", {"evidence": evidence, "key": key})
    assert answer.status == 303, text_of(answer)
    while "Verifying" in (said := re.sub(r"\s+", " ", text_of(visitor.get("/ui/audit")))):
        pass
    return said


def folded(path: list[str], leaf: str, index: int, size: int) -> str:
    """The root that an inclusion path leads to, by RFC 9162 §2.1.3.2."""
    node, last = bytes.fromhex(leaf), size - 1
    for each in map(bytes.fromhex, path):
        if index & 1 or index == last:
            node = hashlib.sha256(b"\1" + each + node).digest()
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            node = hashlib.sha256(b"\1" + node + each).digest()
        index, last = index >> 1, last >> 1
    return node.hex()


def shown_json(answer: Any) -> Any:
    found = re.search(r"<pre>(.*?)</pre>", answer.body.decode(), re.S)
    assert found is not None, text_of(answer)
    return json.loads(found[1].replace("&#34;", '"'))


def test_a_head_is_signed_and_later_exposes_a_ledger_that_was_cut_off(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        wrote(server, 4)
        visitor = Visitor(server)
        answer = visitor.get("/ui/audit/head")
        assert answer.headers["content-disposition"] == 'attachment; filename="head-4.json"'
        head = answer.body.decode()
        assert json.loads(head)["root"] == server.get("/v0/audit/head").json["root"]
        assert "and this is the ledger that was told of by 1 line" in verified(visitor, head)
        assert "and this is the ledger" in verified(visitor, json.dumps(json.loads(head), indent=2))
        wrote(server, 1)
        assert "and this is the ledger" in verified(visitor, head), "it has grown, and is the same"
        forged = json.dumps({**json.loads(head), "root": "00" * 32})
        said = verified(visitor, forged)
        assert "What was pasted and the ledger do not agree" in said
        assert "its signature does not fit" in said
        exported = visitor.get("/ui/audit/ledger")
        assert exported.headers["content-disposition"] == 'attachment; filename="ledger.jsonl"'
    with raw_database(tmp_path / "commonplace.db") as db:
        db.drop_guards()
        db.change("DELETE FROM audit WHERE n > 2")
        db.change("DELETE FROM audit_parts WHERE n > 2")
        db.change("DELETE FROM memories WHERE seq > 2")
        second = "(SELECT hash FROM audit WHERE n = 2)"
        db.change(f"UPDATE tenants SET audit_n = 2, audit_hash = {second} WHERE name = 'local'")
    with run_server(tmp_path) as server:
        visitor = Visitor(server)
        assert "All 2 entries are as they were written" in verified(visitor), "by itself it is without a fault"
        for evidence in (head, exported.body.decode()):
            said = verified(visitor, evidence)
            assert "from entry 3 on" in said
            assert "the ledger was cut off" in said


def test_the_export_is_what_the_command_writes_and_takes(tmp_path: Path) -> None:
    with run_server(tmp_path / "data") as server:
        wrote(server, 3)
        lines = Visitor(server).get("/ui/audit/ledger").body
    documents = [json.loads(line) for line in lines.splitlines()]
    assert [each["n"] for each in documents[:-1]] == [1, 2, 3]
    assert documents[-1]["size"] == 3
    assert b"fact" not in lines, "nothing of any memory is in it"
    file = tmp_path / "ledger.jsonl"
    file.write_bytes(lines)
    assert cli(tmp_path / "data", "audit", "verify", "--head", str(file))["ok"] is True
    assert cli(tmp_path / "data", "audit", "export", str(file))["exported"] == 0, "it has all of it"


def test_proofs_lead_to_the_roots_that_heads_sign(open_server: ServerProcess) -> None:
    wrote(open_server, 3)
    visitor = Visitor(open_server)
    head = visitor.get("/ui/audit/head").json
    proof = shown_json(visitor.get(f"/ui/audit/proofs?entry=2&size={head['size']}"))
    assert folded(proof["path"], proof["leaf_hash"], 1, head["size"]) == proof["root"] == head["root"]
    consistency = shown_json(visitor.get(f"/ui/audit/proofs?from=2&to={head['size']}"))
    assert consistency["to_root"] == head["root"]
    assert consistency["from_root"] == shown_json(visitor.get("/ui/audit/proofs?entry=1&size=2"))["root"]
    key = open_server.get("/v0/audit/key").json
    page = text_of(visitor.get("/ui/audit/proofs"))
    assert key["key_id"] in page
    assert key["public_key"] in page
    row = visitor.get("/ui/audit").body.decode()
    assert re.search(r'href="/ui/audit/proofs\?entry=\d+#proof"', row)


def test_what_cannot_be_proved_or_compared_is_said(open_server: ServerProcess) -> None:
    wrote(open_server, 1)
    visitor = Visitor(open_server)
    for query, said in (
        ("entry=0", "entry must be at least 1"),
        ("entry=x", "entry must be a whole number"),
        ("entry=1&size=999999999", "the ledger has no more entries"),
        ("from=999999999", "to must be at least 999999999"),
    ):
        answer = visitor.get(f"/ui/audit/proofs?{query}")
        assert answer.status == 400, query
        assert said in text_of(answer).lower(), text_of(answer)
    for text, said in (("{", "line 1 is no json"), ("[]", "no head and no entry"), ('{"a": 1}', "neither a root")):
        answer = visitor.post("/ui/audit/verify", {"evidence": text})
        told = text_of(answer) if answer.status != 303 else verified(visitor, text)
        assert said in told.lower(), told
    head = visitor.get("/ui/audit/head").body.decode()
    other = keys.public_of(keys.new_private())
    assert "which is not known here" in verified(visitor, head, other)


def test_heads_are_for_reviewers_and_the_whole_ledger_for_those_who_may_use_every_agent(guarded: TokenServer) -> None:
    for name, head, whole in (("acme", 200, 200), ("acme/ada", 200, 403), ("acme/reader", 403, 403)):
        visitor = Visitor(guarded.server)
        visitor.log_in(guarded.tokens[name])
        assert visitor.get("/ui/audit/head").status == head, name
        assert visitor.get("/ui/audit/proofs?from=0").status == head, name
        assert visitor.get("/ui/audit/ledger").status == whole, name
        assert visitor.post("/ui/audit/verify", {}).status in ((303,) if whole == 200 else (403,)), name
