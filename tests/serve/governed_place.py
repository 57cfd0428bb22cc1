"""A server with rules, the other ways to its data, and all that any protocol shows of an agent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp_process import run_mcp
from server_process import ServerProcess, command, environment, run_server

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

    def rpc(self, method: str, params: Document) -> str:
        return self.post("/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": f"memory.{method}", "params": params})

    def stdio(self, tool: str, arguments: Document) -> str:
        with run_mcp(self.data, "--tools", "all") as process:
            process.greet()
            return json.dumps(process.ask("tools/call", {"name": tool, "arguments": arguments}))

    def trusty(self, agent: str, tool: str, **arguments: Any) -> str:
        """A tool of trusty-memory, in the agent's palace."""
        self.tool("/mcp/trusty", "palace_create", {"name": agent})
        return self.tool("/mcp/trusty", tool, {"palace": agent, **arguments})

    def reviews(self, agent: str) -> list[Document]:
        """Those that wait."""
        return [each for each in self.server.get("/v0/reviews").json["reviews"] if each["agent_id"] == agent]

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


@contextmanager
def run_place(data: Path, rules: str) -> Iterator[Place]:
    (data / "commonplace.toml").write_text(rules, "utf-8")
    with run_server(data) as server:
        yield Place(server, data)


def said(agent: str, text: str) -> Document:
    return {"agent_id": agent, "type": "semantic", "content": text}


def fact(text: str) -> Document:
    return {"subject": "it", "predicate": "is", "object": text}


def lesson(agent: str, text: str, **more: Any) -> Document:
    """As AMP has it."""
    return {"type": "lesson", "agent": agent, "title": "it", "content": text, **more}


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
