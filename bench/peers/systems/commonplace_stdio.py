"""Commonplace as an MCP client spawns it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.systems.base import BaseAdapter, Embed, Hit, Row, Vector
from bench.peers.systems.commonplace_sdk import Adapter as Sdk, request
from bench.peers.systems.stdio import Client


class Adapter(BaseAdapter):
    embedder = "its own"

    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        self._folder, self._dimension, self._embed = folder, dimension, embed
        self._start()

    def _start(self) -> None:
        # The small set's answers have no score, by which the others are compared.
        command = [sys.executable, "-m", "commonplace.cli", "mcp", "--tools", "full", "--data", str(self._folder)]
        self._client = Client(command)
        self.spawned = self._client.spawned

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        """By the SDK, into the same folder, while no server runs."""
        self.close()
        sdk = Sdk()
        sdk.open(self._folder, self._dimension, self._embed)
        sdk.load(rows)
        sdk.close()
        self._start()

    def remember(self, row: Row) -> None:
        self._client.call("remember", **request(row))

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        more: dict[str, Any] = {"user_id": user} if user else {}
        more |= {} if self.judge else {"judge": "off"}
        found = self._client.call("recall", query=question, k=k, agent_id=agent, **more)["results"]
        return [Hit((hit.get("metadata") or {}).get("label", ""), hit["score"]) for hit in found]

    def pids(self) -> list[int]:
        return [self._client.process.pid]

    def close(self) -> None:
        self._client.leave()
