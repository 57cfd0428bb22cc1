"""A real `commonplace mcp --tools trusty`, spoken to over its pipes as a client would."""

from __future__ import annotations

import asyncio
import http.client
import json
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from server_process import SECONDS, Answer, command, environment

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem
from commonplace.engine.engine import Engine
from commonplace.engine.types import Draft
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.record import Principal

_LISTENING = re.compile(r"listening on http://\S+?:(\d+)\b")


class Client:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.err: list[str] = []
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._told: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._hear)]
        for thread in self.threads:
            thread.start()
        self._id = 1000

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _hear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.err.append(line.decode())
            self._told.put(line.decode())
        self._told.put(None)

    def send(self, line: str | bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n" if isinstance(line, str) else line)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        line = self._lines.get(timeout=SECONDS)
        assert line is not None, f"the server ended: {''.join(self.err)}"
        assert line.endswith(b"\n")
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def rest(self) -> list[dict[str, Any]]:
        """What is still to come, once the server is ending."""
        found = []
        while (line := self._lines.get(timeout=SECONDS)) is not None:
            found.append(json.loads(line))
        return found

    def told(self) -> list[str]:
        """Every line of stderr, once the server has ended."""
        for thread in self.threads:
            thread.join(SECONDS)
        return self.err

    def ask(self, line: str | bytes) -> dict[str, Any]:
        self.send(line)
        return self.receive()

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        self._id += 1
        answer = self.ask(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}))
        assert answer["id"] == self._id
        return answer

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The parsed text of a call that must succeed."""
        answer = self.request("tools/call", name=tool, arguments=arguments)
        return parsed(answer)

    def error(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        error: dict[str, Any] = self.request("tools/call", name=tool, arguments=arguments)["error"]
        return error

    @property
    def port(self) -> int:
        """Of the companion server."""
        while (line := self._told.get(timeout=SECONDS)) is not None:
            if found := _LISTENING.search(line):
                return int(found[1])
        raise AssertionError(f"no server: {''.join(self.err)}")

    def end(self, number: int | None = None) -> int:
        """The exit code, after stdin was closed or a signal sent; a process that does not end is an error."""
        if number is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
        else:
            self.process.send_signal(number)
        return self.process.wait(SECONDS)


def parsed(answer: dict[str, Any]) -> dict[str, Any]:
    result = answer["result"]
    assert list(result) == ["content"]
    (content,) = result["content"]
    assert list(content) == ["type", "text"]
    assert content["type"] == "text"
    document: dict[str, Any] = json.loads(content["text"])
    return document


def mcp(*args: str) -> list[str]:
    return command("mcp", "--tools", "trusty", *args)


@contextmanager
def run_trusty(data: Path, *args: str, **settings: str) -> Iterator[Client]:
    process = subprocess.Popen(
        mcp(*args), env=environment(data, **settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    client = Client(process)
    try:
        yield client
    finally:
        process.kill()
        process.wait()
        for thread in client.threads:
            thread.join(SECONDS)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                with suppress(BrokenPipeError):
                    stream.close()


def prefill(data: Path, *drafts: Draft) -> None:
    """Memories that are there before the server is."""

    async def write() -> None:
        engine = await Engine.open(SqliteStore(data / "commonplace.db"), HashingEmbedder())
        try:
            await engine.remember_many(Principal(), [BatchItem(draft) for draft in drafts])
        finally:
            await engine.close()

    asyncio.run(write())


def http_call(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Answer:  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, headers or {})
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


SIGNALS = (None, signal.SIGTERM, signal.SIGINT)
