"""A server with rules, the other ways to its data, and all that any protocol shows of an agent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from server_process import ServerProcess, command, environment

from commonplace import Memory, RemoteMemory
from commonplace.dialects.mrp import Mrp
from commonplace.wire.errors import Fault
from commonplace.wire.record import Principal, system_clock
from commonplace.wire.times import iso

Document = dict[str, Any]
_MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Place:
    """A server with rules, and the other ways to its data."""

    def __init__(self, server: ServerProcess, data: Path) -> None:
        self.server, self.data = server, data

    def tool(self, path: str, name: str, arguments: Document) -> str:
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return self.server.post(path, message, headers=_MCP).body.decode()

    def post(self, path: str, body: Document) -> str:
        return self.server.post(path, body).body.decode()

    def command(self, *args: str) -> str:
        ran = subprocess.run(
            command(*args, "--json"), env=environment(self.data), capture_output=True, text=True, check=False
        )
        return ran.stdout + ran.stderr

    def local(self, use: Callable[[Memory], Any]) -> str:
        async def run() -> str:
            async with Memory("default", data=self.data, embedder="none", server_url=self.server.url) as memory:
                try:
                    return repr(await use(memory))
                except Fault as fault:
                    return json.dumps(fault.to_wire())

        return asyncio.run(run())

    def remote(self, use: Callable[[RemoteMemory], Any]) -> str:
        async def run() -> str:
            async with RemoteMemory(self.server.url) as memory:
                try:
                    return repr(await use(memory))
                except Fault as fault:
                    return json.dumps(fault.to_wire())

        return asyncio.run(run())


def said(agent: str, text: str) -> Document:
    return {"agent_id": agent, "type": "semantic", "content": text}


def keep_attestation(at: Place, agent: str, text: str, **more: Any) -> str:
    """As whoever asked another agent keeps its answer: MRP has no route for it."""
    made = {
        "id": str(uuid.uuid4()), "agent": "Babel", "created_at": "2025-06-01T12:00:00Z",
        "claim": {"type": "fact", "content": text, "references": []},
        "salience": {"why_kept": "x", "category": "operational", "confidence": 0.9,
                     "expected_decay": {"type": "permanent"}, "supersedes": []},
        "provenance": {"source": "inference", "witnesses": [], "chain": []},
    }  # fmt: skip

    async def keep(memory: Memory) -> Any:
        return await Mrp(await memory.engine(), Principal()).keep(made, from_agent="Babel", agent=agent, **more)

    return at.local(keep)


def everything(at: Place, agent: str, question: str = "what is it") -> str:
    """What every protocol shows of an agent."""
    at.tool("/mcp/trusty", "palace_create", {"name": agent})
    recall = {"agent_id": agent, "query": question, "min_score": 0}
    request = {
        "type": "memory_request", "version": "0.1",
        "header": {"request_id": str(uuid.uuid4()), "timestamp": iso(system_clock())},
        "requester": {"agent_id": "Babel"}, "query": {"natural": question},
    }  # fmt: skip
    return "".join(
        (
            at.post("/v0/recall", recall),
            at.server.get(f"/v0/memories?agent_id={agent}").body.decode(),
            at.server.get(f"/v0/kg?agent_id={agent}&subject=it").body.decode(),
            at.post("/amp/search", {"query": question, "agent": agent, "min_score": 0}),
            at.server.get(f"/amp/records?agent={agent}").body.decode(),
            at.server.get(f"/openwop/memory?memoryRef={agent}").body.decode(),
            at.tool("/mcp/trusty", "memory_list", {"palace": agent}),
            at.tool("/mcp/trusty", "memory_recall", {"palace": agent, "query": question}),
            at.tool("/mcp/full", "recall", recall),
            at.post(f"/mrp/request?agent={agent}", request),
        )
    )
