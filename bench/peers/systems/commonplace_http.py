"""Commonplace behind `commonplace serve`, over one kept connection."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.systems.base import BaseAdapter, Embed, Hit, Row, Vector, no_bytecode_left_out
from bench.peers.systems.commonplace_sdk import Adapter as Sdk, request

_READY_SECONDS = 60


class Adapter(BaseAdapter):
    embedder = "its own"

    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        self._folder, self._dimension, self._embed = folder, dimension, embed
        self._start()

    def _start(self) -> None:
        serve = ["serve", "--port", "0", "--data", str(self._folder), "--log-level", "warning"]
        self.spawned = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "commonplace.cli", *serve],
            stdout=subprocess.PIPE,
            text=True,
            env=no_bytecode_left_out(),
        )
        assert self._process.stdout is not None
        port = next(
            (int(found[1]) for line in self._process.stdout if (found := re.search(r"listening on \S+:(\d+)", line))), 0
        )
        if not port:
            raise RuntimeError("the server did not start")
        self._line = http.client.HTTPConnection("127.0.0.1", port)
        until = time.monotonic() + _READY_SECONDS
        while self._ask("GET", "/readyz", None)[0] != 200 and time.monotonic() < until:
            time.sleep(0.005)

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body)
        self._line.request(method, path, data, {"Content-Type": "application/json"})
        answer = self._line.getresponse()
        return answer.status, answer.read()

    def begin(self) -> None:
        try:
            self._ask("GET", "/readyz", None)
        except (OSError, http.client.HTTPException):  # the server closes what lies idle for half a minute
            self._line.close()
            self._ask("GET", "/readyz", None)

    def _post(self, operation: str, body: dict[str, Any]) -> Any:
        status, answer = self._ask("POST", f"/v0/{operation}", body)
        if status != 200:
            raise RuntimeError(f"{operation}: {status} {answer[:200]!r}")
        return json.loads(answer)

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        """By the SDK, into the same folder, while no server runs."""
        self.close()
        sdk = Sdk()
        sdk.open(self._folder, self._dimension, self._embed)
        sdk.load(rows)
        sdk.close()
        self._start()

    def remember(self, row: Row) -> None:
        self._post("remember", {"type": "semantic", **request(row)})

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        body: dict[str, Any] = {"agent_id": agent, "query": question, "k": k}
        body |= {"user_id": user} if user else {}
        body |= {} if self.judge else {"judge": "off"}
        found = self._post("recall", body)["results"]
        return [Hit((hit.get("metadata") or {}).get("label", ""), hit["score"]) for hit in found]

    def pids(self) -> list[int]:
        return [self._process.pid]

    def close(self) -> None:
        self._line.close()
        self._process.terminate()
        self._process.wait(60)
        self._process.stdout.close()  # type: ignore[union-attr]
