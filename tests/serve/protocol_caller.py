"""What is said through each protocol in turn, and how much of it each can carry.

A writer (protocol_writers.py) takes what there is to say and says as much of it as its protocol can; a reader
(protocol_readers.py) finds one memory and gives it back in our words. What each can say and show is read from the
table in docs/protocols.md.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_process import McpProcess
from server_process import Answer, ServerProcess

from commonplace.wire.record import system_clock

Document = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"
PROTOCOLS = ("memorywire", "AMP", "trusty-memory", "OpenWOP", "MRP")
_MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


# whoever writes and reads


@dataclass
class Caller:
    """One caller at one server. Everything it is told is noted down in `transcript`."""

    server: ServerProcess
    token: str
    agent: str
    stdio: McpProcess | None = None
    companion: ServerProcess | None = None
    keep: Callable[[str, Document], Document] | None = None  # MRP's way in has no route: whoever asked keeps
    now: Callable[[], int] = system_clock
    transcript: list[str] = field(default_factory=list)

    def call(
        self, method: str, path: str, body: Any = None, server: ServerProcess | None = None, **more: Any
    ) -> Answer:
        answer = (server or self.server).call(method, path, body, token=self.token, **more)
        assert answer.status < 500, answer.body
        self.transcript.append(f"{answer.status} {answer.body.decode()}")
        return answer

    def mcp(self, path: str, method: str, **params: Any) -> Document:
        """The result or the error that a message gets."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer: Document = self.call("POST", path, message, headers=_MCP).json
        return answer

    def tool(self, path: str, name: str, arguments: Document) -> Any:
        """What a tool answers, None where it refuses; `stdio` as the path asks the process beside the server."""
        if path == "stdio":
            assert self.stdio is not None
            answer = self.stdio.ask("tools/call", {"name": name, "arguments": arguments})
            self.transcript.append(json.dumps(answer, ensure_ascii=False))
        else:
            answer = self.mcp(path, "tools/call", name=name, arguments=arguments)
        result = answer.get("result")
        return None if result is None or result.get("isError") else json.loads(result["content"][0]["text"])

    def rpc(self, method: str, params: Document) -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": f"memory.{method}", "params": params}
        return self.call("POST", "/v0/rpc", call).json.get("result")


@dataclass
class StoredMemory:
    """A memory and what its author said of it; `refused` where the rules did not let it in."""

    id: str
    said: Document = field(default_factory=dict)
    refused: str | None = None

    @property
    def content(self) -> str:
        return str(self.said["content"])


# what there is to say

CONTENT = "The {word} ferry leaves the north pier at seven"
SAID: Document = {
    "type": "episodic", "tags": ["timetable", "north pier"], "project": "harbour", "title": "When the ferry leaves",
    "confidence": 0.75, "importance": 0.9, "source": "log/harbour.md", "user_id": "alice", "session_id": "session-7",
    "speaker": "Bob", "entity_name": "the ferry", "event_time": 1_767_225_600_000, "room": "Planning",
    "metadata": "blue",
}  # fmt: skip
EXTRA = "colour"  # the key that SAID's metadata stands under
IN_METADATA = ("tags", "title", "project", "importance", "session_id", "speaker", "entity_name", "event_time",
               "supersedes", "room")  # fmt: skip


def saying(word: str, now: int, **changes: Any) -> Document:
    said = {**SAID, "content": CONTENT.format(word=word), "expires_at": now + 86_400_000, "supersedes": [mint()]}
    return {**said, **changes}


def mint() -> str:
    return str(uuid.uuid4())


# the table of the page


@dataclass(frozen=True)
class Cell:
    written: bool
    shown: bool


def _cell(text: str) -> Cell:
    if text.startswith("–"):
        return Cell(False, False)
    limits = re.search(r"\(([a-z, ]+ only)\)$", text)
    said = limits[1] if limits else "written, shown only"
    return Cell("written" in said, "shown" in said)


def fidelity() -> dict[str, dict[str, Cell]]:
    """{protocol: {field: what becomes of it}}, as the page says."""
    rows = [line for line in PAGE.read_text("utf-8").split("## ")[1].splitlines() if line.startswith("| ")]
    names = [name.strip() for name in rows[0].strip("| ").split(" | ")][1:]
    names = [name.removesuffix(", our MCP tools") for name in names]
    assert tuple(names) == PROTOCOLS
    table: dict[str, dict[str, Cell]] = {name: {} for name in names}
    for row in rows[1:]:
        first, *cells = (cell.strip() for cell in row.strip().strip("|").split(" | "))
        for own in re.findall(r"`(\w+)`", first):
            for name, cell in zip(names, cells, strict=True):
                table[name][own] = _cell(cell)
    return table


FIDELITY = fidelity()


def kept_of(protocol: str, said: Document, **always: Any) -> Document:
    """What is kept of what was said through a protocol, with what the protocol itself adds."""
    written = {name: value for name, value in said.items() if FIDELITY[protocol][name].written}
    return {**written, **always}
