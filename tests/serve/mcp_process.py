"""`commonplace mcp` as a client spawns it, spoken to line by line."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from server_process import SECONDS, command, environment

MODERN = "2026-07-28"
_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CLIENT = "io.modelcontextprotocol/clientInfo"
CLIENT = {"name": "test", "version": "1"}


def enveloped(params: dict[str, Any] | None, era: str = MODERN) -> dict[str, Any]:
    """Parameters as a request of the stateless era carries them."""
    return {**(params or {}), "_meta": {_VERSION: era, _CAPABILITIES: {}, _CLIENT: CLIENT}}


def greeting(era: str) -> dict[str, Any]:
    return {"protocolVersion": era, "capabilities": {}, "clientInfo": CLIENT}


class McpProcess:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self._ids = iter(range(1, 1_000_000))
        self.era = "2025-11-25"

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._said.put(line)
        self._said.put(None)

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> Any:
        """The next message; None once the process has closed its end."""
        line = self._said.get(timeout=SECONDS)
        return None if line is None else json.loads(line)

    def send(self, method: str, params: Any = None, id: Any = None) -> Any:
        id = next(self._ids) if id is None else id
        given = enveloped(params) if self.era == MODERN else params
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        self.write(json.dumps(message if given is None else {**message, "params": given}).encode() + b"\n")
        return id

    def ask(self, method: str, params: Any = None) -> Any:
        """The response as it came: a result or an error."""
        id = self.send(method, params)
        answer = self.read()
        assert answer["id"] == id, answer
        return answer

    def result(self, method: str, params: Any = None) -> Any:
        return self.ask(method, params)["result"]

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool of ours answers, which must not be an error."""
        result = self.result("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return json.loads(result["content"][0]["text"])

    def notify(self, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        self.write(json.dumps(message if params is None else {**message, "params": params}).encode() + b"\n")

    def greet(self, era: str = "2025-11-25") -> Any:
        self.era = era
        if era == MODERN:
            return self.result("server/discover")
        answered = self.result("initialize", greeting(era))
        self.notify("notifications/initialized")
        return answered

    def hang_up(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(SECONDS)

    def signal(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS)

    @property
    def said_on_stderr(self) -> bytes:
        assert self.process.stderr is not None
        return self.process.stderr.read()


@contextmanager
def run_mcp(data: Path, *args: str, **settings: str) -> Iterator[McpProcess]:
    process = subprocess.Popen(
        command("mcp", *args), env=environment(data, **settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    one = McpProcess(process)
    try:
        yield one
        if process.stdin is not None and not process.stdin.closed:
            assert one.hang_up() == 0
    finally:
        process.kill()
        process.wait()
        one._thread.join(SECONDS)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                with suppress(BrokenPipeError):
                    stream.close()
