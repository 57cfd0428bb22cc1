"""A real server process on a free port, spoken to over plain HTTP."""

from __future__ import annotations

import http.client
import json
import os
import queue
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import store_kinds

from commonplace.config import Config
from commonplace.serve.protocols import http_protocols

PROTOCOLS = http_protocols(Config(Path("nowhere")))  # what every server speaks
STORE = store_kinds.STORE or "sqlite"  # the name of the store that servers have
SECONDS = 30.0  # for a process to start or to stop, on a busy machine
_LISTENING = re.compile(r"listening on (https?://\S+)")


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The fault's code, in our envelope."""
        code: str = self.json["error"]["code"]
        return code


@dataclass
class ServerProcess:
    process: subprocess.Popen[str]
    url: str
    data: Path
    out: list[str]
    err: list[str]
    tls: ssl.SSLContext | None = None  # what its certificate is checked with, where it has one
    listeners: Sequence[threading.Thread] = field(default=(), kw_only=True)  # those that read `out` and `err`

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """`body` is sent as JSON, or as it is when it is bytes."""
        connection = self._connection()
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, self._path(path), data, {**self._headers(token), **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def _path(self, path: str) -> str:
        return path

    def _headers(self, token: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _connection(self) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=SECONDS, context=self.tls)

    def post(self, path: str, body: Any, **more: Any) -> Answer:
        return self.call("POST", path, body, **more)

    def get(self, path: str, **more: Any) -> Answer:
        return self.call("GET", path, **more)

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        for each in self.listeners:  # the last lines may not have been read yet
            each.join(SECONDS)
        return code

    def log_with(self, text: str) -> str:
        """What it has logged, once this is in it: the answer to what made it say so may be here before."""
        while text not in (logged := "".join(self.err)):
            assert self.process.poll() is None
        return logged


def store_url(path: Path) -> str:
    """Of the kind of store that servers have, where they are told which."""
    return f"sqlite://{path}"


def environment(data: Path, **more: str) -> dict[str, str]:
    """No setting of whoever runs the tests."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    return {**clean, "COMMONPLACE_DATA": str(data), "COMMONPLACE_EMBEDDER": "hashing", **more}


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "commonplace.cli", *args]


def cli(data: Path, *args: str, **settings: str) -> Any:
    """The JSON that a command prints."""
    asked, where = command(*args, "--json"), environment(data, **settings)
    done = subprocess.run(asked, env=where, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def token(data: Path, *args: str, **settings: str) -> str:
    made: str = cli(data, "token", "create", *args, **settings)["token"]
    return made


@contextmanager
def run_server(data: Path, *args: str, **settings: str) -> Iterator[ServerProcess]:
    process = subprocess.Popen(
        command("serve", "--port", "0", *args), env=environment(data, **settings), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out: list[str] = []
    err: list[str] = []
    said: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def listen(stream: Any, kept: list[str], tell: bool) -> None:
        for line in stream:
            kept.append(line)
            if tell:
                said.put(line)
        said.put(None)

    threads = [
        threading.Thread(target=listen, args=(process.stdout, out, True), daemon=True),
        threading.Thread(target=listen, args=(process.stderr, err, False), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        while (line := said.get(timeout=SECONDS)) is not None:
            if found := _LISTENING.search(line):
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(out + err)}")
        tls = ssl.create_default_context(cafile=args[args.index("--tls-cert") + 1]) if "--tls-cert" in args else None
        server = ServerProcess(process, found[1], data, out, err, tls, listeners=threads)
        while server.get("/readyz").status != 200:
            assert process.poll() is None
        yield server
        server.stop()
    finally:
        process.kill()
        process.wait()
        for thread in threads:
            thread.join(SECONDS)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
