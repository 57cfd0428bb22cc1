"""A client that spawns an MCP server: as little as a client can be, so that what is measured is the server."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from bench.peers.systems.base import no_bytecode_left_out


class Client:
    def __init__(self, command: list[str], settings: dict[str, str] | None = None) -> None:
        self.spawned = time.monotonic()
        self.process = subprocess.Popen(
            command,
            env={**no_bytecode_left_out(), **(settings or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdout is not None
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the server is gone"}
        if "result" not in answer:
            raise RuntimeError(f"{method}: {answer.get('error')}")
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("isError"):
            raise RuntimeError(f"{tool}: {str(answer.get('content'))[:200]}")
        return answer["structuredContent"]

    def leave(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
