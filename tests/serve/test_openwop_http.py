"""OpenWOP over HTTP: the four scenarios of the document as black boxes, and everything around them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from server_process import PROTOCOLS, Answer, ServerProcess, cli, run_server, token
from tampering import traces

from commonplace.config import load
from commonplace.serve.protocols import http_protocols, openwop
from commonplace.serve.routes import Route
from commonplace.wire.record import system_clock
from commonplace.wire.times import iso
from commonplace.wire.validate import check, schema_names

PROTOCOL, WELL_KNOWN, _, HOST = openwop.PROTOCOLS
ROUTES = {
    ("POST", "/openwop/refs"), ("POST", "/openwop/runs"), ("DELETE", "/openwop/runs/{runId}"),
    ("GET", "/openwop/memory"), ("POST", "/openwop/memory"), ("GET", "/openwop/memory/{id}"),
    ("DELETE", "/openwop/memory/{id}"),
}  # fmt: skip
WORKFLOWS = {f"conformance-agent-memory-{name}" for name in ("roundtrip", "redaction", "ttl", "cross-tenant")}
HOUR_MS = 3_600_000
SECRET = "-".join(["hunter", "two", "hunter", "four"])  # in pieces, so that no scanner takes it for a real one


@dataclass
class Client:
    """One token's way to the memory, every answer checked against its schema."""

    server: ServerProcess
    token: str | None = None

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        answer = self.server.call(method, path, body, token=self.token)
        if answer.status >= 400:
            check("openwop/error", answer.json)
            assert "Traceback" not in answer.body.decode()
        return answer

    def ref(self, agent: str, **more: Any) -> str:
        answer = self.call("POST", "/openwop/refs", {"agent": agent, **more})
        check("openwop/operations/ref.response", answer.json)
        return str(answer.json["memoryRef"])

    def start(self, **body: Any) -> str:
        answer = self.call("POST", "/openwop/runs", body)
        assert answer.status == 201, answer.body
        check("openwop/operations/run.response", answer.json)
        return str(answer.json["runId"])

    def put(
        self, ref: str, content: str, *, run: str | None = None, backend: str | None = None, **entry: Any
    ) -> Answer:
        body = {"memoryRef": ref, "entry": {"content": content, **entry}}
        body |= {name: value for name, value in (("runId", run), ("backend", backend)) if value}
        answer = self.call("POST", "/openwop/memory", body)
        if answer.status < 400:
            assert answer.status == 201
            check("openwop/operations/put.response", answer.json)
        return answer

    def list(self, ref: str, **query: Any) -> Answer:
        answer = self.call("GET", f"/openwop/memory?{urlencode({'memoryRef': ref, **query})}")
        if answer.status == 200:
            check("openwop/operations/list.response", answer.json)
        return answer

    def contents(self, ref: str, **query: Any) -> Any:
        return [entry["content"] for entry in self.list(ref, **query).json["entries"]]

    def get(self, ref: str, id: str, **query: Any) -> Answer:
        return self.call("GET", f"/openwop/memory/{quote(id, safe='')}?{urlencode({'memoryRef': ref, **query})}")

    def delete(self, ref: str, id: str, **query: Any) -> Answer:
        return self.call("DELETE", f"/openwop/memory/{quote(id, safe='')}?{urlencode({'memoryRef': ref, **query})}")


@dataclass
class TenantClients:
    """A server with a client of each of two tenants, and a reader."""

    acme: Client
    globex: Client
    reader: Client
    stranger: Client


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantClients]:
    data = tmp_path_factory.mktemp("openwop")
    made = {
        name: token(data, "--role", role, "--tenant", tenant, "--name", name)
        for name, role, tenant in (
            ("acme", "writer", "acme"), ("globex", "writer", "globex"), ("reader", "reader", "acme"),
        )
    }  # fmt: skip
    with run_server(data) as server:
        yield TenantClients(*(Client(server, made[name]) for name in ("acme", "globex", "reader")), Client(server))


# the tables


def test_every_route_is_in_the_table() -> None:
    assert {(b.method, b.path) for b in PROTOCOL.routes} == ROUTES
    assert [b.path for b in WELL_KNOWN.routes] == ["/.well-known/openwop"]
    assert PROTOCOL in PROTOCOLS
    assert WELL_KNOWN in PROTOCOLS


@pytest.mark.parametrize("route", [*PROTOCOL.routes, *WELL_KNOWN.routes, *HOST.routes], ids=lambda b: b.operation)
def test_each_route_names_schemas_and_the_least_role(route: Route) -> None:
    assert route.response in schema_names()
    assert (route.request in schema_names()) if route.method == "POST" else route.request is None
    writes = route.operation in ("openwop_put", "openwop_delete", "openwop_workflow")
    discovery = route.operation == "openwop_discovery"
    assert route.role == (None if discovery else "writer" if writes else "reader")
    assert route.summary.endswith(".")
    for parameter in route.parameters.values():
        assert parameter.rules["description"]


def test_the_workflows_are_only_there_when_asked_for(tmp_path: Path) -> None:
    assert http_protocols(load(data=tmp_path)) == PROTOCOLS
    assert HOST not in PROTOCOLS
    hosted = http_protocols(load(data=tmp_path, openwop_host=True))
    assert HOST in hosted
    assert [p.prefix for p in hosted].count("/.well-known/openwop") == 1


# the four scenarios


def test_memory_list_snapshot(two: TenantClients) -> None:
    acme = two.acme
    ref = acme.ref("snapshot")
    first = acme.put(ref, "before").json["entry"]
    run = acme.start(memoryRef=ref)
    seen = acme.list(ref, runId=run)
    assert seen.json == {"memoryRef": ref, "entries": [first]}
    external = {"agent_id": "snapshot", "type": "semantic", "content": "an external write"}
    written = acme.server.post("/v0/remember", external, token=acme.token).json["id"]
    own = acme.put(ref, "the run's own", run=run).json["entry"]
    assert acme.delete(ref, first["id"], runId=run).json == {
        "memoryRef": ref, "memoryId": first["id"], "removed": True,
    }  # fmt: skip
    assert acme.delete(ref, first["id"], runId=run).json["removed"] is False
    assert acme.list(ref, runId=run).body == seen.body
    assert acme.get(ref, first["id"], runId=run).json == {"memoryRef": ref, "entry": first}
    assert acme.get(ref, own["id"], runId=run).status == acme.get(ref, written, runId=run).status == 404
    assert acme.get(ref, first["id"]).status == 404
    assert acme.contents(ref) == ["the run's own", "an external write"]
    assert acme.contents(ref, runId=acme.start()) == ["the run's own", "an external write"]


def test_memory_put_redaction(two: TenantClients) -> None:
    acme = two.acme
    run = acme.start(secrets={"door": SECRET})
    entry = acme.put("redaction", f"the door opens with {SECRET}", run=run, tags=[f"t-{SECRET}"]).json["entry"]
    assert entry["content"] == "the door opens with <REDACTED:door>"
    assert "<REDACTED:door>" in entry["tags"][0]
    for backend in ("scratchpad", "conversation"):
        note = acme.put("redaction", f"note {SECRET}", run=run, backend=backend, tags=[SECRET]).json["entry"]
        assert (note["content"], note["tags"]) == ("note <REDACTED:door>", ["<REDACTED:door>"])
        assert SECRET not in acme.list("redaction", runId=run, backend=backend).body.decode()
    assert acme.get("redaction", entry["id"]).json["entry"] == entry
    assert SECRET not in acme.list("redaction").body.decode()
    assert SECRET not in "".join(acme.server.err + acme.server.out)
    assert traces(acme.server.data, "<REDACTED:door>")
    assert traces(acme.server.data, SECRET) == []
    # Another run does not know the secret, and nothing tells it.
    assert acme.put("redaction", SECRET, run=acme.start()).json["entry"]["content"] == SECRET


def test_memory_put_redaction_by_rule(two: TenantClients) -> None:
    key = "AKIA" + "Q3EGZ7XW5LJ2MN4P"
    entry = two.acme.put("rules", f"use {key} for the bucket").json["entry"]
    assert key not in json.dumps(entry)
    assert "<REDACTED:" in entry["content"]


@pytest.mark.slow
def test_memory_ttl_expiry(two: TenantClients) -> None:
    acme = two.acme
    lasting = acme.put("ttl", "lasting", expiresAt=iso(system_clock() + HOUR_MS)).json["entry"]
    for life_ms in (1_500, 6_000, 24_000):  # on a busy machine one may be over before the run has looked
        ends = system_clock() + life_ms
        fleeting = acme.put("ttl", "fleeting", expiresAt=iso(ends)).json["entry"]
        assert fleeting["expiresAt"] == iso(ends)
        run = acme.start()
        listed = {entry["id"] for entry in acme.list("ttl", runId=run).json["entries"]}
        if system_clock() < ends:
            break
    assert listed == {lasting["id"], fleeting["id"]}
    while system_clock() < ends:  # the server's clock is the machine's: its answers, not ours, are waited for
        acme.list("ttl")
    for view in ({}, {"runId": run}):
        assert acme.list("ttl", **view).json["entries"] == [lasting]
        assert acme.get("ttl", fleeting["id"], **view).status == 404
    refused = acme.put("ttl", "late", expiresAt=iso(system_clock() - 1))
    assert (refused.status, refused.json["error"]) == (400, "validation_error")
    assert refused.json["message"] == "entry.expiresAt must be in the future"


def test_memory_tenant_isolation(two: TenantClients) -> None:
    ref = two.acme.ref("assistant")
    entry = two.acme.put(ref, "of acme").json["entry"]
    run = two.acme.start(memoryRef=ref)
    never = "mem_" + "0" * 32
    foreign = two.globex
    for attempt in (
        lambda r: foreign.list(r),
        lambda r: foreign.list(r, runId=foreign.start()),
        lambda r: foreign.get(r, entry["id"]),
        lambda r: foreign.put(r, "planted"),
        lambda r: foreign.put(r, "planted", run=foreign.start(), backend="scratchpad"),
        lambda r: foreign.delete(r, entry["id"]),
        lambda r: foreign.call("POST", "/openwop/runs", {"memoryRef": r}),
    ):
        there, missing = attempt(ref), attempt(never)
        assert (there.status, there.json["error"]) == (403, "forbidden")
        assert there.body == missing.body
        assert b"acme" not in there.body
        assert b"assistant" not in there.body
    # The run is as unknown as one that never was; the agent's name is an agent of one's own tenant.
    for unknown in (run, "run_" + "0" * 32):
        assert foreign.list("assistant", runId=unknown).status == 404
        assert foreign.call("DELETE", f"/openwop/runs/{unknown}").status == 404
    assert foreign.list("assistant").json["entries"] == []
    assert foreign.get("assistant", entry["id"]).status == 404
    assert foreign.delete("assistant", entry["id"]).json["removed"] is False
    assert two.acme.list(ref).json["entries"] == [entry]
    assert two.acme.contents(ref, runId=run) == ["of acme"]


# restarts and replays


@pytest.mark.slow
def test_a_run_outlives_the_server(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        client = Client(server)
        ref = client.ref("durable", namespace="atlas")
        client.put(ref, "before", tags=["source:session"])
        run, guarded = client.start(memoryRef=ref), client.start(secrets={"door": SECRET})
        client.put(ref, "noted", run=run, backend="conversation")
        first = client.list(ref, runId=run).body
        ranked = client.list(ref, runId=run, rank="relevance", query="before").body
        client.put(ref, "after")
        cli(tmp_path, "remember", "by another process", "--agent", "durable")
        assert client.list(ref, runId=run).body == first
        assert "by another process" in client.contents("durable")
    with run_server(tmp_path) as server:
        client = Client(server)
        client.put(ref, "after the restart")
        assert client.list(ref, runId=run).body == first
        assert client.list(ref, runId=run, rank="relevance", query="before").body == ranked
        assert client.contents(ref, runId=run, backend="conversation") == ["noted"]
        refused = client.put(ref, f"it is {SECRET}", run=guarded)
        assert (refused.status, refused.json["error"]) == (422, "secret_leakage")
        assert SECRET not in refused.body.decode()
        assert client.call("DELETE", f"/openwop/runs/{run}").json == {"runId": run, "ended": True}
        assert client.list(ref, runId=run).status == 404
        assert client.list(ref, runId=run, backend="conversation").status == 404
    assert traces(tmp_path, "after the restart")
    assert traces(tmp_path, "noted", SECRET) == []


@pytest.mark.slow
def test_lists_stay_the_same_while_others_write_and_delete(two: TenantClients) -> None:
    acme = two.acme
    ref = acme.ref("busy")
    over = threading.Event()

    def disturb(number: int) -> int:
        written = 0
        while not over.is_set():
            body = {"agent_id": "busy", "type": "semantic", "content": f"by writer {number}: {written}"}
            id = acme.server.post("/v0/remember", body, token=acme.token).json["id"]
            written += 1
            if written % 3 == 0:
                acme.delete(ref, id)
            elif written % 3 == 1:
                change = {"agent_id": "busy", "content": f"changed by {number}: {written}"}
                acme.server.call("PATCH", f"/v0/memories/{id}", change, token=acme.token)
        return written

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(disturb, number) for number in range(4)]
        try:
            firsts = {}
            for _ in range(12):
                run = acme.start(memoryRef=ref)
                firsts[run] = acme.list(ref, runId=run).body
                ranked = acme.list(ref, runId=run, rank="relevance", query="changed writer", limit=7).body
                assert acme.list(ref, runId=run, rank="relevance", query="changed writer", limit=7).body == ranked
                for earlier, first in firsts.items():
                    assert acme.list(ref, runId=earlier).body == first
        finally:
            over.set()
        assert all(writer.result() > 0 for writer in writers)
    assert len(set(firsts.values())) > 1


# what goes wrong


def test_every_documented_fault_has_its_envelope(two: TenantClients) -> None:
    acme, stranger = two.acme, two.stranger
    big = acme.put("faults", "x" * 65_537)
    assert (big.status, big.json["error"]) == (413, "payload_too_large")
    assert big.json["details"] == {"field": "entry.content", "maxEntrySizeBytes": 65536}
    assert acme.put("faults", "x" * 65_536).status == 201
    anonymous = stranger.list("faults")
    assert (anonymous.status, anonymous.json["error"]) == (401, "unauthenticated")
    assert "www-authenticate" in anonymous.headers
    missing = acme.get("faults", "never")
    assert (missing.status, missing.json) == (404, {"error": "not_found", "message": "no entry never in this memory"})
    for answer, status, code in (
        (acme.put("faults", "x", id="mine"), 400, "validation_error"),
        (acme.put("faults", "x", backend="scratchpad"), 400, "validation_error"),
        (acme.list("faults", backend="conversation"), 400, "validation_error"),
        (acme.list("faults", limit=-1), 400, "validation_error"),
        (acme.list("faults", limit="x"), 400, "validation_error"),
        (acme.list("faults", colour="red"), 400, "validation_error"),
        (acme.list("faults", rank="relevance"), 400, "validation_error"),
        (acme.list("x" * 257), 400, "validation_error"),
        (acme.call("GET", "/openwop/memory"), 400, "validation_error"),
        (acme.call("POST", "/openwop/memory"), 400, "validation_error"),
        (acme.call("POST", "/openwop/memory", b"{"), 400, "validation_error"),
        (acme.call("POST", "/openwop/refs", {}), 400, "validation_error"),
        (acme.call("POST", "/openwop/runs", []), 400, "validation_error"),
        (acme.call("POST", "/openwop/runs"), 400, "validation_error"),
        (acme.call("POST", "/openwop/runs", {"secrets": {"door": SECRET[:7]}}), 400, "validation_error"),
        (acme.call("PUT", "/openwop/memory"), 405, "validation_error"),
        (acme.call("GET", "/openwop/nothing"), 404, "not_found"),
        (acme.list("faults", runId="nothing"), 404, "not_found"),
        (acme.call("DELETE", "/openwop/runs/nothing"), 404, "not_found"),
        (two.reader.put("faults", "x"), 403, "forbidden"),
        (two.reader.delete("faults", "x"), 403, "forbidden"),
        (acme.call("POST", "/openwop/memory", b" " * (5 * 2**20)), 413, "payload_too_large"),
    ):
        assert (answer.status, answer.json["error"]) == (status, code), answer.body
        assert SECRET[:7] not in answer.body.decode()


def test_a_reader_lists_and_starts_runs(two: TenantClients) -> None:
    entry = two.acme.put("readable", "there").json["entry"]
    run = two.reader.start(memoryRef="readable")
    assert two.reader.list("readable", runId=run).json["entries"] == [entry]
    assert two.reader.get("readable", entry["id"], runId=run).json["entry"] == entry
    assert two.reader.call("DELETE", f"/openwop/runs/{run}").status == 200


def test_rate_limits_speak_openwop(tmp_path: Path) -> None:
    with run_server(tmp_path, COMMONPLACE_RATE_LIMIT="1") as server:
        client = Client(server)
        answers = [client.list("alice") for _ in range(40)]  # refused unless each takes almost a second
        limited = next(answer for answer in answers if answer.status == 429)
        assert limited.json["error"] == "rate_limited"
        assert int(limited.headers["retry-after"]) >= 1


# discovery and redaction modes


def test_discovery_needs_no_token(two: TenantClients) -> None:
    answer = two.stranger.call("GET", "/.well-known/openwop")
    said = {
        "agents": {"supported": True, "memoryBackends": ["scratchpad", "conversation", "longTerm", "long-term"]},
        "memory": {
            "supported": True,
            "maxEntrySizeBytes": 65536,
            "ttlSupported": True,
            "injectionBudget": {"supported": True, "tokenCounter": "chars"},
        },
    }
    assert (answer.status, answer.json) == (200, {**said, "capabilities": said})
    assert two.stranger.call("POST", "/.well-known/openwop").status == 405
    assert two.acme.server.call("POST", "/v1/runs", {"workflowId": "x"}, token=two.acme.token).status == 404


@pytest.mark.slow
def test_rejecting_instead_of_redacting(tmp_path: Path) -> None:
    with run_server(tmp_path, COMMONPLACE_REDACTION_MODE="reject") as server:
        client = Client(server)
        run = client.start(secrets={"door": SECRET})
        for backend in ("longTerm", "scratchpad"):
            refused = client.put("alice", f"it is {SECRET}", run=run, backend=backend)
            assert (refused.status, refused.json["error"]) == (422, "secret_leakage")
            assert SECRET not in refused.body.decode()
            assert client.list("alice", runId=run, backend=backend).json["entries"] == []
        assert client.list("alice").json["entries"] == []
        assert client.put("alice", "harmless", run=run).status == 201


@pytest.mark.slow
def test_long_term_memory_is_neither_offered_nor_served_while_redaction_is_off(tmp_path: Path) -> None:
    with run_server(tmp_path, COMMONPLACE_REDACTION_MODE="off") as server:
        client = Client(server)
        said = client.call("GET", "/.well-known/openwop").json
        assert said["agents"]["memoryBackends"] == said["capabilities"]["agents"]["memoryBackends"]
        assert said["agents"]["memoryBackends"] == ["scratchpad", "conversation"]
        for answer in (
            client.put("alice", "x"),
            client.list("alice"),
            client.get("alice", "x"),
            client.delete("alice", "x"),
        ):
            assert (answer.status, answer.json["error"]) == (400, "validation_error")
            assert "redaction is off" in answer.json["message"]
        run = client.start()
        client.put("alice", "noted", run=run, backend="scratchpad")
        assert client.contents("alice", runId=run, backend="scratchpad") == ["noted"]


# the host of the public scenarios


@pytest.mark.slow
def test_the_workflows_prove_the_memory_layer(tmp_path: Path) -> None:
    with run_server(tmp_path, "--openwop-host", COMMONPLACE_REDACTION_MARKER="square") as server:
        client = Client(server)
        assert set(client.call("GET", "/.well-known/openwop").json["fixtures"]) == WORKFLOWS
        found = {name: performed(client, name) for name in WORKFLOWS}
        base = "conformance-agent-memory-"
        roundtrip = found[base + "roundtrip"]
        check("openwop/types/memory-entry", roundtrip["memoryReadback"])
        assert roundtrip["memoryReadback"] == roundtrip["memoryWritten"]
        assert roundtrip["memoryList"] == [roundtrip["memoryReadback"]]
        assert (roundtrip["sameRunReadback"], roundtrip["sameRunList"]) == (None, [])
        redaction = found[base + "redaction"]
        assert "[REDACTED:conformance-secret]" in redaction["memoryReadback"]["content"]
        assert redaction["plaintextFound"] is False
        ttl = found[base + "ttl"]
        assert [entry["id"] for entry in ttl["memoryList"]] == [ttl["freshId"]]
        assert {entry["id"] for entry in ttl["memoryListBefore"]} == {ttl["freshId"], ttl["expiredId"]}
        assert [entry["id"] for entry in ttl["memoryListOfEarlierRun"]] == [ttl["freshId"]]
        assert (ttl["expiredReadback"], ttl["pastExpiryRefused"]["error"]) == (None, "validation_error")
        crossing = found[base + "cross-tenant"]
        assert crossing["ownerEntryId"] in [entry["id"] for entry in crossing["ownerProbe"]]
        assert (crossing["crossTenantProbe"], crossing["otherTenantEntries"]) == ([], 1)
        assert crossing["crossTenantGet"] is crossing["crossTenantGetById"] is None
        assert (crossing["crossTenantPut"]["error"], crossing["crossTenantDelete"]) == ("forbidden", False)
        unknown = client.call("POST", "/v1/runs", {"workflowId": "something-else"})
        assert (unknown.status, unknown.json["error"]) == (404, "not_found")
        assert client.call("GET", f"/v1/runs/{client.start()}").status == 404
        assert client.call("GET", "/v1/runs/nothing").status == 404
        openapi = server.get("/openapi.json").json["paths"]
        assert {"/v1/runs", "/v1/runs/{runId}"} <= set(openapi)


def performed(client: Client, workflow: str) -> Any:
    started = client.call("POST", "/v1/runs", {"workflowId": workflow})
    check("openwop/operations/workflow.response", started.json)
    assert (started.status, started.json["status"]) == (201, "completed")
    state = client.call("GET", f"/v1/runs/{started.json['runId']}")
    check("openwop/operations/workflow_state.response", state.json)
    assert (state.json["workflowId"], state.json["status"]) == (workflow, "completed")
    return state.json["variables"]
