"""A secret given as any name, by every way in: never in an answer, in the log or in the store's files."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from mcp_process import McpProcess, run_mcp
from server_process import SECONDS, ServerProcess, command, environment, run_server
from tampering import traces

from commonplace.sdk import SyncMemory
from commonplace.wire.errors import SecretLeakage

UUID = "0198c1f2-7b3e-7d10-9a55-3f2a9c1e4b7d"
REGISTERED = "words that only Alice knows"
NOW = "2026-03-01T10:00:00Z"


def secret_for(case: str) -> str:
    """A token that is put together here, so that none is in this file."""
    return "gh" + "p_" + "".join(Random(case).choices("0123456789abcdefXYZ", k=36))


def given(value: Any, secret: str) -> Any:
    if isinstance(value, str):
        return value.replace("$", secret)
    if isinstance(value, dict):
        return {given(k, secret): given(v, secret) for k, v in value.items()}
    return [given(v, secret) for v in value] if isinstance(value, list) else value


MEMORY = {"agent_id": "ada", "type": "semantic", "content": "plain"}
TRIPLE = {"agent_id": "ada", "subject": "Bob", "predicate": "likes", "object": "tea"}
LESSON = {"type": "lesson", "title": "t", "content": "c"}


def asking(agent: str, request_id: str = UUID) -> dict[str, Any]:
    return {
        "type": "memory_request", "version": "0.1", "header": {"request_id": request_id, "timestamp": NOW},
        "requester": {"agent_id": agent}, "query": {"natural": "plain"},
    }  # fmt: skip


#: By HTTP: method, path and body. What is given as a name is refused, or comes back without its secret.
HTTP: dict[str, tuple[str, str, Any]] = {
    "remember agent": ("POST", "/v0/remember", {**MEMORY, "agent_id": "$"}),
    "remember user": ("POST", "/v0/remember", {**MEMORY, "user_id": "$"}),
    "remember project": ("POST", "/v0/remember", {**MEMORY, "metadata": {"project": "$"}}),
    "remember session": ("POST", "/v0/remember", {**MEMORY, "metadata": {"session_id": "$"}}),
    "remember tag": ("POST", "/v0/remember", {**MEMORY, "metadata": {"tags": ["$"]}}),
    "remember key": ("POST", "/v0/remember", {**MEMORY, "metadata": {"a": {"$": {"$": 1}}}}),
    "remember idempotency key": ("POST", "/v0/remember", {**MEMORY, "idempotency_key": "$"}),
    "remember type": ("POST", "/v0/remember", {**MEMORY, "type": "$"}),
    "remember unknown field": ("POST", "/v0/remember", {**MEMORY, "$": 1}),
    "remember staged agent": ("POST", "/v0/remember", {**MEMORY, "agent_id": "$", "approval_required": True}),
    "batch agent": ("POST", "/v0/remember/batch", {"items": [{**MEMORY, "agent_id": "$"}]}),
    "batch type": ("POST", "/v0/remember/batch", {"items": [{**MEMORY, "type": "$"}]}),
    "recall agent": ("POST", "/v0/recall", {"agent_id": "$", "query": "plain"}),
    "recall filter": ("POST", "/v0/recall", {"agent_id": "ada", "query": "plain", "filter": {"a": {"$": 1}}}),
    "recall filter field": ("POST", "/v0/recall", {"agent_id": "ada", "query": "x", "filter": {"$\"": 1}}),
    "forget agent": ("POST", "/v0/forget", {"agent_id": "$", "ids": [UUID]}),
    "forget id": ("POST", "/v0/forget", {"agent_id": "ada", "ids": ["$"]}),
    "forget user": ("POST", "/v0/forget", {"agent_id": "ada", "ids": [UUID], "user_id": "$"}),
    "merge agent": ("POST", "/v0/merge", {"agent_id": "$", "canonical_id": UUID, "duplicate_ids": ["x"]}),
    "merge canonical": ("POST", "/v0/merge", {"agent_id": "ada", "canonical_id": "$", "duplicate_ids": ["x"]}),
    "expire agent": ("POST", "/v0/expire", {"agent_id": "$", "policy": {"older_than_days": 3}}),
    "preview forget": ("POST", "/v0/preview/forget", {"agent_id": "$", "ids": [UUID]}),
    "list agent": ("GET", "/v0/memories?agent_id=$", None),
    "list unknown parameter": ("GET", "/v0/memories?agent_id=ada&$=1", None),
    "get id": ("GET", "/v0/memories/$?agent_id=ada", None),
    "get agent": ("GET", f"/v0/memories/{UUID}?agent_id=$", None),
    "update id": ("PATCH", "/v0/memories/$", {"agent_id": "ada", "content": "x"}),
    "history id": ("GET", "/v0/memories/$/history?agent_id=ada", None),
    "review": ("GET", "/v0/reviews/$", None),
    "decide": ("POST", "/v0/reviews/$", {"approved": True}),
    "reviews status": ("GET", "/v0/reviews?status=$", None),
    "audit agent": ("GET", "/v0/audit?agent_id=$", None),
    "kg assert agent": ("POST", "/v0/kg/assert", {**TRIPLE, "agent_id": "$"}),
    "kg assert predicate": ("POST", "/v0/kg/assert", {**TRIPLE, "predicate": "$"}),
    "kg query subject": ("GET", "/v0/kg?agent_id=ada&subject=$", None),
    "kg history subject": ("GET", "/v0/kg/history?agent_id=ada&subject=$", None),
    "kg path": ("GET", "/v0/kg/path?agent_id=ada&start=$&end=Bob", None),
    "kg neighbors": ("GET", "/v0/kg/neighbors?agent_id=ada&memory_id=$&hops=1", None),
    "kg retract": ("POST", "/v0/kg/retract", {"agent_id": "ada", "subject": "$", "predicate": "likes"}),
    "kg erase": ("POST", "/v0/kg/erase", {"agent_id": "$", "subject": "Bob"}),
    "no such place": ("GET", "/v0/$", None),
    "rpc agent": ("POST", "/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": "memory.recall",
                                      "params": {"agent_id": "$", "query": "x"}}),
    "rpc id": ("POST", "/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": "memory.get",
                                   "params": {"agent_id": "ada", "id": "$"}}),
    "rpc method": ("POST", "/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": "$", "params": {}}),
    "rpc field": ("POST", "/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": "memory.get", "$": 1}),
    "rpc parameter": ("POST", "/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": "memory.list",
                                          "params": {"agent_id": "ada", "$": "x"}}),
    "amp agent": ("POST", "/amp/store", {"record": {**LESSON, "agent": "$"}}),
    "amp project": ("POST", "/amp/store", {"record": {**LESSON, "project": "$"}}),
    "amp id": ("POST", "/amp/store", {"record": {**LESSON, "id": "$"}}),
    "amp type": ("POST", "/amp/store", {"record": {**LESSON, "type": "$"}}),
    "amp field": ("POST", "/amp/store", {"record": {**LESSON, "$": {"$": "x"}}}),
    "amp envelope": ("POST", "/amp/store", {"record": LESSON, "$": 1}),
    "amp search": ("POST", "/amp/search", {"query": "plain", "agent": "$"}),
    "amp list": ("GET", "/amp/records?agent=$", None),
    "amp list order": ("GET", "/amp/records?order=$", None),
    "amp get": ("GET", "/amp/records/$", None),
    "amp delete": ("DELETE", "/amp/records/$", None),
    "amp agent status": ("GET", "/amp/agents/$/status", None),
    "mrp responder": ("POST", "/mrp/request?agent=$", asking("Babel")),
    "mrp requester": ("POST", "/mrp/request", asking("$")),
    "mrp request id": ("POST", "/mrp/request", asking("Babel", "$")),
    "mrp type": ("POST", "/mrp/request", {"type": "$"}),
    "mrp vouches": ("GET", "/mrp/vouches?subject=$", None),
    "mrp verify": ("POST", "/mrp/verify", {
        "type": "memory_verify", "version": "0.1", "header": {"verify_id": UUID, "timestamp": NOW},
        "requester": {"agent_id": "Babel"}, "target": {"memory_id": "$", "attestation_hash": "0" * 64}}),
    "openwop ref agent": ("POST", "/openwop/refs", {"agent": "$"}),
    "openwop ref namespace": ("POST", "/openwop/refs", {"agent": "ada", "namespace": "$"}),
    "openwop run ref": ("POST", "/openwop/runs", {"memoryRef": "$"}),
    "openwop run end": ("DELETE", "/openwop/runs/$", None),
    "openwop put ref": ("POST", "/openwop/memory", {"memoryRef": "$", "entry": {"content": "x"}}),
    "openwop put backend": ("POST", "/openwop/memory", {"memoryRef": "ada", "backend": "$", "entry": {"content": "x"}}),
    "openwop put run": ("POST", "/openwop/memory", {"memoryRef": "ada", "runId": "$", "entry": {"content": "x"}}),
    "openwop put tag": ("POST", "/openwop/memory", {"memoryRef": "ada", "entry": {"content": "x", "tags": ["$"]}}),
    "openwop list": ("GET", "/openwop/memory?memoryRef=$", None),
    "openwop get": ("GET", "/openwop/memory/$?memoryRef=ada", None),
    "openwop delete": ("DELETE", "/openwop/memory/$?memoryRef=ada", None),
    "openwop workflow": ("POST", "/v1/runs", {"workflowId": "$"}),
    "openwop workflow run": ("GET", "/v1/runs/$", None),
}  # fmt: skip

#: By MCP: the address, the tool and its arguments.
TOOLS: dict[str, tuple[str, str, Any]] = {
    "remember agent": ("/mcp", "remember", {**MEMORY, "agent_id": "$"}),
    "remember type": ("/mcp", "remember", {**MEMORY, "type": "$"}),
    "get id": ("/mcp", "get", {"agent_id": "ada", "id": "$"}),
    "recall agent": ("/mcp", "recall", {"agent_id": "$", "query": "plain"}),
    "graph query": ("/mcp", "graph_query", {"agent_id": "ada", "subject": "$"}),
    "no such tool": ("/mcp", "$", {}),
    "amp store": ("/mcp/amp", "amp_store", {"record": {**LESSON, "agent": "$"}}),
    "amp get": ("/mcp/amp", "amp_get", {"id": "$"}),
    "palace create": ("/mcp/trusty", "palace_create", {"name": "$"}),
    "palace create, no name": ("/mcp/trusty", "palace_create", {"name": "../$"}),
    "palace info": ("/mcp/trusty", "palace_info", {"palace": "$"}),
    "palace remember": ("/mcp/trusty", "memory_remember", {"palace": "$", "text": "plain"}),
    "palace recall": ("/mcp/trusty", "memory_recall", {"palace": "$", "query": "plain"}),
    "palace list": ("/mcp/trusty", "memory_list", {"palace": "$"}),
    "palace forget": ("/mcp/trusty", "memory_forget", {"palace": "$", "drawer_id": UUID}),
    "drawer": ("/mcp/trusty", "memory_forget", {"palace": "hall", "drawer_id": "$"}),
    "kg assert": ("/mcp/trusty", "kg_assert", {"palace": "$", "subject": "a", "predicate": "b", "object": "c"}),
    "kg query": ("/mcp/trusty", "kg_query", {"palace": "hall", "subject": "$"}),
    "trusty tool": ("/mcp/trusty", "$", {}),
}

COMPANION: dict[str, tuple[str, str, Any]] = {
    "create": ("POST", "/api/v1/palaces", {"name": "$"}),
    "palace": ("GET", "/api/v1/palaces/$", None),
    "drawers": ("GET", "/api/v1/palaces/$/drawers", None),
    "store": ("POST", "/api/v1/palaces/$/drawers", {"content": "plain"}),
    "tags": ("POST", "/api/v1/palaces/hall/drawers", {"content": "plain", "tags": ["$"]}),
    "delete": ("DELETE", "/api/v1/palaces/hall/drawers/$", None),
    "recall": ("GET", "/api/v1/palaces/$/recall?q=plain", None),
    "kg": ("GET", "/api/v1/palaces/hall/kg?subject=$", None),
    "kg store": ("POST", "/api/v1/palaces/$/kg", {"subject": "a", "predicate": "b", "object": "c"}),
}

CLI: dict[str, list[str]] = {
    "remember --agent": ["remember", "plain", "--agent", "$"],
    "recall --agent": ["recall", "plain", "--agent", "$"],
    "list --agent": ["list", "--agent", "$"],
    "get": ["get", "$"],
    "history": ["history", "$"],
    "procedure show": ["procedure", "show", "$"],
    "procedure fire": ["procedure", "fire", "$", "go"],
    "forget": ["forget", "$", "--yes"],
    "palace create": ["palace", "create", "$"],
    "trust add": ["trust", "add", "$", "--level", "1"],
    "trust remove": ["trust", "remove", "$"],
    "token create --name": ["token", "create", "--name", "$"],
    "token revoke": ["token", "revoke", "$"],
    "kg query": ["kg", "query", "$"],
    "kg assert": ["kg", "assert", "$", "likes", "tea"],
    "reviews show": ["reviews", "show", "$"],
}


@dataclass
class Everything:
    server: ServerProcess
    stdio: McpProcess
    companion: ServerProcess
    data: Path
    used: list[str] = field(default_factory=list)

    def secret(self, case: str) -> str:
        self.used.append(secret_for(case))
        return self.used[-1]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    data = tmp_path_factory.mktemp("names")
    settings = {"COMMONPLACE_REDACTION_SECRETS_ENV": "ALICE", "ALICE": REGISTERED}
    with (
        run_server(data, "--openwop-host", **settings) as server,
        run_mcp(data, "--tools", "all", "--http", "127.0.0.1:0") as stdio,
    ):
        stdio.greet()
        assert stdio.process.stderr is not None
        place = next(
            found[0] for line in stdio.process.stderr if (found := re.search(rb"http://127\.0\.0\.1:\d+", line))
        )
        yield Everything(server, stdio, ServerProcess(None, place.decode(), data, [], []), data)  # type: ignore[arg-type]


def looked_for(secret: str, *texts: str) -> bool:
    return any(spelled in text for text in texts for spelled in (secret, quote(secret)))


def over_http(server: ServerProcess, request: tuple[str, str, Any], secret: str, **headers: str) -> str:
    method, path, body = request
    answer = server.call(method, path.replace("$", quote(secret)), given(body, secret), headers=headers)
    assert answer.status < 500, answer.body
    return answer.body.decode() + json.dumps(answer.headers)


@pytest.mark.parametrize("case", HTTP)
def test_over_http(everything: Everything, case: str) -> None:
    for secret in (everything.secret(f"http {case}"), REGISTERED):
        assert not looked_for(secret, over_http(everything.server, HTTP[case], secret))


@pytest.mark.parametrize("case", COMPANION)
def test_by_the_companion_server(everything: Everything, case: str) -> None:
    over_http(everything.companion, ("POST", "/api/v1/palaces", {"name": "hall"}), "")
    secret = everything.secret(f"companion {case}")
    assert not looked_for(secret, over_http(everything.companion, COMPANION[case], secret))


@pytest.mark.parametrize("case", TOOLS)
def test_by_mcp_over_http_and_stdio(everything: Everything, case: str) -> None:
    address, tool, arguments = TOOLS[case]
    secret = everything.secret(f"mcp {case}")
    params = {"name": given(tool, secret), "arguments": given(arguments, secret)}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    assert not looked_for(secret, over_http(everything.server, ("POST", address, call), secret, **accept))
    assert not looked_for(secret, json.dumps(everything.stdio.ask("tools/call", params)))


_CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_FILLED = "a " * 36  # so that the secret stands where a long name is cut
#: Messages of which a part that is nobody's argument is a secret.
MESSAGES: dict[str, dict[str, Any]] = {
    "method": {**_CALL, "method": "$"},
    "method, cut": {**_CALL, "method": f"{_FILLED}$"},
    "id": {**_CALL, "id": "$"},
    "id of a call": {**_CALL, "id": "$", "method": "tools/call", "params": {"name": "get", "arguments": {}}},
    "id of no method": {**_CALL, "id": "$", "method": "nothing/here"},
    "id of another version": {**_CALL, "id": "$", "jsonrpc": "1.0"},
    "id of no request": {**_CALL, "id": "$", "method": 5},
    "tool": {**_CALL, "method": "tools/call", "params": {"name": "$"}},
    "tool, cut": {**_CALL, "method": "tools/call", "params": {"name": f"{_FILLED}$"}},
    "uri": {**_CALL, "method": "resources/read", "params": {"uri": "$"}},
    "uri, cut": {**_CALL, "method": "resources/read", "params": {"uri": f"{'a ' * 96}$"}},
    "prompt": {**_CALL, "method": "prompts/get", "params": {"name": "$"}},
    "prompt, cut": {**_CALL, "method": "prompts/get", "params": {"name": f"{_FILLED}$"}},
    "version": {
        **_CALL, "method": "tools/list",
        "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "$",
                             "io.modelcontextprotocol/clientCapabilities": {}}},
    },
}  # fmt: skip


@pytest.mark.parametrize("case", MESSAGES)
@pytest.mark.parametrize("tools", ["", "/amp", "/trusty", "/all"])
def test_no_part_of_a_message_comes_back_over_http(everything: Everything, case: str, tools: str) -> None:
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    for secret in (everything.secret(f"message {case}"), REGISTERED):
        said = over_http(everything.server, ("POST", f"/mcp{tools}", given(MESSAGES[case], secret)), secret, **accept)
        assert not looked_for(secret, said)
        assert secret[:8] not in said


@pytest.mark.parametrize("case", MESSAGES)
@pytest.mark.parametrize("tools", ["commonplace", "trusty"])
def test_no_part_of_a_message_comes_back_on_stdio(tmp_path: Path, case: str, tools: str) -> None:
    """Also before the handshake, when nothing is loaded yet."""
    secret = secret_for(f"stdio {case}")
    with run_mcp(tmp_path, "--tools", tools) as stdio:
        for _ in range(2):
            stdio.write(json.dumps(given(MESSAGES[case], secret)).encode() + b"\n")
            said = json.dumps(stdio.read())
            assert not looked_for(secret, said)
            assert secret[:8] not in said
            if "id" in case:
                assert json.loads(said)["id"] is None
            stdio.greet()


@pytest.mark.parametrize("part", ["id", "id of a wrong call", "method", "method, cut", "field"])
def test_no_part_of_a_call_comes_back_by_json_rpc(everything: Everything, part: str) -> None:
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "memory.health"}
    call |= {
        "id": {"id": "$"},
        "id of a wrong call": {"id": "$", "jsonrpc": "1.0"},
        "method": {"method": "$"},
        "method, cut": {"method": f"{_FILLED}$"},
        "field": {f"{_FILLED}$": 1},
    }[part]
    for body in (call, [call, call]):
        for secret in (everything.secret(f"rpc {part}"), REGISTERED):
            said = over_http(everything.server, ("POST", "/v0/rpc", given(body, secret)), secret)
            assert not looked_for(secret, said)
            assert secret[:8] not in said


@pytest.mark.parametrize("id", [7, "7", "init-1", UUID, "request number 12", 1_763_000_000_000])
def test_an_id_that_is_no_secret_comes_back(everything: Everything, id: Any) -> None:
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    assert everything.server.post("/mcp", {**_CALL, "id": id}, headers=accept).json["id"] == id
    everything.stdio.write(json.dumps({**_CALL, "id": id}).encode() + b"\n")
    assert everything.stdio.read()["id"] == id


def test_a_request_id_that_is_a_secret_is_not_taken(everything: Everything) -> None:
    secret = everything.secret("request id")
    said = over_http(everything.server, ("GET", "/v0/health", None), secret, **{"X-Request-Id": secret})
    assert not looked_for(secret, said)


@pytest.mark.parametrize("case", CLI)
def test_by_the_command_line(everything: Everything, case: str) -> None:
    secret = everything.secret(f"cli {case}")
    done = subprocess.run(
        command(*(argument.replace("$", secret) for argument in CLI[case]), "--json"),
        env=environment(everything.data), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert not looked_for(secret, done.stdout, done.stderr)


def test_by_the_sdk_and_a_batch_of_lines(everything: Everything, tmp_path: Path) -> None:
    secret = everything.secret("sdk")
    with SyncMemory(data=everything.data, embedder="hashing", agent_id=secret) as memory:
        for attempt in (lambda: memory.remember("plain"), lambda: memory.recall("plain"), memory.list):
            with pytest.raises(SecretLeakage) as refused:
                attempt()
            assert secret not in str(refused.value)
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"content": "plain", "user_id": secret}) + "\n", "utf-8")
    done = subprocess.run(
        command("remember", "--batch", str(lines), "--json"), env=environment(everything.data), capture_output=True,
        text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert not looked_for(secret, done.stdout, done.stderr)


def test_none_of_them_is_in_the_files_or_in_the_log(everything: Everything) -> None:
    """Last, when all of the above have been tried."""
    everything.server.get("/v0/audit")
    log = "".join(everything.server.err + everything.server.out)
    secrets = (*everything.used, REGISTERED)
    assert not any(looked_for(secret, log) for secret in secrets)
    assert traces(everything.data, "REDACTED")
    assert traces(everything.data, *secrets) == []
