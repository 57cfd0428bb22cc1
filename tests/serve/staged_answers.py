"""One staged answer for each way there is to ask a server for something that then waits for approval."""

from __future__ import annotations

import json
from typing import Any

from server_process import ServerProcess

AGENT = "staged-a"
_RULE = {"name": "all", "action": "review", "when": {"agent": ["staged-*"]}}
_JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def prepare(at: ServerProcess) -> list[str]:
    """The ids of two memories, made before everything of this agent waits for approval."""
    known = [
        at.post("/v0/remember", {"agent_id": AGENT, "type": "semantic", "content": content}).json["id"]
        for content in ("known", "other")
    ]
    assert at.post("/amp/store", _lesson("x", id="l-1")).status < 300
    assert at.call("PUT", "/v0/policies", {"rules": [_RULE]}).status == 200
    return known


def staged_answers(at: ServerProcess, known: list[str]) -> dict[str, Any]:
    first, second = known
    fact = {"subject": "a", "predicate": "is", "object": "b"}
    return {
        "remember": at.post("/v0/remember", {"agent_id": AGENT, "type": "semantic", "content": "a"}).json,
        "update": at.call("PATCH", f"/v0/memories/{first}", {"agent_id": AGENT, "content": "b"}).json,
        "forget": at.post("/v0/forget", {"agent_id": AGENT, "ids": [first]}).json,
        "merge": at.post("/v0/merge", {"agent_id": AGENT, "canonical": first, "duplicates": [second]}).json,
        "assert": at.post("/v0/kg/assert", {"agent_id": AGENT, **fact}).json,
        "amp store": at.post("/amp/store", _lesson("c")).json,
        "amp replace": at.post("/amp/store", _lesson("d", id="l-1")).json,
        "amp delete": at.call("DELETE", f"/amp/records/l-1?agent={AGENT}").json,
        "mcp": _tool(at, "/mcp", "remember", {"agent_id": AGENT, "type": "semantic", "content": "e"}),
        "mcp amp": _tool(at, "/mcp/amp", "amp_store", _lesson("f")),
        "trusty": _tool(at, "/mcp/trusty", "memory_remember", {"palace": AGENT, "text": "g"}),
        "trusty forget": _tool(at, "/mcp/trusty", "memory_forget", {"palace": AGENT, "drawer_id": first}),
        "trusty assert": _tool(at, "/mcp/trusty", "kg_assert", {"palace": AGENT, **fact}),
    }


def _lesson(content: str, **more: str) -> dict[str, Any]:
    return {"record": {"type": "lesson", "title": "t", "content": content, "agent": AGENT, **more}}


def _tool(at: ServerProcess, path: str, tool: str, arguments: dict[str, Any]) -> Any:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    (part,) = at.post(path, call, headers=_JSON).json["result"]["content"]
    return json.loads(part["text"])
